"""Kernels of ONNX Runtime whose rates are measured, each with typical inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import onnx_ir as ir

ROWS, COLUMNS = 120, 520
"""No powers of two: rows that lie that far apart share a place in the cache."""
IMAGE, LAST_CHANNELS = (1, 80, 28, 28), (1, 28, 28, 80)
Make: TypeAlias = Callable[[np.random.Generator], np.ndarray]


@dataclass(frozen=True, slots=True)
class Subject:
    """One kernel to measure.

    Attributes:
        name: The key of its rate (``graph.native_kernel``), which starts with its operator.
        inputs: What it reads; a number or an array is a constant, a function makes a variable.
        attributes: Of the node.
        domain: Of the operator.
        n_outputs: Number of results.
    """

    name: str
    inputs: tuple[Make | np.ndarray, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    domain: str = ""
    n_outputs: int = 1


def _floats(*shape: int) -> Make:
    return lambda rng: rng.standard_normal(shape).astype(np.float32)


def _positive(*shape: int) -> Make:
    return lambda rng: rng.uniform(0.5, 2, shape).astype(np.float32)


def _integers(*shape: int, high: int = 100, dtype: str = "int8") -> Make:
    return lambda rng: rng.integers(0, high, shape).astype(dtype)


def _mask(*shape: int) -> Make:
    """True up to the diagonal: what is masked in models lies together."""
    return lambda rng: np.tril(np.ones(shape, np.bool_))


def _ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


X, POSITIVE, ROW = _floats(ROWS, COLUMNS), _positive(ROWS, COLUMNS), _floats(COLUMNS)
CHANNELS, BYTES = _positive(IMAGE[1]), _integers(ROWS, COLUMNS)
MASK, PICTURE = _mask(ROWS, COLUMNS), _floats(*IMAGE)
ZERO, ONE, TWO = (np.array(value, np.float32) for value in (0, 1, 2))
LAST = _ints(-1)
SCALE, POINT = np.array(0.02, np.float32), np.array(3, np.int8)
SCALE_2, POINT_2 = np.array(0.03, np.float32), np.array(1, np.int8)
Q_IN, Q_OUT = (BYTES, SCALE, POINT), (SCALE_2, POINT_2)
Q_IMAGE = (_integers(*IMAGE), SCALE, POINT)
MICROSOFT = "com.microsoft"
UNARY = (
    *("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Celu", "Cos", "Cosh"),
    *("Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Mish"),
    *("Neg", "Relu", "Round", "Selu", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign"),
    *("Tan", "Tanh", "ThresholdedRelu"),
)
REDUCTIONS = (
    *("ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum"),
    "ReduceSumSquare",
)

SUBJECTS: tuple[Subject, ...] = (
    *(Subject(name, (X,)) for name in UNARY),
    *(Subject(name, (POSITIVE,)) for name in ("Log", "Reciprocal", "Sqrt")),
    *(Subject(name, (X, X)) for name in ("Add", "Max", "Min", "Mul", "Sub", "Sum")),
    *(Subject(name, (X, X)) for name in ("Equal", "Greater", "GreaterOrEqual", "Less")),
    *(Subject(name, (MASK, MASK)) for name in ("And", "Or", "Xor")),
    Subject("LessOrEqual", (X, X)),
    Subject("Not", (MASK,)),
    Subject("Div", (X, POSITIVE)),
    Subject("Mod", (X, POSITIVE), {"fmod": 1}),
    Subject("Pow", (POSITIVE, TWO)),
    Subject("Pow:general", (POSITIVE, POSITIVE)),
    Subject("PRelu", (X, ROW)),
    Subject("Clip", (X, ZERO, ONE)),
    Subject("Where", (MASK, X, X)),
    Subject("Cast", (X,), {"to": int(ir.DataType.INT32)}),
    Subject("BiasGelu", (X, ROW), domain=MICROSOFT),
    Subject("FastGelu", (X,), domain=MICROSOFT),
    Subject("QuickGelu", (X,), {"alpha": 1.0}, domain=MICROSOFT),
    Subject("Softmax", (X,), {"axis": -1}),
    Subject("Softmax:columns", (X,), {"axis": 0}),
    Subject("LogSoftmax", (X,), {"axis": -1}),
    Subject("LpNormalization", (X,)),
    Subject("LayerNormalization", (X, ROW, ROW)),
    Subject("SimplifiedLayerNormalization", (X, ROW), {"axis": -1}),
    Subject(
        "SkipLayerNormalization",
        (_floats(1, ROWS, COLUMNS), _floats(1, ROWS, COLUMNS), ROW, ROW),
        domain=MICROSOFT,
    ),
    Subject(
        "SkipSimplifiedLayerNormalization",
        (_floats(1, ROWS, COLUMNS), _floats(1, ROWS, COLUMNS), ROW),
        domain=MICROSOFT,
    ),
    Subject("BatchNormalization", (PICTURE, *[CHANNELS] * 4)),
    Subject("InstanceNormalization", (PICTURE, CHANNELS, CHANNELS)),
    Subject("GlobalAveragePool", (PICTURE,)),
    Subject("GlobalMaxPool", (PICTURE,)),
    *(Subject(name, (X, LAST)) for name in REDUCTIONS),
    *(Subject(f"{name}:columns", (X, _ints(0))) for name in REDUCTIONS),
    Subject("CumSum", (X, np.array(1))),
    Subject("ArgMax", (X,), {"axis": -1}),
    Subject("Transpose", (_floats(*LAST_CHANNELS),), {"perm": [0, 3, 1, 2]}),
    Subject("Transpose:rows", (_floats(1, ROWS, 8, 65),), {"perm": [0, 2, 1, 3]}),
    Subject("Concat", (X, X), {"axis": -1}),
    Subject("Split", (X,), {"axis": -1, "num_outputs": 2}, n_outputs=2),
    Subject("Slice", (X, _ints(0), _ints(COLUMNS // 2), _ints(1))),
    Subject("Gather", (_floats(1000, COLUMNS), _integers(ROWS, dtype="int64"))),
    Subject("GatherElements", (X, _integers(ROWS, COLUMNS, dtype="int64")), {"axis": 1}),
    Subject("GatherND", (_floats(1000, COLUMNS), _integers(ROWS, 1, dtype="int64"))),
    Subject("Expand", (_floats(1, COLUMNS), _ints(ROWS, COLUMNS))),
    Subject("Tile", (_floats(ROWS, COLUMNS // 4), _ints(1, 4))),
    Subject("Pad", (PICTURE, _ints(0, 0, 1, 1, 0, 0, 1, 1))),
    Subject("DepthToSpace", (PICTURE,), {"blocksize": 2}),
    Subject("SpaceToDepth", (PICTURE,), {"blocksize": 2}),
    Subject("Trilu", (X,)),
    Subject("QuantizeLinear", (X, SCALE, POINT)),
    Subject("DequantizeLinear", Q_IN),
    Subject("DynamicQuantizeLinear", (X,), n_outputs=3),
    Subject("QLinearAdd", (*Q_IN, *Q_IN, *Q_OUT), domain=MICROSOFT),
    Subject("QLinearMul", (*Q_IN, *Q_IN, *Q_OUT), domain=MICROSOFT),
    Subject("QLinearSigmoid", (*Q_IN, *Q_OUT), domain=MICROSOFT),
    Subject("QLinearLeakyRelu", (*Q_IN, *Q_OUT), domain=MICROSOFT),
    Subject("QLinearConcat", (*Q_OUT, *Q_IN, *Q_IN), {"axis": 1}, domain=MICROSOFT),
    Subject("QLinearSoftmax", (*Q_IN, *Q_OUT), {"opset": 13, "axis": -1}, domain=MICROSOFT),
    Subject("QLinearGlobalAveragePool", (*Q_IMAGE, *Q_OUT), domain=MICROSOFT),
    Subject("ReorderInput", (PICTURE,), domain="com.microsoft.nchwc"),
    Subject("ReorderOutput", (PICTURE,), {"channels": IMAGE[1]}, domain="com.microsoft.nchwc"),
)
"""What is measured.  ``LpNormalization`` and what is missing are priced as other kernels."""
