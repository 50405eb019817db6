"""``tcfuse tune`` and ``tcfuse.tune``: from a model to what later runs use."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import onnx_ir as ir
import pytest

import tcfuse as package
from models import gelu
from tcfuse.commands.tune import described
from tcfuse.errors import OptionError
from tcfuse.tuning.candidate import Candidate, Outcome, Subject
from tcfuse.tuning.tuned import Generation, State, candidate_of
from tcfuse.wisdom.database import Database
from tests.tuning.made_up import FakeEvaluator, killing

pytestmark = [pytest.mark.compiler, pytest.mark.ort]

Tcfuse = Callable[..., tuple[int, str, str]]

SOFTMAX = """def softmax(float(N, M) X) -> (Y) {
  m(i) max=! X(i, j)
  e(i, j) = exp(X(i, j) - m(i))
  s(i) +=! e(i, j)
  Y(i, j) = e(i, j) / s(i)
}
def twice(float(N) X) -> (Y) { Y(i) = 2 * X(i) }
"""


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small model; wisdom is that of this test alone."""
    monkeypatch.setattr("tcfuse.wisdom.bounds.default_path", lambda: tmp_path / "wisdom.sqlite")
    for module in ("database", "advice"):
        monkeypatch.setattr(
            f"tcfuse.wisdom.{module}.default_path",
            lambda: tmp_path / "wisdom.sqlite",
            raising=False,
        )
    monkeypatch.setattr("tcfuse.advising.default_path", lambda: tmp_path / "wisdom.sqlite")
    ir.save(gelu.build(n="N", features=64), tmp_path / "model.onnx")
    return tmp_path / "model.onnx"


class Fast(FakeEvaluator):
    """Candidates are compiled for real; how fast they are is made up."""

    made: list[Fast] = []  # noqa: RUF012

    def __init__(self, workers: int = 1, scheduler: str = "") -> None:
        super().__init__()
        self.subjects: set[str] = set()
        Fast.made.append(self)

    def evaluate(
        self, subject: Subject, candidates: Sequence[Candidate], incumbent: Candidate
    ) -> Iterator[tuple[Candidate, Outcome]]:
        self.subjects.add(subject.name)
        return super().evaluate(subject, candidates, incumbent)


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> type[Fast]:
    monkeypatch.setattr("tcfuse.tuning.run.Evaluators", Fast)
    Fast.made = []
    return Fast


SMALL = ("--dim", "N=64", "--population", "4", "--generations", "2", "--time-budget", "1h")


def test_a_model_is_tuned_and_optimize_uses_it(model: Path, tcfuse: Tcfuse):
    """Everything is real here."""
    report, wisdom = model.with_name("report.json"), model.with_name("wisdom.json")
    files = ("--report", report, "--wisdom", wisdom)
    status, out, err = tcfuse("tune", model, *SMALL, *files, "--no-gate")
    assert status == 0, err
    head, row = out.splitlines()[:2]
    assert head.split()[:3] == ["kernel", "calls", "default"]
    assert re.match(r"\S+_\w{8} +1 +[\d.]+ +[\d.]+ +[\d.]+ +8 +0 +\S", row)
    record = json.loads(report.read_text(encoding="utf-8"))
    (kernel,) = record["kernels"]
    assert kernel["tried"] == 8
    assert kernel["ended"] == "converged"
    assert not record["predicted"]
    (entry,) = json.loads(wisdom.read_text(encoding="utf-8"))["entries"]
    assert entry["speedup"] == kernel["gain"]
    assert entry["knobs"] == kernel["knobs"]


def test_a_budget_of_time_is_kept(model: Path, tcfuse: Tcfuse):
    start = time.monotonic()
    flags = ("--dim", "N=64", "--time-budget", "3s", "--no-gate")
    status, out, err = tcfuse("tune", model, *flags)
    assert status == 0, err
    assert "kernels take" in out
    assert time.monotonic() - start < 60  # on a machine that does much else too


def test_tuned_knobs_are_those_of_the_kernel(
    model: Path, tcfuse: Tcfuse, fast: type[Fast], capsys: pytest.CaptureFixture[str]
):
    status, _, err = tcfuse("tune", model, *SMALL, "--no-gate")
    assert status == 0, err
    with Database(model.with_name("wisdom.sqlite")) as database:
        (entry,) = database.entries()
    assert entry.speedup > 1
    result = package.optimize(model, gate=False, verify=False, dim={"N": 64})
    usual = package.optimize(model, gate=False, verify=False, dim={"N": 64}, use_wisdom=False)
    (region,) = result.report.kept
    (other,) = usual.report.kept
    assert region.name != other.name
    forced = package.optimize(
        model,
        gate=False,
        verify=False,
        dim={"N": 64},
        mapping=candidate_of(entry, "default").mapping,
    )
    assert forced.report.kept[0].name == region.name


def test_tuning_twice_returns_at_once(model: Path, tcfuse: Tcfuse, fast: type[Fast]):
    tcfuse("tune", model, *SMALL, "--no-gate")
    status, out, _ = tcfuse("tune", model, *SMALL, "--no-gate")
    assert status == 0
    assert "(known before)" in out
    first, second = fast.made
    assert len(first.asked) > 8  # two generations, and the best without each of its knobs
    assert second.asked == []
    tcfuse("tune", model, *SMALL, "--no-gate", "--again")
    assert len(fast.made[-1].asked) >= 8


def test_a_file_of_wisdom_counts_as_tuned(model: Path, tcfuse: Tcfuse, fast: type[Fast]):
    wisdom = model.with_name("wisdom.json")
    tcfuse("tune", model, *SMALL, "--no-gate", "--wisdom", wisdom)
    text = wisdom.read_text(encoding="utf-8")
    model.with_name("wisdom.sqlite").unlink()
    status, out, _ = tcfuse("tune", model, *SMALL, "--no-gate", "--wisdom", wisdom)
    assert status == 0
    assert "(known before)" in out
    assert wisdom.read_text(encoding="utf-8") == text


def test_an_interrupt_keeps_the_best(
    model: Path, tcfuse: Tcfuse, fast: type[Fast], monkeypatch: pytest.MonkeyPatch
):
    class Interrupted(Fast):
        def __init__(self, *arguments: object) -> None:
            super().__init__()
            self.before = killing(6, KeyboardInterrupt)

    monkeypatch.setattr("tcfuse.tuning.run.Evaluators", Interrupted)
    wisdom = model.with_name("wisdom.json")
    status, _, err = tcfuse("tune", model, *SMALL, "--no-gate", "--wisdom", wisdom)
    assert status == 130
    assert "interrupted; the same command goes on where it was" in err
    assert json.loads(wisdom.read_text(encoding="utf-8"))["entries"]
    monkeypatch.setattr("tcfuse.tuning.run.Evaluators", Fast)
    status, _, _ = tcfuse("tune", model, *SMALL, "--no-gate")
    assert status == 0
    before, after = fast.made[-2:]
    assert len(before.asked) == 6
    assert len(after.asked) >= 2
    assert not set(before.asked) & set(after.asked)  # nothing is measured twice


def test_kernels_are_chosen_by_name_or_number(model: Path, tcfuse: Tcfuse, fast: type[Fast]):
    status, out, _ = tcfuse("tune", model, *SMALL, "--no-gate", "--only", "1")
    name = out.splitlines()[1].split()[0]
    assert status == 0
    status, out, _ = tcfuse("tune", model, *SMALL, "--no-gate", "--only", name[:5])
    assert status == 0
    assert out.splitlines()[1].startswith(name[:15])
    status, _, err = tcfuse("tune", model, *SMALL, "--no-gate", "--only", "conv")
    assert status == 2
    assert err.startswith(f"error: no kernel 'conv'; kernels are {name[:15]}")


@pytest.mark.parametrize("suffix", ["html", "svg", "json"])
def test_reports(model: Path, tcfuse: Tcfuse, fast: type[Fast], suffix: str):
    report = model.with_name(f"report.{suffix}")
    status, out, err = tcfuse("tune", model, *SMALL, "--no-gate", "--report", report)
    assert status == 0, err
    text = report.read_text(encoding="utf-8")
    if suffix != "json":
        assert text.count("<svg") == text.count("</svg>") == 1
        assert out.splitlines()[1].split()[0][:10] in text
    else:
        (kernel,) = json.loads(text)["kernels"]
        gains = [gain for _, gain in kernel["convergence"]]
        assert gains == sorted(gains)
        assert gains[0] == 1.0


def test_a_file_of_definitions(model: Path, tcfuse: Tcfuse, fast: type[Fast]):
    layers = model.with_name("layers.tc")
    layers.write_text(SOFTMAX, encoding="utf-8")
    flags = ("--population", "4", "--generations", "2", "--size", "N=8", "--size", "M=32")
    status, out, err = tcfuse("tune", layers, *flags)
    assert status == 0, err
    assert fast.made[0].subjects == {"softmax", "twice"}
    status, out, err = tcfuse("tune", layers, *flags, "--only", "softmax")
    assert "twice" not in out
    status, _, err = tcfuse("tune", layers, "--size", "N=8")
    assert status == 2
    assert err == ("error: softmax: say at which sizes it is tuned, for example --size M=64\n")


def test_knobs_that_flags_set_are_not_searched(model: Path, tcfuse: Tcfuse, fast: type[Fast]):
    status, _, err = tcfuse("tune", model, *SMALL, "--no-gate", "--unroll", "2")
    assert status == 0, err
    assert {candidate.mapping.unroll for candidate in fast.made[0].asked[1:]} == {2}


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--time-budget", "soon"), "no duration 'soon'; write for example 90s, 5m or 1h30m"),
        (("--sampler", "best"), "no sampler 'best'; there are genetic, random, optuna"),
        (("--report", "report.txt"), "report.txt: a report ends in .html, .svg, .json"),
        (("--size", "N=8"), "--size is of files of definitions; use --dim N=8"),
        (("--dim", "K=8"), "no size 'K' in the model's inputs; size names are N"),
        (("--target", "fpga"), "no target 'fpga'; targets are cpu, cuda, cpu,cuda, auto"),
    ],
)
def test_what_cannot_be(model: Path, tcfuse: Tcfuse, flags: tuple[str, ...], message: str):
    status, _, err = tcfuse("tune", model, *flags)
    assert status == 2
    assert err.startswith(f"error: {message[:40]}")
    assert "Traceback" not in err


def test_python(model: Path, fast: type[Fast]):
    wisdom = package.tune(
        model, budget=3600, population=4, generations=2, gate=False, dim={"N": 64}
    )
    (entry,) = wisdom.entries
    (kernel,) = wisdom.kernels
    assert entry.speedup == kernel.gain > 1
    path = wisdom.save(model.with_name("found.json"))
    assert len(json.loads(path.read_text(encoding="utf-8"))["entries"]) == 1
    with pytest.raises(OptionError, match="no option 'speed'"):
        package.tune(model, speed=9)


def test_a_process_that_is_killed_loses_nothing(model: Path):
    """The journal is complete up to the last candidate, and the next run goes on from there."""
    command = [sys.executable, "-m", "tcfuse", "tune", str(model), "--no-gate", "--dim", "N=64"]
    process = subprocess.Popen(
        [*command, "--time-budget", "1h"],
        env={**os.environ, "TCFUSE_CACHE_DIR": str(model.parent)},
        stdout=subprocess.DEVNULL,
    )
    try:
        path = model.with_name("wisdom.sqlite")
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and count(path) < 4:
            time.sleep(0.1)
    finally:
        process.kill()
        process.wait()
    assert count(path) >= 4


def count(path: Path) -> int:
    """Rows of journals."""
    if not path.exists():
        return 0
    with Database(path, readonly=True) as database:
        return len(database._file.rows("SELECT id FROM trials"))


def test_a_line_tells_how_a_search_goes():
    assert described(State("k")) == "k (1 of 1): with default knobs"
    generation = Generation(2, 16, 1, 1.31, 0.92, 0.2)
    state = State("k", generation, 3, 1.314, 40, 2, 20.0, 80.0, 2, 5)
    assert described(state) == (
        "k (2 of 5): generation 3, last 1.31/0.92/0.20, best 1.31, "
        "40 tried, 2 failed, 1m00s left"
    )
