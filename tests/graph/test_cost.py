import onnx
import pytest

from tcfuse.graph import cost
from tcfuse.graph.cost import estimate
from tcfuse.graph.fusion import group_of
from tcfuse.graph.load import load_model
from tcfuse.graph.machine import MACHINE
from tcfuse.graph.native_kernel import node_us
from tcfuse.graph.traffic import DEFAULT_SIZE, elements, n_bytes


def group(body, inputs="float[N, 64] x", outputs="float[N, 64] y"):
    text = f'<ir_version: 8, opset_import: ["" : 17]> g ({inputs}) => ({outputs}) {{{body}}}'
    loaded = load_model(onnx.parser.parse_model(text))
    return group_of([n for n in loaded.graph if n.op_type != "Constant"])


def test_named_sizes_take_the_given_value_or_the_default():
    (x,) = group("a = Exp(x) y = Neg(a)").inputs
    assert elements(x) == DEFAULT_SIZE * 64
    assert elements(x, {"N": 3}) == 192
    assert n_bytes(x, {"N": 3}) == 768


def test_traffic_is_counted_once_outside_and_twice_inside():
    found = estimate(group("a = Exp(x) b = Mul(a, x) y = Neg(b)"), {"N": 1})
    assert (found.bytes_in, found.bytes_out) == (256, 256)
    assert found.bytes_between == 2 * 2 * 256
    assert found.kernels == 3


def test_views_are_no_kernels_and_cost_no_arithmetic():
    body = "s = Constant<value = int64[3] {0, 8, 8}>() a = Reshape(x, s) y = Neg(a)"
    found = estimate(group(body, outputs="float[N, 8, 8] y"), {"N": 1})
    assert found.kernels == 1
    assert found.flops == 64


def test_a_gather_reads_only_what_it_keeps():
    body = "a = Gather(t, i) y = Neg(a)"
    found = estimate(
        group(body, "float[30000, 64] t, int64[8] i", "float[8, 64] y"),
    )
    assert found.bytes_in == 8 * 64 * 4 + 8 * 8
    assert found.flops == 2 * 8 * 64


def test_fusing_a_long_chain_is_expected_to_pay_and_a_single_node_not():
    chain = "a = Add(x, x) b = Mul(a, x) c = Sub(b, x) y = Mul(c, b)"
    assert estimate(group(chain), {"N": 4096}).speedup > 2
    assert estimate(group("y = Relu(x)"), {"N": 1}).speedup < 1


@pytest.mark.parametrize(("size", "rate"), [(1, 180e3), (1 << 22, 100e3), (1 << 40, 42e3)])
def test_bandwidth_falls_with_the_working_set(size, rate):
    assert MACHINE.copy_rate(size) == rate


def test_a_slow_kernel_is_known_to_be_slow():
    (node,) = group("y = Softplus(x)").nodes
    (other,) = group("y = Relu(x)").nodes
    assert node_us(node, {"N": 64}) > 10 * node_us(other, {"N": 64})


@pytest.mark.parametrize(
    ("body", "inputs", "outputs", "products"),
    [
        ("y = MatMul(a, b)", "float[5, 2, 3] a, float[3, 4] b", "float[5, 2, 4] y", 120),
        ("y = MatMul(a, b)", "float[3] a, float[3] b", "float y", 3),
        ("y = Gemm<transA = 1>(a, b)", "float[3, 2] a, float[3, 4] b", "float[2, 4] y", 24),
        (
            "y = Conv<group = 2>(a, b)",
            "float[1, 4, 8] a, float[6, 2, 3] b",
            "float[1, 6, 6] y",
            216,
        ),
        (
            "y = ConvTranspose(a, b)",
            "float[1, 4, 8] a, float[4, 2, 3] b",
            "float[1, 2, 10] y",
            192,
        ),
    ],
)
def test_the_products_of_contractions_are_counted(body, inputs, outputs, products):
    (node,) = group(body, inputs, outputs).nodes
    assert cost.multiply_adds(node) == products


@pytest.mark.parametrize(
    ("body", "inputs", "products"),
    [
        ("y, z = CausalConvWithState(a, b)", "float[2, 4, 8] a, float[4, 1, 3] b", 192),
        ("y = Attention(a, b, b)", "float[1, 2, 3, 4] a, float[1, 2, 5, 4] b", 240),
        (
            "y, z = LinearAttention<q_num_heads = 2, kv_num_heads = 1>(a, b, b)",
            "float[1, 3, 8] a, float[1, 3, 4] b",
            144,
        ),
    ],
)
def test_the_products_of_attention_are_counted(body, inputs, products):
    text = f'<ir_version: 10, opset_import: ["" : 27]> g ({inputs}) => (float y) {{{body}}}'
    (node,) = load_model(onnx.parser.parse_model(text)).graph
    assert cost.multiply_adds(node) == products
