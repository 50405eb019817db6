"""What a caller gives, as arrays a kernel can read and write: contiguous, aligned, its own.

An array that is not as a kernel needs it is copied: other strides, another byte order.  Element
types are not converted, but a Python number stands for a scalar of any type that holds it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tcfuse.errors import InputError, TcError
from tcfuse.interface import Port
from tcfuse.layers.dlpack import as_array, is_tensor
from tcfuse.tc.binding import check_output
from tcfuse.types import DType


def input_array(value: Any, port: Port) -> np.ndarray:
    """``value`` as an array; its element type is the port's if it has a fitting one.

    Raises:
        InputError: It is no array.
    """
    if isinstance(value, np.ndarray):
        array = np.asarray(value)
    elif is_tensor(value):
        array = as_array(value, f"{port.name!r}")
    elif isinstance(value, bool | int | float | np.generic):
        array = _scalar(value, port)
    elif hasattr(value, "__array__"):
        array = np.asarray(value)
    else:
        kind = type(value).__name__
        raise InputError(f"{port.name!r} is a {kind}, not an array; numpy.asarray makes one")
    dtype = port.type.dtype.numpy
    if array.dtype != dtype and array.dtype.newbyteorder("=") == dtype:
        array = array.astype(dtype)
    if not (array.flags.c_contiguous and array.flags.aligned):
        array = np.array(array, order="C")
    return array


def _scalar(value: Any, port: Port) -> np.ndarray:
    """A number as the scalar that is wanted, if that type holds numbers of its kind."""
    dtype = port.type.dtype
    if isinstance(value, np.generic):
        return np.asarray(value)
    if isinstance(value, bool):
        fits = dtype is DType.BOOL
    elif isinstance(value, int):
        fits = dtype is not DType.BOOL
    else:
        fits = dtype.is_float
    if not fits:
        return np.asarray(value)
    try:
        with np.errstate(over="ignore"):
            return np.array(value, dtype.numpy)
    except OverflowError:
        raise InputError(f"{port.name!r} is {value}, which no {dtype.tc} holds") from None


@dataclass(frozen=True, slots=True)
class Target:
    """Where one output goes.

    Attributes:
        array: What the kernel writes.
        given: The caller's array; ``None`` when it gave none.
        returned: What the caller gets.
    """

    array: np.ndarray
    given: np.ndarray | None
    returned: Any

    @property
    def memory(self) -> np.ndarray:
        """The array that ends up written."""
        return self.array if self.given is None else self.given

    def finish(self) -> None:
        """Bring what was computed aside to its place."""
        if self.given is not None and self.given is not self.array:
            self.given[...] = self.array


def given_outputs(out: Any, ports: Sequence[Port]) -> tuple[Any, ...]:
    """``out`` as one value for each output; ``None`` where there is none.

    Raises:
        TcError: It has another number of arrays.
    """
    if out is None:
        return (None,) * len(ports)
    values = tuple(out) if isinstance(out, tuple | list) else (out,)
    if len(values) != len(ports):
        names = ", ".join(port.name for port in ports)
        message = f"out= has {len(values)} arrays for the {len(ports)} outputs {names}"
        raise TcError(message, code="TC40")
    return values


def output_target(
    value: Any, port: Port, shape: tuple[int, ...], others: Iterable[np.ndarray]
) -> Target:
    """Where an output goes.

    Args:
        value: What the caller gave as ``out=``; ``None`` for a new array.
        port: The output.
        shape: Its shape.
        others: Memory that the kernel reads, or writes other outputs to.

    Raises:
        TcError: The caller's array has another rank, shape or element type, or is read-only.
        InputError: It is none.
    """
    dtype = port.type.dtype.numpy
    if value is None:
        array = np.empty(shape, dtype)
        return Target(array, None, array)
    given = value if type(value) is np.ndarray else _given_output(value, port)
    usable = given.flags.carray and given.dtype == dtype and given.shape == shape
    if not usable:
        check_output(port.name, given, port.type.dtype, shape)
    if usable and not any(np.may_share_memory(given, other) for other in others):
        return Target(given, given, value)
    return Target(np.empty(shape, dtype), given, value)


def _given_output(value: Any, port: Port) -> np.ndarray:
    """The array of a caller that gave no plain one."""
    what = f"out= for {port.name!r}"
    if isinstance(value, np.ndarray):
        return value
    if is_tensor(value):
        return as_array(value, what)
    raise InputError(f"{what} is a {type(value).__name__}, not an array")
