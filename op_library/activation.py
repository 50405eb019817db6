"""Activation functions, of ONNX and of ONNX Runtime's own domain.

Source: https://onnx.ai/onnx/operators/ and ONNX Runtime's docs/ContribOperators.md.
"""

from __future__ import annotations

import numpy as np

from op_library._pointwise import Row, pointwise, register
from op_library._text import number
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import Kind, OpCall, onnx_op
from tcfuse.types import DType

MICROSOFT = "com.microsoft"
SOFTPLUS = "max({0}, 0) + log1p(exp(-abs({0})))"
GELU = "0.5 * {0} * (1 + erf({0} * 0.7071067811865476))"
# sqrt(2 / pi) * (x + 0.044715 x^3), with x factored out
GELU_TANH = (
    "0.5 * {0} * (1 + tanh({0} * (0.7978845608028654 + 0.035677408136300125 * {0} * {0})))"
)

TABLE: dict[str, Row] = {
    "Relu": Row(6, "max({0}, 0)"),
    "LeakyRelu": Row(6, "{0} < 0 ? {alpha} * {0} : {0}", attributes={"alpha": 0.01}),
    "PRelu": Row(7, "{0} < 0 ? {1} * {0} : {0}", inputs=("X", "Slope")),
    "Elu": Row(6, "{0} < 0 ? {alpha} * expm1({0}) : {0}", attributes={"alpha": 1.0}),
    "Selu": Row(
        6,
        "{gamma} * ({0} < 0 ? {alpha} * expm1({0}) : {0})",
        attributes={"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875},
    ),
    "Celu": Row(
        12, "{0} < 0 ? {alpha} * expm1({0} / {alpha}) : {0}", attributes={"alpha": 1.0}
    ),
    "HardSwish": Row(14, "{0} * max(0, min(1, {0} * 0.16666666666666666 + 0.5))"),
    "HardSigmoid": Row(
        6, "max(0, min(1, {alpha} * {0} + {beta}))", attributes={"alpha": 0.2, "beta": 0.5}
    ),
    "Mish": Row(18, f"{{0}} * tanh({SOFTPLUS})"),
    "Softplus": Row(1, SOFTPLUS),
    "Softsign": Row(1, "{0} / (1 + abs({0}))"),
    "Sigmoid": Row(6, "sigmoid({0})"),
    "Tanh": Row(6, "tanh({0})"),
    "ThresholdedRelu": Row(10, "{0} > {alpha} ? {0} : 0", attributes={"alpha": 1.0}),
    "Swish": Row(24, "{0} * sigmoid({alpha} * {0})", attributes={"alpha": 1.0}),
    "SwiGLU": Row(28, "{0} * sigmoid({alpha} * {0}) * {1}", attributes={"alpha": 1.0}),
    "Shrink": Row(
        9,
        "{0} < -{lambd} ? {0} + {bias} : ({0} > {lambd} ? {0} - {bias} : 0)",
        integer="{T}({0} < -{lambd} ? {0} + {bias} : ({0} > {lambd} ? {0} - {bias} : 0.0))",
        attributes={"bias": 0.0, "lambd": 0.5},
    ),
}
register(TABLE)

CONTRIB_TABLE: dict[str, Row] = {
    "QuickGelu": Row(
        1, "{0} * sigmoid({alpha} * {0})", attributes={"alpha": 1.702}, domain=MICROSOFT
    ),
    "BiasGelu": Row(
        1,
        GELU.replace("{0}", "shifted"),
        lets={"shifted": "{0} + {1}"},
        inputs=("X", "Bias"),
        domain=MICROSOFT,
    ),
}
register(CONTRIB_TABLE)


@onnx_op("Gelu", since=20, kind=Kind.ELEMENTWISE)
@onnx_op("Gelu", since=1, kind=Kind.ELEMENTWISE, domain=MICROSOFT)
def gelu(call: OpCall) -> str:
    """``X`` times the normal distribution's probability of less than ``X``."""
    approximate = call.attributes.get("approximate", "none")
    if approximate not in ("none", "tanh"):
        raise UnsupportedError(f"Gelu approximated by {approximate!r}")
    return pointwise(call, GELU if approximate == "none" else GELU_TANH)


@onnx_op("FastGelu", since=1, kind=Kind.ELEMENTWISE, domain=MICROSOFT)
def fast_gelu(call: OpCall) -> str:
    """Gelu by tanh, of the input plus an optional bias."""
    if call.input(1) is None:
        return pointwise(call, GELU_TANH)
    shifted = {"shifted": "{0} + {1}"}
    return pointwise(call, GELU_TANH.replace("{0}", "shifted"), shifted, ("X", "Bias"))


def lowest(dtype: DType) -> str | None:
    """The least finite value of a float type as a literal; ``None`` for other types."""
    return f"-{highest(dtype)}" if dtype.is_float else None


def highest(dtype: DType) -> str | None:
    """The greatest finite value of a float type as a literal; ``None`` for other types."""
    if not dtype.is_float:
        return None
    return number(dtype.limits[1])


def clip(call: OpCall, low: str | None, high: str | None) -> str:
    """``min(max(X, low), high)``: NaN stays, and ``high`` wins where the bounds cross.

    A bound of ``None`` does nothing.
    """
    value = "{0}" if low is None else f"max({{0}}, {low})"
    bounded = value if high is None else f"min({value}, {high})"
    return pointwise(call, bounded, inputs=("X", "Min", "Max"))


@onnx_op("Clip", since=6, kind=Kind.ELEMENTWISE)
def clip_to_attributes(call: OpCall) -> str:
    """The input within two attributes."""
    limit = float(np.finfo(np.float32).max)
    low, high = call.attributes.get("min", -limit), call.attributes.get("max", limit)
    return clip(call, number(float(np.float32(low))), number(float(np.float32(high))))


@onnx_op("Clip", since=11, kind=Kind.ELEMENTWISE)
def clip_to_inputs(call: OpCall) -> str:
    """The input within two optional inputs.

    A missing bound is the largest finite value, so infinities are clipped as ONNX says.
    """
    dtype = call.outputs[0].dtype if call.outputs[0] else DType.FLOAT32
    low = "{1}" if call.input(1) else lowest(dtype)
    high = "{2}" if call.input(2) else highest(dtype)
    return clip(call, low, high)
