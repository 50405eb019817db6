"""A fixed sample of ONNX's node cases as CUDA in the emulator; ``--all-cases``: every one."""

from __future__ import annotations

import pytest

from tests.conformance.emulated import Emulated, run_cases
from tests.conformance.node_cases import cases
from tests.conformance.test_compiled_node_cases import KNOWN_REFUSALS

pytestmark = pytest.mark.compiler

MORE_REFUSALS = (
    # what only sizes that are names lead to
    "may leave the tensor",
    " channels",
    " heads with ",
    "is not written out",
    "CausalConvWithState of float",
    "cannot show that",
    "Tile of a dimension of size",
    "elements in mode",
    "is not known from the input shapes",
)
EVERY, OTHERS = 10, 60  # the samples are every so manieth case


@pytest.fixture(scope="module", params=["known", "symbolic", "drawn"])
def outcome(request: pytest.FixtureRequest) -> Emulated:
    every = EVERY if request.param == "known" else OTHERS
    if request.config.getoption("--all-cases"):
        every = 1
    symbolic, seed = request.param != "known", int(request.param == "drawn")
    return run_cases(cases()[3 + seed :: every], symbolic=symbolic, seed=seed)


@pytest.mark.timeout(3600)
def test_emulated_cases_equal_what_onnx_expects(outcome, capsys):
    with capsys.disabled():
        print(f"\n{outcome.summary()}")  # noqa: T201 - the counts are this test's result
    assert not outcome.failed, "\n".join(f"{k}: {v}" for k, v in outcome.failed.items())
    assert not outcome.findings
    assert len(outcome.equal) >= 8


def test_refusals_of_emulated_cases_are_known(outcome):
    others = {
        name: reason
        for name, reason in outcome.refused.items()
        if not any(known in reason for known in (*KNOWN_REFUSALS, *MORE_REFUSALS))
    }
    assert not others
