"""Workers that crash or hang cost the item they had, and no other."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import pytest

from scripts.gpu.process import NoDeviceError, WorkerProcess

WORKER = textwrap.dedent(
    """
    import json, os, sys, time

    def say(**message):
        print(json.dumps(message), flush=True)

    say(facts={"name": "none"})
    for line in sys.stdin:
        item = line.strip()
        say(begin=item)
        if item == "crash":
            print("it hurts", file=sys.stderr, flush=True)
            os._exit(11)
        if item == "hang":
            time.sleep(60)
        status = "failed" if item == "lose" else "ok"
        say(item=item, outcome={"status": status, "pid": os.getpid()})
    """
)


@pytest.fixture
def worker(tmp_path: Path) -> WorkerProcess:
    script = tmp_path / "worker.py"
    script.write_text(WORKER)
    made = WorkerProcess([])
    made.command = [sys.executable, str(script)]
    yield made
    made.stop()


def test_items_share_a_process(worker: WorkerProcess) -> None:
    assert worker.do("a", 20)["pid"] == worker.do("b", 20)["pid"]
    assert worker.facts == {"name": "none"}


def test_a_crash_is_an_outcome(worker: WorkerProcess) -> None:
    outcome = worker.do("crash", 20)
    assert outcome["status"] == "failed"
    assert outcome["why"] == "the process ended with status 11: it hurts"
    assert worker.do("b", 20)["status"] == "ok"


def test_so_is_silence(worker: WorkerProcess) -> None:
    assert worker.do("hang", 0.5)["why"].startswith("no answer within")
    assert worker.do("b", 20)["status"] == "ok"


def test_after_an_error_of_the_driver_there_is_a_new_process(worker: WorkerProcess) -> None:
    before = worker.do("lose", 20)["pid"]
    assert worker.do("b", 20)["pid"] != before


def test_without_a_device_nothing_is_done(worker: WorkerProcess, tmp_path: Path) -> None:
    (tmp_path / "worker.py").write_text('print(\'{"error": "no driver"}\')')
    with pytest.raises(NoDeviceError, match="no driver"):
        worker.do("a", 20)
