"""Contractions in loops of their own, where a GPU runs them in tiles.

Loops that a scheduler shares between a contraction and other sums (the softmax after scores, a
depthwise convolution before a pointwise one) leave each iteration with one row of it, which
reads an operand whole.  Apart, the contraction is a phase with all its free loops around it,
and what follows it element by element comes along; the rest is scheduled anew.

Rewrite:
    band [i] / sequence (S, U_init / band [j], U / band [j, k], E / band [j], T)
    ->  sequence (S / ..., band [i, j] / sequence (U_init, U / band [k], E), T / ...)

Source: loop fission, as in Allen and Kennedy, "Optimizing Compilers for Modern Architectures",
2001.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from math import prod

from tcfuse.poly.alignment import as_schedule
from tcfuse.poly.dependences import Dependences
from tcfuse.poly.scheduling import part_of
from tcfuse.poly.scop import Scop, Statement, accesses
from tcfuse.poly.transforms import judged
from tcfuse.poly.tree import Band, Domain, Filter, Leaf, Tree
from tcfuse.poly.tree import Sequence as SequenceNode
from tcfuse.poly.volume import extent
from tcfuse.tc.ast import Expr, Var, walk
from tcfuse.tc.pool import operands

LEAST_SIDE = 16  # rows, and columns, of a contraction that has loops of its own
LEAST_WORK = 1 << 16  # and multiplications


def contractions_apart(
    scop: Scop, dependences: Dependences, tree: Domain, schedule: Callable[[Scop], Domain]
) -> Domain:
    """``tree`` with each large contraction in a nest of its own.

    Args:
        scop: What the tree schedules.
        dependences: What it respects.
        tree: Scheduled, with nothing chosen yet.
        schedule: Schedules a part of ``scop``.
    """
    names = tuple(s.name for s in scop.statements)
    fission = Fission(scop, dependences, schedule, is_large_contraction)
    if not fission.is_mixed(tree.child, names):
        return tree
    parts = fission.nests(names)
    child: Tree = parts[0].child if len(parts) == 1 else SequenceNode(tuple(parts))
    return replace(tree, child=child)


class Fission:
    """Takes contractions out of the nests of others."""

    def __init__(
        self,
        scop: Scop,
        dependences: Dependences,
        schedule: Callable[[Scop], Domain],
        is_contraction: Callable[[Statement], bool],
    ) -> None:
        self.scop = scop
        self.dependences = dependences
        self.schedule = schedule
        self.is_contraction = is_contraction

    def is_mixed(self, tree: Tree, names: tuple[str, ...]) -> bool:
        """Whether some nest holds a contraction and something else."""
        if isinstance(tree, SequenceNode):
            return any(self.is_mixed(f.child, f.statements) for f in tree.filters)
        made = self._first(names)
        return made is not None and len(made.statements) < len(names)

    def nests(self, names: tuple[str, ...]) -> list[Filter]:
        """Contractions, and the nests of what runs before, between and after them."""
        if not names:
            return []
        made = self._first(names)
        if made is None:
            return [Filter(names, self.schedule(part_of(self.scop, names)).child)]
        rest = [name for name in names if name not in made.statements]
        first = self._reaching(made.statements, rest)
        before = tuple(name for name in rest if name in first)
        after = tuple(name for name in rest if name not in first)
        return [*self.nests(before), made, *self.nests(after)]

    def _first(self, names: Sequence[str]) -> Filter | None:
        """The nest of the first contraction among some statements."""
        for name in names:
            if own := self._own(name, names):
                made = self._nest(name, own)
                if made is not None:
                    return made
        return None

    def _reaching(self, own: Collection[str], rest: Collection[str]) -> set[str]:
        """Statements among ``rest`` that must run before one of ``own``."""
        found: set[str] = set()
        new = set(own)
        while new:
            new = {a for a, b in self.dependences.pairs if b in new and a in rest} - found
            found |= new
        return found

    # ------------------------------------------------------------------ what belongs to it

    def _own(self, name: str, names: Collection[str]) -> tuple[str, ...]:
        """The statements of the contraction that ``name`` updates; none when it is none."""
        update = self.scop.statement(name)
        if not self.is_contraction(update):
            return ()
        target = update.comprehension.tensor
        writers = [s for s in self.scop.statements if s.comprehension.tensor == target]
        starts = [s for s in writers if s is not update]
        if len(starts) != 1 or starts[0].is_update or starts[0].name not in names:
            return ()
        own = [starts[0].name, name]
        for statement in self.scop.statements:
            if statement.name in names and self._follows(statement, own, names):
                own.append(statement.name)
        return tuple(own)

    def _follows(
        self, statement: Statement, own: Sequence[str], names: Collection[str]
    ) -> bool:
        """Whether a statement runs with each element of a contraction's results."""
        if statement.name in own or statement.is_init or statement.is_update:
            return False
        if self._followed(statement, own) is None:
            return False
        # What it needs besides must not need the contraction.
        rest = [n for n in names if n not in own and n != statement.name]
        before = self._reaching([*own, statement.name], rest)
        return not any(a in own and b in before for a, b in self.dependences.pairs)

    def _followed(self, statement: Statement, own: Sequence[str]) -> tuple[str, ...] | None:
        """The statement's iterators in the order of the results' dimensions."""
        results = {self.scop.statement(n).comprehension.tensor for n in own}
        for access in accesses(statement):
            found = tuple(s.name for s in access.subscripts if isinstance(s, Var))
            whole = len(found) == len(access.subscripts) == len(set(found))
            if access.tensor in results and whole and set(found) == set(statement.iterators):
                return found
        return None

    # ------------------------------------------------------------------ its loops

    def _nest(self, name: str, own: Sequence[str]) -> Filter | None:
        """All free loops around a contraction; ``None`` when one carries a dependence."""
        update = self.scop.statement(name)
        indices = update.comprehension.indices
        follows = {name: indices}
        for other in own:
            if other != name:
                statement = self.scop.statement(other)
                follows[other] = (
                    self._followed(statement, own)
                    if statement.comprehension.tensor != update.comprehension.tensor
                    else statement.comprehension.indices
                ) or ()
        if any(len(iterators) != len(indices) for iterators in follows.values()):
            return None
        rows = [{n: follows[n][k] for n in own} for k in range(len(indices))]
        steps = as_schedule(self.scop, [{name: r} for r in update.reduction])
        inner = Band(steps, False, (False,) * len(update.reduction), Leaf())
        parts = tuple(Filter((n,), inner if n == name else Leaf()) for n in own)
        band = judged(as_schedule(self.scop, rows), self.dependences.all, SequenceNode(parts))
        return Filter(tuple(own), band) if all(band.coincident) else None


def is_large_contraction(statement: Statement) -> bool:
    """Whether two factors of a sum of products follow enough free iterators of their own."""
    written = statement.comprehension
    if not statement.is_update or not statement.reduction or written.assign.operator != "+":
        return False
    if prod(extent(statement, i) for i in statement.iterators) < LEAST_WORK:
        return False
    lets = {let.name: let.value for let in written.lets}
    follows = [
        _names(part, lets) & set(written.indices) for part in operands(written.value, "*")
    ]
    return any(
        _volume(statement, a - b) >= LEAST_SIDE and _volume(statement, b - a) >= LEAST_SIDE
        for k, a in enumerate(follows)
        for b in follows[:k]
    )


def _volume(statement: Statement, iterators: AbstractSet[str]) -> int:
    return prod(extent(statement, i) for i in iterators)


def _names(expr: Expr, lets: dict[str, Expr]) -> set[str]:
    """The names that a value depends on, lets followed."""
    found: set[str] = set()
    stack = [expr]
    while stack:
        for node in walk(stack.pop()):
            if isinstance(node, Var) and node.name not in found:
                found.add(node.name)
                if node.name in lets:
                    stack.append(lets[node.name])
    return found
