"""A fixed sample of ONNX's node cases, compiled; ``--all-cases`` compiles every one."""

from __future__ import annotations

import pytest

from tests.conformance.compiled import Outcome, run_cases
from tests.conformance.node_cases import cases

pytestmark = [pytest.mark.compiler, pytest.mark.ort]

EVERY = 10  # the sample is every tenth case
KNOWN_REFUSALS = (
    "Dropout is, or may be, in training mode",
    "everything is folded",
    "nothing is read",
)


@pytest.fixture(scope="module")
def outcome(request: pytest.FixtureRequest) -> Outcome:
    every = 1 if request.config.getoption("--all-cases") else EVERY
    return run_cases(cases()[::every])


@pytest.mark.timeout(1800)
def test_compiled_cases_equal_what_onnx_expects(outcome, capsys):
    with capsys.disabled():
        print(f"\n{outcome.summary()}")  # noqa: T201 - the counts are this test's result
    assert not outcome.failed, "\n".join(outcome.failed)
    assert len(outcome.equal) >= 50


def test_refusals_of_cases_are_known(outcome):
    others = {
        name: reason
        for name, reason in outcome.refused.items()
        if not any(known in reason for known in KNOWN_REFUSALS)
    }
    assert not others
