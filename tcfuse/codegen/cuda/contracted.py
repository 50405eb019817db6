"""Which phases are contractions: sums of products of two values that share no free loop.

``C(b, m, n) += A(b, m, k) * B(b, k, n)``, where ``b``, ``m``, ``n`` and ``k`` stand for any
number of loops each: a convolution's ``m`` are its output channels, its ``n`` images, rows and
columns, its ``k`` input channels and window.  ``A`` and ``B`` are any expressions (a prologue),
and what follows the sum in the same loops is an epilogue.

Source: Solomonik et al., "A Massively Parallel Tensor Contraction Framework", JPDC 74(12), 2014
(free and contracted indices).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from math import prod

from tcfuse.codegen.cuda.nest import Nest
from tcfuse.codegen.kernel_ast import Instance, Loop
from tcfuse.codegen.values import plain
from tcfuse.poly.polynomial import Polynomial
from tcfuse.poly.scop import Scop, Statement, accesses
from tcfuse.poly.volume import TYPICAL
from tcfuse.tc.ast import Binary, Expr, Var, fold, walk
from tcfuse.tc.typing import Type, node_type, promote
from tcfuse.types import DType

MOST_FACTORS = 6


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """One of the two values that are multiplied.

    Attributes:
        statement: The update, with the factor alone as its value.
        position: The values of its iterators over the loops.
        outer: The loops that it follows and the other factor does not.
        kind: Its type: a 16-bit float when its value is exactly one.
    """

    statement: Statement
    position: tuple[Polynomial, ...]
    outer: tuple[Loop, ...]
    kind: Type

    @property
    def value(self) -> Expr:
        """The expression."""
        return self.statement.comprehension.value

    @property
    def target(self) -> str:
        """The tensor that the sums are in."""
        return self.statement.comprehension.tensor


@dataclass(frozen=True, slots=True, eq=False)
class Contraction:
    """A phase that is one.

    Attributes:
        target: The tensor that the sums are in, a register.
        dtype: The type in which they are added.
        batch: Loops that both factors follow.
        depth: Loops of the sum, outermost first; it runs in their order.
        left, right: The factors.
        start: What the sums start from, when that is not zero.
        after: What runs with each sum.
    """

    target: str
    dtype: DType
    batch: tuple[Loop, ...]
    depth: tuple[Loop, ...]
    left: Factor
    right: Factor
    start: Instance | None
    after: tuple[Instance, ...]

    def turned(self) -> Contraction:
        """The same with the factors in the other order."""
        return replace(self, left=self.right, right=self.left)

    @property
    def around(self) -> tuple[Instance, ...]:
        """Everything besides the sums."""
        return (*(() if self.start is None else (self.start,)), *self.after)


def find_contraction(nest: Nest, scop: Scop, *, reassociate: bool) -> Contraction | None:
    """The contraction that a phase is, if it is one.

    Args:
        nest: The phase.
        scop: Its statements.
        reassociate: Whether a product of several factors may be multiplied in another order.
    """
    free = (*nest.chain, *(() if nest.flat is None else (nest.flat,)))
    sums = [node for node in nest.body if isinstance(node, Loop)]
    rest = [node for node in nest.body if isinstance(node, Instance)]
    if len(sums) != 1 or len(rest) != len(nest.body) - 1:
        return None
    found = _sum(sums[0], free)
    if found is None:
        return None
    depth, update = found
    statement = scop.statement(update.statement)
    start = nest.body.index(sums[0])
    if start != 1 or not _starts(rest[0], statement, scop, reassociate=reassociate):
        return None
    first = None if scop.statement(rest[0].statement).is_init else rest[0]
    dtype = scop.checked.tensors[statement.comprehension.tensor].dtype.compute
    parts = _factors(statement, scop, dtype, split=reassociate)
    best = _divided(parts, statement, update, free) if parts else None
    if best is None:
        return None
    left, right = best
    both = {loop.iterator for loop in (*left.outer, *right.outer)}
    batch = tuple(loop for loop in free if loop.iterator not in both)
    target = statement.comprehension.tensor
    return Contraction(target, dtype, batch, depth, left, right, first, tuple(rest[1:]))


def _sum(node: Loop, free: Sequence[Loop]) -> tuple[tuple[Loop, ...], Instance] | None:
    """The loops of a perfect nest of fixed bounds, and what is in it."""
    depth = [node]
    while len(depth[-1].body) == 1 and isinstance(depth[-1].body[0], Loop):
        depth.append(depth[-1].body[0])
    inner = depth[-1].body
    around = [loop.iterator for loop in (*free, *depth)]
    bounds = [bound for loop in depth for bound in (loop.low, loop.high)]
    changing = any(bound.mentions(i) for bound in bounds for i in around)
    if changing or len(inner) != 1 or not isinstance(inner[0], Instance):
        return None
    return tuple(depth), inner[0]


def _starts(first: Instance, statement: Statement, scop: Scop, *, reassociate: bool) -> bool:
    """Whether the sum starts with ``first``: at zero, or at what may as well be added last."""
    if not statement.is_update or statement.comprehension.assign.operator != "+":
        return False
    target = statement.comprehension.tensor
    start = scop.statement(first.statement)
    if start.comprehension.tensor != target or start.is_update:
        return False
    reads = {access.tensor for access in accesses(start)}
    return start.is_init or (reassociate and target not in reads)


# ---------------------------------------------------------------------- factors


def _factors(
    statement: Statement, scop: Scop, dtype: DType, *, split: bool
) -> list[tuple[Expr, Type]]:
    """What is multiplied, computed in the type of the sums; empty: nothing is."""
    written = statement.comprehension
    lets: dict[str, Type] = {}

    def kind_of(node: Expr, operands: tuple[Type, ...]) -> Type:
        return node_type(node, operands, scop.checked.tensors, lets)

    for let in written.lets:
        lets[let.name] = fold(let.value, kind_of)
    if not isinstance(written.value, Binary) or written.value.operator != "*":
        return []
    parts: list[Expr] = [written.value.left, written.value.right]
    while split and len(parts) < MOST_FACTORS:
        at = next((k for k, p in enumerate(parts) if _is_product(p)), None)
        if at is None:
            break
        inner = parts[at]
        assert isinstance(inner, Binary)
        parts[at : at + 1] = [inner.left, inner.right]
    kinds = [fold(part, kind_of) for part in parts]
    alike = all(plain(kind) is dtype for kind in (*kinds, fold(written.value, kind_of)))
    return list(zip(parts, kinds, strict=True)) if dtype.is_float and alike else []


def _is_product(node: Expr) -> bool:
    return isinstance(node, Binary) and node.operator == "*"


def _divided(
    parts: Sequence[tuple[Expr, Type]],
    statement: Statement,
    update: Instance,
    free: Sequence[Loop],
) -> tuple[Factor, Factor] | None:
    """The parts as two factors, each with as many iterations of its own as there can be."""
    follows = [_followed(part, statement, update, free) for part, _ in parts]
    best: tuple[int, tuple[bool, ...]] = (0, ())
    for sides in product((False, True), repeat=len(parts)):
        left = set().union(*(f for f, side in zip(follows, sides, strict=True) if not side))
        right = set().union(*(f for f, side in zip(follows, sides, strict=True) if side))
        own = [_volume(_only(free, a, b)) for a, b in ((left, right), (right, left))]
        if all(_only(free, a, b) for a, b in ((left, right), (right, left))):
            best = max(best, (min(own), sides))
    if not best[1]:
        return None
    found = []
    for side in (False, True):
        mine = [k for k, s in enumerate(best[1]) if s is side]
        others = [k for k, s in enumerate(best[1]) if s is not side]
        value = reduce(lambda a, b: Binary("*", a, b), (parts[k][0] for k in mine))
        kind = reduce(promote, (parts[k][1] for k in mine[1:]), parts[mine[0]][1])
        names = set().union(*(follows[k] for k in mine))
        apart = set().union(*(follows[k] for k in others))
        outer = _only(free, names, apart)
        found.append(Factor(_alone(statement, value), update.position, outer, kind))
    return found[0], found[1]


def _only(free: Sequence[Loop], names: set[str], others: set[str]) -> tuple[Loop, ...]:
    return tuple(c for c in free if c.iterator in names and c.iterator not in others)


def _volume(loops: Sequence[Loop]) -> int:
    numbers = ((loop.high - loop.low).number for loop in loops)
    return prod(TYPICAL if n is None else n for n in numbers)


def _alone(statement: Statement, value: Expr) -> Statement:
    """The statement with another value, and the lets that this one needs."""
    written = statement.comprehension
    needed = _names(value)
    kept = []
    for let in reversed(written.lets):
        if let.name in needed:
            needed |= _names(let.value)
            kept.append(let)
    return replace(
        statement, comprehension=replace(written, value=value, lets=tuple(reversed(kept)))
    )


def _followed(
    part: Expr, statement: Statement, update: Instance, free: Sequence[Loop]
) -> set[str]:
    """Iterators of the free loops that a part of the value changes with."""
    values = _alone(statement, part).comprehension.values
    names = set().union(*map(_names, values))
    used = [
        position
        for name, position in zip(statement.iterators, update.position, strict=True)
        if name in names
    ]
    return {c.iterator for c in free if any(p.mentions(c.iterator) for p in used)}


def _names(expr: Expr) -> set[str]:
    return {node.name for node in walk(expr) if isinstance(node, Var)}
