"""Products and convolutions agree with ONNX Runtime in the shapes and attributes that ONNX's
cases leave out."""

from __future__ import annotations

import numpy as np
import pytest

from tcfuse.errors import UnsupportedError
from tcfuse.types import DType, TensorType
from tests.op_library.test_against_onnxruntime import compare, data, dtype_of, scalar, whole

pytestmark = pytest.mark.ort


def small(*shape: int, dtype=np.uint8, seed: int = 0) -> np.ndarray:
    low, high = (-100, 100) if np.dtype(dtype).kind == "i" else (0, 200)
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype)


PRODUCTS = [
    ((3,), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3,)),
    ((5, 2, 3), (3,)),
    ((3,), (5, 3, 4)),
    ((4, 1, 2, 3), (5, 3, 2)),
    ((1, 2, 3), (4, 3, 2)),
]


@pytest.mark.parametrize(("left", "right"), PRODUCTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.uint64])
def test_matmul_of_any_ranks(run, left, right, dtype):
    a, b = (9 * data(*shape) for shape in (left, right))
    if np.dtype(dtype).kind == "u":
        a, b = abs(a), abs(b)
    compare(run, "MatMul", 13, [a.astype(dtype), b.astype(dtype)])


def test_matmul_of_scalars_is_refused(run):
    with pytest.raises(UnsupportedError, match="ranks 0 and 1"):
        run("MatMul", [scalar(1), data(1)], [TensorType(DType.FLOAT32, ())], {})


@pytest.mark.parametrize(
    ("op_type", "shapes", "attributes"),
    [
        ("MatMul", [(2, 0), (0, 3)], {}),
        ("MatMul", [(4, 0, 2), (2, 3)], {}),
        ("Gemm", [(2, 0), (0, 3), (3,)], {}),
        ("Einsum", [(2, 0), (0, 3)], {"equation": "ij,jk->ik"}),
        ("Conv", [(0, 2, 5), (3, 2, 2)], {}),
        ("ConvTranspose", [(0, 2, 5), (2, 3, 2)], {}),
        ("MatMul", [(1, 1, 1, 1, 1, 2, 2, 3), (2, 2, 1, 1, 2, 1, 3, 2)], {}),
    ],
)
def test_nothing_to_sum_and_many_axes(run, op_type, shapes, attributes):
    compare(run, op_type, 13, [data(*shape) for shape in shapes], attributes)


C_SHAPES = [None, (), (1,), (4,), (1, 1), (1, 4), (3, 1), (3, 4)]


@pytest.mark.parametrize("shape", C_SHAPES)
@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"transA": 1, "alpha": 0.5, "beta": 2.0},
        {"transB": 1, "beta": 0.25},
        {"transA": 1, "transB": 1, "alpha": 0.0},
    ],
)
def test_gemm_with_every_c(run, shape, attributes):
    a = data(2, 3) if attributes.get("transA") else data(3, 2)
    b = data(4, 2) if attributes.get("transB") else data(2, 4)
    c = None if shape is None else data(*shape, seed=5)
    compare(run, "Gemm", 13, [a, b, c], attributes)


def test_gemm_does_not_read_a_c_that_counts_nothing(run):
    c = np.full((3, 4), np.nan, np.float32)
    compare(run, "Gemm", 13, [data(3, 2), data(2, 4), c], {"beta": 0.0})


EQUATIONS = [
    ("ij->ji", [(2, 3)]),
    ("ij", [(2, 3)]),
    ("ba", [(2, 3)]),
    ("ii->i", [(3, 3)]),
    ("ii", [(3, 3)]),
    ("...ii->...i", [(2, 3, 3)]),
    ("i,i", [(3,), (3,)]),
    ("i,j->ij", [(3,), (4,)]),
    ("ij,jk", [(2, 3), (3, 4)]),
    ("Ab,bA->bA", [(2, 3), (3, 2)]),
    ("...ij,...jk->...ik", [(4, 1, 2, 3), (1, 5, 3, 2)]),
    ("i...j,j...->...i", [(2, 4, 5, 3), (3, 1, 5)]),
    ("bhqd,bhkd->bhqk", [(1, 2, 3, 4), (1, 2, 5, 4)]),
    (" ij , j k -> ik", [(2, 3), (3, 4)]),
    ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 2)]),
    ("a,ab,b->", [(2,), (2, 3), (3,)]),
    ("abc,cd,b->da", [(2, 3, 4), (4, 5), (3,)]),
    ("ijk->", [(2, 3, 4)]),
    (",ij->ij", [(), (2, 3)]),
]


@pytest.mark.parametrize(("equation", "shapes"), EQUATIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_einsum_of_every_form(run, equation, shapes, dtype):
    arrays = [np.asarray(9 * data(*s, seed=k), dtype) for k, s in enumerate(shapes)]
    compare(run, "Einsum", 12, arrays, {"equation": equation})


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij->iij", [(2, 3)]),
        ("ij->ik", [(2, 3)]),
        ("ij,jk->ik", [(2, 3)]),
        ("ij->i", [(2, 3, 4)]),
        ("i1->i", [(2, 3)]),
        ("ii->i", [(2, 3)]),
        ("ij,jk->ik", [(2, 3), (4, 5)]),
    ],
)
def test_an_einsum_that_means_nothing_is_refused(run, equation, shapes):
    arrays = [data(*s) for s in shapes]
    result = TensorType(DType.FLOAT32, (2,) * len(equation.partition("->")[2]))
    with pytest.raises(UnsupportedError):
        run("Einsum", arrays, [result], {"equation": equation})


CONVOLUTIONS = [
    ((2, 3, 7), (4, 3, 3), {}),
    ((1, 4, 9), (6, 2, 3), {"group": 2, "pads": [2, 0], "strides": [2]}),
    ((1, 2, 6, 7), (3, 2, 3, 2), {"pads": [0, 1, 2, 0], "dilations": [2, 3]}),
    ((1, 2, 6, 7), (2, 1, 3, 3), {"group": 2, "auto_pad": "SAME_UPPER"}),
    ((1, 2, 6, 7), (4, 1, 2, 2), {"group": 2, "auto_pad": "SAME_LOWER", "strides": [2, 3]}),
    ((1, 2, 6, 7), (3, 2, 2, 3), {"auto_pad": "SAME_UPPER", "strides": [3, 2]}),
    ((1, 2, 6, 7), (3, 2, 2, 3), {"auto_pad": "VALID", "strides": [1, 2]}),
    ((2, 1, 3, 4, 5), (2, 1, 2, 2, 2), {"pads": [1, 0, 0, 0, 1, 1], "strides": [1, 2, 1]}),
    ((1, 2, 2, 2), (2, 2, 1, 1), {"kernel_shape": [1, 1]}),
    ((1, 1, 1, 1), (1, 1, 3, 3), {"pads": [1, 1, 1, 1]}),
]


@pytest.mark.parametrize(("shape", "weights", "attributes"), CONVOLUTIONS)
@pytest.mark.parametrize("has_bias", [False, True])
def test_convolutions(run, shape, weights, attributes, has_bias):
    bias = [data(weights[0])] if has_bias else []
    compare(run, "Conv", 11, [data(*shape), data(*weights), *bias], attributes)


TRANSPOSED = [
    ((2, 3, 4), (3, 2, 3), {}),
    ((1, 4, 5), (4, 3, 3), {"group": 2, "strides": [2], "pads": [1, 0]}),
    ((1, 2, 3, 4), (2, 2, 3, 2), {"strides": [3, 2], "output_padding": [2, 1]}),
    ((1, 2, 3, 4), (2, 1, 3, 3), {"group": 2, "dilations": [2, 1], "pads": [1, 2, 0, 1]}),
    ((1, 1, 3, 3), (1, 2, 3, 3), {"auto_pad": "SAME_UPPER", "strides": [2, 3]}),
    ((1, 1, 3, 3), (1, 2, 4, 4), {"auto_pad": "SAME_LOWER", "strides": [1, 3]}),
    ((1, 1, 3, 3), (1, 2, 4, 4), {"auto_pad": "VALID", "strides": [2, 1]}),
    ((1, 1, 3), (1, 1, 4), {"strides": [2], "output_shape": [5]}),
    ((1, 1, 3), (1, 1, 4), {"strides": [2], "output_shape": [5], "auto_pad": "SAME_UPPER"}),
    ((1, 1, 3), (1, 1, 4), {"strides": [2], "output_shape": [9]}),
    ((1, 1, 3), (1, 1, 4), {"strides": [2], "output_shape": [7], "output_padding": [1]}),
    ((1, 2, 2, 2, 2), (2, 1, 2, 2, 2), {"strides": [2, 1, 2]}),
]


@pytest.mark.parametrize(("shape", "weights", "attributes"), TRANSPOSED)
@pytest.mark.parametrize("has_bias", [False, True])
def test_transposed_convolutions(run, shape, weights, attributes, has_bias):
    bias = [data(weights[1] * attributes.get("group", 1))] if has_bias else []
    compare(run, "ConvTranspose", 11, [data(*shape), data(*weights), *bias], attributes)


@pytest.mark.parametrize("types", [(np.uint8, np.uint8), (np.uint8, np.int8)])
@pytest.mark.parametrize("per_column", [False, True])
@pytest.mark.parametrize("left", [(3, 5), (2, 3, 5)])
def test_integer_products(run, types, per_column, left):
    a, b = small(*left, dtype=types[0]), small(5, 4, dtype=types[1], seed=1)
    zero = small(4, dtype=types[1], seed=2) if per_column else scalar(7, types[1])
    compare(run, "MatMulInteger", 10, [a, b, scalar(9, types[0]), zero])
    compare(run, "MatMulInteger", 10, [a, b])
    b_scale = abs(data(4)) / 9 if per_column else scalar(0.0217)
    arrays = [a, scalar(0.0513), scalar(9, types[0]), b, b_scale, zero]
    compare(run, "QLinearMatMul", 10, [*arrays, scalar(0.913), scalar(3, types[0])])


@pytest.mark.parametrize("types", [(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8,) * 2])
@pytest.mark.parametrize("per_filter", [False, True])
@pytest.mark.parametrize(("shape", "weights", "attributes"), CONVOLUTIONS[1:6])
def test_integer_convolutions(run, types, per_filter, shape, weights, attributes):
    x, w = small(*shape, dtype=types[0]), small(*weights, dtype=types[1], seed=1)
    x_zero, w_zero = scalar(5, types[0]), scalar(0, types[1])
    if types == (np.uint8, np.uint8):
        compare(run, "ConvInteger", 10, [x, w, x_zero, scalar(7, types[1])], attributes)
    w_scale = scalar(0.0217)
    if per_filter:
        w_scale = abs(data(weights[0])) / 9
        w_zero = np.zeros(weights[0], types[1])
    arrays = [x, scalar(0.0513), x_zero, w, w_scale, w_zero, scalar(0.913), scalar(3, types[0])]
    compare(run, "QLinearConv", 10, arrays, attributes)
    bias = (1000 * data(weights[0])).astype(np.int32)
    compare(run, "QLinearConv", 10, [*arrays, bias], attributes)


def test_rows_have_zero_points_of_their_own(run):
    a, b = small(2, 3, 5), small(2, 5, 4, seed=1)
    a_zero, b_zero = small(2, 3, 1, seed=2), small(2, 1, 4, seed=3)
    result = TensorType(DType.INT32, (2, 3, 4))
    (got,) = run("MatMulInteger", [a, b, a_zero, b_zero], [result])
    left, right = (x.astype(np.int32) - z for x, z in ((a, a_zero), (b, b_zero)))
    np.testing.assert_array_equal(got, left @ right)
    (got,) = run(
        "MatMulInteger",
        [a[0], b[0], a_zero[0, :, 0], b_zero[0, 0]],
        [TensorType(DType.INT32, (3, 4))],
    )
    np.testing.assert_array_equal(got, left[0] @ right[0])


def test_a_quantized_vector(run):
    compare(run, "MatMulInteger", 10, [small(5), small(5, 4), whole(3, dtype=np.uint8)])


FOLDS = [
    ((1, 12, 4), (3, 3), (2, 2), {}),
    ((2, 4, 9), (5, 5), (2, 2), {"strides": [2, 2], "pads": [0, 1, 1, 0]}),
    ((1, 12, 6), (4, 5), (2, 3), {"dilations": [2, 1]}),
    ((1, 8, 8), (3, 3, 3), (2, 2, 2), {}),
]


@pytest.mark.parametrize(("shape", "image", "block", "attributes"), FOLDS)
def test_col2im(run, shape, image, block, attributes):
    compare(run, "Col2Im", 18, [data(*shape), whole(*image), whole(*block)], attributes)


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (3, 3), (2, 4, 4), (1, 3, 5, 5)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_determinants(run, shape, dtype):
    if dtype == np.float32:
        compare(run, "Det", 11, [data(*shape)])
    x, result = data(*shape, dtype=dtype), TensorType(dtype_of(np.zeros(1, dtype)), shape[:-2])
    (got,) = run("Det", [x], [result])
    np.testing.assert_allclose(got, np.linalg.det(x), rtol=1e-5, atol=1e-5)


def test_a_determinant_of_a_large_matrix_is_refused(run):
    with pytest.raises(UnsupportedError, match="up to 5 rows"):
        run("Det", [data(6, 6)], [TensorType(DType.FLOAT32, ())])


DEFORMED = [
    ((1, 2, 4, 5), (3, 2, 2, 3), {"pads": [1, 0, 0, 1]}),
    ((2, 4, 5, 5), (2, 2, 3, 3), {"group": 2, "offset_group": 2, "strides": [2, 1]}),
    ((1, 2, 6, 6), (1, 2, 2, 2), {"dilations": [2, 3], "offset_group": 2}),
]


@pytest.mark.parametrize(("shape", "weights", "attributes"), DEFORMED)
@pytest.mark.parametrize("has_more", [False, True])
def test_deformable_convolutions(run, shape, weights, attributes, has_more):
    kernel, groups = weights[2:], attributes.get("offset_group", 1)
    around = np.reshape(attributes.get("pads", [0] * 4), (2, 2)).sum(0)
    strides, dilations = (attributes.get(name, [1, 1]) for name in ("strides", "dilations"))
    positions = tuple(
        (n + p - d * (k - 1) - 1) // s + 1
        for n, p, d, k, s in zip(shape[2:], around, dilations, kernel, strides, strict=True)
    )
    taps = groups * kernel[0] * kernel[1]
    offset = 2 * data(shape[0], 2 * taps, *positions, seed=1)
    mask = data(shape[0], taps, *positions, seed=2)
    more = [data(weights[0]), mask] if has_more else []
    arrays = [data(*shape), data(*weights, seed=3), offset, *more]
    compare(run, "DeformConv", 19, arrays, attributes)
