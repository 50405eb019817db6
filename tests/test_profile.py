"""Where the time of a run goes adds up, and nothing is recorded unless asked for."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import onnx_ir as ir
import pytest

from models import gelu
from tcfuse import debug, profile
from tcfuse.interface import Interface, Port
from tcfuse.isolation import Worker
from tcfuse.mapping_options import MappingOptions
from tcfuse.pipeline import optimize
from tcfuse.profile import COMPILER, ISL, OTHER, Profile, Spent, Tally, profiling
from tcfuse.types import DType, TensorType


def spin(seconds: float) -> None:
    """Use that much processor time."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_a_phase_inside_another_takes_over():
    with profiling() as recording, profile.phase("gate"):
        spin(0.02)
        with profile.phase("rewrite"):
            spin(0.05)
        spin(0.01)
    spent = recording.result().spent
    assert 0.03 <= spent["gate"].processor_s < 0.05
    assert spent["rewrite"].processor_s >= 0.05
    assert spent["gate"].wall_s >= spent["gate"].processor_s * 0.99


def test_walls_add_up_to_the_run():
    start = time.perf_counter()
    with profiling() as recording:
        for name in ("load", "plan", "load"):
            with profile.phase(name):
                time.sleep(0.01)
        time.sleep(0.01)
        found = recording.result()
    took = time.perf_counter() - start
    assert found.total.wall_s == pytest.approx(took, abs=0.01)
    assert found.total.wall_s <= took
    assert found.known == pytest.approx(1 - found.spent[OTHER].wall_s / found.total.wall_s)


def test_the_time_of_a_phase_that_fails_is_kept():
    @profile.timed("load")
    def fail() -> None:
        spin(0.01)
        raise KeyError

    with profiling() as recording:
        with pytest.raises(KeyError):
            fail()
        spin(0.02)
    spent = recording.result().spent
    assert 0.01 <= spent["load"].processor_s < 0.02
    assert spent[OTHER].processor_s >= 0.02


def test_nothing_is_recorded_unless_asked_for():
    assert profile.current() is None
    assert profile.phase("load") is profile.phase("plan")  # one object, which does nothing
    profile.tally("plan", cached=1)
    with profiling() as recording:
        pass
    assert profile.current() is None
    profile.tally("plan", cached=1)
    assert recording.result().tallies == {}


def test_other_threads_have_no_phases():
    def elsewhere() -> None:
        with profile.phase("gate"):
            spin(0.02)

    with profiling() as recording, profile.phase("load"):
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    spent = recording.result().spent
    assert "gate" not in spent
    assert spent["load"].processor_s >= 0.02


def test_processes_that_have_ended_are_compilers():
    code = "import time; [0 for _ in iter(lambda: time.process_time() < 0.2, False)]"
    with profiling() as recording, profile.phase("compose"):
        subprocess.run([sys.executable, "-c", code], check=True)
    spent = recording.result().spent
    assert spent[COMPILER].processor_s >= 0.2
    assert spent[COMPILER].wall_s == 0.0
    assert spent["compose"].wall_s >= 0.2
    assert spent["compose"].processor_s < 0.1


def test_a_worker_tells_what_it_spent():
    vector = TensorType(DType.FLOAT32, ("N",))
    interface = Interface((Port("X", vector),), (Port("Y", vector),), ("N",))
    text = "def f(float(N) X) -> (float(N) Y) {\n  Y(i) = X(i) + 1 where i in 0:N\n}\n"
    worker = Worker()
    try:
        with profiling() as recording:
            worker.compile(text, interface, "f", MappingOptions())
        spent = recording.result().spent
        own = {name for name in spent if name not in (ISL, OTHER, COMPILER)}
        assert own == {"dependences", "schedule", "mapping", "proof", "code generation"}
        assert all(spent[name].wall_s > 0 for name in own)
        assert spent[ISL].wall_s > 0  # what is left is waiting for it to start
        assert worker.compile(text, interface, "f", MappingOptions()).source.phases
    finally:
        worker.stop()


def test_the_text_of_a_profile():
    found = Profile(
        {"load": Spent(0.25, 0.5), ISL: Spent(0.75, 0.25)}, {ISL: Tally(2, 1)}, n_kernels=2
    )
    assert str(found).splitlines() == [
        "phase        wall s      %  processor s  made  cached",
        "load          0.250   25.0        0.500",
        "isl process   0.750   75.0        0.250     2       1",
        "total         1.000  100.0        0.750",
        "2 different kernels, 0.50 s each (0.38 s of processors)",
    ]


@pytest.mark.compiler
@pytest.mark.ort
def test_nearly_all_of_a_run_has_a_phase(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("TCFUSE_CACHE_DIR", str(tmp_path / "cache"))
    debug.current.cache_clear()
    try:
        with profiling() as recording:
            optimize(gelu.build()).save(tmp_path / "out.onnx")
        found = recording.result()
    finally:
        monkeypatch.undo()
        debug.current.cache_clear()
    assert found.known > 0.95, str(found)
    assert found.n_kernels == 1
    assert found.tallies["compose"] == found.tallies["verification"] == Tally(1, 0)
    assert found.spent[COMPILER].processor_s > 0
    for name in ("load", "plan", "verification", "gate", "rewrite", "save"):
        assert found.spent[name].wall_s > 0


@pytest.mark.compiler
@pytest.mark.ort
def test_the_command_prints_a_table_that_accounts_for_the_run(tmp_path: Path):
    source = tmp_path / "gelu.onnx"
    ir.save(gelu.build(), source)
    command = [sys.executable, "-m", "tcfuse", "optimize", str(source), "-q", "--profile"]
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    took = time.perf_counter() - start
    assert not done.stdout
    lines = {line.split("  ")[0]: line.split() for line in done.stderr.splitlines()}
    assert float(lines["total"][1]) > 0.7 * took  # less: the interpreter ends, too
    assert float(lines[OTHER][1]) < 0.05 * float(lines["total"][1])
    assert "start" in lines
