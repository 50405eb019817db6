"""The types of expressions.

Literals, indices and sizes are *weak*: they take the type of what they meet.  Arithmetic on a
short float has the type it is computed in, ``float``; only a plain read or a choice between
plain reads still has the short type.

Source: the promotion rules of TC, with weak literals added.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import reduce
from typing import TypeAlias

from tcfuse.errors import Span, TcError
from tcfuse.tc.ast import Access, Binary, Call, Cast, Const, Expr, Select, Unary, Var, fold
from tcfuse.tc.builtins import BUILTINS
from tcfuse.types import DType, TensorType

COMPARISONS = frozenset(("<", "<=", ">", ">=", "==", "!="))


class Weak(Enum):
    """The kind of a literal that has not met a type yet."""

    BOOL = "a bool literal"
    INT = "an int literal"
    FLOAT = "a float literal"


Type: TypeAlias = DType | Weak


def resolve(kind: Type) -> DType:
    """The type of something weak that never meets a type: ``int64``, ``float`` or ``bool``."""
    match kind:
        case Weak.BOOL:
            return DType.BOOL
        case Weak.INT:
            return DType.INT64
        case Weak.FLOAT:
            return DType.FLOAT32
        case DType():
            return kind


def promote(a: Type, b: Type) -> Type:
    """The type arithmetic between ``a`` and ``b`` is done in.

    Raises:
        TcError: One is boolean and the other is not.
    """
    matched = match(a, b)
    return matched.compute if isinstance(matched, DType) else matched


def match(a: Type, b: Type) -> Type:
    """The type that holds both ``a`` and ``b``; unlike ``promote`` it keeps short floats.

    Raises:
        TcError: One is boolean and the other is not.
    """
    if a is b:
        return a
    if is_bool(a) != is_bool(b):
        message = f"no common type for {spell(a)} and {spell(b)}"
        raise TcError(message, None, "cast the bool, for example float(...)", code="TC07")
    if isinstance(a, Weak) and isinstance(b, Weak):
        return Weak.FLOAT
    if isinstance(a, Weak):
        a, b = b, a
    assert isinstance(a, DType)
    if isinstance(b, Weak):
        return DType.FLOAT32 if b is Weak.FLOAT and not a.is_float else a
    if a.is_float and b.is_float:
        both_short = a.is_storage and b.is_storage
        return DType.FLOAT32 if both_short else max(a, b, key=lambda dtype: dtype.bits)
    if a.is_float or b.is_float:
        return a if a.is_float else b
    return _match_integers(a, b)


def _match_integers(a: DType, b: DType) -> DType:
    """The wider of two unsigned types; otherwise the signed type of the wider one's width."""
    bits = max(a.bits, b.bits)
    signed = a.is_signed or b.is_signed
    found = DType.from_tc(f"{'int' if signed else 'uint'}{bits}")
    assert found is not None
    return found


def is_bool(kind: Type) -> bool:
    """Whether values are truth values."""
    return kind in (DType.BOOL, Weak.BOOL)


def is_float(kind: Type) -> bool:
    """Whether values are floating point."""
    return kind is Weak.FLOAT or (isinstance(kind, DType) and kind.is_float)


def is_integer(kind: Type) -> bool:
    """Whether values are integers."""
    return not is_bool(kind) and not is_float(kind)


def spell(kind: Type) -> str:
    """The type as an error message names it."""
    return kind.tc if isinstance(kind, DType) else kind.value


def assignable(target: DType, value: Type) -> bool:
    """Whether ``value`` may be stored in ``target`` without a cast; float to half may."""
    if is_bool(value) or target is DType.BOOL:
        return is_bool(value) and target is DType.BOOL
    if isinstance(value, Weak):
        return value is Weak.INT or target.is_float
    if target.is_float:
        return not value.is_float or value is not DType.FLOAT64 or target is DType.FLOAT64
    if value.is_float:
        return False
    if target.is_signed == value.is_signed:
        return target.bits >= value.bits
    return target.is_signed and target.bits > value.bits


def type_of(
    expr: Expr, tensors: Mapping[str, TensorType], names: Mapping[str, Type] | None = None
) -> Type:
    """The type of ``expr``.

    Args:
        expr: Any expression of a statement.
        tensors: Type of every tensor it reads.
        names: Type of every let it uses; all other names are indices and sizes, weak integers.

    Raises:
        TcError: Types do not fit, or a tensor is unknown.
    """
    lets = names or {}

    def combine(node: Expr, operands: tuple[Type, ...]) -> Type:
        try:
            return node_type(node, operands, tensors, lets)
        except TcError as error:
            if error.span or not node.span:
                raise
            raise TcError(error.message, node.span, error.hint, code=error.code) from None

    return fold(expr, combine)


def node_type(
    node: Expr,
    operands: tuple[Type, ...],
    tensors: Mapping[str, TensorType],
    names: Mapping[str, Type],
) -> Type:
    """The type of ``node`` from those of its operands."""
    match node:
        case Const(value):
            return _literal(value)
        case Var(name):
            return names.get(name, Weak.INT)
        case Access(tensor, subscripts):
            for subscript, kind in zip(subscripts, operands, strict=True):
                _require(is_integer(kind), "TC09", "an integer subscript", kind, subscript.span)
            return _element(tensor, len(subscripts), tensors)
        case Unary("!") | Binary("&&" | "||"):
            for kind in operands:
                _require(is_bool(kind), "TC10", f"a boolean beside '{node.operator}'", kind)
            return DType.BOOL if DType.BOOL in operands else Weak.BOOL
        case Unary(operator) | Binary(operator):
            kind = _arithmetic(operator, operands)
            _check_divisor(node, kind)
            return kind
        case Call(function):
            return _call(function, operands)
        case Cast(dtype):
            return dtype
        case Select(condition):
            found = operands[0]
            _require(is_bool(found), "TC10", "a boolean condition", found, condition.span)
            return match(operands[1], operands[2])


def _element(tensor: str, found: int, tensors: Mapping[str, TensorType]) -> DType:
    """The type of an element of ``tensor``, read with ``found`` subscripts."""
    if tensor not in tensors:
        hint = "declare it as a parameter"
        raise TcError(f"undefined tensor {tensor!r}", None, hint, code="TC24")
    expected = tensors[tensor].rank
    if expected and not found:
        message = f"expected a scalar but {tensor!r} is a tensor"
        raise TcError(message, None, f"write {tensor}(...)", code="TC14")
    if found != expected:
        plural = "" if expected == 1 else "s"
        message = f"{tensor!r} has {expected} dimension{plural} but {found} subscripts"
        raise TcError(message, None, "give one for each dimension", code="TC13")
    return tensors[tensor].dtype


def _literal(value: float | bool) -> Weak:
    """The kind of a literal."""
    if isinstance(value, bool):
        return Weak.BOOL
    return Weak.INT if isinstance(value, int) else Weak.FLOAT


def _arithmetic(operator: str, operands: tuple[Type, ...]) -> Type:
    """The type of a negation, an arithmetic operator or a comparison."""
    kind = reduce(promote, operands, operands[0])
    if isinstance(kind, DType):
        kind = kind.compute
    if operator in COMPARISONS:
        return DType.BOOL
    if operator not in ("min", "max"):
        _require(not is_bool(kind), "TC10", f"a number beside '{operator}'", kind)
    return kind


def _check_divisor(node: Unary | Binary, kind: Type) -> None:
    """Raise when an integer is divided by the literal zero."""
    if node.operator in ("/", "%") and is_integer(kind):
        assert isinstance(node, Binary)
        if node.right == Const(0):
            hint = "divide floats, or by another number"
            raise TcError("division by zero", node.span, hint, code="TC46")


def _call(function: str, operands: tuple[Type, ...]) -> Type:
    """The type of a call of a built-in."""
    if function not in BUILTINS:
        raise TcError(f"undefined function {function!r}", code="TC24")
    builtin = BUILTINS[function]
    if len(operands) != builtin.arity:
        message = f"{function!r} takes {builtin.arity} arguments but found {len(operands)}"
        raise TcError(message, code="TC12")
    for operand in operands:
        what = f"a number as an argument of {function}"
        _require(not is_bool(operand), "TC10", what, operand)
    kind = reduce(promote, operands, operands[0])
    if builtin.integer:
        _require(is_integer(kind), "TC09", f"integer arguments of {function}", kind)
    if builtin.result:
        return builtin.result
    if builtin.bits:
        found, wanted = resolve(operands[0]), builtin.bits.bits
        shown = f"{found.tc}, which has {found.bits}"
        _require(found.bits == wanted, "TC09", f"a type of {wanted} bits", shown)
        return builtin.bits
    if builtin.keeps_type:
        return kind.compute if isinstance(kind, DType) else kind
    if isinstance(kind, Weak):
        return Weak.FLOAT
    return DType.FLOAT64 if kind is DType.FLOAT64 else DType.FLOAT32


def _require(
    holds: bool, code: str, expected: str, found: Type | str, span: Span | None = None
) -> None:
    """Raise unless ``holds``."""
    if holds:
        return
    hint = "cast it, for example int64(...)"
    if isinstance(found, str):
        hint = "cast it first"
    elif code == "TC10":
        hint = "cast it" if is_bool(found) else "compare it, for example with != 0"
    shown = found if isinstance(found, str) else spell(found)
    raise TcError(f"expected {expected} but found {shown}", span, hint, code=code)
