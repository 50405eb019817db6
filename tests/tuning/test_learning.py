"""An evaluator does not measure again what others have measured."""

from dataclasses import replace

import pytest

from tcfuse.mapping_options import MappingOptions
from tcfuse.tuning.candidate import Candidate, Outcome
from tcfuse.tuning.measure import LocalEvaluator
from tcfuse.tuning.racing import Race
from tests.tuning.fakes import SUBJECT

pytestmark = pytest.mark.compiler

OTHER = Candidate(MappingOptions(unroll=4, tile=(32,)))
RACE = Race(budget_s=0.02, least=2, most=3)


def test_a_text_that_is_known_is_not_built():
    evaluator = LocalEvaluator(race=RACE)
    try:
        ((_, found),) = evaluator.evaluate(SUBJECT, [OTHER], Candidate())
    finally:
        evaluator.close()
    assert found.status in ("ok", "slow")
    assert 0 < found.building <= found.seconds

    told = replace(found, status="ok", micros=123.0, detail="of somebody else")
    evaluator = LocalEvaluator(race=RACE)
    try:
        evaluator.learn(SUBJECT, [told, Outcome("ok", source="never seen")])
        ((_, outcome),) = evaluator.evaluate(SUBJECT, [OTHER], Candidate())
        assert (outcome.micros, outcome.detail) == (123.0, "of somebody else")
        session = evaluator._session
        assert session is not None
        assert told.source not in session.making.contenders
        assert evaluator.made(SUBJECT, OTHER) == told
        fresh = evaluator.made(SUBJECT, Candidate(MappingOptions(unroll=16, tile=(8,))))
        assert fresh.status == "made"
        assert fresh.source not in ("", told.source, *session.making.contenders)
        third = Candidate(MappingOptions(unroll=8, tile=(16,)))
        ((_, beside),) = evaluator.evaluate(SUBJECT, [third], OTHER)  # as the incumbent
        assert beside.status in ("ok", "slow")
        assert told.source in session.making.contenders
    finally:
        evaluator.close()
