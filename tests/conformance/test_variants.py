"""A fixed sample of operators in other types and ranks, compiled."""

from __future__ import annotations

import pytest

from tests.conformance.compiled import run_cases
from tests.conformance.variants import chosen

pytestmark = [pytest.mark.compiler, pytest.mark.ort]

EVERY = 60  # the sample is every sixtieth variant


@pytest.mark.timeout(600)
def test_operators_of_every_type_and_rank_agree_with_onnxruntime():
    outcome = run_cases(chosen(EVERY))
    assert not outcome.failed
    assert len(outcome.equal) >= 50
