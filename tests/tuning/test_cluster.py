"""Candidates tried by workers of dask.distributed, some of which die or are not alike."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from tcfuse.errors import UnsupportedError, WorkerError
from tcfuse.processor import processor
from tcfuse.tuning import cluster, dispatch
from tcfuse.tuning.candidate import Candidate
from tests.tuning.fakes import IMPOSSIBLE, KILLS, SUBJECT, Fake, candidates

distributed = pytest.importorskip("distributed")

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # of tornado's sockets
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


class Cluster:
    """A scheduler in this process, and workers in others."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.running: list[subprocess.Popen[bytes]] = []
        self.scheduler = distributed.LocalCluster(
            n_workers=0, host="127.0.0.1", dashboard_address="127.0.0.1:0", silence_logs=50
        )
        self.address = self.scheduler.scheduler_address

    def worker(self, nanny: str = "--no-nanny", root: Path = ROOT) -> subprocess.Popen[bytes]:
        """Start ``dask worker`` with the tcfuse that lies in ``root``."""
        options = (nanny, "--nthreads", "1", "--no-dashboard", "--death-timeout", "60")
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "dask", "worker", self.address, *options],
            env={
                "HOME": str(self.folder),
                "PYTHONPATH": f"{root}:{ROOT}",
                "TMPDIR": str(self.folder),
            },
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self.folder,
            start_new_session=True,
        )
        self.running.append(process)
        return process

    def end(self) -> None:
        for process in self.running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self.scheduler.close()


@pytest.fixture
def processes(tmp_path):
    found = Cluster(tmp_path)
    yield found
    found.end()


@pytest.fixture
def connect(processes, tmp_path):
    started = []

    def make(
        seconds: float = 0.0, *, n_workers: int = 1, **options
    ) -> cluster.ClusterEvaluator:
        fake = partial(Fake, tmp_path, seconds)
        evaluator = cluster.evaluator(processes.address, fake, **options)
        started.append(evaluator)
        end = time.monotonic() + 60
        while len(evaluator._crew.look()) < n_workers and time.monotonic() < end:
            time.sleep(0.1)
        return evaluator

    yield make
    for evaluator in started:
        evaluator.close()


def tried(evaluator, *unroll):
    return list(evaluator.evaluate(SUBJECT, candidates(*unroll), Candidate()))


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core")
def test_workers_share_the_candidates_and_one_that_dies_is_made_up_for(processes, connect):
    first, second = processes.worker(), processes.worker()
    evaluator = connect(0.2, n_workers=2)
    assert evaluator.device == processor()
    assert str(evaluator) == f"2 workers with {processor()}"
    outcomes = evaluator.evaluate(SUBJECT, candidates(*range(1, 17)), Candidate())
    found = [next(outcomes) for _ in range(6)]
    first.send_signal(signal.SIGKILL)
    found += outcomes
    assert Counter(each for each, _ in found) == Counter(candidates(*range(1, 17)))
    assert {outcome.status for _, outcome in found} == {"ok"}
    assert len({outcome.detail.split()[0] for _, outcome in found}) == 2
    assert second.poll() is None
    assert [each for each, _ in evaluator.confirm(SUBJECT, candidates(2, 1))] == candidates(
        2, 1
    )
    with pytest.raises(UnsupportedError, match=r"^nobody can try this$"):
        tried(evaluator, IMPOSSIBLE)


def test_a_candidate_that_kills_workers_is_reported(processes, connect):
    processes.worker("--nanny")  # which starts another one
    found = dict(tried(connect(), KILLS, 1, 2))
    assert found[candidates(KILLS)[0]].status == "crashed"
    assert [found[each].status for each in candidates(1, 2)] == ["ok"] * 2


def test_workers_that_are_not_alike_are_left_out(processes, connect, tmp_path):
    other = tmp_path / "other"
    for package in ("tcfuse", "op_library"):
        shutil.copytree(ROOT / package, other / package)
    with (other / "tcfuse" / "knob.py").open("a", encoding="utf-8") as file:
        file.write("# edited\n")
    processes.worker(root=other)
    with pytest.raises(
        WorkerError, match=r"no worker can be used: 0 workers with .*; 1 worker"
    ):
        connect()
    processes.worker()
    processes.scheduler.wait_for_workers(2, timeout=60)
    evaluator = connect()
    assert str(evaluator) == (
        f"1 worker with {processor()}; 1 worker left out: "
        "it has another tcfuse or another compiler than this machine"
    )
    assert len(tried(evaluator, 1, 2)) == 2
    with pytest.raises(WorkerError, match=f"left out: it has {processor()}"):
        connect(device="Abacus")


def test_a_scheduler_that_goes_ends_the_run(processes, connect, monkeypatch):
    processes.worker()
    outcomes = connect(0.2).evaluate(SUBJECT, candidates(*range(1, 100)), Candidate())
    next(outcomes)
    monkeypatch.setattr(cluster, "SECONDS", 5.0)
    processes.scheduler.close()
    with pytest.raises(WorkerError, match="does not answer any more"):
        list(outcomes)


def test_nobody_is_there(processes, connect, monkeypatch):
    monkeypatch.setattr(cluster, "PATIENCE", 0.5)
    monkeypatch.setattr(cluster, "SECONDS", 2.0)
    with pytest.raises(WorkerError, match=f"{processes.address} has no workers"):
        connect()
    processes.scheduler.close()
    with pytest.raises(WorkerError, match=f"no scheduler answers at {processes.address}"):
        connect()


PAGE = (ROOT / "docs" / "distributed.md").read_text(encoding="utf-8")


def test_the_page_names_flags_that_there_are():
    """Its commands need machines; what they are called with is known here."""
    blocks = "".join(re.findall(r"^```(?:ba)?sh\n(.*?)^```$", PAGE, re.M | re.S))
    asked: dict[tuple[str, ...], set[str]] = {}
    for program, words in re.findall(r"\b(dask \w+|tcfuse tune) (.*)$", blocks, re.M):
        flags = re.findall(r"--[a-z-]+", words)
        asked.setdefault(tuple(program.split()), set()).update(flags)
    assert set(asked) == {("dask", n) for n in ("scheduler", "worker", "ssh")} | {
        ("tcfuse", "tune")
    }
    for command, flags in asked.items():
        done = subprocess.run(
            [sys.executable, "-m", *command, "--help"],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "COLUMNS": "200", "TERM": "dumb"},
        )
        known = set(re.findall(r"--[a-z-]+", done.stdout))
        assert flags - known == set(), command


def test_the_job_of_the_page_is_a_script():
    (script,) = re.findall(r"^```bash\n(.*?)^```$", PAGE, re.M | re.S)
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def test_distributed_is_optional(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(WorkerError, match=r"pip install 'tcfuse\[distributed\]'"):
        cluster.evaluator("tcp://127.0.0.1:1", partial(Fake, Path()))


def test_workers_that_say_nothing_are_given_up(processes, connect, monkeypatch):
    processes.worker()
    evaluator = connect(3.0)
    monkeypatch.setattr(dispatch, "SECONDS", 0.5)
    monkeypatch.setattr(dispatch, "PATIENCE", 0.5)
    with pytest.raises(WorkerError, match="no worker has come"):
        tried(evaluator, 1)


@pytest.mark.compiler
def test_tune_measures_with_the_workers_of_a_scheduler(processes, tmp_path):
    processes.worker()
    processes.worker()
    text = tmp_path / "layer.tc"
    text.write_text("def layer(float(N) X) -> (Y) { Y(i) = exp(X(i)) }\n", encoding="utf-8")
    options = f"--size N=512 --scheduler {processes.address} --time-budget 60s --generations 2"
    options += " --population 4 --wisdom found.json --report report.json"
    found = subprocess.run(
        [sys.executable, "-m", "tcfuse", "tune", str(text), *options.split()],
        env={
            **os.environ,
            "TCFUSE_CACHE_DIR": str(tmp_path / "cache"),
            "PYTHONPATH": str(ROOT),
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=150,
    )
    assert found.returncode == 0, found.stdout + found.stderr
    (kernel,) = json.loads((tmp_path / "report.json").read_text())["kernels"]
    assert kernel["tried"] >= 8
    assert kernel["default_us"] > 0
    assert "exp(T0(" in (tmp_path / "found.json").read_text()
