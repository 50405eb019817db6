"""Arithmetic, comparisons, logic and bits: one scalar expression an operator.

Source: https://onnx.ai/onnx/operators/
"""

from __future__ import annotations

from op_library._pointwise import Row, chain, pointwise, register
from op_library._text import needed
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import Kind, OpCall, onnx_op
from tcfuse.types import DType

TABLE: dict[str, Row] = {
    "Add": Row(7, "{0} + {1}"),
    "Sub": Row(7, "{0} - {1}"),
    "Mul": Row(7, "{0} * {1}"),
    "Div": Row(7, "{0} / {1}", integer="tdiv({0}, {1})"),
    "Neg": Row(6, "-{0}"),
    "Abs": Row(6, "abs({0})"),
    "Sign": Row(9, "sign({0})"),
    "Reciprocal": Row(6, "1 / {0}"),
    "Sqrt": Row(6, "sqrt({0})"),
    "Exp": Row(6, "exp({0})"),
    "Log": Row(6, "log({0})"),
    "Erf": Row(9, "erf({0})", integer="{T}(erf(double({0})))"),
    "Floor": Row(6, "floor({0})"),
    "Ceil": Row(6, "ceil({0})"),
    "Round": Row(11, "roundeven({0})"),
    "Sin": Row(7, "sin({0})"),
    "Cos": Row(7, "cos({0})"),
    "Tan": Row(7, "tan({0})"),
    "Asin": Row(7, "asin({0})"),
    "Acos": Row(7, "acos({0})"),
    "Atan": Row(7, "atan({0})"),
    "Sinh": Row(9, "sinh({0})"),
    "Cosh": Row(9, "cosh({0})"),
    "Asinh": Row(9, "asinh({0})"),
    "Acosh": Row(9, "acosh({0})"),
    "Atanh": Row(9, "atanh({0})"),
    "IsNaN": Row(9, "isnan({0})"),
    "Equal": Row(7, "{0} == {1}"),
    "Less": Row(7, "{0} < {1}"),
    "Greater": Row(7, "{0} > {1}"),
    "LessOrEqual": Row(12, "{0} <= {1}"),
    "GreaterOrEqual": Row(12, "{0} >= {1}"),
    "Not": Row(1, "!{0}"),
    "And": Row(7, "{0} && {1}"),
    "Or": Row(7, "{0} || {1}"),
    "Xor": Row(7, "{0} != {1}"),
    "BitwiseNot": Row(18, "bitnot({0})"),
    "BitwiseAnd": Row(18, "bitand({0}, {1})"),
    "BitwiseOr": Row(18, "bitor({0}, {1})"),
    "BitwiseXor": Row(18, "bitxor({0}, {1})"),
    "Where": Row(9, "{0} ? {1} : {2}"),
}
register(TABLE)


@onnx_op("Max", since=6, kind=Kind.ELEMENTWISE)
@onnx_op("Min", since=6, kind=Kind.ELEMENTWISE)
def extremum(call: OpCall) -> str:
    """The largest or smallest of the inputs; NaN when one of them is."""
    function = call.op_type.lower()
    return pointwise(call, chain(call, lambda a, b: f"{function}({a}, {b})"))


@onnx_op("Sum", since=6, kind=Kind.ELEMENTWISE)
def sum_(call: OpCall) -> str:
    """The sum of the inputs."""
    return pointwise(call, chain(call, lambda a, b: f"{a} + {b}"))


@onnx_op("Mean", since=6, kind=Kind.ELEMENTWISE)
def mean(call: OpCall) -> str:
    """The mean of the inputs."""
    summed = chain(call, lambda a, b: f"{a} + {b}")
    return pointwise(call, f"({summed}) / {len(call.inputs)}")


@onnx_op("Mod", since=10, kind=Kind.ELEMENTWISE)
def mod(call: OpCall) -> str:
    """The remainder with the divisor's sign, or with the dividend's when ``fmod`` is 1."""
    of_dividend = bool(call.attributes.get("fmod", 0))
    if not needed(call, 0).dtype.is_float:
        return pointwise(call, "tmod({0}, {1})" if of_dividend else "{0} % {1}")
    if of_dividend:
        return pointwise(call, "fmod({0}, {1})")
    crosses_zero = "rest < 0 && {1} > 0 || rest > 0 && {1} < 0"
    value = f"{crosses_zero} ? rest + {{1}} : copysign(rest, {{1}})"
    return pointwise(call, value, {"rest": "fmod({0}, {1})"})


@onnx_op("IsInf", since=10, kind=Kind.ELEMENTWISE)
def is_inf(call: OpCall) -> str:
    """Whether the input is an infinity of a sign that is asked for."""
    negative = bool(call.attributes.get("detect_negative", 1))
    positive = bool(call.attributes.get("detect_positive", 1))
    value = {
        (True, True): "isinf({0})",
        (True, False): "{0} == -inf()",
        (False, True): "{0} == inf()",
        (False, False): "false",
    }[negative, positive]
    return pointwise(call, value)


@onnx_op("BitShift", since=11, kind=Kind.ELEMENTWISE)
def bit_shift(call: OpCall) -> str:
    """The input's bits moved; a distance outside of the type leaves only copies of the sign."""
    dtype = needed(call, 0).dtype
    direction = call.attributes.get("direction")
    if direction not in ("LEFT", "RIGHT"):
        raise UnsupportedError(f"BitShift in direction {direction!r}")
    function = "shl" if direction == "LEFT" else "shr"
    fill = "({0} < 0 ? -1 : 0)" if dtype.is_signed and direction == "RIGHT" else "0"
    inside = f"{{1}} < {8 * dtype.bytes}"
    if dtype.is_signed:
        inside = f"{{1}} >= 0 && {inside}"
    return pointwise(call, f"{inside} ? {function}({{0}}, {{1}}) : {fill}")


@onnx_op("Pow", since=7, kind=Kind.ELEMENTWISE)
def power(call: OpCall) -> str:
    """``A`` to the power of ``B``, in the type of ``A``."""
    base, exponent = needed(call, 0).dtype, needed(call, 1).dtype
    known = call.constants[1] if len(call.constants) > 1 else None
    if known is not None and known.size == 1:
        exact = constant_power(base, float(known.reshape(())))
        if exact is not None:
            return pointwise(call, exact)
    if base.is_float:
        widens = exponent is DType.FLOAT64 and base is not DType.FLOAT64
        return pointwise(call, "{T}(pow({0}, {1}))" if widens else "pow({0}, {1})")
    if exponent.is_float:
        return pointwise(call, "{T}(pow(double({0}), double({1})))")
    if base is exponent:
        return pointwise(call, "ipow({0}, {1})")
    return pointwise(call, "{T}(ipow(int64({0}), int64({1})))")


def constant_power(base: DType, exponent: float) -> str | None:
    """A template that is no less exact than ``pow`` on every input, infinities and -0 included.

    A cube has two roundings, which is what ONNX Runtime computes as well.
    """
    templates = {1.0: "{0}", 2.0: "{0} * {0}", 3.0: "{0} * {0} * {0}"}
    if base.is_float:
        root = "{0} == 0 ? 0 : ({0} == -inf() ? inf() : sqrt({0}))"
        templates |= {0.0: "1", -1.0: "1 / {0}", 0.5: root}
    return templates.get(exponent)
