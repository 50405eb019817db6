"""Every kernel of a model: the time shared, what is known left alone, interrupts and kills."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tcfuse.errors import OptionError
from tcfuse.mapping_options import MappingOptions
from tcfuse.tuning.campaign import Campaign, Search
from tcfuse.tuning.candidate import Candidate, Outcome, Subject
from tcfuse.tuning.journal import Journal
from tcfuse.tuning.tuned import (
    CONVERGED,
    FAILED,
    INTERRUPTED,
    KNOWN,
    UNTUNED,
    State,
    Task,
    Tuned,
)
from tcfuse.wisdom.database import Database
from tcfuse.wisdom.versions import current_versions
from tests.tuning import made_up
from tests.tuning.made_up import FakeEvaluator, KilledError, killing
from tests.tuning.subjects import SCALE, subject

SEARCH = Search(population=6, generations=3)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database(tmp_path / "wisdom.sqlite") as opened:
        yield opened


def tasks(count: int = 3) -> list[Task]:
    """Kernels of one text that are called 1, 2, ... times."""
    made = subject(SCALE, {"N": 4096})
    return [
        replace(task, problem=replace(task.problem, template=f"kernel {calls}"))
        for calls in range(1, count + 1)
        for task in [made_up.task(replace(made, name=f"kernel{calls}"), calls=calls)]
    ]


def campaign(
    database: Database,
    evaluator: FakeEvaluator,
    *,
    again: bool = False,
    search: Search = SEARCH,
) -> list[Tuned]:
    return list(Campaign(tasks(), search, evaluator, database, again=again).run())


def names(found: Sequence[Tuned]) -> list[str]:
    return [tuned.task.subject.name for tuned in found]


def test_the_dearest_kernel_is_first_and_all_are_recorded(database: Database):
    found = campaign(database, FakeEvaluator())
    assert names(found) == ["kernel3", "kernel2", "kernel1"]
    assert {tuned.ended for tuned in found} == {CONVERGED}
    for tuned in found:
        assert database.best(tuned.task.problem) == tuned.entry
        assert tuned.total_us == 100 * tuned.task.calls
        assert tuned.saved_us == pytest.approx(tuned.total_us * (1 - 1 / tuned.gain))


def test_what_was_tuned_is_not_tuned_again_unless_asked(database: Database):
    before = campaign(database, FakeEvaluator())
    evaluator = FakeEvaluator()
    found = campaign(database, evaluator)
    assert evaluator.asked == []
    assert {tuned.ended for tuned in found} == {KNOWN}
    entries = {t.task.problem.key: t.entry for t in before}
    assert all(t.entry == entries[t.task.problem.key] for t in found)
    assert all(t.default_us == pytest.approx(100) for t in found)
    found = campaign(database, evaluator, again=True)
    assert len(evaluator.asked) >= 3 * 6
    assert {tuned.ended for tuned in found} == {CONVERGED}


def test_tuning_again_starts_from_the_best_and_replaces_it(database: Database):
    first = campaign(database, FakeEvaluator())
    slower = FakeEvaluator(confirmed=lambda candidate: 95.0)
    second = campaign(database, slower, again=True)
    for old, new in zip(first, second, strict=True):
        assert old.entry is not None
        assert new.entry is not None
        assert old.entry.speedup > new.entry.speedup
        assert [e.knobs for e in database.top(new.task.problem)] == [new.entry.knobs]
        seeds = Journal(database, SEARCH.run_of(new.task)).seeds
        assert seeds is not None
        assert made_up.micros(seeds[0]) == old.entry.micros


def test_a_new_version_is_tuned_anew(database: Database, monkeypatch: pytest.MonkeyPatch):
    campaign(database, FakeEvaluator())
    newer = {**current_versions(), "tcfuse": "99"}
    monkeypatch.setattr("tcfuse.tuning.campaign.current_versions", lambda target: newer)
    evaluator = FakeEvaluator()
    found = campaign(database, evaluator)
    assert evaluator.asked
    assert all(t.entry is not None and t.entry.versions == newer for t in found)


@pytest.mark.parametrize("moment", [0, 1, 4, 9, 16])
def test_a_killed_run_goes_on_where_it_was(database: Database, tmp_path: Path, moment: int):
    with Database(tmp_path / "other.sqlite") as other:
        expected = campaign(other, whole := FakeEvaluator())
    evaluator = FakeEvaluator(before=killing(moment))
    with pytest.raises(KilledError):
        campaign(database, evaluator)
    last = FakeEvaluator()
    found = campaign(database, last)
    assert len(evaluator.asked) + len(last.asked) == len(whole.asked)
    assert {t.entry.key for t in found if t.entry} == {t.entry.key for t in expected if t.entry}


def test_an_interrupt_ends_the_run_and_keeps_the_best(database: Database):
    evaluator = FakeEvaluator(before=killing(14, KeyboardInterrupt))
    found = campaign(database, evaluator)
    assert [tuned.ended for tuned in found] == [INTERRUPTED, UNTUNED, UNTUNED]
    assert found[0].entry is not None
    assert database.best(found[0].task.problem) == found[0].entry
    again = campaign(database, FakeEvaluator())
    assert [tuned.ended for tuned in again] == [CONVERGED] * 3


def test_an_interrupt_before_anything_is_known(database: Database):
    found = campaign(database, FakeEvaluator(before=killing(1, KeyboardInterrupt)))
    assert {tuned.ended for tuned in found} == {UNTUNED}
    assert database.entries() == []


def test_time_goes_where_time_is_spent(database: Database, monkeypatch: pytest.MonkeyPatch):
    now = [0.0]
    monkeypatch.setattr("tcfuse.tuning.budget.time.monotonic", lambda: now[0])

    def before(count: int) -> None:
        now[0] += 0.1

    states: list[State] = []
    evaluator = FakeEvaluator(before=before)
    search = Search(sampler="random", population=5, generations=1000)
    found = list(Campaign(tasks(), search, evaluator, database, 60.0, states.append).run())
    used = {t.task.subject.name: max(trial.at for trial in t.trials) for t in found}
    assert used["kernel3"] > used["kernel2"] > used["kernel1"] > 5
    assert now[0] <= 60
    assert {state.count for state in states} == {3}
    assert {state.place for state in states} == {1, 2, 3}


def test_where_there_is_little_time_the_cheapest_are_left(
    database: Database, monkeypatch: pytest.MonkeyPatch
):
    now = [0.0]
    monkeypatch.setattr("tcfuse.tuning.budget.time.monotonic", lambda: now[0])

    def before(count: int) -> None:
        now[0] += 0.5

    search = Search(sampler="random", population=5, generations=1000)
    evaluator = FakeEvaluator(before=before)
    found = list(Campaign(tasks(), search, evaluator, database, 7.0).run())
    assert names(found)[0] == "kernel3"
    assert found[-1].ended == UNTUNED
    assert found[-1].default_us == 100


def test_a_kernel_that_cannot_be_measured_does_not_stop_the_others(database: Database):
    class Picky(FakeEvaluator):
        def evaluate(
            self, subject: Subject, candidates: Sequence[Candidate], incumbent: Candidate
        ) -> Iterator[tuple[Candidate, Outcome]]:
            if subject.name == "kernel2":
                return iter([(c, Outcome("timeout", detail="30 s")) for c in candidates])
            return super().evaluate(subject, candidates, incumbent)

    found = campaign(database, Picky())
    ended = {tuned.task.subject.name: tuned.ended for tuned in found}
    assert ended == {"kernel3": CONVERGED, "kernel1": CONVERGED, "kernel2": FAILED}
    (failed,) = (tuned for tuned in found if tuned.ended == FAILED)
    assert failed.detail == "with default knobs: timeout: 30 s"


def test_wisdom_of_near_sizes_is_where_the_search_starts(database: Database):
    campaign(database, FakeEvaluator())
    (task, *_) = tasks()
    near = replace(task, problem=replace(task.problem, sizes=(128,)))
    best = database.best(task.problem)
    assert best is not None
    evaluator = FakeEvaluator()
    list(Campaign([near], SEARCH, evaluator, database).run())
    assert made_up.micros(evaluator.asked[1]) == best.micros


def test_forced_knobs_are_in_every_candidate(database: Database):
    evaluator = FakeEvaluator()
    search = replace(SEARCH, forced={"accumulators": 2})
    list(Campaign(tasks(1), search, evaluator, database).run())
    default, *rest = evaluator.asked
    assert default == Candidate(MappingOptions())
    assert {c.mapping.accumulators for c in rest} == {2}


def test_no_such_sampler():
    with pytest.raises(OptionError, match="no sampler 'best'; there are genetic, random"):
        Search("best")


def test_runs_are_told_apart_by_all_that_determines_them(database: Database):
    (task, other, _) = tasks()
    searches = [SEARCH, replace(SEARCH, seed=1), replace(SEARCH, sampler="random")]
    searches += [replace(SEARCH, population=7), replace(SEARCH, forced={"block": 1})]
    runs = {search.run_of(one) for search in searches for one in (task, other)}
    assert len(runs) == 10
    assert replace(SEARCH, generations=50).run_of(task) == SEARCH.run_of(task)
