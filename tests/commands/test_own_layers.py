"""``tcfuse build`` and ``tcfuse run`` as users meet them."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tcfuse import debug
from tests.layers.definitions import TEXT

pytestmark = pytest.mark.compiler

Call = Callable[..., tuple[int, str, str]]
BAD = "def f(float(N) X) -> (Y) { Y(i) = Z(i) }"


@pytest.fixture
def layers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of definitions in the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "layers.tc").write_text(TEXT, encoding="utf-8")
    np.save("x.npy", np.linspace(-3, 3, 12, dtype=np.float32).reshape(3, 4))
    np.savez("all.npz", A=np.ones(3, np.float32), B=np.full(3, 2, np.float32), other=1)
    return Path("layers.tc")


# ---------------------------------------------------------------------- run


def test_run_writes_what_is_asked_for(tcfuse: Call, layers: Path):
    status, out, err = tcfuse("run", layers, "-f", "softmax", "-i", "I=x.npy", "-o", "O=y.npy")
    assert (status, out, err) == (0, "", "")
    x, y = np.load("x.npy"), np.load("y.npy")
    np.testing.assert_allclose(y, np.exp(x) / np.exp(x).sum(axis=1, keepdims=True), rtol=1e-5)
    assert sorted(p.name for p in Path().iterdir()) == [
        "all.npz", "layers.tc", "x.npy", "y.npy",
    ]  # fmt: skip


def test_run_prints_a_summary_else(tcfuse: Call, layers: Path):
    status, out, _ = tcfuse("run", layers, "-f", "softmax", "-i", "I=random:128,10")
    assert status == 0
    header, row = out.splitlines()
    assert header.split() == ["output", "type", "shape", "least", "largest", "mean"]
    assert row.split()[:5] == ["O", "float32", "128", "x", "10"]
    assert row.split()[-1] == "0.1"
    assert tcfuse("run", layers, "-f", "softmax", "-i", "I=random:128,10")[1] == out
    assert tcfuse("run", layers, "-f", "softmax", "-i", "I=random:128,10", "--seed=1")[1] != out


def test_run_compares_and_times(tcfuse: Call, layers: Path):
    arguments = ("run", layers, "-f", "softmax", "-i", "I=x.npy", "--time", "--compare", "-q")
    status, out, _ = tcfuse(*arguments)
    assert status == 0
    timed, compared = out.splitlines()
    assert timed.startswith("softmax: ")
    assert " us a call, spread " in timed
    assert compared.startswith("O: largest error ")
    assert float(compared.split()[3].rstrip(",")) < 1e-6


def test_run_reads_and_writes_archives(tcfuse: Call, layers: Path):
    assert tcfuse("run", layers, "-f", "add", "-i", "all.npz", "-o", "out.npz")[0] == 0
    assert np.load("out.npz")["C"].tolist() == [3, 3, 3]
    more = ("-i", "B=all.npz:A", "-o", "c.npy")
    assert tcfuse("run", layers, "-f", "add", "-i", "A=all.npz:A", *more)[0] == 0
    assert np.load("c.npy").tolist() == [2, 2, 2]


def test_run_takes_numbers_and_fixed_sizes(tcfuse: Call, layers: Path):
    more = ("-i", "X=random:5", "-i", "s=0.5", "--compare", "--numerics", "strict")
    assert tcfuse("run", layers, "-f", "scaled", *more)[0] == 0
    status, out, _ = tcfuse("run", layers, "-f", "ramp", "--size", "P=4")
    assert status == 0
    assert "3 x 4" in out


def test_run_of_the_only_definition_needs_no_name(tcfuse: Call, layers: Path):
    layers.write_text("def add(float(N) A, float(N) B) -> (C) { C(i) = A(i) + B(i) }")
    assert tcfuse("run", layers, "-i", "all.npz")[0] == 0


class Malice:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return open, ("stolen", "w")


def test_run_executes_nothing_from_a_file(tcfuse: Call, layers: Path):
    Path("bad.npy").write_bytes(pickle.dumps(Malice()))
    objects = np.array([Malice()], object)
    np.save("worse.npy", objects, allow_pickle=True)
    for name in ("bad.npy", "worse.npy"):
        status, _, err = tcfuse("run", layers, "-f", "softmax", "-i", f"I={name}")
        assert status == 1
        assert f"{name}: is no .npy or .npz file" in err
    assert not Path("stolen").exists()


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("-i", "I=x.npy"), 2, "say which definition with -f: softmax, add, "),
        (("-f", "softmx"), 1, "no definition 'softmx' [TC39]; did you mean 'softmax'?"),
        (("-f", "softmax"), 1, "nothing is given for the input float(N, D) I; use -i"),
        (("-f", "softmax", "-i", "X=x.npy"), 2, "no input 'X'; inputs are I"),
        (("-f", "softmax", "-i", "I=none.npy"), 1, "none.npy: cannot be read: No such file"),
        (("-f", "softmax", "-i", "I=layers.tc"), 1, "layers.tc: is no .npy or .npz file"),
        (("-f", "softmax", "-i", "I=all.npz"), 1, "all.npz: an archive; say which array"),
        (("-f", "softmax", "-i", "I=all.npz:Z"), 1, "no array 'Z'; it holds A, B, other"),
        (("-f", "softmax", "-i", "x.npy"), 2, "does not say which input it is"),
        (("-f", "softmax", "-i", "I=random:x"), 2, "random:x is not a list of sizes"),
        (("-f", "softmax", "-i", "I=x.npy", "-o", "Z=z.npy"), 2, "outputs are O"),
        (("-f", "softmax", "-i", "I=x.npy", "-o", "O=layers.tc/y"), 1, "cannot be written"),
        (("-f", "softmax", "-i", "I=random:3"), 1, "I"),
        (("-f", "take", "-i", "I=all.npz:A"), 1, "nothing is given for the input double"),
        (("-f", "scaled", "-i", "X=random:3", "-i", "s=all.npz:A"), 1, "s"),
        (("-f", "ramp"), 1, "P"),
        (("-f", "ramp", "--size", "P"), 2, "--size 'P' is not NAME=NUMBER"),
        (("-f", "softmax", "-i", "I=x.npy", "--unroll", "many"), 2, "--unroll many"),
        (("-f", "softmax", "-i", "I="), 2, "-i I=: no file for I"),
        (("-f", "softmax", "-i", "I=x.npy", "-i", "I=x.npy"), 2, "the input I is given twice"),
        (("-f", "softmax", "-i", "I=x.npy", "-o", "a", "-o", "O=b"), 2, "O goes to a already"),
        (("-f", "softmax", "-i", "I=x.npy", "-o", "Z=z.npz"), 2, "outputs are O"),
        (("-f", "softmax", "--size", "N=3", "--size", "N=4"), 2, "--size N=4: N is 3 already"),
        (("-f", "softmax", "-i", "I=random:3,4", "--seed", "-1"), 2, "--seed"),
        (("-f", "softmax", "--mapping", "none.json"), 1, "none.json: cannot be read: No such"),
        (("-f", "softmax", "--mapping", "x.npy"), 1, "x.npy: cannot be read: it is not UTF-8"),
        (("-f", "softmax", "--mapping", "layers.tc"), 2, "layers.tc: the knobs are not JSON"),
    ],
)  # fmt: skip
def test_run_says_what_is_wrong(tcfuse: Call, layers: Path, arguments, status, message):
    found, out, err = tcfuse("run", layers, *arguments)
    assert (found, out) == (status, "")
    assert "error: " in err.splitlines()[0]
    assert message in err


def test_show_prints_each_stage_of_a_definition(tcfuse: Call, layers: Path):
    for stage, word in (
        ("tc", "def softmax(float(N, D) I)"),
        ("tree", "schedule:"),
        ("mapped", "register"),
        ("source", "TCF_KERNEL(softmax_"),
        ("proof", "accesses"),
    ):
        status, out, _ = tcfuse("show", layers, "--stage", stage, "--kernel", "softmax")
        assert status == 0
        assert out.startswith("# softmax_")
        assert word in out


def test_every_stage_is_written_where_that_is_asked_for(
    tcfuse: Call, layers: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TCFUSE_DUMP", "dumped")
    debug.current.cache_clear()
    try:
        tcfuse("run", layers, "-f", "softmax", "-i", "I=x.npy")
    finally:
        monkeypatch.delenv("TCFUSE_DUMP")
        debug.current.cache_clear()
    written = [p.suffix for p in sorted(Path("dumped").iterdir())]
    assert written == [".tc", ".tree", ".mapped", ".cpp"]


# ---------------------------------------------------------------------- build


@pytest.mark.ort
def test_build_prints_its_operators(tcfuse: Call, layers: Path):
    pytest.importorskip("onnxruntime")
    more = ("-f", "softmax", "--domain", "my.domain", "--prefix", "My", "-o", "new/own.so")
    status, out, err = tcfuse("build", layers, *more)
    assert (status, err) == (0, "")
    assert out.splitlines()[0].split() == ["operator", "domain", "error", "definition"]
    row = out.splitlines()[1].split()
    assert row[:2] == ["Mysoftmax", "my.domain"]
    assert 0 < float(row[2]) < 1e-6
    assert tcfuse("build", layers, *more, "--no-verify")[1].splitlines()[1].split()[2] == "-"
    assert out.splitlines()[2] == "new/own.so: 1 operator, described in new/own.md"
    assert Path("new/own/Mysoftmax.onnx").is_file()


@pytest.mark.ort
def test_a_definition_that_is_named_twice_is_built_once(tcfuse: Call, layers: Path):
    pytest.importorskip("onnxruntime")
    named = ("-f", "softmax", "-f", "softmax", "--no-verify")
    status, out, _ = tcfuse("build", layers, *named, "-o", "twice")
    assert status == 0
    assert "twice.so: 1 operator, " in out


@pytest.mark.parametrize("before", [b"\xef\xbb\xbf", b""])
@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
def test_files_of_other_editors_are_read(
    tcfuse: Call, layers: Path, before: bytes, line_end: bytes
):
    text = TEXT.replace("  ", "\t").encode()
    layers.write_bytes(before + text.replace(b"\n", line_end))
    given = ("-f", "softmax", "-i", "I=x.npy", "-o", "y.npy")
    assert tcfuse("run", layers, *given) == (0, "", "")


def test_build_of_standard_input_asks_where_it_goes(
    tcfuse: Call, layers: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("sys.stdin", io.StringIO(layers.read_text(encoding="utf-8")))
    status, out, err = tcfuse("build", "-")
    assert (status, out) == (2, "")
    assert err == "error: say with -o where the library of standard input goes\n"


def test_build_keeps_going_and_says_so(tcfuse: Call, layers: Path):
    layers.write_text(
        "def good(float(N) X) -> (Y) { Y(i) = X(i) + 1 }"
        "def bad(float(N) X) -> (float(M) Y) { Y(i) = X(0) where i in 0:M }"
    )
    status, _, err = tcfuse("build", layers)
    assert status == 1
    assert not Path("layers.so").exists()
    status, _, err = tcfuse("build", layers, "--keep-going", "-q")
    assert status == 1
    assert err.startswith("error: bad was left out: ")
    assert Path("layers/good.onnx").is_file()


def test_warnings_are_shown(tcfuse: Call, layers: Path, monkeypatch: pytest.MonkeyPatch):
    given = ("-f", "accumulate", "-i", "X=random:2,3", "-i", "T=random:3", "--compare")
    status, out, err = tcfuse("run", layers, *given)
    assert status == 0
    assert "warning: 'T' is reduced into before it is written" in err
    assert "T: largest error " in out
    assert tcfuse("run", layers, *given, "-q")[2] == ""
    text = "def one() -> (O) { O(i) = 1.0 where i in 0:3 }"
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    status, out, _ = tcfuse("run", "-", "-o", "one.npy")
    assert (status, out) == (0, "")
    assert np.load("one.npy").tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("text", "arguments", "status", "message"),
    [
        (TEXT, ("-f", "relu"), 1, "no definition 'relu'"),
        (TEXT, ("--name", "softmax"), 2, "--name 'softmax' is not OLD=NEW"),
        (
            TEXT,
            ("--name", "add=a", "--name", "add=b"),
            2,
            "--name add=b: add is already called a",
        ),
        (TEXT, ("--domain", "a b"), 2, "'a b' is no domain"),
        (TEXT, ("--domain", ""), 2, "'' is no domain"),
        (TEXT, ("--domain", "ai.onnx.ml"), 2, "the domain ai.onnx.ml has operators already"),
        ("def f(float(N) X) -> () { Y(i) = X(i) }", (), 1, "f: it returns nothing"),
        (TEXT, ("-o", "x.npy"), 1, "a file is in the way"),
        (TEXT, ("-o", "."), 2, "-o . is a folder; write NAME"),
        (TEXT, ("-o", ".."), 2, "-o .. is a folder; write ../NAME"),
        (TEXT, ("--tile", "99999999999999999999"), 2, "it may be sizes of 0 to 2^30"),
        (TEXT, ("--isl-operations", "9" * 30), 2, "it may be 1 to 2^40"),
        (TEXT, ("-o", "x.npy/deep"), 1, "x.npy/deep: cannot be written"),
        (BAD, (), 1, "layers.tc:1:35: error: "),
        ("# nothing", (), 1, "layers.tc: there is no definition in it"),
        ("\udcff", (), 1, "layers.tc: cannot be read: it is not UTF-8 text"),
    ],
)
def test_build_says_what_is_wrong(
    tcfuse: Call, layers: Path, text: str, arguments, status, message
):
    layers.write_bytes(text.encode(errors="surrogateescape"))
    more = () if "-f" in arguments or text != TEXT else ("-f", "softmax")
    found, out, err = tcfuse("build", layers, *arguments, *more)
    assert (found, out) == (status, "")
    assert message in err
    assert not list(Path().glob("**/*.so"))


# ---------------------------------------------------------------------- compile


def test_compile_prints_the_text(tcfuse: Call, layers: Path):
    status, out, _ = tcfuse("compile", layers, "-f", "softmax")
    assert status == 0
    assert "TCF_LAUNCH" in out
    status, out, _ = tcfuse("compile", layers, "-f", "softmax", "--target", "cpu")
    assert status == 0
    assert "TCF_KERNEL" in out


def test_compile_writes_a_file_and_emulates(tcfuse: Call, layers: Path):
    sizes = ("--size", "N=3", "--size", "D=40")
    more = ("-o", "softmax.cu", "--emulate", "--counters")
    status, out, err = tcfuse("compile", layers, "-f", "softmax", *sizes, *more)
    assert (status, err) == (0, "")
    assert "TCF_LAUNCH" in Path("softmax.cu").read_text(encoding="utf-8")
    assert "findings" in out
    assert "global write" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--target", "tpu"), "no target 'tpu'; targets are cpu, cuda"),
        (("--target", "cpu", "--emulate"), "--emulate runs kernels for GPUs"),
        (("--counters",), "--counters counts in the emulator"),
        (("--emulate",), "say how large what is emulated is, for example --size"),
        (("--cuda-team", "3"), "0 or a power of two up to 1024"),
    ],
)
def test_compile_says_what_it_cannot_do(tcfuse: Call, layers: Path, arguments, message):
    status, _, err = tcfuse("compile", layers, "-f", "softmax", *arguments)
    assert status == 2
    assert message in err
