"""ONNX's own cases for single operators, and how near a result must be to what they expect."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_node_model_tests

from tcfuse.errors import UnsupportedError
from tcfuse.types import DType, TensorType

DECIMALS = {
    "test_averagepool_2d_ceil_last_window_starts_on_pad": 4,
    "test_gridsample_bicubic": 4,
    "test_roialign_aligned_false": 4,
    "test_roialign_aligned_true": 4,
}
"""Cases whose numbers somebody wrote down with so many decimals, inputs and outputs."""

ROUNDING = ("Round", "QuantizeLinear")
"""Operators whose integers are rounded floats."""


def tolerance(dtype: DType, *, rounds: bool) -> dict[str, float]:
    """How far a result may be from ONNX's, which was computed in the case's own precision.

    Args:
        dtype: The result's type.
        rounds: Integers are rounded floats, and another precision breaks ties differently.
    """
    relative = {
        DType.FLOAT16: 2e-3,
        DType.BFLOAT16: 1.6e-2,
        DType.FLOAT32: 1e-5,
        DType.FLOAT64: 1e-7,
    }
    if dtype in relative:
        return {"rtol": relative[dtype], "atol": relative[dtype]}
    return {"rtol": 0.0, "atol": 1.0 if rounds and dtype is not DType.BOOL else 0.0}


def array_of(value: Any) -> np.ndarray:
    """A case's datum as an array.

    Raises:
        UnsupportedError: It is a sequence or absent.
    """
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    if not isinstance(value, np.ndarray | np.generic):
        raise UnsupportedError(f"a {type(value).__name__} is not a tensor")
    return np.asarray(value)


def type_of(array: np.ndarray | np.generic) -> TensorType:
    """The type of an array."""
    dtype = next((d for d in DType if d.numpy == array.dtype), None)
    if dtype is None:
        raise UnsupportedError(f"no element type {array.dtype}")
    return TensorType(dtype, array.shape)


def agree(got: np.ndarray, want: np.ndarray, *, rounds: bool, case: str = "") -> None:
    """Compare a result of ``case`` with what ONNX expects, in double precision."""
    assert got.shape == want.shape
    dtype = type_of(want).dtype
    if dtype.is_float:
        with np.errstate(over="ignore"):  # float64 results of a definition, as their type
            got = got.astype(want.dtype).astype(np.float64)
        want = want.astype(np.float64)
    elif dtype is not DType.BOOL:
        got, want = got.astype(object), want.astype(object)
    limits = tolerance(dtype, rounds=rounds)
    if case in DECIMALS:  # both sides were rounded: they may differ in the last one
        limits["atol"] = 10.0 ** -DECIMALS[case]
    compare = np.testing.assert_allclose if dtype.is_float else assert_integers_close
    compare(got, want, **limits)


def assert_integers_close(
    got: np.ndarray, want: np.ndarray, *, rtol: float, atol: float
) -> None:
    """Compare integers exactly, of whatever width, up to an absolute difference."""
    if atol == 0:
        np.testing.assert_array_equal(got, want)
    else:
        assert np.max(np.abs(got - want), initial=0) <= atol


@cache
def cases() -> tuple[Any, ...]:
    """Every node case, made without the warnings NumPy has about overflows in them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = tuple(load_node_model_tests())
    for case in found:
        if "to_INT" in case.name or "to_UINT" in case.name:
            case.data_sets = [without_open_values(*data) for data in case.data_sets]
    return found


def without_open_values(
    inputs: Sequence[Any], outputs: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """A cast's data with 0 for floats that an integer of less than a byte does not hold.

    ONNX leaves those open, and its cases expect what ``ml_dtypes`` makes of them: the low bits
    before version 0.7, then 0.
    """
    given, want = array_of(inputs[0]), array_of(outputs[0])
    source, target = type_of(given).dtype, type_of(want).dtype
    if not source.is_float or target.is_float or target.bits >= 8:
        return list(inputs), list(outputs)
    least, largest = target.limits
    rounded = np.rint(given.astype(np.float64))
    is_open = (rounded < least) | (rounded > largest)
    assert not is_open.all()
    given, want = (np.where(is_open, a.dtype.type(0), a) for a in (given, want))
    return [given, *inputs[1:]], [want]
