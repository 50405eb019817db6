"""A fixed sample of ONNX's node cases as CUDA; ``--all-cases`` compiles every one."""

from __future__ import annotations

import pytest

from tests.conformance.cuda_built import run_cases
from tests.conformance.node_cases import cases

EVERY = 60  # the sample is every sixtieth case


@pytest.mark.cuda_build
@pytest.mark.timeout(3600)
def test_cases_compile_without_spills(request: pytest.FixtureRequest) -> None:
    every = 1 if request.config.getoption("--all-cases") else EVERY
    outcome = run_cases(cases()[::every], ["sm_80"])
    assert not outcome.failed, outcome.summary()
    assert not outcome.warned, outcome.summary()
    assert not outcome.unknown, outcome.summary()
    assert len(outcome.equal) >= 10
