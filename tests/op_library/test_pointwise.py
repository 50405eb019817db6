"""Broadcasting agrees with NumPy's, or is refused where sizes are not known to agree."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from op_library.activation import GELU_TANH
from op_library.elementwise import constant_power
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import same_size
from tcfuse.tc.evaluate import evaluate
from tcfuse.tc.parser import parse
from tcfuse.types import DType, TensorType


@settings(deadline=None, max_examples=60)
@given(
    shapes=hnp.mutually_broadcastable_shapes(num_shapes=3, max_dims=4, max_side=3, min_side=0)
)
def test_broadcasting_agrees_with_numpy(run, shapes):
    arrays = [
        np.arange(1, math.prod(shape) + 1, dtype=np.float32).reshape(shape) * 3**k
        for k, shape in enumerate(shapes.input_shapes)
    ]
    expected = arrays[0] + arrays[1] + arrays[2]
    (got,) = run("Sum", arrays, [TensorType(DType.FLOAT32, shapes.result_shape)])
    np.testing.assert_array_equal(got, expected)


@settings(deadline=None, max_examples=60)
@given(shapes=hnp.mutually_broadcastable_shapes(num_shapes=3, max_dims=3, max_side=3))
def test_where_chooses_as_numpy_does(run, shapes):
    condition, a, b = (np.arange(math.prod(s)).reshape(s) for s in shapes.input_shapes)
    (got,) = run(
        "Where", [condition % 2 == 0, a, -b], [TensorType(DType.INT64, shapes.result_shape)]
    )
    np.testing.assert_array_equal(got, np.where(condition % 2 == 0, a, -b))


@settings(deadline=None, max_examples=60)
@given(
    a=hnp.arrays(np.int32, 5, elements=st.integers(-9, 9)),
    b=hnp.arrays(np.int32, 5, elements=st.integers(-9, 9).filter(bool)),
)
def test_integers_divide_as_onnx_says(run, a, b):
    output = [TensorType(DType.INT32, (5,))]
    np.testing.assert_array_equal(run("Div", [a, b], output)[0], np.trunc(a / b))
    np.testing.assert_array_equal(run("Mod", [a, b], output)[0], np.mod(a, b))
    np.testing.assert_array_equal(run("Mod", [a, b], output, {"fmod": 1})[0], np.fmod(a, b))


@pytest.mark.parametrize(
    ("a", "b", "agree"),
    [
        ("N", "N", True),
        ("H + H", "2*H", True),
        ("N + 1 - 1", "N", True),
        ("P + S", "S + P", True),
        ("N", "M", False),
        ("2*(N + 1)", "2*N + 2", False),
        (3, "N", False),
        (3, 3, True),
    ],
)
def test_sizes_agree_when_their_sums_do(a, b, agree):
    assert same_size(a, b) == agree


def test_sizes_that_may_differ_are_refused(lower):
    with pytest.raises(UnsupportedError, match="cannot show that M and N agree"):
        lower("Add", ["float(N)", "float(M)"], ["float(N)"])


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 2.0, 3.0, -1.0])
def test_constant_exponents_are_as_exact_as_pow(lower, exponent):
    assert constant_power(DType.FLOAT32, exponent)
    x = np.array([-np.inf, -2.0, -0.0, 0.0, 0.5, 3.0, np.inf, np.nan], np.float32)
    text = lower("Pow", ["float(8)", "float"], ["float(8)"], constants={1: exponent})
    got = evaluate(parse(text), {"A": x, "B": np.float32(exponent)})["Y"]
    with np.errstate(
        all="ignore"
    ):  # an array of exponents, as NumPy has shortcuts for a scalar
        expected = np.power(x.astype(np.float64), np.full(8, exponent))
    np.testing.assert_array_equal(got, expected)
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got)[number], np.signbit(expected)[number])


def test_clip_with_crossed_bounds_gives_the_maximum(run):
    x = np.array([-5, 0, 5, np.nan], np.float32)
    bounds = [np.array(2, np.float32), np.array(1, np.float32)]
    (got,) = run("Clip", [x, *bounds], [TensorType(DType.FLOAT32, (4,))])
    np.testing.assert_array_equal(got, np.array([1, 1, 1, np.nan], np.float32))


def test_gelu_by_tanh_has_its_constants_multiplied_out():
    assert repr((2 / np.pi) ** 0.5 * 0.044715)[:12] in GELU_TANH
