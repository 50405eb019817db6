"""Names, domains and repetitions that a model may have, whoever wrote it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, parser

from tcfuse.ort.arrays import run
from tcfuse.ort.inference import open_session
from tcfuse.pipeline import optimize

pytestmark = [pytest.mark.compiler, pytest.mark.ort]

NAMES = {
    "a letter each in two cases": ("value", "Value", "VALUE"),
    "what C has words for": ("int", "double", "while"),
    "what our kernels have names for": ("x0", "n0", "tcf_sizes"),
    "nothing but signs": ("/a/b.c:0", "/a/b-c:0", "a b\n\t\"'\\"),
    "signs that differ only": ("a.b", "a/b", "a_b"),
    "letters of the world": ("größe", "大小", "🙂"),
    "very long ones": ("x" * 10_000, "x" * 9_999 + "y", "x" * 9_999 + "z"),
    "what could end a comment or a string": ("*/ #error", '"); abort(); //', "%s%n{0}"),
}


def saved(model: onnx.ModelProto, folder: Path) -> Path:
    path = folder / "model.onnx"
    onnx.save(model, path)
    return path


def feeds(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        v.name: rng.random([d.dim_value or 3 for d in v.type.tensor_type.shape.dim], np.float32)
        for v in model.graph.input
    }


def check(model: onnx.ModelProto, folder: Path) -> onnx.ModelProto:
    """Optimize a model, which must find a region, run it with and without; the result."""
    source, given = saved(model, folder), feeds(model)
    result = optimize(source, gate=False)
    kept = [region for region in result.report.regions if region.kept]
    assert kept, [region.reason for region in result.report.regions]
    fused = result.save(folder / "out.onnx")
    expected = run(open_session(source), given)
    for library in (fused.with_suffix(".so"), None):
        for ours, theirs in zip(
            run(open_session(fused, library), given), expected, strict=True
        ):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    return onnx.load(fused)


def chain(names: tuple[str, str, str], size: str | int = "N") -> onnx.ModelProto:
    """``b = exp(a * a) + a``, everything in it under those names."""
    a, b, c = names
    nodes = [
        helper.make_node("Mul", [a, a], [b], name=c, doc_string="*/ squared"),
        helper.make_node("Exp", [b], [c], name=a),
        helper.make_node("Add", [c, a], ["out " + b], name=b),
    ]
    graph = helper.make_graph(
        nodes,
        c,
        [helper.make_tensor_value_info(a, 1, [size, 4])],
        [helper.make_tensor_value_info("out " + b, 1, [size, 4])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("kind", NAMES)
def test_any_name_will_do(kind: str, tmp_path: Path):
    check(chain(NAMES[kind]), tmp_path)


@pytest.mark.parametrize("size", ["int", "batch size", "größe", "N+1", "s" * 5000, "n0"])
def test_any_name_of_a_size_will_do(size: str, tmp_path: Path):
    check(chain(("a", "b", "c"), size), tmp_path)


def parsed(text: str, head: str = '"" : 17') -> onnx.ModelProto:
    return parser.parse_model(f"<ir_version: 8, opset_import: [{head}]>\n{text}")


def test_one_tensor_may_be_given_twice(tmp_path: Path):
    check(
        parsed("""g (float[N, 4] x) => (float[N, 4] y, float[N, 8] z) {
          a = Sub(x, x) b = Exp(a) y = Mul(b, x) c = Add(y, y) z = Concat<axis = 1>(c, c) }"""),
        tmp_path,
    )


def test_an_input_may_be_an_output_too(tmp_path: Path):
    check(
        parsed("""g (float[N, 4] x) => (float[N, 4] y, float[N, 4] w) {
          a = Exp(x) y = Mul(a, x) w = Identity(x) }"""),
        tmp_path,
    )


def test_optional_inputs_may_be_left_out(tmp_path: Path):
    check(
        parsed("""g (float[N, 4] x) => (float[N, 4] y) <float h = {0.5}> {
          a = Exp(x) b = Clip(a, , h) y, d = Dropout(b) }"""),
        tmp_path,
    )


def test_domains_that_nobody_knows_are_left_alone(tmp_path: Path):
    model = parsed(
        """g (float[N, 4] x) => (float[N, 4] y) { a = Exp(x) b = Mul(a, x)
           c = my.own.Twice(b) d = Exp(c) y = Mul(d, x) }
        <domain: "my.own", opset_import: ["" : 17]>
        Twice (v) => (w) { w = Add(v, v) }""",
        '"" : 17, "my.own" : 3',
    )
    optimized = check(model, tmp_path)
    assert {f.domain for f in optimized.functions} >= {"my.own", "tcfuse"}


def test_functions_may_call_functions(tmp_path: Path):
    model = parsed(
        """g (float[N, 4] x) => (float[N, 4] y) { a = Exp(x) b = Mul(a, x)
           c = my.own.Outer(b) d = Exp(c) y = Mul(d, x) }
        <domain: "my.own", opset_import: ["" : 17, "my.own" : 1]>
        Outer (v) => (w) { t = my.own.Inner<alpha = 2.0>(v) w = Tanh(t) }
        <domain: "my.own", opset_import: ["" : 17]>
        Inner <alpha> (v) => (w)
        { k = Constant<value_float: float = @alpha>() w = Mul(v, k) }""",
        '"" : 17, "my.own" : 1',
    )
    check(model, tmp_path)


def test_what_is_written_about_a_model_stays(tmp_path: Path):
    model = parsed(
        """g (float[N, 4] x, float[N, 4] z) => (float[N, 4] y) {
      a = Exp(x) b = Mul(a, x) c = Abs(b) y = CumSum<exclusive = 0>(c, k) }""".replace(
            "=> (float[N, 4] y) {", "=> (float[N, 4] y) <int64 k = {1}> {"
        )
    )
    model.doc_string, model.producer_name, model.model_version = "the model", "somebody", 7
    model.domain = "org.example"
    model.metadata_props.add(key="author", value="nobody")
    model.graph.doc_string = "the graph"
    model.graph.metadata_props.add(key="layer", value="all")
    model.graph.input[0].doc_string = "the input"
    model.graph.output[0].doc_string = "the output"
    model.graph.input[0].metadata_props.add(key="unit", value="m")
    optimized = check(model, tmp_path)
    for told in ("doc_string", "producer_name", "model_version", "domain"):
        assert getattr(optimized, told) == getattr(model, told), told
    assert {(p.key, p.value) for p in optimized.metadata_props} >= {("author", "nobody")}
    assert optimized.graph.doc_string == "the graph"
    assert [(p.key, p.value) for p in optimized.graph.metadata_props] == [("layer", "all")]
    assert optimized.graph.input[0].doc_string == "the input"
    assert [(p.key, p.value) for p in optimized.graph.input[0].metadata_props] == [
        ("unit", "m")
    ]
    assert optimized.graph.output[0].doc_string == "the output"


def test_nodes_that_stay_keep_what_is_written_about_them(tmp_path: Path):
    model = parsed("""g (float[N, 4] x) => (float[N, 4] y) {
      a = Exp(x) b = Mul(a, x) c = Abs(b) u, i = Unique<axis = 0>(c)
      d = Shape(u) e = Cast<to = 1>(d) f = ReduceSum<keepdims = 0>(e) y = Add(c, f) }""")
    (unique,) = (n for n in model.graph.node if n.op_type == "Unique")
    unique.name, unique.doc_string = "the one", "sorts"
    unique.metadata_props.add(key="source", value="line 7")
    optimized = check(model, tmp_path)
    (kept,) = (n for n in optimized.graph.node if n.op_type == "Unique")
    assert (kept.name, kept.doc_string) == ("the one", "sorts")
    assert [(p.key, p.value) for p in kept.metadata_props] == [("source", "line 7")]
