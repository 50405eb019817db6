"""The rates of one core, as the planner knows them: the built-in table, or a calibration.

The built-in table is that of one thread of a Sapphire-Rapids-class core running ONNX Runtime
1.32.  ``tcfuse calibrate`` measures another one for the machine it runs on.  Measured rates are
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
    "Add": 18e3, "And": 6e3, "BatchNormalization": 18e3, "BiasGelu": 8e3, "Cast": 21e3,
    "Clip": 20e3, "Concat": 17e3, "Cos": 3.4e3, "DequantizeLinear": 14e3, "Div": 20e3,
    "Elu": 3.6e3, "Equal": 2.7e3, "Erf": 13e3, "Exp": 19e3, "Expand": 16e3, "FastGelu": 7e3,
    "Gather": 6.6e3, "GatherND": 18e3, "Gelu": 8e3, "Greater": 6e3, "GreaterOrEqual": 6e3,
    "GroupNormalization": 5e3, "HardSigmoid": 18e3, "HardSwish": 8e3,
    "InstanceNormalization": 9e3, "LayerNormalization": 8e3, "Less": 6e3, "LessOrEqual":
    6e3, "Log": 3.9e3, "LogSoftmax": 9e3, "LpNormalization": 4e3, "Max": 18e3, "Min": 18e3,
    "Mish": 0.5e3, "Mul": 18e3, "Not": 6e3, "Or": 6e3, "Pad": 12e3, "Pow": 15e3, "PRelu":
    1.5e3, "QuantizeLinear": 15e3, "QuickGelu": 17e3, "ReduceMean": 20e3, "ReduceSum": 13e3,
    "Relu": 42e3, "Selu": 3.5e3, "Sigmoid": 17e3, "Sin": 3.4e3, "Slice": 13e3, "Softmax":
    9e3, "Softplus": 0.5e3, "Split": 13e3, "Sub": 22e3, "Tan": 2e3, "Tanh": 17e3,
    "Transpose": 10e3, "Where": 2e3,
}  # fmt: skip
"""Bytes in and out a microsecond of ONNX Runtime's CPU kernels, as measured in whole models."""


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
        bandwidth: (working set in bytes, rate) of a copy, smallest first.
        reorder_rate: Of a change between plain and blocked layout.
        other_rate: Of native kernels that are not in ``rates``.
        rates: Of native kernels by operator; the bandwidth limits them too.
    """

    name: str = "built-in table"
    hertz: float = 2.4e9
    native_us: float = 0.30
    fused_us: float = 0.45
    bandwidth: tuple[tuple[float, float], ...] = (
        (1 << 20, 60e3),
        (1 << 24, 21e3),
        (math.inf, 12e3),
    )
    reorder_rate: float = 20e3
    other_rate: float = 15e3
    rates: Mapping[str, float] = field(default_factory=lambda: NATIVE_RATES)

    def __post_init__(self) -> None:
        numbers = [self.hertz, self.native_us, self.fused_us, self.reorder_rate]
        numbers += [self.other_rate, *self.rates.values(), *(r for _, r in self.bandwidth)]
        if self.bandwidth[-1][0] != math.inf or not all(0 < n < math.inf for n in numbers):
            raise ValueError("every size has a rate, and every rate is a positive number")

    def copy_rate(self, working_set: float) -> float:
        """Rate of a plain copy of that size."""
        return next(rate for limit, rate in self.bandwidth if working_set <= limit)

    def native_rate(self, op_type: str, working_set: float) -> float:
        """Rate of ONNX Runtime's kernel for an operator."""
        rate = self.rates.get(op_type, self.other_rate)
        return min(rate, self.copy_rate(working_set))

    def rounded(self) -> Machine:
        """The same with every measured number rounded to a power of ``STEP``."""
        return replace(
            self,
            hertz=rounded(self.hertz),
            native_us=rounded(self.native_us),
            fused_us=rounded(self.fused_us),
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
