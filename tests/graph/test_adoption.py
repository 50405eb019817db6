"""Contractions that leave ONNX Runtime's kernels, and those that stay with a reason."""

import math

import onnx
import pytest

from tcfuse.graph.fusion import fuse
from tcfuse.graph.load import load_model
from tcfuse.graph.products import Product, kernel_us, native_us, product_of

ATTENTION = """
    kt = Transpose<perm = [0, 2, 1]>(k) s = MatMul(q, kt) t = Add(s, bias) p = Softmax(t)
    y = MatMul(p, v)
"""


def plan(body, inputs, outputs, *, conservative=False):
    text = f'<ir_version: 8, opset_import: ["" : 17]> g ({inputs}) => ({outputs}) {{{body}}}'
    loaded = load_model(onnx.parser.parse_model(text))
    return fuse(loaded.graph, loaded.opset_imports, conservative=conservative)


def attention(sizes, **kwargs):
    inputs = ", ".join(f"float[{sizes}] {name}" for name in "qkv")
    return plan(ATTENTION, f"{inputs}, float[49, 49] bias", f"float[{sizes}] y", **kwargs)


@pytest.mark.parametrize("conservative", [False, True])
def test_small_attention_is_one_kernel(conservative):
    (group,) = attention("192, 49, 32", conservative=conservative).groups
    assert str(group) == "Transpose MatMul Add Softmax MatMul"


def test_attention_of_unknown_batches_keeps_its_products():
    groups = [str(group) for group in attention("N, 49, 32").groups]
    assert not any("MatMul" in group for group in groups)


def test_large_products_stay():
    found = plan(
        "a = MatMul(x, x) b = Exp(a) y = MatMul(b, b)", "float[512, 512] x", "float[512, 512] y"
    )
    reasons = {r.node.op_type: r.reason for r in found.rejections}
    assert reasons["MatMul"] == "MatMul is left to ONNX Runtime's own kernel"


def test_a_product_that_gains_too_little_says_how_little():
    found = plan(
        "a = Gemm(x, u) b = Relu(a) c = Gemm(b, u) y = Relu(c)",
        "float[128, 64] x, float[64, 64] u",
        "float[128, 64] y",
    )
    reasons = {r.node.op_type: r.reason for r in found.rejections}
    assert not found.groups
    assert "is expected to gain" in reasons["Gemm"]


def product(body, inputs, outputs="float[A, B] y"):
    text = f'<ir_version: 8, opset_import: ["" : 17]> g ({inputs}) => ({outputs}) {{{body}}}'
    loaded = load_model(onnx.parser.parse_model(text))
    return product_of(next(n for n in loaded.graph if n.op_type in ("MatMul", "Gemm")))


def test_products_are_read_off_their_operators():
    found = product(
        "y = MatMul(a, b)", "float[7, 16, 32] a, float[7, 32, 48] b", "float[a,b,c] y"
    )
    assert found == Product(7, 16, 48, 32)
    found = product("y = MatMul(a, b)", "float[7, 16, 32] a, float[32, 48] b", "float[a,b,c] y")
    assert found == Product(1, 7 * 16, 48, 32)
    found = product("y = Gemm<transB = 1>(a, b)", "float[64, 32] a, float[48, 32] b")
    assert found == Product(1, 64, 48, 32, turned=True)
    body = "t = Transpose<perm = [0, 2, 1]>(b) y = MatMul(a, t)"
    found = product(body, "float[7, 16, 32] a, float[7, 48, 32] b", "float[a,b,c] y")
    assert found == Product(7, 16, 48, 32, turned=True)


@pytest.mark.parametrize(
    ("body", "inputs"),
    [
        ("y = MatMul(a, b)", "float[N, 64] a, float[64, 64] b"),
        ("y = MatMul(a, b)", "float[4, 8] a, float[8, 4] b"),
        ("y = MatMul(a, b)", "float[64] a, float[64, 4096] b"),
        ("y = Gemm<transA = 1>(a, b)", "float[64, 64] a, float[64, 64] b"),
        ("y = MatMul(a, b)", "double[64, 64] a, double[64, 64] b"),
    ],
    ids=["symbolic", "small", "vector", "transposed left", "double"],
)
def test_other_products_are_not_known(body, inputs):
    outputs = "double[A, B] y" if "double" in inputs else "float[A, B] y"
    assert product(body, inputs, outputs) is None


def test_a_batch_of_small_products_is_faster_in_a_kernel_and_a_large_product_is_not():
    small, large = Product(64, 16, 16, 16), Product(1, 512, 256, 256, fixed=True)
    assert kernel_us(small) < 0.6 * native_us(small)
    assert kernel_us(large) > native_us(large)


def convolution(channels, filters, groups, attributes=""):
    shape = (filters, channels // groups, 3, 3)
    ones = ", ".join(["1.0"] * math.prod(shape))
    weights = f"<float{list(shape)} w = {{{ones}}}>"
    text = (
        f'<ir_version: 8, opset_import: ["" : 17]> g (float[1, {channels}, 28, 28] x) => '
        f"(float[A, B, C, D] y) {weights} "
        f"{{ c = Conv<group = {groups}, pads = [1, 1, 1, 1]{attributes}>(x, w) y = Relu(c) }}"
    )
    loaded = load_model(onnx.parser.parse_model(text))
    return fuse(loaded.graph, loaded.opset_imports, conservative=False)


def test_convolutions_in_small_groups_are_taken_and_others_stay():
    assert [str(g) for g in convolution(32, 32, 8).groups] == ["Conv Relu"]
    assert not convolution(32, 32, 1).groups
    assert not convolution(32, 32, 32).groups
    assert not convolution(32, 32, 4).groups
    assert not convolution(32, 32, 8, ", strides = [2, 2]").groups


@pytest.mark.parametrize(
    "pieces", ["Concat<axis = 1>(u, v)", "Gather<axis = 1>(w, i)"], ids=["joined", "gathered"]
)
def test_a_product_of_pieces_was_slower_than_the_pieces_gained(pieces):
    body = f"""
        u = ReduceSum<keepdims = 0>(a, two) v = Relu(b) j = {pieces}
        t = Transpose<perm = [0, 2, 1]>(j) y = MatMul(j, t)
    """
    inputs = (
        "float[128, 9, 20, 64] a, float[128, 18, 64] b, float[128, 99, 64] w, int64[27] i, "
        "int64[1] two"
    )
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
        g ({inputs.removesuffix(", int64[1] two")}) => (float[128, 27, 27] y)
        <int64[1] two = {{2}}> {{{body}}}"""
    loaded = load_model(onnx.parser.parse_model(text))
    found = fuse(loaded.graph, loaded.opset_imports)
    reasons = {r.node.op_type: r.reason for r in found.rejections}
    assert reasons["MatMul"] == "MatMul would read pieces that its region joins or gathers"
