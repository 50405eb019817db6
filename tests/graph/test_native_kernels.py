"""What ONNX Runtime makes one kernel of, and which kernels it has by another name."""

import numpy as np
import onnx
import pytest

from tcfuse.graph.load import load_model
from tcfuse.graph.machine import MACHINE
from tcfuse.graph.native_kernel import kernel_name, node_us
from tcfuse.graph.native_kernels import FREE, native_kernels

FEW = {"h": 0.5, "r": 1.41, "one": 1.0, "k": 0.0447, "p": 0.79, "three": 3.0, "s": 0.1}


def nodes(body, inputs="float[2, 8, 64] x", outputs="float[2, 8, 64] y"):
    text = f'<ir_version: 8, opset_import: ["" : 17]> g ({inputs}) => ({outputs}) {{{body}}}'
    proto = onnx.parser.parse_model(text)
    for name, number in FEW.items():
        array = np.array(number, np.float32)
        proto.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    for name, array in {"z": np.int8(3), "w": np.ones(64, np.float32)}.items():
        proto.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(array), name))
    return [n for n in load_model(proto).graph if n.op_type != "Constant"]


def names(body, **given):
    return [kernel.name for kernel in native_kernels(nodes(body, **given))]


GELU = "a = Div(x, r) b = Erf(a) c = Add(b, one)"
FAST = "a = Pow(x, three) b = Mul(a, k) c = Add(x, b) d = Mul(c, p) e = Tanh(d) f = Add(e, one)"
NORM = "a = Pow(x, h) b = ReduceMean<axes = [-1]>(a) c = Add(b, s) d = Sqrt(c) e = Div(x, d)"
INTEGERS = "a = DequantizeLinear(x, s, z) b = DequantizeLinear(u, s, z)"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"{GELU} d = Mul(x, c) y = Mul(d, h)", ["Gelu"]),
        (f"{GELU} d = Mul(x, h) y = Mul(d, c)", ["Gelu"]),
        (f"{FAST} g = Mul(x, f) y = Mul(g, h)", ["FastGelu"]),
        ("a = Sigmoid(x) y = Mul(x, a)", ["QuickGelu"]),
        ("b = Mul(x, h) a = Sigmoid(b) y = Mul(x, a)", ["QuickGelu"]),
        (f"{NORM} y = Mul(e, w)", ["SimplifiedLayerNormalization"]),
        ("a = Add(x, x) y = LayerNormalization(a, w)", ["SkipLayerNormalization"]),
    ],
)
def test_nodes_that_are_merged_are_one_kernel(body, expected):
    assert names(body) == expected


def test_what_others_read_too_is_not_merged():
    outputs = "float[2, 8, 64] y, float[2, 8, 64] a"
    found = names("a = Sigmoid(x) y = Mul(x, a)", outputs=outputs)
    assert found == ["Sigmoid", "Mul"]
    found = names("a = Add(x, x) y = LayerNormalization(a, w)", outputs=outputs)
    assert found == ["Add", "LayerNormalization"]


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        ("c = Add(a, b)", "QLinearAdd"),
        ("d = Mul(a, b) c = Relu(d)", "QLinearMul"),
        ("c = Concat<axis = 1>(a, b)", "QLinearConcat"),
    ],
)
def test_an_operator_between_integers_is_one_kernel_on_them(operator, expected):
    inputs, outputs = "int8[2, 8, 64] x, int8[2, 8, 64] u", "int8[2, N, 64] y"
    body = f"{INTEGERS} {operator} y = QuantizeLinear(c, s, z)"
    (kernel,) = native_kernels(nodes(body, inputs=inputs, outputs=outputs))
    assert kernel.name == expected
    assert [value.name for value in kernel.reads] == ["x", "u"]
    assert [value.name for value in kernel.writes] == ["y"]


def test_an_operator_without_an_integer_kernel_runs_on_floats():
    inputs, outputs = "int8[2, 8, 64] x", "int8[2, 8, 64] y"
    body = "a = DequantizeLinear(x, s, z) b = HardSigmoid(a) y = QuantizeLinear(b, s, z)"
    found = names(body, inputs=inputs, outputs=outputs)
    assert found == ["DequantizeLinear", "HardSigmoid", "QuantizeLinear"]


def test_a_transpose_between_integers_moves_bytes():
    inputs, outputs = "int8[2, 8, 64] x", "int8[2, 64, 8] y"
    body = (
        "a = DequantizeLinear(x, s, z) b = Transpose<perm = [0, 2, 1]>(a) "
        "y = QuantizeLinear(b, s, z)"
    )
    (kernel,) = native_kernels(nodes(body, inputs=inputs, outputs=outputs))
    moved = kernel.time_us() - MACHINE.native_us
    assert kernel.name == "Transpose"
    assert moved == pytest.approx(2 * 2 * 8 * 64 / MACHINE.rates["Transpose"])


@pytest.mark.parametrize(
    ("body", "shape", "expected"),
    [
        ("y = Transpose<perm = [0, 2, 1]>(x)", "2, 64, 8", "Transpose"),
        ("y = Transpose<perm = [1, 0, 2]>(x)", "8, 2, 64", "Transpose:rows"),
        ("y = ReduceMax<axes = [-1], keepdims = 0>(x)", "2, 8", "ReduceMax"),
        ("y = ReduceMax<axes = [1], keepdims = 0>(x)", "2, 64", "ReduceMax:columns"),
        ("y = Softmax<axis = 1>(x)", "2, 8, 64", "Softmax:columns"),
        ("y = Pow(x, three)", "2, 8, 64", "Pow"),
        ("y = Pow(x, h)", "2, 8, 64", "Pow:general"),
    ],
)
def test_attributes_that_decide_the_speed_are_part_of_the_name(body, shape, expected):
    (node,) = nodes(body, outputs=f"float[{shape}] y")
    assert kernel_name(node) == expected


def test_a_transpose_of_axes_of_one_element_moves_nothing():
    (node,) = nodes(
        "y = Transpose<perm = [1, 0, 2]>(x)", "float[1, 8, 64] x", "float[8, 1, 64] y"
    )
    assert node_us(node) == MACHINE.native_us


def test_a_cast_to_the_same_type_moves_nothing():
    (node,) = nodes("y = Cast<to = 1>(x)")
    assert node_us(node) == MACHINE.native_us


def test_what_is_free_where_nothing_is_fused_is_no_kernel():
    found = nodes("y = Transpose<perm = [0, 2, 1]>(x)", outputs="float[2, 64, 8] y")
    found[0].meta[FREE] = True
    assert native_kernels(found) == []
