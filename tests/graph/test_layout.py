import numpy as np
import onnx

from tcfuse.graph.layout import reorder_us, surroundings
from tcfuse.graph.legality import constant_nodes
from tcfuse.graph.load import load_model

SHAPES = {"w": (32, 16, 1, 1), "v": (8, 32, 1, 1), "k": (1, 32, 1, 1), "b": (32,)}


def graph(body, outputs):
    head = '<ir_version: 8, opset_import: ["" : 17]>'
    inputs = "float[N, 16, 8, 8] x, float[N, 32, 1, 1] s"
    proto = onnx.parser.parse_model(f"{head} g ({inputs}) => ({outputs}) {{{body}}}")
    for name, shape in SHAPES.items():
        array = np.ones(shape, np.float32)
        proto.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return load_model(proto).graph


def blocked(body, outputs="float[N, 32, 8, 8] y"):
    nodes = list(graph(body, outputs))
    around = surroundings(nodes, constant_nodes(nodes))
    return {value.name for value in around.blocked}


def test_convolutions_hand_on_blocked_values_through_what_keeps_them():
    body = "a = Conv(x, w) c = Conv(x, w) d = Add(a, c) e = Relu(d) f = Exp(e) y = Tanh(f)"
    assert blocked(body) == {"a", "c", "d", "e"}


def test_constants_and_activations_become_part_of_a_convolution():
    body = "a = Conv(x, w) c = BatchNormalization(a, b, b, b, b) y = Clip(c)"
    assert blocked(body) == {"a", "c", "y"}
    assert blocked("a = Conv(x, w) c = Mul(a, k) d = LeakyRelu(c) y = LeakyRelu(d)") == {
        "a",
        "c",
        "d",
    }


def test_broadcasting_two_tensors_leaves_the_layout():
    assert blocked("a = Conv(x, w) y = Mul(a, s)") == {"a"}


def test_reorders_are_counted_at_the_border_of_a_region():
    body = "a = Conv(x, w) c = Sigmoid(a) d = Mul(a, c) y = Conv(d, v)"
    nodes = list(graph(body, "float[N, 8, 8, 8] y"))
    around = surroundings(nodes, frozenset())
    native, fused = reorder_us(set(nodes[1:3]), around)
    assert native == 0
    assert fused > 0


def test_reorders_that_happen_anyway_cancel():
    body = "a = Conv(x, w) c = Exp(a) d = Neg(c) y = Conv(d, v)"
    nodes = list(graph(body, "float[N, 8, 8, 8] y"))
    native, fused = reorder_us(set(nodes[1:3]), surroundings(nodes, frozenset()))
    assert native == fused > 0
