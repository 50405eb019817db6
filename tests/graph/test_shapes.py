"""Shape inference: exact expressions, the numbers in shape computations, bodies, honesty."""

import numpy as np
import onnx_ir as ir
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import numpy_helper, parser
from onnx.reference import ReferenceEvaluator

from tcfuse.graph import symbols
from tcfuse.graph.shapes import dims, elements, infer_shapes, restore_interface, symbol

N, T, K = symbol("N"), symbol("T"), symbol("K")


def inferred(text: str, opset: int = 17, **constants: object) -> ir.Model:
    """The model of that text, shapes inferred; the constants become initializers."""
    proto = parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]>{text}')
    for name, value in constants.items():
        proto.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    model = ir.from_proto(proto)
    infer_shapes(model)
    return model


def value(model: ir.Model, name: str) -> ir.Value:
    for node in model.graph.all_nodes():
        for output in node.outputs:
            if output.name == name:
                return output
    raise KeyError(name)


def shape(body: str, inputs: str = "float[N, T, 768] x", opset: int = 17, **constants: object):
    """Shape of ``y`` in a graph of these nodes."""
    return dims(value(inferred(f"g ({inputs}) => (y) {{ {body} }}", opset, **constants), "y"))


ints = np.array

RULES = [
    ("y = Relu(x)", {}, (N, T, 768)),
    ("y = Add(x, c)", {"c": np.zeros(768, np.float32)}, (N, T, 768)),
    ("y = Transpose<perm = [0, 2, 1]>(x)", {}, (N, 768, T)),
    ("y = Transpose(x)", {}, (768, T, N)),
    ("y = Reshape(x, c)", {"c": ints([0, 0, 12, 64])}, (N, T, 12, 64)),
    ("y = Reshape(x, c)", {"c": ints([0, -1, 64])}, (N, 12 * T, 64)),
    ("y = Reshape(x, c)", {"c": ints([-1])}, (768 * N * T,)),
    ("y = Flatten<axis = 2>(x)", {}, (N * T, 768)),
    ("y = Flatten<axis = 0>(x)", {}, (1, 768 * N * T)),
    ("y = Unsqueeze(x, c)", {"c": ints([0, -1])}, (1, N, T, 768, 1)),
    ("u = Unsqueeze(x, c)  y = Squeeze(u, c)", {"c": ints([1])}, (N, T, 768)),
    (
        "y = Slice(x, a, b, c)",
        {"a": ints([1]), "b": ints([2**62]), "c": ints([1])},
        (N, T - 1, 768),
    ),
    (
        "y = Slice(x, a, b, c)",
        {"a": ints([0]), "b": ints([-1]), "c": ints([1])},
        (N, T - 1, 768),
    ),
    ("y = Slice(x, a, b, c)", {"a": ints([0]), "b": ints([64]), "c": ints([2])}, (N, T, 64)),
    ("s = Split<axis = 2>(x)  y = Neg(s)", {}, (N, T, 768)),
    ("y, z = Split<axis = 2>(x)", {}, (N, T, 384)),
    ("y = Gather<axis = 2>(x, c)", {"c": ints([[1, 2]])}, (N, T, 1, 2)),
    ("y = Tile(x, c)", {"c": ints([1, 2, 3])}, (N, 2 * T, 2304)),
    ("y = Pad(x, c)", {"c": ints([0, 1, 0, 0, 2, 0])}, (N, T + 3, 768)),
    ("y = Expand(x, c)", {"c": ints([5, 1, 1, 1])}, (5, N, T, 768)),
    ("y = MatMul(x, c)", {"c": np.zeros((768, 3), np.float32)}, (N, T, 3)),
    ("y = ReduceMean<axes = [-1], keepdims = 0>(x)", {}, (N, T)),
    ("y = ReduceSum(x, c)", {"c": ints([1])}, (N, 1, 768)),
    ("y = ReduceSum<keepdims = 0>(x)", {}, ()),
    ("y = ArgMax<axis = 1>(x)", {}, (N, 1, 768)),
    ("y = Softmax(x)", {}, (N, T, 768)),
    ("y = LayerNormalization(x, c)", {"c": np.ones(768, np.float32)}, (N, T, 768)),
    ("y, i = TopK(x, c)", {"c": ints([5])}, (N, T, 5)),
    ("y = Cast<to = 10>(x)", {}, (N, T, 768)),
    ('y = Einsum<equation = "bth,bsh->bts">(x, x)', {}, (N, T, T)),
    ("y = Shape(x)", {}, (3,)),
    ("y = Size(x)", {}, ()),
    ("y = OneHot(i, c, v)", {"i": ints([1]), "c": ints(7), "v": ints([0, 1])}, (1, 7)),
]


@pytest.mark.parametrize(("body", "constants", "expected"), RULES)
def test_rule(body, constants, expected):
    assert shape(body, **constants) == expected


def test_convolutions_and_pools():
    image, w = "float[N, 3, H, W] x", np.zeros((8, 3, 3, 3), np.float32)
    h, width = symbol("H"), symbol("W")
    same = shape("y = Conv<pads = [1, 1, 1, 1]>(x, w)", image, w=w)
    assert same == (N, 8, h, width)
    half = shape("y = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(x, w)", image, w=w)
    assert half == (N, 8, sympy.floor((h - 1) / 2) + 1, sympy.floor((width - 1) / 2) + 1)
    assert shape('y = Conv<auto_pad = "VALID">(x, w)', image, w=w) == (N, 8, h - 2, width - 2)
    pooled = shape("y = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(x)", image)
    assert pooled[2] == sympy.floor(h / 2)
    assert shape("y = GlobalAveragePool(x)", image) == (N, 3, 1, 1)
    wt = np.zeros((3, 4, 2, 2), np.float32)
    assert shape("y = ConvTranspose<strides = [2, 2]>(x, wt)", image, wt=wt)[2] == 2 * h


def test_a_window_cut_off_behind_the_data_does_not_count():
    pool = "y = MaxPool<kernel_shape = [1], strides = [2], ceil_mode = 1>(x)"
    assert shape(pool, "float[1, 1, 4] x") == (1, 1, 2)
    pool = "y = MaxPool<kernel_shape = [3], strides = [2], ceil_mode = 1>(x)"
    assert shape(pool, "float[1, 1, 6] x") == (1, 1, 3)


def test_a_window_just_larger_than_the_data_has_one_position():
    pool = "y = MaxPool<kernel_shape = [2], strides = [2]>(x)"
    assert shape(pool, "float[1, 1, 1] x") == (1, 1, 1)


def test_resize_rounds_as_at_run_time():
    scales = np.array([1, 1, 0.6, 2], np.float32)
    resize = 'y = Resize<mode = "nearest">(x, , s)'
    found = shape(resize, "float[N, 3, 10, W] x", s=scales)
    assert found == (N, 3, int(np.float32(10) * np.float32(0.6)), 2 * symbol("W"))


def test_recurrent_layers_in_both_layouts():
    w, r = np.zeros((2, 40, 6), np.float32), np.zeros((2, 40, 10), np.float32)
    lstm = 'y, h, c = LSTM<hidden_size = 10, direction = "bidirectional">(x, w, r)'
    model = inferred(f"g (float[T, N, 6] x) => (y, h) {{ {lstm} }}", w=w, r=r)
    assert dims(value(model, "y")) == (T, 2, N, 10)
    assert dims(value(model, "h")) == (2, N, 10)


def test_a_constant_beats_a_name_and_names_stay_apart():
    assert shape("y = Add(a, b)", "float[N, 7] a, float[5, T] b") == (5, 7)
    model = inferred("g (float[N] a, float[T] b) => (y, z) { y = Add(a, b)  z = Mul(b, a) }")
    (y,), (z,) = dims(value(model, "y")), dims(value(model, "z"))
    assert y == z
    assert y not in (N, T)


def test_a_contradiction_is_nothing():
    assert shape("y = Add(a, b)", "float[2] a, float[3] b") is None


def test_anonymous_sizes_get_names_of_their_own():
    model = inferred("g (float[d0, ?, ?] x, float[-1] z) => (y) { y = Relu(x) }")
    y = dims(value(model, "y"))
    assert y[0] == symbol("d0")
    assert len({*y, *dims(model.graph.inputs[1])}) == 4
    assert dims(model.graph.inputs[0]) == y


def test_compound_names_are_expressions_only_of_known_names():
    proto = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[N, a, b] x, float[c] z) => (y) '
        "{ y = Relu(x) }"
    )
    for (k, j), text in {(0, 1): "N + 1", (0, 2): "batch-size", (1, 0): "a.b c"}.items():
        proto.graph.input[k].type.tensor_type.shape.dim[j].dim_param = text
    model = ir.from_proto(proto)
    infer_shapes(model)
    assert dims(model.graph.inputs[0]) == (N, N + 1, symbol("batch-size"))
    assert dims(model.graph.inputs[1]) == (symbol("a.b c"),)


def test_stale_shapes_in_the_file_are_not_believed():
    model = inferred(
        "g (float[N, 4] x) => (float[1, 4] y) <float[1, 4] h> { h = Relu(x)  y = Neg(h) }"
    )
    assert dims(value(model, "h")) == dims(value(model, "y")) == (N, 4)


def test_unknown_operators_are_taken_at_their_word():
    proto = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17, "other" : 1]> g (float[N, 4] x) => (y) '
        "<float[N, 9] h> { h = other.Thing(x)  y = Relu(h) }"
    )
    model = ir.from_proto(proto)
    infer_shapes(model)
    assert dims(value(model, "y")) == (N, 9)


# -- the numbers in shape computations ---------------------------------------------------

ATTENTION_HEADS = """
    s = Shape(x)  n = Gather(s, zero)  t = Gather(s, one)  h = Gather(s, two)
    nu = Unsqueeze(n, axis)  tu = Unsqueeze(t, axis)  hu = Unsqueeze(h, axis)
    w = Div(hu, twelve)
    target = Concat<axis = 0>(nu, tu, twelve, w)  heads = Reshape(x, target)
    p = Transpose<perm = [0, 2, 1, 3]>(heads)  q = Transpose<perm = [0, 2, 1, 3]>(p)
    nt = Mul(nu, tu)  flat = Concat<axis = 0>(nt, minus)  y = Reshape(q, flat)
"""


def test_attention_heads_are_split_and_joined_exactly():
    model = inferred(
        f"g (float[N, T, 768] x) => (y) {{ {ATTENTION_HEADS} }}",
        zero=0,
        one=1,
        two=2,
        axis=[0],
        twelve=[12],
        minus=[-1],
    )
    assert elements(value(model, "target")) == (N, T, 12, 64)
    assert dims(value(model, "p")) == (N, 12, T, 64)
    assert dims(value(model, "y")) == (N * T, 768)


ARITHMETIC = [
    ("y = Add(n, n)", (2 * N,)),
    ("y = Sub(n, n)", (0,)),
    ("m = Mul(n, four)  y = Div(m, two)", (2 * N,)),
    ("y = Div(n, two)", (sympy.floor(N / 2),)),
    ("y = Mod(n, two)", (sympy.Mod(N, 2),)),
    ("y = Max(n, zero)", (N,)),
    ("y = Min(n, n)", (N,)),
    ("e = Equal(n, minus)  y = Where(e, two, n)", (N,)),
    ("e = Equal(n, zero)  y = Where(e, two, n)", (None,)),
    ("e = Equal(n, n)  y = Where(e, two, n)", (2,)),
    ("c = Concat<axis = 0>(n, two)  y = ReduceProd(c)", (2 * N,)),
    ("c = Concat<axis = 0>(n, two, four)  y = Slice(c, one, two)", (2,)),
    (
        "f = Cast<to = 1>(n)  g = Mul(f, half)  h = Floor(g)  y = Cast<to = 7>(h)",
        (sympy.floor(N / 2),),
    ),
    ("o = ConstantOfShape<value = int64[1] {7}>(two)  y = Add(o, n)", (N + 7, N + 7)),
    ("t = Squeeze(two)  z = Squeeze(zero)  d = Squeeze(one)  y = Range(z, t, d)", (0, 1)),
]


@pytest.mark.parametrize(("body", "expected"), ARITHMETIC)
def test_arithmetic(body, expected):
    constants = {"zero": [0], "one": [1], "two": [2], "four": [4], "minus": [-1]}
    model = inferred(
        f"g (float[N, 3] x) => (y) {{ s = Shape(x)  n = Gather(s, zero)  {body} }}",
        **constants,
        half=np.array([0.5], np.float32),
    )
    assert elements(value(model, "y")) == expected


def test_an_int32_overflow_is_not_known():
    model = inferred("g () => (y) { y = Mul(a, a) }", a=np.array([1 << 20], np.int32))
    assert elements(value(model, "y")) == (None,)


def test_a_run_time_number_leaves_a_fresh_size():
    model = inferred(
        "g (float[N, 12] x, int64[1] k) => (y, z) {"
        "t = Concat<axis = 0>(k, four)  y = Reshape(x, t)  z = Expand(w, t) }",
        four=[4],
        w=np.ones((1, 1), np.float32),
    )
    assert dims(value(model, "y")) == (3 * N, 4)  # what is left over, whatever k is
    first, second = dims(value(model, "z"))
    assert isinstance(first, sympy.Symbol)
    assert second == 4


def test_a_table_cut_to_the_length_of_what_it_is_added_to_has_that_length():
    model = inferred(
        """g (float[N, T, 8] x) => (y) {
            s = Shape(x)  t = Gather(s, one)  p = Slice(table, zero, t, zero)
            y = Add(x, p) }""",
        one=[1],
        zero=[0],
        table=np.zeros((512, 8), np.float32),
    )
    assert dims(value(model, "y")) == (N, T, 8)
    assert dims(value(model, "p")) == (T, 8)


def test_inner_sizes_of_a_product_are_equal():
    model = inferred(
        "g (float[N, T] x, bool[M] c) => (y) { z = Compress<axis = 0>(x, c)"
        "p = Transpose(z)  y = MatMul(x, z) }"
    )
    assert dims(value(model, "p")) == (T, T)


def test_division_of_what_may_be_negative_is_not_known():
    model = inferred(
        "g (float[N, 3] x) => (y, z) { s = Shape(x)  n = Gather(s, zero)  m = Sub(n, five)"
        "y = Div(m, two)  f = Mul(m, two)  z = Div(f, two) }",
        zero=[0],
        two=[2],
        five=[5],
    )
    assert elements(value(model, "y")) == (None,)
    assert elements(value(model, "z")) == (N - 5,)


def test_contrib_operators_have_shapes():
    proto = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1, "ai.onnx.ml" : 2]>'
        "g (float[N, T, 8] x, float[8] b) => (y) { g = com.microsoft.BiasGelu(x, b)"
        "n, , , s = com.microsoft.SkipLayerNormalization(g, x, b)"
        "m = com.microsoft.MatMulNBits<K = 8, N = 5>(s, b)  y = ai.onnx.ml.Scaler(m) }"
    )
    model = ir.from_proto(proto)
    infer_shapes(model)
    assert dims(value(model, "y")) == (N, T, 5)
    assert value(model, "n").dtype is ir.DataType.FLOAT


def test_contributed_products_have_shapes_and_types():
    proto = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>'
        "g (float[7, N, 3] x, float[N, 4, 7] w, uint8[N, 8] a, int8[8, 5] b, float s,"
        "   uint8[1, 9, H, 4] c, int8[6, 4, 2, 3] f, int8 z) => (m, i, q) {"
        "m = com.microsoft.FusedMatMul<transBatchA = 1, transA = 1, transB = 1>(x, w)"
        "i = com.microsoft.MatMulIntegerToFloat(a, b, s, s)"
        "q = com.microsoft.QLinearConv<channels_last = 1>(c, s, z, f, s, z, s, z) }"
    )
    model = ir.from_proto(proto)
    infer_shapes(model)
    assert dims(value(model, "m")) == (N, 3, 4)
    assert dims(value(model, "i")) == (N, 5)
    assert value(model, "i").dtype is ir.DataType.FLOAT
    assert dims(value(model, "q")) == (1, 8, symbol("H") - 2, 6)
    assert value(model, "q").dtype is ir.DataType.INT8


def test_operators_on_quantized_tensors_have_shapes_and_types():
    proto = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>'
        "g (uint8[N, 4] a, uint8[N, 1] b, uint8 z, float s, bool[4] c, float[N, 3] x, int8 i)"
        "  => (p, q, w, j, d) {"
        "p = com.microsoft.QLinearAdd(b, s, z, a, s, z, s, z)"
        "q = com.microsoft.QLinearSigmoid(p, s, z, s, z)"
        "w = com.microsoft.QLinearWhere(c, b, s, z, b, s, z, s, z)"
        "j = com.microsoft.QLinearConcat<axis = 1>(s, z, a, s, z, b, s, z)"
        "k = com.microsoft.QuantizeLinear(x, s, i)"
        "d = com.microsoft.DequantizeLinear(k, s, i) }"
    )
    model = ir.from_proto(proto)
    infer_shapes(model)
    found = {name: dims(value(model, name)) for name in "pqwjkd"}
    assert found == {
        "p": (N, 4),
        "q": (N, 4),
        "w": (N, 4),
        "j": (N, 5),
        "k": (N, 3),
        "d": (N, 3),
    }
    for name, dtype in zip("pqwjkd", ["UINT8"] * 4 + ["INT8", "FLOAT"], strict=True):
        assert value(model, name).dtype is ir.DataType[dtype]


def test_col2im_and_determinants_have_shapes():
    constants = {"image": [4, 5], "block": [2, 3]}
    found = shape("y = Col2Im(x, image, block)", "float[N, 12, L] x", 18, **constants)
    assert found == (N, 2, 4, 5)
    assert shape("y = Det(x)", "float[N, 3, 3] x") == (N,)


def test_the_declared_interface_comes_back():
    model = inferred("g (float[?, 3] x) => (float[batch, C] y) { y = Relu(x) }")
    before = (symbol("d0"), 3)
    assert dims(model.graph.inputs[0]) == dims(model.graph.outputs[0]) == before
    restore_interface(model)
    assert model.graph.inputs[0].shape == [None, 3]
    assert model.graph.outputs[0].shape == ["batch", "C"]


def test_onnx_is_asked_where_there_is_no_rule():
    grid = 'y = GridSample<mode = "bilinear">(x, g)'
    found = shape(grid, "float[N, C, H, W] x, float[N, A, B, 2] g")
    assert found == (N, symbol("C"), symbol("A"), symbol("B"))


# -- bodies ------------------------------------------------------------------------------


def test_branches_are_merged():
    model = inferred(
        """g (bool c, float[N, 4] x) => (y) {
            y = If(c) <then_branch = t () => (float[a, b] p) { p = Relu(x) },
                else_branch = e () => (float[a, b] q) { q = Concat<axis = 1>(x, x) }> }"""
    )
    first, second = dims(value(model, "y"))
    assert first == N
    assert isinstance(second, sympy.Symbol)
    assert dims(value(model, "q")) == (N, 8)


def test_a_loop_keeps_what_its_body_keeps():
    model = inferred(
        """g (int64 n, bool c, float[N, 4] x) => (y, z, w) {
            y, z, w = Loop(n, c, x, x) <body = b (int64 i, bool k, float[a, b] s, float[a, b] r)
                => (bool k2, float[a, b] s2, float[a, b] r2, float[a, b] o) {
                k2 = Identity(k)  s2 = Relu(s)  r2 = Concat<axis = 1>(r, x)  o = Neg(s) }> }"""
    )
    assert dims(value(model, "y")) == (N, 4)
    grown = dims(value(model, "z"))
    assert grown[0] == N
    assert isinstance(grown[1], sympy.Symbol)
    assert dims(value(model, "w"))[1:] == (N, 4)
    assert dims(value(model, "r2"))[1] != grown[1]


def test_a_scan_stacks():
    model = inferred(
        """g (float[4] h, float[T, 4] x) => (y, z) {
            y, z = Scan<num_scan_inputs = 1, body = b (float[a] s, float[a] e)
                => (float[a] s2, float[a] o) { s2 = Add(s, e)  o = Mul(s, e) }>(h, x) }"""
    )
    assert dims(value(model, "y")) == (4,)
    assert dims(value(model, "z")) == (T, 4)


# -- against the reference ---------------------------------------------------------------

RUNNABLE = [
    "y = Slice(x, two, five, one)",
    "y = Slice(x, two, big, one, two)",
    "y = Slice(x, one, mfive, one)",
    "y = Slice(x, big, mbig, one, mtwo)",
    "y = MaxPool<kernel_shape = [3], strides = [2], pads = [1, 1]>(x)",
    "y = AveragePool<kernel_shape = [2], strides = [2], ceil_mode = 1>(x)",
    "y, z = Split<axis = 1, num_outputs = 2>(x)",
    "s = Shape<start = 1>(x)  y = ConstantOfShape(s)",
    "s = Size(x)  z = Sub(s, s)  y = Range(z, s, three)",
    "t = Transpose(x)  y = MatMul(x, x2)",
]


@settings(deadline=None, max_examples=60)
@given(
    body=st.sampled_from(RUNNABLE),
    sizes=st.tuples(st.integers(1, 3), st.integers(2, 9), st.integers(3, 9)),
)
def test_expressions_give_the_sizes_of_a_run(body, sizes):
    big = 2**63 - 1
    constants = {
        "one": [1],
        "two": [2],
        "five": [5],
        "big": [big],
        "mbig": [-big],
        "mfive": [-5],
        "mtwo": [-2],
        "three": 3,
    }
    text = f"g (float[N, T, K] x, float[N, K, P] x2) => (y) {{ {body} }}"
    proto = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]>{text}')
    for name, number in constants.items():
        proto.graph.initializer.append(numpy_helper.from_array(np.asarray(number), name))
    x = np.zeros(sizes, np.float32)
    feeds = {"x": x, "x2": np.zeros((sizes[0], sizes[2], 2), np.float32)}
    (expected,) = ReferenceEvaluator(proto).run(None, feeds)
    model = ir.from_proto(proto)
    infer_shapes(model)
    numbers = dict(zip((N, T, K), map(sympy.Integer, sizes), strict=True))
    numbers[symbol("P")] = sympy.Integer(2)
    found = [sympy.sympify(d).xreplace(numbers) for d in dims(value(model, "y"))]
    assert found == list(expected.shape)


# -- expressions -------------------------------------------------------------------------


def test_symbols_are_one_object_a_name():
    assert symbols.parse("N") is N
    assert symbols.parse("N + 2*T") == N + 2 * T
    assert symbols.parse("floor(N/2) + 1") == sympy.floor(N / 2) + 1


def test_texts_that_are_no_expressions_are_names():
    for text in ("__import__('os')", "N ** 9**9**9", "(" * 200, "a if b else c", "1/0", "in"):
        assert symbols.parse(text) == symbol(text)


def test_extrema_are_simplified_only_where_zero_agrees():
    assert symbols.maximum(N, 0) == N
    assert symbols.minimum(N, N + 1) == N
    assert symbols.maximum(N, 1) != N
    assert symbols.minimum(N, 5) == sympy.Min(5, N)


def test_division_is_exact_where_it_must_be():
    assert symbols.exact_divide(N * T * 768, N * T) == 768
    assert symbols.exact_divide(sympy.expand((N + 1) * T), T) == N + 1
    assert symbols.floor_divide(4 * N, 2) == 2 * N
    assert symbols.floor_divide(2 * N + 1, 2) == N
    assert symbols.ceil_divide(N, 1) is N


def test_images_read_at_places_from_data_have_shapes():
    grid = "y = GridSample(x, g)"
    assert shape(grid, "float[N, C, H, W] x, float[M, A, B, 2] g", 20)[2:] == (
        symbol("A"),
        symbol("B"),
    )
    regions = "y = RoiAlign<output_height = 3, output_width = 4>(x, r, i)"
    assert shape(regions, "float[1, C, H, W] x, float[R, 4] r, int64[R] i", 16) == (
        symbol("R"),
        symbol("C"),
        3,
        4,
    )
    assert shape("y = AffineGrid(t, s)", "float[N, 2, 3] t", 20, s=[2, 1, 5, 6]) == (2, 5, 6, 2)
    crop = "y = CenterCropPad<axes = [-1, 0]>(x, s)"
    assert shape(crop, "float[4, H, 6] x", 18, s=[5, 9]) == (9, symbol("H"), 5)
    pool = "y = com.microsoft.QLinearAveragePool<channels_last = 1, kernel_shape = [2]>"
    proto = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>'
        f"g (uint8[N, W, 3] x, float s, uint8 z) => (y) {{ {pool}(x, s, z, s, z) }}"
    )
    model = ir.from_proto(proto)
    infer_shapes(model)
    assert dims(value(model, "y")) == (N, symbol("W") - 1, 3)
    unpool = "y = MaxUnpool<kernel_shape = [3], strides = [2], pads = [1, 0]>(x, i)"
    found = shape(unpool, "float[N, 2, W] x, int64[N, 2, W] i")
    assert found == (N, 2, 2 * symbol("W"))
