"""Operators and built-in functions on values, for scalars and lanes alike."""

from __future__ import annotations

from dataclasses import dataclass

from tcfuse.codegen.storage import reinterpreted, rounded
from tcfuse.codegen.values import Value, converted, plain, spread
from tcfuse.tc.ast import Binary, Call, Cast, Expr, Select, Unary
from tcfuse.tc.builtins import BUILTINS
from tcfuse.tc.typing import COMPARISONS, Type, Weak, promote, resolve
from tcfuse.types import DType

_COMPARE = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}
_RENAMED = {
    "bitand": "bitand_",
    "bitor": "bitor_",
    "bitxor": "bitxor_",
    "bitnot": "bitnot_",
    "fma": "fused",
}


@dataclass(frozen=True, slots=True)
class Operators:
    """Applies operators; ``width`` is the C name of the lane count around."""

    width: str

    def apply(
        self, node: Expr, kind: Type, operands: tuple[Value, ...], kinds: tuple[Type, ...]
    ) -> Value:
        """``node`` of type ``kind`` on its operands."""
        match node:
            case Unary("!"):
                (x,) = self._alike(operands, DType.BOOL)
                return self._result(f"tcf::not_({x})", DType.BOOL, operands)
            case Unary():
                dtype = plain(kind)
                (x,) = self._alike(operands, dtype)
                text = f"(-{x})" if dtype.is_float else f"tcf::neg({x})"
                return self._result(text, kind, operands)
            case Binary(operator):
                return self._binary(operator, kind, operands, kinds)
            case Call(function):
                return self._call(function, kind, operands, kinds)
            case Cast(dtype):
                return self._cast(dtype, operands[0])
            case Select():
                return self._select(kind, operands)
            case _:
                raise AssertionError(f"{type(node).__name__} is not an operation")

    def _alike(self, operands: tuple[Value, ...], dtype: DType) -> tuple[str, ...]:
        """The operands as ``dtype``, all of them lanes if one is."""
        if any(o.varying for o in operands):
            return tuple(spread(o, dtype, self.width) for o in operands)
        return tuple(converted(o, dtype) for o in operands)

    def _result(self, text: str, kind: Type, operands: tuple[Value, ...]) -> Value:
        held = plain(kind) if isinstance(kind, Weak) else kind
        return Value(text, held, any(o.varying for o in operands))

    def _binary(
        self, operator: str, kind: Type, operands: tuple[Value, ...], kinds: tuple[Type, ...]
    ) -> Value:
        if operator in ("&&", "||"):
            a, b = self._alike(operands, DType.BOOL)
            name = "and_" if operator == "&&" else "or_"
            return self._result(f"tcf::{name}({a}, {b})", DType.BOOL, operands)
        dtype = plain(promote(*kinds))
        if operator in ("min", "max") and dtype.is_float and _is_number(operands[0]):
            operands = (operands[1], operands[0])
        a, b = self._alike(operands, dtype)
        if operator in COMPARISONS:
            return self._result(self._compare(operator, a, b, dtype), DType.BOOL, operands)
        if operator in ("min", "max") and dtype.is_float and _is_number(operands[1]):
            name = "at_most" if operator == "min" else "at_least"
            return self._result(f"tcf::{name}({a}, {b})", kind, operands)
        return self._result(_arithmetic(operator, a, b, dtype), kind, operands)

    def _compare(self, operator: str, a: str, b: str, dtype: DType) -> str:
        if dtype is DType.BOOL:
            differ = f"tcf::xor_({a}, {b})"
            return differ if operator == "!=" else f"tcf::not_({differ})"
        return f"tcf::{_COMPARE[operator]}({a}, {b})"

    def _call(
        self, function: str, kind: Type, operands: tuple[Value, ...], kinds: tuple[Type, ...]
    ) -> Value:
        dtype = plain(kind)
        if BUILTINS[function].result is DType.BOOL:
            dtype = plain(kinds[0])
            if not dtype.is_float:
                return Value("false", DType.BOOL, literal=False)
        target = BUILTINS[function].bits
        if target is not None:
            source = resolve(kinds[0])
            (bits,) = self._alike(operands, source.compute)
            return self._result(reinterpreted(source, target, bits), kind, operands)
        arguments = self._alike(operands, dtype)
        if function == "fdivide":
            return self._result(f"({arguments[0]} / {arguments[1]})", kind, operands)
        name = _RENAMED.get(function, function)
        return self._result(f"tcf::{name}({', '.join(arguments)})", kind, operands)

    def bounded_exp(self, kind: Type, operand: Value) -> Value:
        """``exp`` of something that is not large."""
        (argument,) = self._alike((operand,), plain(kind))
        return self._result(f"tcf::exp_bounded({argument})", kind, (operand,))

    def _cast(self, dtype: DType, operand: Value) -> Value:
        return Value(rounded(dtype, converted(operand, dtype)), dtype, operand.varying)

    def _select(self, kind: Type, operands: tuple[Value, ...]) -> Value:
        condition, then, otherwise = operands
        dtype = plain(kind)
        if not any(o.varying for o in operands):
            a, b = converted(then, dtype), converted(otherwise, dtype)
            return Value(f"({converted(condition, DType.BOOL)} ? {a} : {b})", _held(kind))
        a, b = spread(then, dtype, self.width), spread(otherwise, dtype, self.width)
        m = spread(condition, DType.BOOL, self.width)
        if dtype is DType.BOOL:
            text = f"tcf::or_(tcf::and_({m}, {a}), tcf::and_(tcf::not_({m}), {b}))"
        else:
            text = f"tcf::select({m}, {a}, {b})"
        return Value(text, _held(kind), True)


def _is_number(operand: Value) -> bool:
    """Whether it is a literal, and no NaN."""
    return operand.literal is not None and operand.literal == operand.literal


def _held(kind: Type) -> Type:
    return plain(kind) if isinstance(kind, Weak) else kind


def _arithmetic(operator: str, a: str, b: str, dtype: DType) -> str:
    if operator in ("min", "max"):
        if dtype is DType.BOOL:
            return f"tcf::{'and_' if operator == 'min' else 'or_'}({a}, {b})"
        return f"tcf::{operator}_({a}, {b})"
    if dtype.is_float:
        return f"tcf::floored({a}, {b})" if operator == "%" else f"({a} {operator} {b})"
    names = {"+": "add", "-": "sub", "*": "mul", "/": "floor_div", "%": "floor_mod"}
    return f"tcf::{names[operator]}({a}, {b})"
