"""A kernel that takes too long to compile costs that kernel only."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tcfuse import isolation
from tcfuse.errors import UnsupportedError
from tcfuse.interface import Interface, Port
from tcfuse.isolation import Worker
from tcfuse.mapping_options import MappingOptions
from tcfuse.types import DType, TensorType

TEXT = "def f(float(N) X) -> (float(N) Y) {\n  Y(i) = X(i) + 1 where i in 0:N\n}\n"
VECTOR = TensorType(DType.FLOAT32, ("N",))
INTERFACE = Interface((Port("X", VECTOR),), (Port("Y", VECTOR),), ("N",))


@pytest.fixture
def worker():
    worker = Worker()
    yield worker
    worker.stop()


def test_compiles_like_the_function_it_wraps(worker):
    from tcfuse.targets.cpu import compile_kernel
    from tcfuse.tc.parser import parse
    from tcfuse.tc.sema import check

    here = compile_kernel(check(parse(TEXT)), INTERFACE, "f", MappingOptions())
    there = worker.compile(TEXT, INTERFACE, "f", MappingOptions())
    assert there.source == here.source
    assert str(there.proof) == str(here.proof)


def test_fixed_sizes_travel(worker):
    source = worker.compile(TEXT, INTERFACE, "f", MappingOptions(), {"N": 12}).source
    assert ("N == 12", "N is not 12, which this kernel was made for") in source.interface.checks


def test_a_refusal_keeps_its_reason(worker):
    text = TEXT.replace("X(i) + 1", "X(i + 1)")
    with pytest.raises(UnsupportedError, match="may leave the tensor"):
        worker.compile(text, INTERFACE, "f", MappingOptions())


def test_processor_time_is_bounded(worker):
    worker.seconds = 0
    n = 400
    lines = [f"  T{k}(i) = X(i) * {k} where i in 0:N" for k in range(n)]
    total = " + ".join(f"T{k}(i)" for k in range(n))
    text = "\n".join([TEXT.splitlines()[0], *lines, f"  Y(i) = {total} where i in 0:N", "}"])
    with pytest.raises(UnsupportedError, match="takes more than 0 s of processor time"):
        worker.compile(text, INTERFACE, "f", MappingOptions())
    worker.seconds = 30
    assert worker.compile(TEXT, INTERFACE, "f", MappingOptions()).source.phases


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="this system stops no process")
def test_a_process_that_reads_nothing_is_given_up(worker, monkeypatch):
    monkeypatch.setattr(isolation, "PATIENCE", 0.01)
    worker.start()
    os.kill(worker._process.pid, signal.SIGSTOP)
    text = TEXT + "# a pipe does not hold this\n" * 10_000
    with pytest.raises(UnsupportedError, match="takes more than 30 s"):
        worker.compile(text, INTERFACE, "f", MappingOptions())
    assert worker._process is None
    monkeypatch.undo()
    assert worker.compile(text, INTERFACE, "f", MappingOptions()).source.phases


FORKED = """
import os
from tcfuse.isolation import WORKER

process = WORKER._started()
if (child := os.fork()) == 0:
    WORKER.stop()  # what a process does at its end
    mine = WORKER._started()
    assert mine is not process
    WORKER.stop()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert WORKER._started() is process  # it was left alone
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_has_a_worker_of_its_own():
    command = [sys.executable, "-W", "ignore", "-c", FORKED]
    root = Path(__file__).resolve().parent.parent
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=root)
    assert done.returncode == 0, done.stderr
