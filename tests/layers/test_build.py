"""Libraries of operators: what is written, and that ONNX Runtime runs it beside other nodes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

from models.draft import Draft
from tcfuse.errors import InputError, OptionError, UnsupportedError
from tcfuse.layers.build import BuildOptions, Built, build_layers, operator_names
from tcfuse.ort.inference import open_session
from tcfuse.tc.checked import CheckedDef
from tcfuse.tc.fixing import check_with_sizes
from tcfuse.tc.parser import parse_file
from tests.layers.definitions import TEXT

pytest.importorskip("onnxruntime")
pytestmark = [pytest.mark.compiler, pytest.mark.ort]

NAMES = ("softmax", "convolve", "take", "accumulate")


def definitions(*names: str, text: str = TEXT) -> tuple[CheckedDef, ...]:
    checked = check_with_sizes(parse_file(text), {})
    return tuple(c for c in checked if not names or c.definition.name in names)


def array(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    target = tmp_path_factory.mktemp("built") / "new" / "layers"
    options = BuildOptions(names={"take": "Pick"})
    return build_layers(definitions(*NAMES), target, options)


def files(folder: Path) -> list[str]:
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def test_what_is_written(built):
    folder = built.library.parent
    names = ["softmax.onnx", "convolve.onnx", "Pick.onnx", "accumulate.onnx"]
    assert [model.name for model in built.models] == names
    models = sorted(f"layers/{name}" for name in names)
    assert files(folder) == ["layers.md", "layers.so", *models]
    assert {operator.domain for operator in built.operators} == {"tcfuse.layers"}


def test_page(built, golden):
    golden(built.page.read_text(encoding="utf-8"), "md")


def test_models_run_for_any_sizes(built):
    softmax, convolve, pick, accumulate = (
        open_session(model, built.library) for model in built.models
    )
    assert [(v.name, v.shape) for v in softmax.get_inputs()] == [("I", ["N", "D"])]
    assert [(v.name, v.shape) for v in softmax.get_outputs()] == [("O", ["N", "D"])]
    for shape in ((3, 4), (1, 17), (0, 5)):
        x = array(*shape)
        y = softmax.run(None, {"I": x})[0]
        np.testing.assert_allclose(y.sum(axis=1), np.ones(shape[0]), rtol=1e-5)
    x, w = array(20), array(3)
    np.testing.assert_allclose(
        convolve.run(None, {"X": x, "w": w})[0], np.convolve(x, w[::-1], "valid"), rtol=1e-4
    )
    table, index = array(5, 3, dtype=np.float64), np.array([4, 0], np.int32)
    np.testing.assert_array_equal(pick.run(None, {"T": table, "I": index})[0], table[index])
    start = np.ones(17, np.float32)
    assert [v.name for v in accumulate.get_inputs()] == ["X", "T_in"]
    total = accumulate.run(None, {"X": array(4, 17), "T_in": start})[0]
    np.testing.assert_allclose(total, 1 + array(4, 17).sum(axis=0), rtol=1e-5)
    np.testing.assert_array_equal(start, 1)


def test_operators_stand_beside_others_in_a_model(built):
    g = Draft("mixed")
    g.graph.opset_imports["tcfuse.layers"] = 1
    x = g.input("x", ["batch", "time"])
    summed = g.op("ReduceSum", g.op("Relu", x), g.constant([0], np.int64), keepdims=0)
    smooth = own(g, "convolve", summed, g.constant([0.25, 0.5, 0.25]))
    rows = g.op("Unsqueeze", smooth, g.constant([0], np.int64))
    g.output(g.op("Neg", own(g, "softmax", rows)), "y", [1, "left"])
    session = open_session(g.model(), built.library)
    for shape in ((2, 9), (5, 30)):
        given = array(*shape)
        smoothed = np.convolve(np.maximum(given, 0).sum(axis=0), [0.25, 0.5, 0.25], "valid")
        expected = np.exp(smoothed - smoothed.max())
        np.testing.assert_allclose(
            session.run(None, {"x": given})[0][0], -expected / expected.sum(), rtol=1e-4
        )


def own(g: Draft, name: str, *inputs: ir.Value) -> ir.Value:
    """The output of a node of the library."""
    node = ir.node(name, inputs, domain="tcfuse.layers", name=f"own_{name}")
    g.graph.append(node)
    node.outputs[0].name = f"{name}_out"
    return node.outputs[0]


def test_shapes_are_inferred(built):
    model = ir.load(built.models[1])
    model.graph.inputs[0].shape = ir.Shape([20])
    model.graph.inputs[1].shape = ir.Shape([3])
    model.graph.outputs[0].shape = None
    (output,) = open_session(model, built.library).get_outputs()
    assert output.shape == [18]


def test_what_does_not_fit_is_named(built):
    _, convolve, pick, _ = (open_session(model, built.library) for model in built.models)
    with pytest.raises(Exception, match=r"convolve: the size N - K \+ 1 .* is negative"):
        convolve.run(None, {"X": array(2), "w": array(9)})
    given = {"T": array(5, 3, dtype=np.float64), "I": np.array([5], np.int32)}
    with pytest.raises(Exception, match="tcfuse: Pick: an index is out of range"):
        pick.run(None, given)


def test_dimensions_that_disagree_are_named_as_the_definition_names_them(tmp_path: Path):
    text = "def dot(float(N) a, float(N + 1) b) -> (o) { o() +=! a(i) * b(i) where i in 0:N }"
    made = build_layers(definitions(text=text), tmp_path / "x.y" / "my-own", BuildOptions())
    assert made.operators[0].domain == "tcfuse.my-own"
    session = open_session(made.models[0], made.library)
    assert session.run(None, {"a": array(3), "b": array(4)})[0].shape == ()
    rule = r"dimension 0 of 'b' is 3; .* N \+ 1 \(N is dimension 0 of 'a'\), which is 4"
    with pytest.raises(Exception, match=rule):
        session.run(None, {"a": array(3), "b": array(3)})


def test_a_new_build_replaces_an_old_one_and_nothing_else(tmp_path: Path):
    text = "def f(float(N) X) -> (Y) { Y(i) = X(i) + 1 }"
    target = tmp_path / "layers"
    options = BuildOptions(prefix="Old", domain="my.domain")
    build_layers(definitions(text=text), target, options)
    (target / "mine.onnx").write_bytes(b"not a model")
    (target / "notes.txt").write_text("keep")
    build_layers(definitions(text=text), target, BuildOptions(domain="my.domain"))
    assert files(target) == ["f.onnx", "mine.onnx", "notes.txt"]


BROKEN = """
def good(float(N) X) -> (Y) { Y(i) = X(i) + 1 }
def bad(float(N) X) -> (float(M) Y) { Y(i) = X(0) where i in 0:M }
"""


def test_one_that_cannot_be_compiled_builds_nothing(tmp_path: Path):
    with pytest.raises(Exception, match="M"):
        build_layers(definitions(text=BROKEN), tmp_path / "layers")
    assert files(tmp_path) == []


def test_keep_going_leaves_it_out(tmp_path: Path):
    options = BuildOptions(keep_going=True)
    made = build_layers(definitions(text=BROKEN), tmp_path / "layers", options)
    assert [operator.name for operator in made.operators] == ["good"]
    assert list(made.failed) == ["bad"]
    with pytest.raises(InputError, match=r"nothing to build: .*M"):
        build_layers(definitions("bad", text=BROKEN), tmp_path / "other", options)


def test_an_interrupted_build_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def fail(*arguments: object, **named: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tcfuse.layers.build.build_library", fail)
    with pytest.raises(KeyboardInterrupt):
        build_layers(definitions("softmax"), tmp_path / "layers")
    assert list(tmp_path.iterdir()) == []


def test_beyond_the_compiler_names_the_definition(monkeypatch: pytest.MonkeyPatch, tmp_path):
    def refuse(*arguments: object) -> None:
        raise UnsupportedError("too hard")

    monkeypatch.setattr("tcfuse.layers.compiling.compile_cached", refuse)
    with pytest.raises(UnsupportedError, match="softmax: too hard"):
        build_layers(definitions("softmax"), tmp_path / "layers")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (BuildOptions(names={"c": "d"}), "--name c=d: definitions are a, b"),
        (BuildOptions(names={"a": "b"}), "a and b would both be called b"),
        (BuildOptions(prefix="1"), "'1a', of a, is no name of an operator"),
    ],
)
def test_names_that_are_none(options, message):
    with pytest.raises(OptionError, match=message):
        operator_names(["a", "b"], options)


def test_names():
    options = BuildOptions(prefix="My", names={"a": "Other"})
    assert operator_names(["a", "b"], options) == {"a": "Other", "b": "Myb"}
