import numpy as np
import onnx
import pytest

from tcfuse.graph import legality
from tcfuse.graph.fusion import fuse
from tcfuse.graph.legality import Edge, may_fuse
from tcfuse.graph.load import load_model


def model(body, inputs="float[N, 64] x", outputs="float[N, 64] y", opset=17, extra=""):
    head = f'<ir_version: 8, opset_import: ["" : {opset}{extra}]>'
    return load_model(onnx.parser.parse_model(f"{head} g ({inputs}) => ({outputs}) {{{body}}}"))


def reasons(loaded, **options):
    plan = fuse(loaded.graph, loaded.opset_imports, **options)
    return {r.node.op_type: r.reason for r in plan.rejections}


def test_a_verdict_is_true_when_nothing_objects():
    assert legality.ALLOWED
    assert not legality.Verdict("because")


def test_random_numbers_keep_their_place():
    found = reasons(model("r = RandomNormalLike(x) y = Add(x, r)"), conservative=False)
    assert found == {
        "RandomNormalLike": "RandomNormalLike draws random numbers and keeps its place"
    }


@pytest.mark.parametrize("opset", [1, 3, 6])
def test_operators_with_attributes_for_broadcasting_are_left(opset):
    given = {"inputs": "float[2, 3] x, float[2] y", "outputs": "float[A, B] z", "opset": opset}
    loaded = model("s = Add<axis = 0, broadcast = 1>(x, y) z = Not(s)", **given)
    found = reasons(loaded, conservative=False)
    assert found.keys() == {"Add", "Not"}
    assert all(f"opset {opset}, older than 7" in reason for reason in found.values())


def test_dropout_that_may_train_is_refused():
    body = "r = Constant<value = float {0.5}>() y, m = Dropout(x, r, t)"
    loaded = model(body, inputs="float[N, 64] x, bool t")
    assert reasons(loaded)["Dropout"] == "Dropout is, or may be, in training mode"


def test_batch_normalization_in_training_mode_joins():
    body = "y, m2, v2 = BatchNormalization<training_mode = 1>(x, s, s, s, s) z = Exp(y)"
    loaded = model(body, inputs="float[N, 64] x, float[64] s", outputs="float z", opset=15)
    assert "BatchNormalization" not in reasons(loaded)


def test_an_operator_without_definition_is_named():
    loaded = model("y = com.x.Frobnicate(x)", extra=', "com.x" : 1')
    assert "Frobnicate" in reasons(loaded)["Frobnicate"]


def test_contractions_are_left():
    found = reasons(model("y = MatMul(x, w)", inputs="float[N, 64] x, float[64, 64] w"))
    assert found["MatMul"] == "MatMul is left to ONNX Runtime's own kernel"


def test_a_static_input_must_be_known():
    loaded = model(
        "y = Expand(x, s)", inputs="float[N, 64] x, int64[2] s", outputs="float[A, B] y"
    )
    assert reasons(loaded)["Expand"] == "input 1 (s) of Expand is not a constant"


def test_a_computed_reshape_that_copies_sizes_may_be_fused():
    body = """
        s = Shape(x)
        zero = Constant<value = int64[1] {0}>()
        n = Gather(s, zero)
        rest = Constant<value = int64[2] {8, 8}>()
        target = Concat<axis = 0>(n, rest)
        a = Relu(x)
        b = Reshape(a, target)
        y = Neg(b)
    """
    loaded = model(body, outputs="float[N, 8, 8] y")
    plan = fuse(loaded.graph, loaded.opset_imports)
    assert [str(g) for g in plan.groups] == ["Relu Reshape Neg"]
    assert [v.name for v in plan.groups[0].inputs] == ["x"]


def test_strings_are_not_supported():
    loaded = model("y = Identity(x)", inputs="string[N, 64] x", outputs="string[N, 64] y")
    assert reasons(loaded)["Identity"] == "element type STRING of x is not supported"


def test_an_unknown_shape_is_named():
    loaded = model("a = Relu(x) y = Neg(a)", inputs="float[] x", outputs="float[] y")
    loaded.graph.inputs[0].shape = None
    for node in loaded.graph:
        node.outputs[0].shape = None
    assert reasons(loaded)["Relu"] == "the shape of x is unknown"


def test_a_long_shape_is_refused():
    dims = "1, 1, 1, 1, 1, 1, 1, 1, 2"
    loaded = model("y = Relu(x)", inputs=f"float[{dims}] x", outputs=f"float[{dims}] y")
    assert reasons(loaded)["Relu"] == "x has rank 9; at most 8 is supported"


def test_shape_arithmetic_is_left():
    body = """
        s = Shape(x)
        one = Constant<value = int64[1] {1}>()
        n = Mul(s, p)
        y = Expand(x, n)
    """
    loaded = model(body, inputs="float[N, 64] x, int64[2] p", outputs="float[A, B] y")
    assert reasons(loaded, conservative=False)["Mul"] == "shape arithmetic"


def test_token_ids_are_not_shape_arithmetic():
    loaded = model(
        "a = Add(x, x) y = Mul(a, a)", inputs="int64[N, 64] x", outputs="int64[N, 64] y"
    )
    assert len(fuse(loaded.graph, loaded.opset_imports).groups) == 1


def test_what_constants_determine_is_folded_by_onnx_runtime():
    w = onnx.numpy_helper.from_array(np.zeros((600, 600), np.int8), "w")
    s = onnx.numpy_helper.from_array(np.ones((600, 1), np.float32), "s")
    graph = onnx.helper.make_graph(
        [
            onnx.helper.make_node("Cast", ["w"], ["c"], to=1),
            onnx.helper.make_node("Mul", ["c", "s"], ["d"]),
            onnx.helper.make_node("MatMul", ["x", "d"], ["y"]),
        ],
        "g",
        [onnx.helper.make_tensor_value_info("x", 1, [2, 600])],
        [onnx.helper.make_tensor_value_info("y", 1, [2, 600])],
        [w, s],
    )
    opsets = [onnx.helper.make_opsetid("", 17)]
    loaded = load_model(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8))
    assert not fuse(loaded.graph, loaded.opset_imports, conservative=False).groups


@pytest.mark.parametrize(
    ("nodes", "allowed"), [(legality.MAX_NODES - 1, True), (legality.MAX_NODES, False)]
)
def test_a_region_stays_below_its_limit(nodes, allowed):
    assert bool(may_fuse(Edge(None, None, producer_nodes=nodes))) is allowed
