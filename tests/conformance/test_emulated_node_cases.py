"""A fixed sample of ONNX's node cases as CUDA in the emulator; ``--all-cases``: every one."""

from __future__ import annotations

import pytest

from tests.conformance.emulated import Emulated, run_cases
from tests.conformance.node_cases import cases
from tests.conformance.test_compiled_node_cases import KNOWN_REFUSALS

pytestmark = pytest.mark.compiler

EVERY, SYMBOLIC = 16, 60  # the samples are every so manieth case


@pytest.fixture(scope="module", params=[False, True], ids=["known", "symbolic"])
def outcome(request: pytest.FixtureRequest) -> Emulated:
    every = SYMBOLIC if request.param else EVERY
    if request.config.getoption("--all-cases"):
        every = 1
    return run_cases(list(cases([]))[3::every], symbolic=request.param)


@pytest.mark.timeout(3600)
def test_emulated_cases_equal_what_onnx_expects(outcome, capsys):
    with capsys.disabled():
        print(f"\n{outcome.summary()}")  # noqa: T201 - the counts are this test's result
    assert not outcome.failed, "\n".join(f"{k}: {v}" for k, v in outcome.failed.items())
    assert not outcome.findings
    assert len(outcome.equal) >= 8


def test_refusals_of_emulated_cases_are_known(outcome):
    more = ("may leave the tensor", "channels moved", "training mode")
    others = {
        name: reason
        for name, reason in outcome.refused.items()
        if not any(known in reason for known in (*KNOWN_REFUSALS, *more))
    }
    assert not others
