"""Pointwise producers put into their consumers, so that few statements remain.

A temporary written by one ``=`` statement is replaced by its expression where that costs
nothing: it has one consuming statement that runs no more often than it does, or several that
each read another part of it (the steps of a recurrence written out), or it is cheap to compute
again.  Results of reductions stay temporaries.  What an assignment does to a value (rounding to
a 16-bit float, wrap-around of a narrow integer) is kept as a cast.

Rewrite:
    T(i) = a(i) + 1; Y(i) = exp(T(i)) * T(i)  ->  Y(i) = exp(a(i) + 1) * (a(i) + 1)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tcfuse.tc.affine import affine
from tcfuse.tc.ast import Access, AssignKind, Cast, Comprehension, Const, Expr, Var
from tcfuse.tc.draft import Draft, is_full, reduction_variables
from tcfuse.tc.expr_types import ExprTypes
from tcfuse.tc.literals import literal
from tcfuse.tc.parts import read_in_parts
from tcfuse.tc.pool import Pool, accesses, variables
from tcfuse.tc.simplify import Simplifier
from tcfuse.tc.work import Work, operation_count, printed_size, work

MOST_OPERATIONS = 400
_MOST_RECOMPUTATIONS = 3


def inline(draft: Draft, pool: Pool, numerics: str = "default") -> Draft:
    """``draft`` with pointwise temporaries inlined and dead ones removed."""
    while True:
        draft, before = simplified(draft, pool), len(draft.body)
        body = _Inliner(draft, pool, numerics, _choose(draft)).body()
        draft = remove_dead(replace(draft, body=tuple(body)))
        if len(draft.body) == before or not any(_is_copy(s, draft) for s in draft.body):
            return draft


def _is_copy(statement: Comprehension, draft: Draft) -> bool:
    """Whether a temporary is nothing but elements of something else."""
    return isinstance(statement.value, Access) and statement.tensor not in draft.outputs


def simplified(draft: Draft, pool: Pool) -> Draft:
    """``draft`` with simple values, so that none is taken for costlier than it is."""
    types = ExprTypes(draft.tensors)
    body = tuple(
        replace(s, value=pool.rewrite(s.value, Simplifier(pool, types, s.ranges), {}))
        for s in draft.body
    )
    return replace(draft, body=body)


def remove_dead(draft: Draft) -> Draft:
    """``draft`` without statements and temporaries that no output needs, and unread inputs."""
    needed = set(draft.outputs)
    kept: list[Comprehension] = []
    for statement in reversed(draft.body):
        if statement.tensor in needed:
            kept.append(statement)
            needed |= {access.tensor for access in accesses((statement.value,))}
    return replace(
        draft,
        inputs=tuple(x for x in draft.inputs if x in needed),
        tensors={name: type_ for name, type_ in draft.tensors.items() if name in needed},
        body=tuple(reversed(kept)),
    )


@dataclass(frozen=True, slots=True)
class _Use:
    """A statement that reads a temporary.

    Attributes:
        expanding: Whether it runs more often than the temporary has elements.
        elements: How many different elements one instance reads.
    """

    statement: int
    expanding: bool
    elements: int


def candidates(draft: Draft) -> dict[str, int]:
    """Tensors that could be replaced by an expression, with the statement that writes them."""
    writes: dict[str, list[int]] = defaultdict(list)
    for position, statement in enumerate(draft.body):
        writes[statement.tensor].append(position)
    return {
        tensor: positions[0]
        for tensor, positions in writes.items()
        if len(positions) == 1
        and _is_pointwise(draft.body[positions[0]], draft)
        # what it reads must not change between it and its consumers
        and all(
            writes.get(access.tensor, [-1])[-1] < positions[0]
            for access in accesses((draft.body[positions[0]].value,))
        )
    }


def _is_pointwise(statement: Comprehension, draft: Draft) -> bool:
    shape = draft.tensors[statement.tensor].shape
    ranges = {r.name: r for r in statement.ranges}
    return (
        statement.assign is AssignKind.SET
        and not reduction_variables(statement)
        and all(is_full(ranges[i], s) for i, s in zip(statement.indices, shape, strict=True))
    )


def _choose(draft: Draft) -> set[str]:
    """The tensors to inline into every consumer."""
    written_by = candidates(draft)
    uses = _uses(draft, written_by)
    parted = read_in_parts(draft, written_by)
    cost: dict[str, Work] = {}
    cheap: dict[str, Work] = {}
    for tensor in written_by:  # in order of writing
        cost[tensor] = work(draft.body[written_by[tensor]].value, cheap)
        if cost[tensor].is_cheap:
            cheap[tensor] = cost[tensor]
    chosen: set[str] = set()
    roots: dict[
        int, dict[int, bool]
    ] = {}  # for an inlined statement: where it ends up, expanding?
    for tensor in reversed(written_by):
        ends: dict[int, bool] = {}
        once = tensor in parted
        for use in uses[tensor]:
            found = roots.get(use.statement, {use.statement: False})
            once = once and len(found) == 1
            for end, expanding in found.items():
                ends[end] = ends.get(end, False) or expanding or use.expanding
        recomputed = 1 if once else sum(use.elements for use in uses[tensor])
        if _worthwhile(draft, tensor, cost[tensor], ends, recomputed, once=once):
            chosen.add(tensor)
            stored = {written_by[tensor]: False} if tensor in draft.outputs else {}
            roots[written_by[tensor]] = ends | stored
    return chosen


def _worthwhile(
    draft: Draft,
    tensor: str,
    cost: Work,
    ends: dict[int, bool],
    recomputed: int,
    *,
    once: bool,
) -> bool:
    """Whether ``tensor`` is better computed in the statements ``ends`` than stored.

    ``once`` says that no two of them read the same element.
    """
    if cost.operations and any(
        expanding and draft.body[end].assign.is_reduction for end, expanding in ends.items()
    ):
        return False  # once per term of a sum or a matrix product is too often
    if cost.is_cheap:
        return True
    if tensor in draft.outputs or (len(ends) != 1 and not once) or any(ends.values()):
        return False
    return recomputed <= _MOST_RECOMPUTATIONS


def _uses(draft: Draft, tensors: Iterable[str]) -> dict[str, list[_Use]]:
    """The statements that read each of ``tensors``."""
    uses: dict[str, list[_Use]] = {tensor: [] for tensor in tensors}
    for position, statement in enumerate(draft.body):
        read: dict[str, list[Access]] = defaultdict(list)
        for access in accesses((statement.value,)):
            if access.tensor in uses:
                read[access.tensor].append(access)
        for tensor, found in read.items():
            expanding = any(_expands(access, statement) for access in found)
            uses[tensor].append(_Use(position, expanding, len(found)))
    return uses


def _expands(access: Access, statement: Comprehension) -> bool:
    """Whether different instances of ``statement`` read the same element."""
    if any(affine(s) is None and next(accesses((s,)), None) for s in access.subscripts):
        return True
    names = {r.name for r in statement.ranges}
    return not names <= variables(access.subscripts)


class _Inliner:
    """Replaces reads of chosen tensors by their expressions, statement by statement."""

    def __init__(self, draft: Draft, pool: Pool, numerics: str, chosen: set[str]) -> None:
        self.draft, self.pool, self.numerics, self.chosen = draft, pool, numerics, chosen
        self.types = ExprTypes(draft.tensors)
        self.values: dict[str, tuple[tuple[str, ...], Expr]] = {}
        self.sizes: dict[str, int] = {}
        self.kept: set[str] = set()

    def body(self) -> list[Comprehension]:
        """The statements, those of inlined tensors included: they may still be needed."""
        result = []
        for statement in self.draft.body:
            value, size = self._bounded(statement)
            result.append(replace(statement, value=value))
            if statement.tensor in self.chosen:
                stored = self._stored(statement, value)
                self.values[statement.tensor] = (statement.indices, stored)
                self.sizes[statement.tensor] = size
        return result

    def _bounded(self, statement: Comprehension) -> tuple[Expr, int]:
        """The value with chosen tensors inlined, fewer of them where it would get too large.

        Returns:
            The value, and a bound of its number of operations.
        """
        read = {a.tensor for a in accesses((statement.value,))} & self.values.keys() - self.kept
        largest_first = sorted(read, key=lambda t: (-self.sizes[t], t))
        own = operation_count(statement.value)
        while True:
            value = self._inlined(statement, read - self.kept)
            size = own + sum(self.sizes[t] for t in read - self.kept)
            if size > MOST_OPERATIONS:  # no need to count before
                size = printed_size(value)
            if not largest_first or size <= MOST_OPERATIONS:
                return value, size
            self.kept.add(largest_first.pop(0))

    def _inlined(self, statement: Comprehension, tensors: set[str]) -> Expr:
        if not tensors:
            return statement.value
        simplify = Simplifier(self.pool, self.types, statement.ranges)

        def rule(node: Expr) -> Expr:
            if isinstance(node, Access) and node.tensor in tensors:
                indices, value = self.values[node.tensor]
                return self._at(value, indices, node.subscripts, simplify)
            return simplify(node)

        return self.pool.rewrite(statement.value, rule, {})

    def _at(
        self,
        value: Expr,
        indices: tuple[str, ...],
        subscripts: tuple[Expr, ...],
        simplify: Simplifier,
    ) -> Expr:
        """``value`` at the point ``subscripts``."""
        point = dict(zip(indices, subscripts, strict=True))
        if all(isinstance(s, Var) and s.name == name for name, s in point.items()):
            return value

        def rule(node: Expr) -> Expr:
            return point.get(node.name, node) if isinstance(node, Var) else simplify(node)

        return self.pool.rewrite(value, rule, {})

    def _stored(self, statement: Comprehension, value: Expr) -> Expr:
        """``value`` as its tensor holds it."""
        dtype = self.draft.tensors[statement.tensor].dtype
        if self.types[value] is dtype:
            return value
        if isinstance(value, Const):
            return self.pool.add(literal(dtype, value.value))
        if dtype.is_half and self.numerics == "fast":
            return value
        return self.pool.add(Cast(dtype, value))
