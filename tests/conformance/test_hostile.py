"""A few spoilt cases; ``python -m tests.conformance.hostile`` spoils any number."""

from __future__ import annotations

import pytest

from tests.conformance.hostile import run_spoilt

COUNT, SEED = 40, 11


@pytest.mark.compiler
@pytest.mark.ort
@pytest.mark.timeout(600)
def test_spoilt_cases_are_refused_or_left_alone(capsys):
    outcome = run_spoilt(COUNT, SEED)
    with capsys.disabled():
        print(f"\n{outcome.summary()}")  # noqa: T201 - the counts are this test's result
    assert not outcome.bad
    assert len(outcome.found) == COUNT
