"""The loop for one kernel, with a sampler that is real and measurements that are not."""

from __future__ import annotations

import contextlib
import logging
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcfuse.errors import UnsupportedError
from tcfuse.knob import knobs_of
from tcfuse.mapping_options import MappingOptions
from tcfuse.tuning.budget import Clock
from tcfuse.tuning.candidate import Candidate
from tcfuse.tuning.journal import Journal, text_of
from tcfuse.tuning.protocols import Sampler
from tcfuse.tuning.samplers import samplers
from tcfuse.tuning.space import Space
from tcfuse.tuning.tune import tune_subject
from tcfuse.tuning.tuned import (
    BUDGET,
    CONVERGED,
    FAILED,
    INTERRUPTED,
    State,
    Tuned,
    candidate_of,
)
from tcfuse.wisdom.database import Database
from tests.tuning import made_up
from tests.tuning.made_up import FakeEvaluator, FakeRows, KilledError, killing
from tests.tuning.subjects import subject

TASK = made_up.task(subject())
SEARCHED = ("fusion", "tile", "separate_tiles", "unroll", "accumulators", "block")
FORCED = {name: k.default for name, k in knobs_of(MappingOptions) if name not in SEARCHED}
SPACE = Space.of(TASK.subject, FORCED)  # whatever knobs there will be
VERSIONS = {"tcfuse": "1", "compiler": "c"}


def sampler(name: str = "genetic", generations: int = 5) -> Sampler:
    return samplers[name](SPACE, 1, population=8, generations=generations, elites=2)


def tuned(
    evaluator: FakeEvaluator,
    rows: FakeRows | Database | None = None,
    clock: Clock | None = None,
    name: str = "genetic",
) -> Tuned:
    journal = Journal(rows or FakeRows(), "run")
    journal.begin([])
    clock = clock or Clock()
    return tune_subject(TASK, sampler(name), evaluator, journal, clock, VERSIONS)


@pytest.mark.parametrize("name", ["genetic", "random"])
def test_the_best_that_was_tried_becomes_the_entry(name: str):
    found = tuned(FakeEvaluator(), name=name)
    best = max(trial.outcome.fitness for trial in found.trials)
    assert found.ended == CONVERGED
    assert sum(generation.tried for generation in found.generations) == 40
    assert found.default_us == 100
    assert found.entry is not None
    assert found.entry.speedup == best > 1.2
    assert set(found.entry.knobs["mapping"]) <= {"tile", "unroll", "block"}  # those that matter
    assert found.entry.micros == pytest.approx(100 / best)
    assert made_up.micros(candidate_of(found.entry, "default")) == found.entry.micros
    assert found.entry.versions == VERSIONS
    assert [g.number for g in found.generations] == [1, 2, 3, 4, 5]
    assert found.generations[-1].best >= found.generations[-1].median


def test_a_gain_that_a_longer_run_does_not_confirm_is_none():
    evaluator = FakeEvaluator(confirmed=lambda candidate: 99.9)
    found = tuned(evaluator)
    assert len(evaluator.confirmations[0]) == 3
    assert found.entry is not None
    assert found.entry.knobs == {}
    assert found.entry.speedup == 1.0
    assert found.gain == 1.0


def test_a_gain_within_two_standard_errors_is_none():
    evaluator = FakeEvaluator(confirmed=lambda candidate: 97.0)
    assert tuned(evaluator).gain == pytest.approx(100 / 97)
    noisy = FakeEvaluator(confirmed=lambda candidate: 97.0)
    exact = noisy._outcome
    noisy._outcome = lambda *args: replace(exact(*args), error=0.05)  # type: ignore[method-assign]
    assert tuned(noisy).gain == 1.0


@pytest.mark.parametrize("when", ["searching", "confirming"])
def test_a_default_that_cannot_be_measured_any_more_fails_this_kernel_alone(when: str):
    def lost(count: int) -> None:
        if when == "searching" and count == 3:
            raise UnsupportedError("there is no kernel with default knobs")

    evaluator = FakeEvaluator(before=lost)
    if when == "confirming":

        def confirm(*_: object) -> list:
            raise UnsupportedError("there is no kernel with default knobs")

        evaluator.confirm = confirm  # type: ignore[method-assign]
    found = tuned(evaluator)
    assert found.ended == FAILED
    assert found.entry is None
    assert found.detail == "there is no kernel with default knobs"


def test_equal_kernels_are_confirmed_once():
    evaluator = FakeEvaluator(micros=lambda c: 50.0 if c.mapping.unroll > 1 else 100.0)
    tuned(evaluator)
    assert len(evaluator.confirmations[0]) == 1


def test_nothing_is_confirmed_where_nothing_seems_faster():
    evaluator = FakeEvaluator(micros=lambda candidate: 100.0)
    found = tuned(evaluator)
    assert evaluator.confirmations == []
    assert found.entry is not None
    assert found.entry.knobs == {}


@pytest.mark.parametrize("error", [KilledError, KeyboardInterrupt])
@settings(max_examples=8, deadline=None)
@given(st.lists(st.integers(0, 39), min_size=1, max_size=4))
def test_a_search_that_ended_early_goes_on_where_it_was(
    error: type[BaseException], moments: list[int]
):
    whole, rows = FakeEvaluator(), FakeRows()
    expected = tuned(whole)
    asked: list[Candidate] = []
    for moment in moments:
        evaluator = FakeEvaluator(before=killing(moment, error))
        with contextlib.suppress(KilledError):
            tuned(evaluator, rows)
        asked += evaluator.asked
    last = FakeEvaluator()
    found = tuned(last, rows)
    asked += last.asked
    assert found.entry == expected.entry
    assert [t.candidate for t in found.trials] == [t.candidate for t in expected.trials]
    assert [t.outcome for t in found.trials] == [t.outcome for t in expected.trials]
    assert sorted(map(text_of, asked)) == sorted(map(text_of, whole.asked))


def test_an_interrupt_keeps_the_best_and_is_no_end():
    rows = FakeRows()
    evaluator = FakeEvaluator(before=killing(20, KeyboardInterrupt))
    found = tuned(evaluator, rows)
    assert found.ended == INTERRUPTED
    assert len(found.trials) == 20
    assert found.gain == max(trial.outcome.fitness for trial in found.trials) > 1
    assert Journal(rows, "run").ended == ""
    assert evaluator.closed == 4  # the default alone, then every generation


def test_a_second_interrupt_is_one_of_the_program():
    def confirmed(candidate: Candidate) -> float:
        raise KeyboardInterrupt

    evaluator = FakeEvaluator(before=killing(20, KeyboardInterrupt), confirmed=confirmed)
    with pytest.raises(KeyboardInterrupt):
        tuned(evaluator)


def test_the_time_is_kept_and_some_is_left_for_confirming():
    time = [0.0]

    def before(count: int) -> None:
        time[0] += 1.0

    rows = FakeRows()
    found = tuned(FakeEvaluator(before=before), rows, Clock(20.0, now=lambda: time[0]))
    assert found.ended == BUDGET
    searched = sum(generation.tried for generation in found.generations)
    assert searched == 14  # a part is left for what comes after the search, and for confirming
    assert searched < len(found.trials) <= 20
    journal = Journal(rows, "run")
    assert journal.used == found.trials[-1].at <= 20
    assert journal.ended == BUDGET
    journal.begin([])
    more = tuned(FakeEvaluator(before=before), rows, Clock(30.0, journal.used, lambda: time[0]))
    assert len(found.trials) < len(more.trials) <= 30


def test_failures_cost_a_line_each(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "tcfuse")
    evaluator = FakeEvaluator(fails=lambda c: "crashed" if c.mapping.unroll > 4 else "")
    found = tuned(evaluator)
    assert found.failed["crashed"] == len(found.failures) > 0
    assert all(trial.candidate.mapping.unroll > 4 for trial in found.failures)
    lines = [record.message for record in caplog.records if "crashed" in record.message]
    assert len(lines) == len(found.failures)
    assert "unroll=" in lines[0]
    assert lines[0].endswith("as planned")
    assert found.gain > 1


def test_a_kernel_that_cannot_be_measured_is_not_searched():
    evaluator = FakeEvaluator(fails=lambda candidate: "wrong")
    found = tuned(evaluator)
    assert found.ended == FAILED
    assert found.entry is None
    assert found.detail == "with default knobs: wrong: as planned"
    assert len(evaluator.asked) == 1


def test_a_kernel_that_there_is_not_is_not_searched():
    class Refusing(FakeEvaluator):
        def evaluate(self, *args: object) -> object:  # type: ignore[override]
            raise UnsupportedError("it cannot be")

    found = tuned(Refusing())
    assert found.ended == FAILED
    assert found.detail == "with default knobs: refused: it cannot be"


def test_numerics_are_those_of_the_run():
    strict = replace(TASK, subject=replace(TASK.subject, numerics="strict"))
    evaluator = FakeEvaluator()
    journal = Journal(FakeRows(), "run")
    search = samplers["random"](
        Space.of(strict.subject), 1, population=8, generations=2, elites=2
    )
    found = tune_subject(strict, search, evaluator, journal, Clock(), VERSIONS)
    assert {c.mapping.numerics for c in evaluator.asked} == {"strict"}
    assert found.entry is not None
    assert "numerics" not in found.entry.knobs.get("mapping", {})


def test_progress_tells_how_it_goes():
    states: list[State] = []
    journal = Journal(FakeRows(), "run")
    tune_subject(TASK, sampler(), FakeEvaluator(), journal, Clock(60), VERSIONS, states.append)
    assert [s.done for s in states] == sorted(s.done for s in states)
    assert states[-1].done >= 40
    assert states[-1].generation is not None
    assert states[-1].generation.number == 5
    assert states[-1].best >= states[0].best
    assert {s.seconds for s in states} == {60}


def test_journals_outlive_the_process(tmp_path: Path):
    seed = Candidate(MappingOptions(tile=(8, 8)))
    with Database(tmp_path / "wisdom.sqlite") as database:
        journal = Journal(database, "run")
        assert journal.begin([seed]) == (seed,)
        evaluator = FakeEvaluator()
        for candidate, outcome in evaluator.evaluate(TASK.subject, [seed], seed):
            journal.note(candidate, outcome, 2.5)
    with Database(tmp_path / "wisdom.sqlite") as database:
        again = Journal(database, "run")
        assert again.begin([]) == (seed,)
        assert again.known(seed) == journal.known(seed)
        assert again.used == 2.5
        again.end(CONVERGED)
        assert Journal(database, "run").ended == CONVERGED
        assert Journal(database, "another").seeds is None
        again.forget()
        assert list(Journal(database, "run")) == []
