"""Values that kernels hand to each other between quantized convolutions keep channels last."""

import numpy as np
import onnx
import pytest

from tcfuse.graph.channels_last import FIRST, LAST
from tcfuse.graph.load import load_model

BEFORE = """d = DequantizeLinear(x, s, z) w = DequantizeLinear(w8, s, z) c1 = Conv(d, w)
    q = QuantizeLinear(c1, s, z) e = DequantizeLinear(q, s, z) t = Sin(e)
    middle = QuantizeLinear(t, s, z) u = DequantizeLinear(middle, s, z)"""
AFTER = """o = QuantizeLinear(m, s, z) f = DequantizeLinear(o, s, z)
    v = DequantizeLinear(w8, s, z) c2 = Conv(f, v) y = QuantizeLinear(c2, s, z)"""
SQUEEZE = """n = DequantizeLinear(middle, s, z) p = GlobalAveragePool(n) r = Sigmoid(p)"""


def turned(body: str) -> list[str]:
    """What is turned and turned back: the names of the values."""
    text = (
        '<ir_version: 8, opset_import: ["" : 17]> g (uint8[1, 8, 6, 6] x) => '
        f"(uint8[1, 8, 6, 6] y) {{{body}}}"
    )
    proto = onnx.parser.parse_model(text)
    w8 = np.ones((8, 8, 1, 1), np.uint8)
    for name, array in {"s": np.float32(0.1), "z": np.uint8(3), "w8": w8}.items():
        proto.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(array), name))
    last = [
        (node.inputs[0], node.outputs[0])
        for node in load_model(proto).graph
        if node.op_type == "Transpose" and tuple(node.attributes.get_ints("perm", ())) == LAST
    ]
    back = {
        node.inputs[0]
        for _, value in last
        for node, _ in value.uses()
        if tuple(node.attributes.get_ints("perm", ())) == FIRST
    }
    assert back == {value for _, value in last}
    return sorted(value.name or "" for value, _ in last)


def test_what_is_summed_over_its_places_and_read_again_is_turned():
    assert turned(f"{BEFORE} {SQUEEZE} m = Mul(u, r) {AFTER}") == ["middle", "o", "q"]


@pytest.mark.parametrize(
    "between",
    [
        "m = Neg(u)",  # one kernel does all of it
        "n = DequantizeLinear(middle, s, z) k = Neg(n) m = Mul(u, k)",  # so here
        f"{SQUEEZE} h = Transpose<perm = [0, 1, 3, 2]>(u) m = Mul(h, r)",  # places move
    ],
)
def test_other_values_stay(between):
    assert turned(f"{BEFORE} {between} {AFTER}") == ["o", "q"]
