"""Whatever workers do, each candidate has one outcome, or the run ends with a sentence."""

import contextlib
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcfuse.errors import WorkerError
from tcfuse.tuning import dispatch
from tcfuse.tuning.candidate import Candidate, Outcome
from tcfuse.tuning.tasks import Known, Lost, Outcomes, Task, of_record, to_record
from tests.tuning.fakes import SUBJECT, candidates

OK = Outcome("ok", micros=1.0)


class Scripted:
    """Workers of which ``fates`` says what comes of their tasks: answer, keep on, or die."""

    def __init__(self, n_workers: int, fates: Sequence[str]) -> None:
        self.names = [f"w{n}" for n in range(n_workers)]
        self.fates = list(fates)
        self.tasks: dict[str, Task] = {}
        self.given: list[Candidate] = []

    def idle(self) -> Sequence[str]:
        return [name for name in self.names if name not in self.tasks]

    def send(self, worker: str, task: Task) -> None:
        assert worker not in self.tasks
        self.tasks[worker] = task
        self.given += task.candidates

    def receive(self, seconds: float) -> Sequence[tuple[str, Outcomes | Lost]]:
        found: list[tuple[str, Outcomes | Lost]] = []
        for worker, task in list(self.tasks.items()):
            fate = self.fates.pop() if self.fates else "answer"
            if fate == "answer":
                found.append((worker, [(each, OK) for each in task.candidates]))
            elif fate == "die":
                found.append((worker, Lost("it died")))
            else:
                continue
            del self.tasks[worker]
        return found

    def give_up(self, worker: str, *, hangs: bool = False) -> None:
        del self.tasks[worker]
        if hangs:
            self.names.remove(worker)


@given(
    n_workers=st.integers(1, 5),
    n_candidates=st.integers(0, 12),
    fates=st.lists(st.sampled_from(["answer", "answer", "keep on", "die"]), max_size=40),
)
def test_each_candidate_has_one_outcome(n_workers, n_candidates, fates):
    workers = Scripted(n_workers, fates)
    asked = candidates(*(1 + n % 7 for n in range(n_candidates)))
    found = None
    with contextlib.suppress(WorkerError):
        found = list(dispatch.evaluate(workers, SUBJECT, asked, Candidate()))
    if found is None:
        assert fates.count("die") >= 8
    else:
        assert Counter(candidate for candidate, _ in found) == Counter(asked)
        assert {outcome.status for _, outcome in found} <= {"ok", "crashed"}
        n_crashed = sum(outcome.status == "crashed" for _, outcome in found)
        assert fates.count("die") >= 2 * n_crashed
    assert not workers.tasks


class Makers(Scripted):
    """Workers that say first what text a candidate has: its knob's remainder by ``n_texts``."""

    def __init__(self, n_workers: int, fates: Sequence[str], n_texts: int) -> None:
        super().__init__(n_workers, fates)
        self.n_texts = n_texts
        self.measured: list[str] = []

    def receive(self, seconds: float) -> Sequence[tuple[str, Outcomes | Lost]]:
        tasks = dict(self.tasks)
        return [
            (worker, answer if isinstance(answer, Lost) else self.told(tasks[worker]))
            for worker, answer in super().receive(seconds)
        ]

    def told(self, task: Task) -> Outcomes:
        (candidate,) = task.candidates
        source = str(candidate.mapping.unroll % self.n_texts)
        if task.asks:
            return [(candidate, Outcome("made", source=source))]
        self.measured.append(source)
        return [(candidate, Outcome("ok", micros=1.0, source=source))]


@given(
    n_workers=st.integers(2, 5),
    n_candidates=st.integers(2, 12),
    n_texts=st.integers(1, 5),
    fates=st.lists(st.sampled_from(["answer", "keep on", "keep on", "die"]), max_size=30),
)
def test_a_text_is_measured_by_one_worker_whoever_else_has_it(
    n_workers, n_candidates, n_texts, fates
):
    workers = Makers(n_workers, fates, n_texts)
    asked = candidates(*range(1, 1 + n_candidates))
    found = None
    with contextlib.suppress(WorkerError):
        found = list(dispatch.evaluate(workers, SUBJECT, asked, Candidate()))
    if found is not None:
        assert Counter(candidate for candidate, _ in found) == Counter(asked)
        assert {outcome.status for _, outcome in found} <= {"ok", "crashed"}
        for candidate, outcome in found:
            text = str(candidate.mapping.unroll % n_texts)
            assert outcome.status == "crashed" or outcome.source == text
        if any(outcome.status == "crashed" for _, outcome in found):
            assert "die" in fates
        assert set(Counter(workers.measured).values()) <= {1}


def test_a_single_worker_is_not_asked_for_texts_first():
    workers = Makers(1, [], 2)
    list(dispatch.evaluate(workers, SUBJECT, candidates(1, 2, 3), Candidate()))
    assert workers.measured == ["1", "0", "1"]


def test_what_all_workers_know_is_not_measured():
    workers, known = Makers(2, [], 2), Known()
    known.add(SUBJECT, Outcome("ok", micros=3.0, source="1"))
    found = dict(dispatch.evaluate(workers, SUBJECT, candidates(1, 2, 3), Candidate(), known))
    assert [found[c].micros for c in candidates(1, 2, 3)] == [3.0, 1.0, 3.0]
    assert workers.measured == ["0"]


def test_what_is_known_of_a_text_is_not_so_for_another_subject():
    known = Known()
    known.add(replace(SUBJECT, sizes={"N": 7}), Outcome("ok", micros=3.0, source="1"))
    workers = Makers(2, [], 2)
    ((_, outcome),) = dispatch.evaluate(workers, SUBJECT, candidates(1), Candidate(), known)
    assert outcome.micros == 1.0
    assert workers.measured == ["1"]


def test_workers_that_all_die_end_the_run():
    workers = Scripted(2, ["die"] * 40)
    with pytest.raises(WorkerError, match="8 workers were lost one after the other: it died"):
        list(dispatch.evaluate(workers, SUBJECT, candidates(*range(1, 20)), Candidate()))


def test_a_task_whose_worker_died_comes_after_the_rest():
    workers = Scripted(1, ["die"])
    asked = candidates(1, 2, 4)
    found = [each for each, _ in dispatch.evaluate(workers, SUBJECT, asked, Candidate())]
    assert found == [*asked[1:], asked[0]]
    assert workers.given == [*asked, asked[0]]


def test_candidates_are_confirmed_together():
    workers = Scripted(3, [])
    found = list(dispatch.confirm(workers, SUBJECT, candidates(1, 2)))
    assert [each for each, _ in found] == candidates(1, 2)
    assert list(dispatch.confirm(workers, SUBJECT, [])) == []


def test_a_worker_that_hangs_is_given_nothing_more(monkeypatch):
    monkeypatch.setattr(dispatch, "SECONDS", 0.0)
    workers = Scripted(2, ["keep on"] * 2)
    ((_, outcome),) = dispatch.evaluate(workers, SUBJECT, candidates(1), Candidate())
    assert outcome.status == "crashed"
    assert workers.names == []


def test_nobody_comes(monkeypatch):
    monkeypatch.setattr(dispatch, "PATIENCE", 0.2)
    begin = time.monotonic()
    with pytest.raises(WorkerError, match="no worker has come for 0 s"):
        list(dispatch.evaluate(Scripted(0, []), SUBJECT, candidates(1), Candidate()))
    assert time.monotonic() - begin < 5


def test_what_runs_is_given_up_when_nobody_wants_it():
    workers = Scripted(3, ["keep on", "answer", "keep on"])
    outcomes = dispatch.evaluate(workers, SUBJECT, candidates(1, 2, 4, 8), Candidate())
    next(outcomes)
    assert len(workers.tasks) == 2
    outcomes.close()
    assert workers.tasks == {}


def test_every_worker_is_told_once_what_others_found():
    known = Known()
    first, second = (Outcome("ok", source=name) for name in ("a", "b"))
    assert known.news("w0", SUBJECT) == ()
    for outcome in (first, replace(first, micros=2.0), OK):
        known.add(SUBJECT, outcome)
    assert known.news("w0", SUBJECT) == (first,)
    known.add(SUBJECT, second)
    assert known.news("w0", SUBJECT) == (second,)
    assert known.news("w1", SUBJECT) == (first, second)
    assert known.news("w1", SUBJECT) == ()
    known.forget("w1")
    assert known.news("w1", SUBJECT) == (first, second)
    other = replace(SUBJECT, name="g")
    assert known.news("w1", other) == ()
    known.add(other, OK)
    assert known.news("w1", SUBJECT) == known.news("w1", other) == ()


def test_a_task_travels():
    task = Task(
        SUBJECT, tuple(candidates(1, 2)), *candidates(4), confirms=True, asks=True, known=(OK,)
    )
    assert of_record(to_record(task)) == task
