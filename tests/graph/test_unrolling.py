"""Branches and loops that are decided when the model is loaded go, and nothing else does."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import parser

from tcfuse.graph import unrolling
from tcfuse.graph.load import load_model

ort = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.ort

LOOP = "body = b (int64 k, bool go, float[3] s) => (bool again, float[3] t{more}) {{ {nodes} }}"
KEEP = "again = Identity(go)"


def loop(nodes: str, more: str = "") -> str:
    return LOOP.format(nodes=nodes, more=more)


GONE = {
    "the branch that is taken": """g (float[3] x) => (float[3] y) <bool c = {1}> {
      w = If (c) <then_branch = a () => (float[3] t) { t = Neg(x) },
                  else_branch = b () => (float[3] t) { t = Exp(x) }>
      y = Abs(w) }""",
    "the other branch, which has a constant": """g (float[3] x) => (float[3] y) <bool c = {0}> {
      y = If (c) <then_branch = a () => (float[3] t) { t = Neg(x) },
                  else_branch = b () => (float[3] t) <float h = {2}> { t = Mul(x, h) }> }""",
    "a branch in a branch": """g (float[3] x) => (float[3] y) {
      n = Size(x)
      three = Constant<value = int64 {3}>()
      c = Equal(n, three)
      y = If (c) <then_branch = a () => (float[3] t) {
                    d = Not(c)
                    t = If (d) <then_branch = e () => (float[3] u) { u = Exp(x) },
                                else_branch = f () => (float[3] u) { u = Sin(x) }> },
                  else_branch = b () => (float[3] v) { v = Neg(x) }> }""",
    "branches that name their values alike": """g (float[3] x) => (float[3] y) <bool c = {1}> {
      p = If (c) <then_branch = a () => (float[3] t) { t = Neg(x) },
                  else_branch = b () => (float[3] t) { t = Exp(x) }>
      q = If (c) <then_branch = a () => (float[3] t) { t = Sin(x) },
                  else_branch = b () => (float[3] t) { t = Exp(x) }>
      y = Add(p, q) }""",
    "a branch that returns what was there": """g (float[3] x) => (float[3] y, float[3] z)
      <bool c = {1}> {
      w = Neg(x)
      y, z = If (c) <then_branch = a () => (float[3] t, float[3] u)
                       { t = Identity(w) u = Identity(w) },
                     else_branch = b () => (float[3] t, float[3] u)
                       { t = Exp(x) u = Exp(x) }> }""",
    "a loop": f"""g (float[3] x) => (float[3] y) <int64 n = {{3}}, bool c = {{1}}> {{
      y = Loop (n, c, x) <{loop("t = Sin(s) " + KEEP)}> }}""",
    "a loop that stacks, and counts": f"""g (float[3] x) => (float[3] y, float[4, 3] z)
      <int64 n = {{4}}> {{
      y, z = Loop (n, , x) <{
        loop("f = Cast<to = 1>(k) t = Add(s, f) o = Mul(t, x) " + KEEP, ", float[3] o")
    }> }}""",
    "a loop that never runs": f"""g (float[3] x) => (float[3] y)
      <int64 n = {{3}}, bool c = {{0}}> {{
      w = Loop (n, c, x) <{loop("t = Sin(s) " + KEEP)}>
      y = Neg(w) }}""",
    "a loop that stops itself": f"""g (float[3] x) => (float[3] y) <int64 n = {{3}}> {{
      y = Loop (n, , x) <{loop("t = Sin(s) again = Constant<value = bool {0}>()")}> }}""",
    "a loop in a loop": f"""g (float[3] x) => (float[3] y) <int64 n = {{2}}> {{
      y = Loop (n, , x) <{
        loop(
            "t = Loop (n, , s) <body = i (int64 m, bool h, float[3] v) => (bool a, float[3] w)"
            " { w = Sin(v) a = Identity(h) }> " + KEEP
        )
    }> }}""",
    "a scan": """g (float[3] x, float[4,3] r) => (float[3] y, float[4,3] z) {
      y, z = Scan<num_scan_inputs = 1, body = b (float[3] s, float[3] e)
        => (float[3] t, float[3] o) { t = Add(s, e) o = Neg(t) }>(x, r) }""",
    "a scan backwards along other axes": """g (float[3] x, float[3,4] r, float[4,3] q)
      => (float[3] y, float[3,4] z) {
      y, z = Scan<num_scan_inputs = 2, scan_input_axes = [-1, 0],
        scan_input_directions = [1, 0], scan_output_axes = [1], scan_output_directions = [1],
        body = b (float[3] s, float[3] e, float[3] f)
        => (float[3] t, float[3] o) { d = Sub(e, f) t = Add(s, d) o = Neg(t) }>(x, r, q) }""",
}
STAYS = {
    "If": """g (float[3] x, bool c) => (float[3] y) {
      y = If (c) <then_branch = a () => (float[3] t) { t = Neg(x) },
                  else_branch = b () => (float[3] t) { t = Exp(x) }> }""",
    "Loop": f"""g (float[3] x, int64 n) => (float[3] y) {{
      y = Loop (n, , x) <{loop("t = Sin(s) " + KEEP)}> }}""",
    "Loop that may stop": f"""g (float[3] x) => (float[3] y) <int64 n = {{3}}> {{
      y = Loop (n, , x) <{
        loop(
            "t = Sin(s) m = ReduceMax<keepdims = 0>(s) h = Constant<value = float {0.5}>()"
            " again = Less(h, m)"
        )
    }> }}""",
    "Loop that draws": f"""g (float[3] x) => (float[3] y) <int64 n = {{3}}> {{
      y = Loop (n, , x) <{
        loop("r = RandomNormalLike<seed = 1.0>(s) t = Add(r, s) " + KEEP)
    }> }}""",
    "Loop that is long": f"""g (float[3] x) => (float[3] y) <int64 n = {{9000}}> {{
      y = Loop (n, , x) <{loop("t = Sin(s) " + KEEP)}> }}""",
    "Scan": """g (float[3] x, float[N,3] r) => (float[3] y) {
      y = Scan<num_scan_inputs = 1, body = b (float[3] s, float[3] e)
        => (float[3] t) { t = Add(s, e) }>(x, r) }""",
}


def parsed(text: str) -> onnx.ModelProto:
    return parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]>\n{text}')


def run(model: onnx.ModelProto) -> list[np.ndarray]:
    session = ort.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    rng = np.random.default_rng(0)
    return session.run(
        None, {v.name: rng.random(v.shape, np.float32) for v in session.get_inputs()}
    )


def control_flow(model: ir.Model) -> list[str]:
    kinds = {"If", "Loop", "Scan"}
    return [node.op_type for node in model.graph.all_nodes() if node.op_type in kinds]


@pytest.mark.parametrize("name", GONE)
def test_what_is_decided_is_gone_and_computes_the_same(name: str):
    source = parsed(GONE[name])
    loaded = load_model(source)
    assert control_flow(loaded) == []
    result = ir.to_proto(loaded)
    onnx.checker.check_model(result)
    for ours, theirs in zip(run(result), run(source), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


@pytest.mark.parametrize("name", STAYS)
def test_what_is_not_decided_stays(name: str):
    assert control_flow(load_model(parsed(STAYS[name]))) == [name.split()[0]]


def test_loops_are_written_out_until_there_are_enough_nodes(monkeypatch):
    monkeypatch.setattr(unrolling, "MOST_NODES", 7)
    loaded = load_model(parsed(GONE["a loop in a loop"]))
    assert control_flow(loaded).count("Loop") == 1  # of two iterations of the outer one


def test_a_scan_of_a_batch_is_written_out():
    text = """g (float[2,3] x, float[2,4,3] r) => (float[2,3] y, float[2,4,3] z) {
      y, z = Scan<num_scan_inputs = 1, body = b (float[3] s, float[3] e)
        => (float[3] t, float[3] o) { t = Add(s, e) o = Neg(t) }>(, x, r) }"""
    source = parser.parse_model(f'<ir_version: 3, opset_import: ["" : 8]>\n{text}')
    loaded = load_model(source)
    assert control_flow(loaded) == []
    for ours, theirs in zip(run(ir.to_proto(loaded)), run(source), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_nothing_reads_what_the_other_branch_read():
    loaded = load_model(parsed(GONE["the branch that is taken"]))
    assert [node.op_type for node in loaded.graph] == ["Neg", "Abs"]
    (x,) = loaded.graph.inputs
    assert [user.op_type for user, _ in x.uses()] == ["Neg"]


@pytest.mark.parametrize("name", GONE)
def test_the_original_is_not_changed(name: str):
    source = parsed(GONE[name])
    text = source.SerializeToString()
    ir.to_proto(load_model(source))
    assert source.SerializeToString() == text
