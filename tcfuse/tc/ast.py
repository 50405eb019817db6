"""The abstract syntax of Tensor Comprehensions.

Immutable; printing is ``tc.unparse`` and reading ``tc.parser``, and they are inverse.

Source: "The Next 700 Accelerated Layers", ACM TACO 16(4), 2019, section 3, with these
extensions: temporaries (a name written and not returned), ``float16``/``bfloat16``, sizes that
are affine expressions, literals that take the type of what they meet, lets evaluated once, and
a ternary that guards the accesses of its branches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TypeAlias, TypeVar

from tcfuse.errors import Span
from tcfuse.types import DType, TensorType

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Const:
    """A literal; takes the type of the operand it meets.

    ``value`` is an ``int``, a ``bool`` or a ``float`` (infinities and NaN are allowed and print
    as the calls ``inf()`` and ``nan()``).
    """

    value: int | float | bool
    span: Span | None = field(default=None, compare=False, repr=False)

    # Python holds 1 == 1.0 == True and nan != nan; as literals it is the other way round.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Const) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[type, str]:
        return type(self.value), repr(self.value)


@dataclass(frozen=True, slots=True)
class Var:
    """An index, a size name or a let."""

    name: str
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Access:
    """An element of a tensor: ``X(i, 2*j + 1)``; no subscripts for a scalar."""

    tensor: str
    subscripts: tuple[Expr, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Unary:
    """``-x`` or ``!x``."""

    operator: str
    operand: Expr
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Binary:
    """``+ - * / %``, comparisons, ``&& ||``, and ``min``/``max`` (which propagate NaN)."""

    operator: str
    left: Expr
    right: Expr
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Call:
    """A built-in function; ``tc.builtins`` lists them."""

    function: str
    arguments: tuple[Expr, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Cast:
    """``int32(x)``; C's conversion, float to integer truncates."""

    dtype: DType
    operand: Expr
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Select:
    """``condition ? then : otherwise``; guards the accesses of both branches."""

    condition: Expr
    then: Expr
    otherwise: Expr
    span: Span | None = field(default=None, compare=False, repr=False)


Expr: TypeAlias = Const | Var | Access | Unary | Binary | Call | Cast | Select


class AssignKind(Enum):
    """How a statement updates its tensor; ``reset`` kinds first store the identity."""

    SET = "="
    ADD = "+="
    MUL = "*="
    MIN = "min="
    MAX = "max="
    ADD_RESET = "+=!"
    MUL_RESET = "*=!"
    MIN_RESET = "min=!"
    MAX_RESET = "max=!"

    @property
    def is_reduction(self) -> bool:
        """Whether the old value takes part."""
        return self is not AssignKind.SET

    @property
    def resets(self) -> bool:
        """Whether the identity is stored first."""
        return self.value.endswith("!")

    @property
    def operator(self) -> str:
        """``+``, ``*``, ``min`` or ``max``; empty for ``=``."""
        return self.value.rstrip("!").rstrip("=")


@dataclass(frozen=True, slots=True)
class Range:
    """``name in low:high``, half open."""

    name: str
    low: Expr
    high: Expr
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Let:
    """``name = value``, evaluated once per instance; may use earlier lets of the statement."""

    name: str
    value: Expr
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Comprehension:
    """One statement: ``tensor(indices) assign value <=> equivalent where ranges, lets``.

    ``equivalent`` is the call that the author claims to compute the same; it is kept and
    printed, and means nothing.
    """

    tensor: str
    indices: tuple[str, ...]
    assign: AssignKind
    value: Expr
    ranges: tuple[Range, ...] = ()
    lets: tuple[Let, ...] = ()
    exists: tuple[Expr, ...] = ()
    equivalent: Access | None = None
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def values(self) -> tuple[Expr, ...]:
        """Everything that is computed for an element: the value, then the lets."""
        return (self.value, *(let.value for let in self.lets))

    @property
    def target_span(self) -> Span | None:
        """Where the name of the tensor stands, if the statement was read from text."""
        span = self.span
        return span and replace(span, end=span.start + len(self.tensor))

    @property
    def left_span(self) -> Span | None:
        """Where the left-hand side stands, if the statement was read from text."""
        span = self.span
        if span is None or not self.indices:
            return self.target_span
        return replace(span, end=span.source.index(")", span.start) + 1)


@dataclass(frozen=True, slots=True)
class Param:
    """A declared tensor; ``type`` is ``None`` when it is to be inferred (returns only)."""

    name: str
    type: TensorType | None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Def:
    """A tensor comprehension."""

    name: str
    params: tuple[Param, ...]
    returns: tuple[Param, ...]
    body: tuple[Comprehension, ...]
    span: Span | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        from tcfuse.tc.unparse import unparse  # unparse imports this module

        return unparse(self)


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct operands of ``expr``."""
    match expr:
        case Const() | Var():
            return ()
        case Access(_, subscripts):
            return subscripts
        case Call(_, arguments):
            return arguments
        case Unary(_, x) | Cast(_, x):
            return (x,)
        case Binary(_, left, right):
            return (left, right)
        case Select(condition, then, otherwise):
            return (condition, then, otherwise)


def walk(expr: Expr) -> Iterator[Expr]:
    """``expr`` and everything below it, without recursion (chains may be thousands deep)."""
    stack = [expr]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(children(node)))


def post_order(expr: Expr) -> list[Expr]:
    """Every distinct node object of ``expr`` once, operands before their users."""
    order: list[Expr] = []
    seen: set[int] = set()
    stack: list[tuple[Expr, bool]] = [(expr, False)]
    while stack:
        node, ready = stack.pop()
        if ready:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            if operands := children(node):
                stack.append((node, True))
                stack.extend([(operand, False) for operand in reversed(operands)])
            else:
                order.append(node)
    return order


def fold(expr: Expr, combine: Callable[[Expr, tuple[T, ...]], T]) -> T:
    """``combine(node, results of its operands)`` from the leaves up; shared nodes once."""
    results: dict[int, T] = {}
    for node in post_order(expr):
        operands = tuple(results[id(operand)] for operand in children(node))
        results[id(node)] = combine(node, operands)
    return results[id(expr)]
