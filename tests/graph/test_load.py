"""Loading: bad input is refused in one line, good input loses nothing, constants are folded."""

import os
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper, numpy_helper, parser
from onnx.reference import ReferenceEvaluator

from tcfuse.errors import InputError
from tcfuse.graph import shapes
from tcfuse.graph.load import constant_value, load_model

HEADER = '<ir_version: 8, opset_import: ["" : {opset}]>'


def model(text: str, opset: int = 17, header: str = HEADER) -> onnx.ModelProto:
    return parser.parse_model(header.format(opset=opset) + text)


def relu(**settings: int) -> onnx.ModelProto:
    proto = model("g (float[N, 3] x) => (float[N, 3] y) { y = Relu(x) }")
    for name, value in settings.items():
        setattr(proto, name, value)
    return proto


def with_weights(directory: Path, location: str, *, n: int = 4, **keys: int) -> Path:
    """A model whose initializer lies in the external file ``location``."""
    proto = model(f"g (float[{n}] x) => (float[{n}] y) {{ y = Add(x, w) }}")
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[n])
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **keys}.items():
        tensor.external_data.add(key=key, value=str(value))
    proto.graph.initializer.append(tensor)
    path = directory / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return path


def refusal(source: object) -> str:
    with pytest.raises(InputError) as caught:
        load_model(source)  # type: ignore[arg-type] - what is wrong is the point
    text = str(caught.value)
    assert "\n" not in text
    return text


def op_types(loaded: ir.Model) -> list[str]:
    return [node.op_type for node in loaded.graph]


# -- bad input ---------------------------------------------------------------------------


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    assert "nowhere.onnx does not exist" in refusal(tmp_path / "nowhere.onnx")
    assert "is a folder" in refusal(tmp_path)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git lfs pull"),
        (b"<!DOCTYPE html><html>", "web page"),
        (b"some notes\nabout a model\n", "text file"),
        (b"\x08\x08\x3a\xff\xff\x01\x00", "truncated"),
    ],
)
def test_what_is_no_model_is_said(tmp_path, content, says):
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    assert says in refusal(path)
    assert str(path) in refusal(str(path))


@pytest.mark.parametrize("keep", [0.3, 0.6, 0.95])
def test_a_truncated_model_is_refused(tmp_path, keep):
    proto = relu()
    proto.graph.initializer.append(numpy_helper.from_array(np.ones(1000, np.float32), "w"))
    data = proto.SerializeToString()
    path = tmp_path / "model.onnx"
    path.write_bytes(data[: int(len(data) * keep)])
    refusal(path)


def test_a_message_without_graph_or_opset_is_refused():
    assert "no graph" in refusal(onnx.ModelProto())
    proto = relu()
    del proto.opset_import[:]
    assert "opset" in refusal(proto)


def test_versions_nobody_knows_are_refused():
    newest = onnx.defs.onnx_opset_version()
    proto = relu()
    proto.opset_import[0].version = newest + 1
    assert "upgrade onnx" in refusal(proto)
    assert "IR version" in refusal(relu(ir_version=onnx.IR_VERSION + 1))


def test_external_data_must_be_there_and_complete(tmp_path):
    path = with_weights(tmp_path, "weights.bin")
    assert "weights.bin" in refusal(path)
    (tmp_path / "weights.bin").write_bytes(bytes(15))
    assert "incomplete" in refusal(path)
    (tmp_path / "weights.bin").write_bytes(bytes(16))
    load_model(path)
    assert "incomplete" in refusal(with_weights(tmp_path, "weights.bin", offset=1))
    assert "length" in refusal(with_weights(tmp_path, "weights.bin", length=8))
    refusal(with_weights(tmp_path, "weights.bin", offset=-1))


def test_external_data_must_stay_in_the_folder(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    secret = tmp_path / "secret.bin"
    secret.write_bytes(bytes(16))
    assert "outside" in refusal(with_weights(folder, "../secret.bin"))
    assert "absolute" in refusal(with_weights(folder, str(secret)))
    (folder / "link.bin").symlink_to(secret)
    assert "link" in refusal(with_weights(folder, "link.bin"))
    (folder / "inner").symlink_to(tmp_path)
    assert "link" in refusal(with_weights(folder, "inner/secret.bin"))
    os.link(secret, folder / "hard.bin")
    assert "hard links" in refusal(with_weights(folder, "hard.bin"))


def test_a_model_in_memory_with_external_data_needs_a_path(tmp_path):
    proto = onnx.load(with_weights(tmp_path, "weights.bin"), load_external_data=False)
    assert "give the path" in refusal(proto)


def test_a_cycle_an_unknown_value_and_a_second_definition_are_refused():
    proto = model("g (float[2] x) => (float[2] b) { a = Add(x, b)\n b = Relu(a) }")
    assert "cyclic" in refusal(proto)
    proto = model("g (float[2] x) => (float[2] y) { y = Add(x, nowhere) }")
    assert "'nowhere'" in refusal(proto)
    proto = model("g (float[2] x) => (float[2] y) { y = Relu(x)\n y = Neg(x) }")
    assert "defined twice" in refusal(proto)
    proto = model("g (float[2] x) => (float[2] z) { y = Relu(x) }")
    assert "graph output 'z'" in refusal(proto)


def test_a_broken_model_in_memory_is_refused():
    a, b = (ir.Value(name=n, type=ir.TensorType(ir.DataType.FLOAT)) for n in "ab")
    stray = ir.Node("", "Relu", [a], outputs=[b])
    lonely = ir.Model(ir.Graph([], [b], nodes=[stray], opset_imports={"": 17}), ir_version=8)
    assert "'a'" in refusal(lonely)
    first, second = ir.Node("", "Relu", [b]), None
    second = ir.Node("", "Neg", [first.outputs[0]])
    first.replace_input_with(0, second.outputs[0])
    graph = ir.Graph([], [second.outputs[0]], nodes=[first, second], opset_imports={"": 17})
    assert "cyclic" in refusal(ir.Model(graph, ir_version=8))


def test_a_cycle_through_a_body_is_refused():
    body = "{ t = Relu(x) }"
    proto = model(
        f"g (bool c, float[2] x) => (float[2] y) {{ z = Neg(y)\n"
        f"y = If(c) <then_branch = a () => (float[2] t) {body},"
        "else_branch = b () => (float[2] e) { e = Relu(z) }> }"
    )
    assert "cyclic" in refusal(proto)


def test_a_tensor_with_too_little_data_is_refused():
    proto = model("g (float[9] x) => (float[9] y) { y = Add(x, w) }")
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[9], raw_data=bytes(8))
    proto.graph.initializer.append(tensor)
    assert "less data" in refusal(proto)
    proto.graph.initializer[0].raw_data = bytes(40)
    assert "more" in refusal(proto)
    tensor.ClearField("raw_data")
    tensor.float_data.extend([1.0, 2.0])
    proto.graph.initializer[0].CopyFrom(tensor)
    assert "less data" in refusal(proto)


def test_a_sparse_initializer_is_refused_rather_than_lost():
    proto = relu()
    sparse = helper.make_sparse_tensor(
        helper.make_tensor("s", TensorProto.FLOAT, [1], [1.0]),
        helper.make_tensor("i", TensorProto.INT64, [1], [0]),
        [4],
    )
    proto.graph.sparse_initializer.append(sparse)
    assert "sparse" in refusal(proto)


# -- nothing is lost ---------------------------------------------------------------------


def test_the_original_is_not_changed(tmp_path):
    proto = model(
        "g (float[N, 3] x) => (float[P, Q] y) {"
        "c = Constant<value_ints = [3, 1]>()\n s = Neg(c)\n r = Neg(s)\n y = Reshape(x, r) }"
    )
    before = proto.SerializeToString()
    load_model(proto)
    assert proto.SerializeToString() == before
    in_memory = ir.from_proto(proto)
    load_model(in_memory)
    assert ir.to_proto(in_memory).graph == ir.to_proto(ir.from_proto(proto)).graph


def test_names_texts_and_metadata_stay():
    proto = relu()
    proto.doc_string, proto.producer_name, proto.graph.doc_string = "model", "me", "graph"
    proto.metadata_props.add(key="k", value="v")
    proto.graph.node[0].name, proto.graph.node[0].doc_string = "first", "node"
    proto.graph.input[0].doc_string = "input"
    again = ir.to_proto(load_model(proto))
    assert (again.doc_string, again.producer_name, again.graph.doc_string) == (
        "model",
        "me",
        "graph",
    )
    assert again.metadata_props[0].value == "v"
    assert (again.graph.node[0].name, again.graph.node[0].doc_string) == ("first", "node")
    assert again.graph.input[0] == proto.graph.input[0]


def test_functions_and_domains_survive_and_calls_have_shapes():
    proto = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17, "local" : 1, "other" : 3]>
        g (float[N, 4] x) => (y, z) {
            f = local.Half<alpha = 0.5>(x)  y = Neg(f)  z = other.Thing<level: int = 3>(f)
        }
        <domain: "local", opset_import: ["" : 17]>
        Half <alpha> (a) => (b) {
            k = Constant<value_float: float = @alpha>()  m = Mul(a, k)
            s = ReduceSum(m)  b = Mul(m, s)
        }"""
    )
    loaded = load_model(proto)
    assert op_types(loaded) == ["Half", "Neg", "Thing"]
    assert len(loaded.functions) == 1
    assert shapes.dims(loaded.graph.outputs[0]) == (shapes.symbol("N"), 4)
    assert loaded.graph.outputs[0].dtype is ir.DataType.FLOAT
    again = ir.to_proto(loaded)
    assert again.functions == ir.to_proto(ir.from_proto(proto)).functions
    assert {o.domain: o.version for o in again.opset_import} == {"": 17, "local": 1, "other": 3}


def test_recursive_functions_end():
    proto = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
        g (float[4] x) => (y) { y = local.F(x) }
        <domain: "local", opset_import: ["" : 17, "local" : 1]>
        F (a) => (b) { c = local.F(a)  d = local.F(a)  b = Add(c, d) }"""
    )
    load_model(proto)


def test_nodes_in_any_order_are_sorted():
    proto = model("g (float[2] x) => (float[2] y) { y = Relu(a)\n a = Neg(x) }")
    assert op_types(load_model(proto)) == ["Neg", "Relu"]


def test_empty_names_at_the_end_of_inputs_go_so_that_a_pad_is_merged():
    proto = model(
        """g (float[1, 2, 8] x, float[2, 2, 3] w) => (float[1, 2, 8] y)
        <int64[6] p = {0, 0, 2, 0, 0, 0}> { a = Pad(x, p, ) y = Conv(a, w) }"""
    )
    if len(proto.graph.node[0].input) == 2:
        proto.graph.node[0].input.append("")
    pad = load_model(proto).graph[0]
    assert [value.name for value in pad.inputs if value is not None] == ["x", "p"]
    assert len(pad.inputs) == 2


def test_empty_names_between_inputs_and_of_other_domains_stay():
    proto = model(
        """g (float[8] x, float s) => (y, z) { y = Clip(x, , s) z = own.F(x, ) }""",
        header='<ir_version: 8, opset_import: ["" : {opset}, "own" : 1]>',
    )
    if len(proto.graph.node[1].input) == 1:
        proto.graph.node[1].input.append("")
    loaded = load_model(proto)
    assert [len(node.inputs) for node in loaded.graph] == [3, 2]


def test_external_data_is_mapped_not_read(tmp_path):
    np.arange(4, dtype=np.float32).tofile(tmp_path / "weights.bin")
    loaded = load_model(with_weights(tmp_path, "weights.bin"))
    (weights,) = loaded.graph.initializers.values()
    assert isinstance(weights.const_value, ir.ExternalTensor)
    assert weights.const_value.raw is None
    np.testing.assert_array_equal(constant_value(weights), [0, 1, 2, 3])


def test_a_model_in_the_current_folder_is_found(tmp_path, monkeypatch):
    np.zeros(4, dtype=np.float32).tofile(tmp_path / "weights.bin")
    with_weights(tmp_path, "weights.bin")
    monkeypatch.chdir(tmp_path)
    assert constant_value(load_model("model.onnx").graph.initializers["w"]).shape == (4,)


# -- constants ---------------------------------------------------------------------------


def test_an_initializer_that_is_an_input_is_no_constant():
    proto = model("g (float[2] x, float[2] w) => (float[2] y) { d = Neg(w)\n y = Mul(x, d) }")
    proto.graph.initializer.append(numpy_helper.from_array(np.ones(2, np.float32), "w"))
    loaded = load_model(proto)
    assert op_types(loaded) == ["Neg", "Mul"]
    assert constant_value(loaded.graph.initializers["w"]) is None
    assert [v.name for v in loaded.graph.inputs] == ["x", "w"]


def test_before_ir_version_4_initializers_that_are_inputs_too_are_constants():
    proto = model("g (float[2] x, float[1] k) => (float[2] y) { y = Mul(x, k) }")
    proto.ir_version = 3
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(1, "f"), "k"))
    loaded = load_model(proto)
    assert [value.name for value in loaded.graph.inputs] == ["x"]
    assert constant_value(loaded.graph[0].inputs[1]) == 1.0
    proto.ir_version = 4
    assert [value.name for value in load_model(proto).graph.inputs] == ["x", "k"]


def test_before_ir_version_4_folded_results_are_nodes():
    proto = model(
        "g (float[2] x) => (float[2] y) {"
        "c = Constant<value_float = 2.0>()  n = Neg(c)  y = Mul(x, n) }"
    )
    proto.ir_version = 3
    loaded = load_model(proto)
    assert op_types(loaded) == ["Constant", "Mul"]
    assert constant_value(loaded.graph.node(1).inputs[1]) == -2
    assert loaded.ir_version == 3
    assert not loaded.graph.initializers


def test_a_shape_computation_is_folded_and_its_nodes_go():
    loaded = load_model(
        model(
            """g (float[N, 4, 6] x) => (float[N, 24] y) {
                one = Constant<value_ints = [1]>()  two = Constant<value_ints = [2]>()
                s = Shape(x)  a = Gather(s, one)  b = Gather(s, two)  ab = Mul(a, b)
                minus = Constant<value_ints = [-1]>()  t = Concat<axis = 0>(minus, ab)
                y = Reshape(x, t) }"""
        )
    )
    assert op_types(loaded) == ["Reshape"]
    assert list(loaded.graph.initializers) == ["t"]
    np.testing.assert_array_equal(constant_value(loaded.graph.initializers["t"]), [-1, 24])


def test_a_shape_computation_with_a_free_size_stays():
    loaded = load_model(
        model(
            """g (float[N, 4] x) => (float[M, 2] y) {
                s = Shape(x)  z = Constant<value_ints = [0]>()  n = Gather(s, z)
                two = Constant<value_ints = [2]>()  m = Mul(n, two)
                t = Concat<axis = 0>(m, two)  y = Reshape(x, t) }"""
        )
    )
    assert op_types(loaded) == ["Shape", "Gather", "Mul", "Concat", "Reshape"]
    assert shapes.dims(loaded.graph.outputs[0]) == (2 * shapes.symbol("N"), 2)


def test_what_outputs_and_bodies_need_stays():
    loaded = load_model(
        model(
            """g (bool c, float[2] x) => (float[2] y, float[2] k) {
                k = Constant<value_floats = [1.0, 2.0]>()
                d = Neg(k)  e = Abs(d)
                y = If(c) <then_branch = t () => (float[2] p) { p = Add(x, d) },
                           else_branch = f () => (float[2] q) { q = Add(x, e) }> }"""
        )
    )
    assert op_types(loaded) == ["Constant", "If"]
    assert sorted(loaded.graph.initializers) == ["d", "e"]
    assert [v.name for v in loaded.graph.outputs] == ["y", "k"]


def test_random_and_inexact_operators_are_not_folded():
    loaded = load_model(
        model(
            """g (float[2] x) => (float[2] y) {
                c = Constant<value_floats = [1.0, 2.0]>()
                e = Exp(c)  r = RandomNormalLike(c)
                a = Add(x, e)  y = Add(a, r) }"""
        )
    )
    assert op_types(loaded) == ["Exp", "RandomNormalLike", "Add", "Add"]


def test_dequantized_weights_stay_quantized():
    proto = model(
        "g (float[2] x) => (float[2] y) { d = DequantizeLinear(w, s)\n y = Add(x, d) }"
    )
    for array, name in ((np.ones(2, np.int8), "w"), (np.float32(0.5), "s")):
        proto.graph.initializer.append(numpy_helper.from_array(np.asarray(array), name))
    assert op_types(load_model(proto)) == ["DequantizeLinear", "Add"]


@pytest.mark.parametrize("dims", ["1000000, 1000000", "3000, 3000"])
def test_huge_constants_are_not_made(dims):
    loaded = load_model(
        model(
            f"""g (float[1] x) => (float[A, B] y) {{
                s = Constant<value_ints = [{dims}]>()  z = ConstantOfShape(s)
                y = Add(x, z) }}"""
        )
    )
    assert op_types(loaded) == ["ConstantOfShape", "Add"]


UNDEFINED = [
    "c = Constant<value_ints = [1, 0]>()  z = Constant<value_int = 0>()  d = Div(c, z)",
    "c = Constant<value_floats = [1.0, 3e38]>()  d = Cast<to = 6>(c)",
    "c = Constant<value_ints = [5, 6]>()  i = Constant<value_int = 9>()  d = Gather(c, i)",
]


@pytest.mark.parametrize("text", UNDEFINED)
def test_undefined_results_are_left_to_the_runtime(text):
    loaded = load_model(model(f"g () => (y) {{ {text}  y = Identity(d) }}"))
    assert len(loaded.graph) == 2


FOLDED = [
    "r = Transpose<perm = [1, 0]>(f)",
    "r = Slice<starts = [1], ends = [3]>(f)",
    "r = Cast<to = 7>(f)",
    "r = Squeeze<axes = [0]>(u)",
    "r, r2 = Split<axis = 1>(f)",
    "r = Where(b, f, g)",
    "r = Div(f, g)",
    "r = Tile(f, i)",
    "r = Greater(f, g)",
    "r = Max(f, g)",
]


@pytest.mark.parametrize("text", FOLDED)
def test_folded_values_are_what_the_reference_says(text):
    proto = model(f"g () => (o) {{ {text}  o = Identity(r) }}", opset=9)
    f = np.array([[1.5, -2.0, 3.25, 0.0], [4.0, 7.0, -8.5, 2.0]], np.float32)
    arrays = {"f": f, "g": f[::-1] + 1, "u": f[None], "b": f > 1, "i": np.array([2, 1])}
    for name, array in arrays.items():
        proto.graph.initializer.append(numpy_helper.from_array(array, name))
    (expected,) = ReferenceEvaluator(proto).run(None, {})
    loaded = load_model(proto)
    assert op_types(loaded) == ["Identity"]
    value = constant_value(loaded.graph.node(0).inputs[0])
    assert value.dtype == expected.dtype
    np.testing.assert_array_equal(value, expected)


def test_a_long_chain_loads_without_recursion():
    nodes = [helper.make_node("Neg", [f"v{k}"], [f"v{k + 1}"]) for k in range(3000)]
    info = [helper.make_tensor_value_info(n, 1, ["N"]) for n in ("v0", "v3000")]
    graph = helper.make_graph(nodes, "g", info[:1], info[1:])
    opset = [helper.make_opsetid("", 17)]
    loaded = load_model(helper.make_model(graph, opset_imports=opset, ir_version=8))
    assert shapes.dims(loaded.graph.outputs[0]) == (shapes.symbol("N"),)
