"""Several workers on this machine: each has cores of its own, and may die."""

import os
import time
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from tcfuse.errors import UnsupportedError, WorkerError
from tcfuse.tuning import dispatch, workers
from tcfuse.tuning.candidate import Candidate
from tcfuse.tuning.workers import WorkersEvaluator
from tests.tuning.fakes import HANGS, IMPOSSIBLE, KILLS, KILLS_ONCE, SUBJECT, Fake, candidates

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.timeout(120)


@pytest.fixture(autouse=True)
def importable(tmp_path, monkeypatch):
    """Workers find this folder, and lock files of their own."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))


@pytest.fixture
def start(tmp_path):
    """``start(2)`` is an evaluator of two workers."""
    started = []

    def make(n_workers: int, seconds: float = 0.0) -> WorkersEvaluator:
        started.append(WorkersEvaluator(n_workers, partial(Fake, tmp_path, seconds)))
        return started[-1]

    yield make
    for evaluator in started:
        evaluator.close()


def tried(evaluator, *unroll):
    return list(evaluator.evaluate(SUBJECT, candidates(*unroll), Candidate()))


def test_each_candidate_has_one_outcome(start):
    found = tried(start(1), 1, 2, 4, 2)
    assert Counter(candidate for candidate, _ in found) == Counter(candidates(1, 2, 2, 4))
    assert all(outcome.micros == candidate.mapping.unroll for candidate, outcome in found)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core")
def test_workers_have_cores_of_their_own_and_stay(start):
    evaluator = start(2, 0.05)
    found = [outcome for _ in range(2) for _, outcome in tried(evaluator, *range(1, 9))]
    places = {tuple(outcome.detail.split(maxsplit=1)) for outcome in found}
    assert len({pid for pid, _ in places}) == 2
    assert len({cores for _, cores in places}) == 2
    assert all(len(cores.split()) == 1 for _, cores in places)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core")
def test_one_worker_confirms(start):
    found = list(start(2).confirm(SUBJECT, candidates(4, 1, 2)))
    assert [candidate for candidate, _ in found] == candidates(4, 1, 2)
    assert {outcome.speedup for _, outcome in found} == {2.0}
    assert len({outcome.detail for _, outcome in found}) == 1


def test_workers_are_told_what_is_known(start, tmp_path):
    evaluator = start(1)
    tried(evaluator, 1, 2)
    tried(evaluator, 4)
    assert (tmp_path / "learned").read_text().split("\n")[:-1] == ["text 1", "text 2"]


def test_a_candidate_whose_worker_died_is_tried_again(start):
    found = tried(start(1), KILLS_ONCE, 1, 2)
    assert [outcome.status for _, outcome in found] == ["ok"] * 3
    assert found[-1][0] == candidates(KILLS_ONCE)[0]


def test_a_candidate_that_kills_workers_is_reported(start):
    found = dict(tried(start(1), KILLS, 1, 2))
    crashed = found.pop(candidates(KILLS)[0])
    assert crashed.status == "crashed"
    assert (
        crashed.detail
        == "2 workers were lost while they tried it: its process ended by signal 9"
    )
    assert [outcome.status for outcome in found.values()] == ["ok", "ok"]


def test_workers_that_die_whatever_they_do_end_the_run(start, monkeypatch):
    monkeypatch.setattr(workers, "SERVE", "import sys; sys.exit({} and 3)")
    with pytest.raises(WorkerError, match=r"8 workers were lost .* ended with status 3"):
        tried(start(1), *range(1, 9))


def test_a_worker_that_says_nothing_is_replaced(start, monkeypatch):
    evaluator = start(1)
    tried(evaluator, 1)
    with monkeypatch.context() as patch:
        patch.setattr(dispatch, "SECONDS", 1.0)
        patch.setattr(dispatch, "MOST_DEATHS", 1)
        ((_, outcome),) = tried(evaluator, HANGS)
    assert outcome.status == "crashed"
    assert outcome.detail.endswith("nothing was heard for 1 s")
    assert tried(evaluator, 1)[0][1].status == "ok"


def test_an_error_is_told(start):
    with pytest.raises(UnsupportedError, match=r"^nobody can try this$"):
        tried(start(1), IMPOSSIBLE)


def test_more_workers_than_cores_are_refused(start):
    with pytest.raises(WorkerError, match="--workers 4096 takes 4096 cores and there are"):
        tried(start(4096), 1)


def test_cores_that_others_measure_on_are_left_to_them(start, tmp_path):
    n_cores = len(os.sched_getaffinity(0))
    first = start(n_cores, 3.0 / n_cores)
    tried(first, *range(1, 2 * n_cores + 1))
    with pytest.raises(WorkerError, match=f"1 cores are needed and 0 of {n_cores} are free"):
        tried(start(1), 1)
    first.close()
    assert tried(start(1), 1)


def test_who_has_enough_gets_the_workers_back(start):
    evaluator = start(1)
    outcomes = evaluator.evaluate(SUBJECT, candidates(1, HANGS, 2), Candidate())
    next(outcomes)
    begin = time.monotonic()
    outcomes.close()
    assert tried(evaluator, 4)
    assert time.monotonic() - begin < 30
