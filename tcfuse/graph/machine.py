"""The rates of one core, as the planner knows them: the built-in table, or a calibration.

The built-in table is what ``tcfuse calibrate`` measured on one thread of a Zen 5 server core
with ONNX Runtime 1.32; another machine's own is measured in the same way.  Measured rates are
rounded to steps of a quarter, so that two calibrations of one machine plan alike.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from tcfuse.errors import InputError

STEP = 1.25
"""Ratio of one rounded rate to the next."""

NATIVE_RATES: Mapping[str, float] = {
    "Abs": 130e3, "Acos": 17e3, "Acosh": 1.2e3, "Add": 140e3, "And": 140e3, "ArgMax": 6.4e3,
    "Asin": 8.3e3, "Asinh": 0.46e3, "Atan": 10e3, "Atanh": 0.52e3, "BatchNormalization": 77e3,
    "BiasGelu": 16e3, "Cast": 120e3, "Ceil": 30e3, "Celu": 4.6e3, "Clip": 120e3,
    "Concat": 110e3, "Cos": 6.3e3, "Cosh": 1.1e3, "CumSum": 2.7e3, "DepthToSpace": 6.2e3,
    "DequantizeLinear": 51e3, "Div": 75e3, "DynamicQuantizeLinear": 46e3, "Elu": 5.5e3,
    "Equal": 89e3, "Erf": 26e3, "Exp": 83e3, "Expand": 120e3, "FastGelu": 19e3, "Floor": 33e3,
    "Gather": 130e3, "GatherElements": 37e3, "GatherND": 120e3, "Gelu": 20e3,
    "GlobalAveragePool": 36e3, "GlobalMaxPool": 36e3, "Greater": 75e3, "GreaterOrEqual": 80e3,
    "HardSigmoid": 87e3, "HardSwish": 43e3, "InstanceNormalization": 34e3,
    "LayerNormalization": 21e3, "LeakyRelu": 44e3, "Less": 79e3, "LessOrEqual": 76e3,
    "Log": 5.7e3, "LogSoftmax": 36e3, "LpNormalization": 12e3, "Max": 66e3, "Min": 62e3,
    "Mish": 0.79e3, "Mod": 2.3e3, "Mul": 140e3, "Neg": 120e3, "Not": 110e3, "Or": 150e3,
    "PRelu": 1.9e3, "Pad": 27e3, "Pow": 31e3, "Pow:general": 3.8e3, "QLinearAdd": 30e3,
    "QLinearConcat": 7.8e3, "QLinearGlobalAveragePool": 20e3, "QLinearLeakyRelu": 7.8e3,
    "QLinearMul": 15e3, "QLinearSigmoid": 7.8e3, "QLinearSoftmax": 0.97e3,
    "QuantizeLinear": 92e3, "QuickGelu": 56e3, "Reciprocal": 50e3, "ReduceL2": 8.9e3,
    "ReduceL2:columns": 11e3, "ReduceMax": 74e3, "ReduceMax:columns": 9.9e3,
    "ReduceMean": 72e3, "ReduceMean:columns": 55e3, "ReduceMin": 80e3,
    "ReduceMin:columns": 9.3e3, "ReduceProd": 5.6e3, "ReduceProd:columns": 7.1e3,
    "ReduceSum": 72e3, "ReduceSum:columns": 55e3, "ReduceSumSquare": 8.8e3,
    "ReduceSumSquare:columns": 13e3, "Relu": 120e3, "Round": 49e3, "Selu": 5.2e3,
    "Sigmoid": 35e3, "Sign": 11e3, "SimplifiedLayerNormalization": 39e3, "Sin": 6.3e3,
    "Sinh": 0.51e3, "SkipLayerNormalization": 2.9e3, "SkipSimplifiedLayerNormalization": 17e3,
    "Slice": 100e3, "Softmax": 40e3, "Softmax:columns": 17e3, "Softplus": 0.83e3,
    "Softsign": 50e3, "SpaceToDepth": 27e3, "Split": 120e3, "Sqrt": 29e3, "Sub": 140e3,
    "Sum": 140e3, "Tan": 0.75e3, "Tanh": 39e3, "ThresholdedRelu": 93e3, "Tile": 120e3,
    "Transpose": 50e3, "Transpose:rows": 43e3, "Trilu": 110e3, "Where": 17e3, "Xor": 140e3,
}  # fmt: skip
"""Bytes in and out a microsecond of ONNX Runtime's CPU kernels, by ``native_kernel`` name."""


@dataclass(frozen=True, slots=True)
class Machine:
    """Rates of one core and of ONNX Runtime's kernels on it.

    Units:
        Rates are bytes a microsecond, read plus written; ``_us`` are microseconds.

    Attributes:
        name: Where the rates come from.
        hertz: Vectors of 16 floats a second in simple arithmetic.
        native_us: Fixed cost of one of ONNX Runtime's nodes.
        fused_us: Fixed cost of a custom operator, its calls into the C API included.
        session_us: Cost of calling a session, which is part of every measurement of a kernel.
        bandwidth: (working set in bytes, rate) of a copy, smallest first.
        reorder_rate: Of a change between plain and blocked layout.
        other_rate: Of native kernels that are not in ``rates``.
        rates: Of native kernels by name (``graph.native_kernel``); bandwidth limits them too.
    """

    name: str = "built-in table"
    hertz: float = 4.2e9
    native_us: float = 0.17
    fused_us: float = 0.2
    session_us: float = 2.2
    bandwidth: tuple[tuple[float, float], ...] = (
        (1 << 20, 180e3),
        (1 << 25, 100e3),
        (math.inf, 42e3),
    )
    reorder_rate: float = 50e3
    other_rate: float = 23e3
    rates: Mapping[str, float] = field(default_factory=lambda: NATIVE_RATES)

    def __post_init__(self) -> None:
        numbers = [self.hertz, self.native_us, self.fused_us, self.session_us]
        numbers += [self.reorder_rate, self.other_rate, *self.rates.values()]
        numbers += [rate for _, rate in self.bandwidth]
        if self.bandwidth[-1][0] != math.inf or not all(0 < n < math.inf for n in numbers):
            raise ValueError("every size has a rate, and every rate is a positive number")

    def copy_rate(self, working_set: float) -> float:
        """Rate of a plain copy of that size."""
        return next(rate for limit, rate in self.bandwidth if working_set <= limit)

    def native_rate(self, kernel: str, working_set: float) -> float:
        """Rate of one of ONNX Runtime's kernels; of its operator where it has none itself."""
        rate = self.rates.get(kernel)
        if rate is None:
            rate = self.rates.get(kernel.partition(":")[0], self.other_rate)
        return min(rate, self.copy_rate(working_set))

    def rounded(self) -> Machine:
        """The same with every measured number rounded to a power of ``STEP``."""
        return replace(
            self,
            hertz=rounded(self.hertz),
            native_us=rounded(self.native_us),
            fused_us=rounded(self.fused_us),
            session_us=rounded(self.session_us),
            bandwidth=tuple((limit, rounded(rate)) for limit, rate in self.bandwidth),
            reorder_rate=rounded(self.reorder_rate),
            other_rate=rounded(self.other_rate),
            rates={name: rounded(rate) for name, rate in sorted(self.rates.items())},
        )

    def to_json(self) -> dict[str, Any]:
        """The rates as JSON; ``from_json`` reads them back."""
        limits = [[None if math.isinf(a) else a, rate] for a, rate in self.bandwidth]
        return {**asdict(self), "bandwidth": limits, "rates": dict(self.rates)}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Machine:
        """The machine a record describes.

        Raises:
            InputError: The record is damaged, or has rates no machine has.
        """
        try:
            limits = ((math.inf if a is None else a, rate) for a, rate in record["bandwidth"])
            return cls(**{**record, "bandwidth": tuple(limits)})
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise InputError(f"a calibration cannot be read: {error!r}") from None


def rounded(value: float) -> float:
    """The power of ``STEP`` that is nearest to a positive number, to three digits."""
    return float(f"{STEP ** round(math.log(value, STEP)):.3g}")


MACHINE = Machine()
"""What the planner assumes where nothing was measured."""
