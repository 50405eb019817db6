"""Functions of one byte, which a table stands for."""

import numpy as np
import onnx
import pytest

from tcfuse.graph.cost import LOOKUP, estimate
from tcfuse.graph.fusion import group_of
from tcfuse.graph.load import load_model
from tcfuse.graph.lookups import lookups

READ = "a = DequantizeLinear(x, s, z)"


def nodes(body):
    text = (
        '<ir_version: 8, opset_import: ["" : 17]> g (int8[64, 64] x, int8[64, 64] u) => '
        f"(int8[64, 64] y) {{{body}}}"
    )
    proto = onnx.parser.parse_model(text)
    for name, array in {"s": np.float32(0.1), "h": np.float32(0.5), "z": np.int8(3)}.items():
        proto.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(array), name))
    return [n for n in load_model(proto).graph if n.op_type != "Constant"]


def found(body):
    return [
        (last.op_type, sorted(member.op_type for member in members))
        for last, members in lookups(nodes(body)).items()
    ]


def test_a_chain_between_integers_is_one_function_whatever_is_rounded_inside():
    body = (
        f"{READ} b = Exp(a) c = Mul(b, h) d = QuantizeLinear(c, s, z) "
        "e = DequantizeLinear(d, s, z) f = Erf(e) y = QuantizeLinear(f, s, z)"
    )
    expected = ["DequantizeLinear"] * 2 + ["Erf", "Exp", "Mul"] + ["QuantizeLinear"] * 2
    assert found(body) == [("QuantizeLinear", expected)]


@pytest.mark.parametrize(
    "middle",
    [
        "c = DequantizeLinear(u, s, z) b = Mul(a, c)",
        "b = Softmax(a)",
        "b = Transpose(a)",
    ],
)
def test_what_needs_another_element_is_no_function_of_a_byte(middle):
    assert found(f"{READ} {middle} y = QuantizeLinear(b, s, z)") == []


def test_a_function_of_bytes_costs_its_table_and_one_of_floats_itself():
    functions = "b = Erf(a) c = Exp(b) d = Tanh(c) y = QuantizeLinear(d, s, z)"
    of_bytes = estimate(group_of(nodes(f"{READ} {functions}"))).flops
    other = "e = DequantizeLinear(u, s, z) f = DequantizeLinear(x, s, z) a = Mul(e, f)"
    of_floats = estimate(group_of(nodes(f"{other} {functions}"))).flops
    assert of_bytes == LOOKUP * 64 * 64
    assert of_floats > 10 * of_bytes


def test_one_byte_that_is_turned_twice_alike_is_one_byte():
    body = (
        "p = Transpose<perm = [1, 0]>(x) q = Transpose<perm = [1, 0]>(x) "
        "a = DequantizeLinear(p, s, z) b = DequantizeLinear(q, s, z) "
        "c = Mul(a, b) y = QuantizeLinear(c, s, z)"
    )
    assert [last for last, _ in found(body)] == ["QuantizeLinear"]
    assert found(body.replace("q = Transpose<perm = [1, 0]>(x)", "q = Neg(x)")) == []
