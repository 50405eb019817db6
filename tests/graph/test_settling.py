"""Computed starts, ends and targets that a constant stands for are constants."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from onnx import parser

from tcfuse.graph.constants import constant_value
from tcfuse.graph.load import load_model

ort = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.ort

SIZE = "s = Shape(x) n = Gather(s, at) "
HEAD = """<ir_version: 8, opset_import: ["" : 17]>
g (float[N, 6] x) => (float[A, B] y) <int64[1] at = {0}, int64[1] zero = {0},
  int64[1] one = {1}, int64[1] two = {2}, int64[1] eight = {8}> """

EXPAND = "t = Concat<axis = 0>(one, n, one) u = Expand(x, t) y = Squeeze(u, zero)"
SETTLED = {
    "to the end": (SIZE + "y = Slice(x, zero, n, zero)", 2, None),
    "but one": (SIZE + "e = Sub(n, one) y = Slice(x, zero, e, zero)", 2, [-1]),
    "the last one": (SIZE + "b = Sub(n, one) y = Slice(x, b, n, zero)", 1, [-1]),
    "expanded to its own size": (SIZE + EXPAND, 1, [1, 1, 1]),
}
STAYS = {
    "but two: of one, -1 is the last": SIZE + "e = Sub(n, two) y = Slice(x, zero, e, zero)",
    "the size of another axis": SIZE + "y = Slice(x, zero, n, one)",
    "backwards": SIZE + "m = Neg(one) y = Slice(x, n, zero, zero, m)",
    "expanded by a size": SIZE + "t = Concat<axis = 0>(n, one, one) z = Expand(x, t)"
    " y = ReduceSum<keepdims = 0>(z, zero)",
}


def loaded(nodes: str) -> ir.Model:
    return load_model(parser.parse_model(f"{HEAD} {{ {nodes} }}"))


def cut(model: ir.Model) -> ir.Node:
    return next(node for node in model.graph if node.op_type in ("Slice", "Expand"))


@pytest.mark.parametrize("name", SETTLED)
def test_a_constant_takes_the_place_of_what_is_computed(name: str):
    nodes, position, expected = SETTLED[name]
    found = constant_value(cut(loaded(nodes)).inputs[position])
    assert found is not None
    assert found.tolist() == (expected or [np.iinfo(np.int64).max])


def test_what_was_computed_for_it_alone_is_gone():
    model = loaded(SETTLED["but one"][0])
    assert [node.op_type for node in model.graph] == ["Slice"]


@pytest.mark.parametrize("name", SETTLED)
@pytest.mark.parametrize("rows", [0, 1, 5])
def test_every_size_gives_the_same(name: str, rows: int):
    proto = parser.parse_model(f"{HEAD} {{ {SETTLED[name][0]} }}")
    x = np.arange(6 * rows, dtype=np.float32).reshape(rows, 6)
    before, after = (
        ort.InferenceSession(m.SerializeToString()).run(None, {"x": x})[0]
        for m in (proto, ir.to_proto(load_model(proto)))
    )
    np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("name", STAYS)
def test_what_differs_for_some_size_stays(name: str):
    node = cut(loaded(STAYS[name]))
    assert any(constant_value(value) is None for value in node.inputs[1:3])
