"""Element types and tensor types, shared by every stage.

A size is an ``int`` or the text of an affine expression over size names (``"N"``,
``"P + S"``, ``"2*H + 1"``).  A product of names is not affine and gets a name of its own; the
interface of a kernel says how it is computed (``targets.base.Interface.derived``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt

Size: TypeAlias = int | str
Array: TypeAlias = npt.NDArray[Any]


_BITS = {"float4e2m1": 4, "uint4": 4, "int4": 4, "uint2": 2, "int2": 2}


class DType(Enum):
    """An element type: its TC spelling, NumPy type and ONNX ``TensorProto`` number."""

    BOOL = ("bool", np.dtype(np.bool_), 9)
    UINT8 = ("uint8", np.dtype(np.uint8), 2)
    UINT16 = ("uint16", np.dtype(np.uint16), 4)
    UINT32 = ("uint32", np.dtype(np.uint32), 12)
    UINT64 = ("uint64", np.dtype(np.uint64), 13)
    INT8 = ("int8", np.dtype(np.int8), 3)
    INT16 = ("int16", np.dtype(np.int16), 5)
    INT32 = ("int32", np.dtype(np.int32), 6)
    INT64 = ("int64", np.dtype(np.int64), 7)
    FLOAT16 = ("float16", np.dtype(np.float16), 10)
    BFLOAT16 = ("bfloat16", np.dtype(ml_dtypes.bfloat16), 16)
    FLOAT32 = ("float", np.dtype(np.float32), 1)
    FLOAT64 = ("double", np.dtype(np.float64), 11)
    FLOAT8E4M3FN = ("float8e4m3fn", np.dtype(ml_dtypes.float8_e4m3fn), 17)
    FLOAT8E4M3FNUZ = ("float8e4m3fnuz", np.dtype(ml_dtypes.float8_e4m3fnuz), 18)
    FLOAT8E5M2 = ("float8e5m2", np.dtype(ml_dtypes.float8_e5m2), 19)
    FLOAT8E5M2FNUZ = ("float8e5m2fnuz", np.dtype(ml_dtypes.float8_e5m2fnuz), 20)
    FLOAT8E8M0 = ("float8e8m0", np.dtype(ml_dtypes.float8_e8m0fnu), 24)
    FLOAT4E2M1 = ("float4e2m1", np.dtype(ml_dtypes.float4_e2m1fn), 23)
    UINT4 = ("uint4", np.dtype(ml_dtypes.uint4), 21)
    INT4 = ("int4", np.dtype(ml_dtypes.int4), 22)
    UINT2 = ("uint2", np.dtype(ml_dtypes.uint2), 25)
    INT2 = ("int2", np.dtype(ml_dtypes.int2), 26)

    def __init__(self, tc: str, numpy: np.dtype, onnx: int) -> None:
        self.tc, self.numpy, self.onnx = tc, numpy, onnx

    @property
    def bytes(self) -> int:
        """Bytes an element takes in NumPy and inside kernels: at least one."""
        return int(self.numpy.itemsize)

    @property
    def bits(self) -> int:
        """Bits an element takes in ONNX; where they are fewer than 8, several share a byte."""
        return _BITS.get(self.tc, 8 * self.bytes)

    @property
    def is_float(self) -> bool:
        """Whether values are floating point, short ones included."""
        return self is DType.FLOAT64 or "float" in self.tc

    @property
    def is_half(self) -> bool:
        """Whether this is a float of 16 bits."""
        return self in (DType.FLOAT16, DType.BFLOAT16)

    @property
    def is_storage(self) -> bool:
        """Whether this is only stored: arithmetic runs in another type."""
        return self.compute is not self

    @property
    def is_signed(self) -> bool:
        """Whether negative values exist."""
        return self.is_float or self.tc.startswith("int")

    @property
    def limits(self) -> tuple[int, int] | tuple[float, float]:
        """The least and the largest value; of a float, those that are finite."""
        if self.is_float:
            return float(self.finfo.min), float(self.finfo.max)
        half = 1 << self.bits - 1
        return (-half, half - 1) if self.is_signed else (0, 2 * half - 1)

    @property
    def finfo(self) -> Any:
        """The machine limits of a float, as NumPy has them."""
        return ml_dtypes.finfo(self.numpy)  # type: ignore[no-untyped-call]

    @property
    def compute(self) -> DType:
        """The type arithmetic runs in: float32 for shorter floats, int32 below a byte."""
        if self.is_float:
            return DType.FLOAT32 if self.bytes < 4 else self
        return DType.INT32 if self.bits < 8 else self

    def nearest(self, values: Array) -> Array:
        """Floats as the nearest ones of this float type; ties to even, of exponents alone up.

        Args:
            values: In ``float`` or ``double``.
        """
        if self is DType.FLOAT8E8M0:
            # ml_dtypes before 0.7 takes up what is below 2^-126, and rounds doubles twice.
            mantissa, exponent = np.frexp(values)  # a mantissa is 0.5 or more, and less than 1
            power = np.maximum(np.where(mantissa < 0.75, exponent - 1, exponent), -127)
            rounded = np.ldexp(values.dtype.type(1), power)
            values = np.where((values > 0) & np.isfinite(values), rounded, values)
        return values.astype(self.numpy)

    @classmethod
    def from_onnx(cls, number: int) -> DType | None:
        """The type with that ``TensorProto`` number; ``None`` when tcfuse has none."""
        return next((d for d in cls if d.onnx == number), None)

    @classmethod
    def from_tc(cls, name: str) -> DType | None:
        """The type of that TC spelling, aliases included; ``None`` when there is none."""
        name = {"float32": "float", "float64": "double", "half": "float16"}.get(name, name)
        return next((d for d in cls if d.tc == name), None)


@dataclass(frozen=True, slots=True)
class TensorType:
    """Element type and shape; prints as TC writes it: ``float(N, 768)``."""

    dtype: DType
    shape: tuple[Size, ...]

    def __str__(self) -> str:
        return (
            f"{self.dtype.tc}({', '.join(map(str, self.shape))})"
            if self.shape
            else self.dtype.tc
        )

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def is_static(self) -> bool:
        """Whether every size is a number."""
        return all(isinstance(s, int) for s in self.shape)


def size_names(sizes: Iterable[Size]) -> tuple[str, ...]:
    """The names used in ``sizes``, in order of first use."""
    names: dict[str, None] = {}
    for size in sizes:
        if isinstance(size, str):
            names.update(dict.fromkeys(re.findall(r"[A-Za-z_]\w*", size)))
    return tuple(names)
