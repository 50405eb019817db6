"""The command as users meet it: exit status, one line of error, data on standard output."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import onnx_ir as ir
import pytest

from models import chain, gelu
from tcfuse.cuda_options import CudaOptions
from tcfuse.knob import flag_of, knobs_of
from tcfuse.mapping_options import MappingOptions

COMMANDS = (
    "optimize",
    "build",
    "run",
    "check",
    "fmt",
    "explain",
    "verify",
    "bench",
    "show",
    "ops",
    "cache",
    "doctor",
)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in" / "gelu.onnx"
    path.parent.mkdir()
    ir.save(gelu.build(), path)
    return path


def one_line(err: str) -> str:
    lines = err.splitlines()
    assert len(lines) == 1, err
    assert lines[0].startswith("error: ")
    return lines[0]


def test_help_is_instant_and_loads_nothing_heavy():
    code = (
        "import sys; from tcfuse.cli import main; status = main(['--help']); "
        "heavy = {'numpy', 'onnx', 'onnx_ir', 'rich', 'networkx', 'islpy', 'onnxruntime'}; "
        "sys.exit(status or len(heavy & set(sys.modules)))"
    )
    best = 9.0
    for _ in range(3):
        start = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
        best = min(best, time.perf_counter() - start)
        assert done.returncode == 0
        assert b"optimize" in done.stdout
    assert best < 1.0  # 0.2 on a quiet machine


def test_a_repeated_run_loads_nothing_that_only_compiling_needs(source: Path, tmp_path: Path):
    target = tmp_path / "out.onnx"
    code = (
        f"import sys; from tcfuse.cli import main; main(['optimize', {str(source)!r}, "
        f"'-o', {str(target)!r}, '--no-gate']); print(*sys.modules, sep='\\n', file=sys.stderr)"
    )
    heavy = {"islpy", "scipy", "onnx.reference", "numpy.random", "numpy.ma"}
    loaded: set[str] = set()
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        loaded = set(done.stderr.split())
    assert "tcfuse.pipeline" in loaded
    assert not heavy & loaded


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(tcfuse: Callable[..., tuple[int, str, str]], command: str):
    status, out, _ = tcfuse(command, "--help")
    assert status == 0
    assert "Usage:" in out
    if command != "cache":
        assert f"tcfuse {command}" in out.partition("Examples:")[2]


def test_version(tcfuse: Callable[..., tuple[int, str, str]]):
    status, out, _ = tcfuse("--version")
    assert status == 0
    assert out.startswith("tcfuse ")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["frobnicate"], "No such command 'frobnicate'"),
        (["optimize"], "Missing argument"),
        (["optimize", "m.onnx", "--fast"], "No such option"),
        (["optimize", "m.onnx", "--dim", "N"], "is not NAME=NUMBER"),
        (["optimize", "m.onnx", "--input-shapes", "x"], "is not NAME:SIZES"),
        (["optimize", "m.onnx", "--target", "metal"], "targets are cpu"),
        (["optimize", "m.onnx", "--numerics", "sloppy"], "strict, default, fast"),
        (["optimize", "m.onnx", "--tile", "8,x"], "--tile 8,x: it may be sizes of 0 to 2^30"),
        (["optimize", "m.onnx", "--fusion", "all"], "it may be preserve, max, min"),
        (["ops", "--new", "a b"], "is not the name of an operator"),
    ],
)
def test_a_bad_command_line_gets_one_line(
    tcfuse: Callable[..., tuple[int, str, str]], arguments: list[str], words: str
):
    status, out, err = tcfuse(*arguments)
    assert status == 2
    assert out == ""
    assert words in one_line(err)


@pytest.mark.parametrize("content", [None, b"", b"hello\n", b"\x08\x07\x12\x00garbage"])
@pytest.mark.parametrize("command", ["optimize", "explain"])
def test_a_bad_model_gets_one_line_and_leaves_no_file(
    tcfuse: Callable[..., tuple[int, str, str]],
    tmp_path: Path,
    content: bytes | None,
    command: str,
):
    bad = tmp_path / "bad.onnx"
    if content is not None:
        bad.write_bytes(content)
    before = sorted(tmp_path.iterdir())
    status, out, err = tcfuse(command, bad)
    assert status == 1
    assert out == ""
    assert "bad.onnx" in one_line(err)
    assert sorted(tmp_path.iterdir()) == before


def test_a_traceback_is_shown_when_asked_for(tcfuse: Callable[..., tuple[int, str, str]]):
    with pytest.raises(Exception, match="nowhere"):
        tcfuse("explain", "nowhere.onnx", "--traceback")


def test_an_internal_error_is_one_line(
    tcfuse: Callable[..., tuple[int, str, str]], source: Path, monkeypatch: pytest.MonkeyPatch
):
    def fail(*_: object, **__: object) -> None:
        raise AssertionError("broken\ninvariant")

    monkeypatch.setattr("tcfuse.pipeline.load_model", fail)
    status, _, err = tcfuse("optimize", source)
    assert status == 1
    assert "internal error: AssertionError: broken invariant (--traceback" in one_line(err)


def test_an_interrupt_is_130(
    tcfuse: Callable[..., tuple[int, str, str]], source: Path, monkeypatch: pytest.MonkeyPatch
):
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tcfuse.pipeline.load_model", interrupt)
    assert tcfuse("optimize", source)[0] == 130
    assert [path.name for path in source.parent.iterdir()] == ["gelu.onnx"]


def test_the_output_may_not_be_the_input(
    tcfuse: Callable[..., tuple[int, str, str]], source: Path
):
    status, _, err = tcfuse("optimize", source, "-o", source)
    assert status == 1
    assert "overwrite the input" in one_line(err)


def test_ops_lists_and_prints_stubs(tcfuse: Callable[..., tuple[int, str, str]]):
    status, out, _ = tcfuse("ops")
    assert status == 0
    assert "Softmax" in out
    status, out, _ = tcfuse("ops", "--new", "LeakyThing")
    assert status == 0
    assert "def leaky_thing(call: OpCall) -> str:" in out


def test_the_cache_can_be_cleared(
    tcfuse: Callable[..., tuple[int, str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    from tcfuse import debug

    monkeypatch.setenv("TCFUSE_CACHE_DIR", str(tmp_path / "cache"))
    debug.current.cache_clear()
    try:
        (tmp_path / "cache" / "kernels").mkdir(parents=True)
        (tmp_path / "cache" / "kernels" / "a.json").write_text("{}")
        assert "kernels" in tcfuse("cache", "info")[1]
        assert tcfuse("cache", "clear")[0] == 0
        assert "empty" in tcfuse("cache", "info")[1]
    finally:
        debug.current.cache_clear()


@pytest.mark.parametrize("command", ["optimize", "build", "run"])
def test_every_knob_is_a_flag(tcfuse: Callable[..., tuple[int, str, str]], command: str):
    status, out, _ = tcfuse(command, "--help-knobs")
    assert status == 0
    for name, known in knobs_of(MappingOptions):
        assert f"  {flag_of(name, known)}\n      {known.doc}" in out
    for name, known in knobs_of(CudaOptions):
        shown = f"  {flag_of(f'cuda_{name}', known)}\n      {known.doc}" in out
        assert shown == (command == "optimize")
    assert "--tile" not in tcfuse(command, "--help")[1].partition("Examples:")[0]


@pytest.mark.compiler
@pytest.mark.ort
class TestOptimize:
    def test_knobs_reach_the_kernels(
        self, tcfuse: Callable[..., tuple[int, str, str]], source: Path, tmp_path: Path
    ):
        knobs = tmp_path / "knobs.json"
        knobs.write_text('{"tile": [2], "fusion": "max", "numerics": "strict"}')
        out_path = source.with_name("out.onnx")
        arguments = ("optimize", source, "-o", out_path, "--no-gate", "-q", "--mapping", knobs)
        assert tcfuse(*arguments, "--tile", "16", "--separate-tiles")[0] == 0
        options = json.loads(out_path.with_suffix(".tcfuse.json").read_text())["options"]
        found = MappingOptions.of(options["mapping"])
        expected = MappingOptions(
            tile=(16,), separate_tiles=True, fusion="max", numerics="strict"
        )
        assert found == expected
        assert options["numerics"] == "strict"
        assert "floor((" in tcfuse("show", out_path, "--stage", "mapped")[1]

    def test_writes_beside_the_input_by_default(
        self, tcfuse: Callable[..., tuple[int, str, str]], source: Path
    ):
        status, out, err = tcfuse("optimize", source, "--no-gate")
        assert (status, err) == (0, "")
        assert "kept" in out
        assert {path.name for path in source.parent.iterdir()} == {
            "gelu.onnx",
            "gelu.tcfuse.onnx",
            "gelu.tcfuse.so",
            "gelu.tcfuse.json",
        }

    def test_commands_read_what_optimize_wrote(
        self, tcfuse: Callable[..., tuple[int, str, str]], source: Path
    ):
        out_path = source.with_name("out.onnx")
        assert tcfuse("optimize", source, "-o", out_path, "--no-gate", "-q")[:2] == (0, "")
        status, out, _ = tcfuse("verify", out_path)
        assert status == 0
        assert "1 kernels verified" in out
        for stage in ("tc", "tree", "mapped", "source", "proof"):
            status, out, _ = tcfuse("show", out_path, "--stage", stage)
            assert status == 0
            assert out.startswith("# ")
            assert len(out.splitlines()) > 1
        status, out, _ = tcfuse(
            "bench", out_path, "--vs", source, "--rounds", 3, "--dim", "N=9"
        )
        assert status == 0
        assert "x:9,256" in out

    def test_bench_says_under_which_conditions(
        self, tcfuse: Callable[..., tuple[int, str, str]], source: Path
    ):
        out_path = source.with_name("out.onnx")
        assert tcfuse("optimize", source, "-o", out_path, "--no-gate", "-q")[0] == 0
        entry = "session.set_denormal_as_zero=1"
        how = ("--rounds", 3, "--config", entry, "--disable-optimizer", "GeluFusionL2")
        status, out, _ = tcfuse("bench", out_path, "--vs", source, *how)
        assert status == 0
        assert f"{entry}, the original without GeluFusionL2" in out
        status, _, err = tcfuse("bench", out_path, "--config", "fast")
        assert status == 2
        assert "--config fast is not KEY=VALUE" in one_line(err)

    def test_a_wrong_library_is_found(
        self, tcfuse: Callable[..., tuple[int, str, str]], source: Path
    ):
        out_path = source.with_name("out.onnx")
        tcfuse("optimize", source, "-o", out_path, "--no-gate")
        out_path.with_suffix(".so").write_bytes(b"something else")
        status, _, err = tcfuse("verify", out_path)
        assert status == 1
        assert "the library is not the one" in one_line(err)

    def test_a_wrong_kernel_is_status_3(
        self,
        tcfuse: Callable[..., tuple[int, str, str]],
        source: Path,
        monkeypatch: pytest.MonkeyPatch,
    ):
        out_path = source.with_name("out.onnx")
        tcfuse("optimize", source, "-o", out_path, "--no-gate")
        manifest = out_path.with_name("out.tcfuse.json")
        record = json.loads(manifest.read_text())
        record["regions"][0]["tc"] = record["regions"][0]["tc"].replace("0.5", "0.75")
        manifest.write_text(json.dumps(record))
        monkeypatch.setattr("tcfuse.ort.accuracy.ULPS", 0.0)
        status, _, err = tcfuse("verify", out_path)
        assert status in (
            0,
            3,
        )  # both ran what the original runs; the formula is a witness only
        assert status == 0 or "kernels are wrong" in one_line(err)

    def test_no_gain_is_status_4_and_writes_nothing(
        self, tcfuse: Callable[..., tuple[int, str, str]], tmp_path: Path
    ):
        alone = tmp_path / "alone.onnx"
        ir.save(chain.build(1), alone)
        status, _, err = tcfuse("optimize", alone, "--require-gain")
        assert status == 4
        assert "nothing was gained" in one_line(err)
        assert [path.name for path in tmp_path.iterdir()] == ["alone.onnx"]

    def test_the_report_is_written(
        self, tcfuse: Callable[..., tuple[int, str, str]], source: Path, tmp_path: Path
    ):
        report = tmp_path / "report.json"
        assert tcfuse("optimize", source, "--no-gate", "--report-json", report)[0] == 0
        record = json.loads(report.read_text())
        assert record["regions"][0]["kept"]
        assert record["versions"]["tcfuse"]

    def test_doctor_finds_everything_in_order(
        self, tcfuse: Callable[..., tuple[int, str, str]]
    ):
        status, out, _ = tcfuse("doctor")
        assert status == 0, out
        assert "compiled, verified and run" in out
