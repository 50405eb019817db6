import numpy as np
import onnx
import onnx_ir as ir
import pytest

from tcfuse.graph.constants import constant_tensor
from tcfuse.graph.fusion import fuse_all
from tcfuse.graph.load import load_model
from tcfuse.graph.rewrite import NODES_KEY, Replacement, rewrite

ort = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.ort


def parse(body, inputs="float[N, 64] x", outputs="float[N, 64] y", opset=17, ir_version=8):
    head = f'<ir_version: {ir_version}, opset_import: ["" : {opset}]>'
    return onnx.parser.parse_model(f"{head} g ({inputs}) => ({outputs}) {{{body}}}")


def replacements(model, inline=4):
    """Every region, named by its content; constants up to ``inline`` elements are in the
    body."""
    found = []
    for plan in fuse_all(model, conservative=False):
        for group in plan.groups:
            inputs = tuple(
                v for v in group.inputs if (t := constant_tensor(v)) is None or t.size > inline
            )
            named = Replacement(group, "F", inputs, group.outputs)
            name = f"F_{named.digest}"
            tc = {"tcfuse.tc": str(group)}
            found.append(Replacement(group, name, inputs, group.outputs, metadata=tc))
    return found


def session(proto):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(proto.SerializeToString(), options)


def feeds(proto, n=3):
    rng = np.random.default_rng(0)
    default = {i.name for i in proto.graph.initializer}
    found = {}
    for value in proto.graph.input:
        if value.name in default:
            continue
        tensor = value.type.tensor_type
        shape = [d.dim_value if d.HasField("dim_value") else n for d in tensor.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        found[value.name] = (rng.standard_normal(shape) * 4).astype(dtype)
    return found


def check(proto, fused=1, **options):
    """Rewrite, validate, run without a library, compare; the rewritten model."""
    loaded = load_model(proto)
    before = [node.name for node in loaded.graph.all_nodes()]
    planned = replacements(loaded, **options)
    out = rewrite(loaded, planned)
    assert [node.name for node in loaded.graph.all_nodes()] == before
    result = ir.to_proto(out)
    onnx.checker.check_model(result, full_check=True)
    assert len(planned) == fused
    given = feeds(proto)
    expected, actual = session(proto).run(None, given), session(result).run(None, given)
    for a, b in zip(expected, actual, strict=True):
        np.testing.assert_array_equal(a, b)
    assert [o.name for o in result.graph.output] == [o.name for o in proto.graph.output]
    return out


def test_a_region_becomes_a_node_and_a_function():
    out = check(parse("a = Mul(x, x) b = Tanh(a) y = Add(b, x)"))
    (node,) = out.graph
    assert node.domain == "tcfuse"
    assert node.metadata_props["tcfuse.tc"] == "Mul Tanh Add"
    assert node.metadata_props[NODES_KEY].count("\n") == 2
    (function,) = out.functions.values()
    assert [n.op_type for n in function] == ["Mul", "Tanh", "Add"]
    assert out.opset_imports["tcfuse"] == 1


def test_nothing_to_replace_changes_nothing():
    loaded = load_model(parse("y = Relu(x)", ir_version=6))
    out = rewrite(loaded, [])
    assert out.ir_version == 6
    assert not out.functions


def test_the_format_version_is_raised_only_as_far_as_needed():
    assert check(parse("a = Exp(x) y = Neg(a)", ir_version=4)).ir_version == 8
    assert check(parse("a = Exp(x) y = Neg(a)", ir_version=9)).ir_version == 9


def test_equal_regions_share_a_function():
    body = """
        a = Mul(x, x) b = Tanh(a) c = MatMul(b, b) d = Mul(c, c) e = Tanh(d) y = MatMul(e, e)
    """
    out = check(parse(body, "float[512, 512] x", "float[512, 512] y"), fused=2)
    assert len(out.functions) == 1
    assert len({node.name for node in out.graph if node.domain == "tcfuse"}) == 2


def test_one_name_for_two_bodies_is_refused():
    body = "a = Mul(x, x) b = Tanh(a) c = MatMul(b, b) d = Mul(c, c) y = Exp(d)"
    loaded = load_model(parse(body, "float[512, 512] x", "float[512, 512] y"))
    wrong = [Replacement(r.group, "F", r.inputs, r.outputs) for r in replacements(loaded)]
    with pytest.raises(AssertionError, match="F names two bodies: Mul Tanh and Mul Exp"):
        rewrite(loaded, wrong)


def test_constants_that_are_not_inputs_move_into_the_function():
    body = """
        k = Constant<value = float {3.0}>() z = Constant<value_ints = [0]>()
        e = Constant<value = int64[1] {32}>() one = Constant<value = int64[1] {1}>()
        a = Slice(x, z, e, one) y = Mul(a, k)
    """
    out = check(parse(body, outputs="float[N, 32] y"))
    assert [n.op_type for n in out.graph] == [next(iter(out.functions.values())).name]
    assert len(out.graph.initializers) == 0


def test_regions_that_differ_in_a_constant_get_different_digests():
    def digest(value):
        body = f"k = Constant<value = float {{{value}}}>() a = Mul(x, k) y = Neg(a)"
        (found,) = replacements(load_model(parse(body)))
        return found.digest

    assert digest(2.0) == digest(2.0)
    assert digest(2.0) != digest(3.0)


def test_an_output_inside_and_an_input_returned_as_it_is():
    body = "a = Mul(x, x) y = Exp(a) z = Add(y, x)"
    proto = parse(body, outputs="float[N, 64] y, float[N, 64] z")
    proto.graph.output.append(proto.graph.input[0])
    out = check(proto)
    assert [v.name for v in out.graph.outputs] == ["y", "z", "x"]


def test_boundary_values_keep_name_type_shape_and_notes():
    proto = parse(
        "a = Mul(x, x) b = Exp(a) c = MatMul(b, b) y = Neg(c)",
        "float[512, 512] x",
        "float[512, 512] y",
    )
    loaded = load_model(proto)
    loaded.graph.metadata_props["who"] = "me"
    loaded.doc_string = "about"
    value = next(v for n in loaded.graph for v in n.outputs if v.name == "b")
    value.metadata_props["note"] = "kept"
    out = rewrite(loaded, replacements(loaded))
    (b,) = (v for n in out.graph for v in n.outputs if v.name == "b")
    assert b.dtype is ir.DataType.FLOAT
    assert list(b.shape) == [512, 512]
    assert b.metadata_props["note"] == "kept"
    assert (out.graph.metadata_props["who"], out.doc_string) == ("me", "about")


def test_the_order_stays_valid_when_a_region_is_spread_out():
    body = """
        a = Exp(x) m = MatMul(a, x) r = Neg(x) c = Add(a, r)
        n = MatMul(c, m) y = Tanh(n)
    """
    check(parse(body, "float[512, 512] x", "float[512, 512] y"), fused=2)
    # the reader of an early result stands between the members
    body = "a = Exp(x) m = MatMul(a, x) b = Neg(a) y = MatMul(m, b)"
    check(parse(body, "float[512, 512] x", "float[512, 512] y"))


def test_bodies_of_an_if_are_rewritten_in_place():
    body = """
        a = Mul(x, x) b = Exp(a) z = Constant<value = float {0.0}>() f = ReduceSum<keepdims =
        0>(b) t = Greater(f, z) y = If(t) <
            then_branch = g1 () => (float[N, 64] u) { p = Neg(b) u = Exp(p) },
            else_branch = g2 () => (float[N, 64] w) { q = Abs(x) w = Tanh(q) }
        >
    """
    out = check(parse(body), fused=3)
    branch = next(n for n in out.graph if n.op_type == "If")
    assert [n.domain for n in branch.attributes["then_branch"].as_graph()] == ["tcfuse"]


def test_the_body_of_a_loop_is_rewritten_in_place():
    body = """
        n = Constant<value = int64 {3}>() go = Constant<value = bool {1}>()
        y = Loop(n, go, x) <
            body = g1 (int64 i, bool c, float[N, 64] s) => (bool d, float[N, 64] u) {
                d = Identity(c) a = Mul(s, x) b = Tanh(a) u = Add(b, s)
            }
        >
    """
    check(parse(body))


def test_local_functions_and_foreign_domains_are_left_alone():
    text = """
        <ir_version: 8, opset_import: ["" : 17, "my" : 1, "com.microsoft" : 1]>
        g (float[N, 64] x) => (float[N, 64] y) {
            a = Mul(x, x) b = Tanh(a) c = my.F(b) d = com.microsoft.QuickGelu(c) e = Neg(d) y =
            Exp(e)
        }
        <domain: "my", opset_import: ["" : 17]>
        F (v) => (w) { w = Abs(v) }
    """
    loaded = load_model(onnx.parser.parse_model(text))
    planned = replacements(loaded)
    out = rewrite(loaded, planned)
    assert ("my", "F", "") in out.functions
    given = {"x": np.linspace(-2, 2, 128, dtype=np.float32).reshape(2, 64)}
    expected = session(onnx.parser.parse_model(text)).run(None, given)
    np.testing.assert_array_equal(session(ir.to_proto(out)).run(None, given)[0], expected[0])


def test_absent_inputs_and_outputs_stay_absent():
    body = """
        z = Constant<value = float {1.0}>()
        a = Clip(x, "", z) b, "", s = LayerNormalization(a, g) y = Mul(b, s)
    """
    check(parse(body, "float[N, 64] x, float[64] g"))


def test_names_in_any_script_survive():
    proto = parse("a = Mul(x, x) y = Exp(a)")
    for old, new in (("x", "ввод"), ("y", "輸出")):
        for value in (*proto.graph.input, *proto.graph.output):
            value.name = new if value.name == old else value.name
        for node in proto.graph.node:
            for names in (node.input, node.output):
                names[:] = [new if n == old else n for n in names]
    check(proto)


def test_overridable_initializers_stay_inputs():
    proto = parse("a = Mul(x, k) y = Exp(a)", "float[N, 64] x, float[64] k")
    default = onnx.numpy_helper.from_array(np.full(64, 2, np.float32), "k")
    proto.graph.initializer.append(default)
    (node,) = check(proto).graph
    assert [v.name for v in node.inputs] == ["x", "k"]


def test_a_computed_reshape_runs_in_the_fallback():
    body = """
        s = Shape(x) zero = Constant<value = int64[1] {0}>() n = Gather(s, zero)
        rest = Constant<value = int64[2] {8, 8}>() target = Concat<axis = 0>(n, rest)
        a = Relu(x) b = Reshape(a, target) y = Neg(b)
    """
    check(parse(body, outputs="float[N, 8, 8] y"))


def test_external_data_is_not_read(tmp_path):
    proto = parse("a = Mul(x, w) y = Exp(a)")
    big = np.ones((1, 64), np.float32)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(big, "w"))
    path = tmp_path / "model.onnx"
    onnx.save(proto, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    loaded = load_model(path)
    out = rewrite(loaded, replacements(loaded))
    tensor = out.graph.initializers["w"].const_value
    assert isinstance(tensor, ir.ExternalTensor)
    assert tensor.location == "w.bin"
