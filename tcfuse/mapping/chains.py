"""Chains of contractions: each in a nest of its own, inside the outer loops they all share.

A scheduler that shares every loop two statements have in common takes from a contraction the
rows and lanes that its register block needs; one that shares none sends each intermediate
result through memory.  In between, contractions and what lies among them share the loops that
none of them needs for itself: an iteration makes a slab of each intermediate, which stays in a
cache.

Rewrite:
    band [i, j] / sequence (S / band [k], T / band [k, l])
    ->  band [i] / sequence (S / band [j, k], T / band [j] / band [k, l])

Source: "The Next 700 Accelerated Layers", section 4.3 (fusion strategies); Dao et al.,
"FlashAttention", NeurIPS 2022 (what a chain of products gains from slabs in near memory).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from tcfuse.mapping.apart import Fission
from tcfuse.mapping.packing import Nest
from tcfuse.poly import isl
from tcfuse.poly.alignment import Row, align, as_schedule, subscripts_of
from tcfuse.poly.dependences import Dependences
from tcfuse.poly.rows import iterator_of
from tcfuse.poly.scop import Scop, Statement
from tcfuse.poly.transforms import without
from tcfuse.poly.tree import Band, Domain, Filter, Tree
from tcfuse.poly.tree import Sequence as SequenceNode
from tcfuse.poly.volume import extent, fixed_extent

LEAST_WORK = 1 << 12  # multiplications of a contraction that has loops of its own
LEAST_TURNS = 4  # iterations of the shared loops together, which threads divide


def chained(
    scop: Scop,
    dependences: Dependences,
    tree: Domain,
    nests: Sequence[Nest],
    schedule: Callable[[Scop], Domain],
) -> Domain | None:
    """``tree`` with its contractions in nests of their own; ``None`` where that is no gain.

    Args:
        scop: What the tree schedules.
        dependences: What it respects.
        tree: Scheduled, with nothing chosen yet.
        nests: What is decided about the contractions.
        schedule: Schedules a part of ``scop``.
    """
    known = {nest.update: nest for nest in nests}
    if not known or any(
        fixed_extent(s, i) is None for s in scop.statements for i in s.iterators
    ):
        return None

    def is_contraction(statement: Statement) -> bool:
        return statement.name in known and _work(statement) >= LEAST_WORK

    names = tuple(s.name for s in scop.statements)
    fission = Fission(scop, dependences, schedule, is_contraction)
    parts = [p for made in fission.nests(names) for p in _flat(made)]
    own = [k for k, p in enumerate(parts) if any(n in known for n in p.statements)]
    if len(parts) < 2 or not own:
        return None
    sharing = _Sharing(scop, dependences, known)
    runs: list[_Run] = []
    for part in parts:
        joined = sharing.joined(runs[-1], part) if runs else None
        if joined is None:
            runs.append(sharing.alone(part))
        else:
            runs[-1] = joined
    if all(len(run.parts) == 1 for run in runs) and not fission.is_mixed(tree.child, names):
        return None
    filters = [f for run in runs for f in sharing.tree(run)]
    child = filters[0].child if len(filters) == 1 else SequenceNode(tuple(filters))
    return replace(tree, child=child)


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """Neighbouring parts that share outer loops.

    Attributes:
        rows: The loops: the iterator of each statement.
    """

    parts: tuple[Filter, ...]
    rows: tuple[Row, ...]

    @property
    def statements(self) -> tuple[str, ...]:
        """The statements of all parts."""
        return tuple(name for part in self.parts for name in part.statements)


class _Sharing:
    """Finds the outer loops that neighbouring parts of a chain share."""

    def __init__(self, scop: Scop, dependences: Dependences, nests: Mapping[str, Nest]) -> None:
        self.scop, self.nests = scop, nests
        self.ordered, self.pairs = dependences.all, dependences.pairs
        self.subscripts = {s.name: subscripts_of(s) for s in scop.statements}

    def alone(self, part: Filter) -> _Run:
        """A part with the loops that it could share."""
        leading = next((n for n in part.statements if n in self.nests), part.statements[0])
        rows: list[Row] = [{leading: i} for i in self._free(self.scop.statement(leading))]
        return _Run((part,), tuple(self._grown(rows, part)))

    def joined(self, run: _Run, part: Filter) -> _Run | None:
        """The run with one part more; ``None`` where they share too little."""
        statements = run.statements
        if not any((a, b) in self.pairs for a in statements for b in part.statements):
            return None
        rows = self._grown(list(run.rows), part)
        rows = self._coincident((*statements, *part.statements), rows)
        first = self.scop.statement(part.statements[0])
        turns = prod(extent(first, row[first.name]) for row in rows)
        if turns < LEAST_TURNS:
            return None
        parts = (*run.parts, part)
        if any(_inside(self.scop, p.child, p.statements, rows) is None for p in parts):
            return None
        return _Run(parts, tuple(rows))

    def tree(self, run: _Run) -> list[Filter]:
        """The loops of a run around its parts."""
        if len(run.parts) == 1:
            return list(run.parts)
        inner = []
        for part in run.parts:
            child = _inside(self.scop, part.child, part.statements, run.rows)
            assert child is not None, "asked before it was joined"
            inner.append(replace(part, child=child))
        rows = as_schedule(self.scop, run.rows)
        band = Band(rows, True, (True,) * len(run.rows), SequenceNode(tuple(inner)))
        return [Filter(run.statements, band)]

    # ------------------------------------------------------------------ rows

    def _free(self, statement: Statement) -> list[str]:
        """The iterators that a shared loop may follow."""
        nest = self.nests.get(statement.name)
        taken = {*statement.reduction, *((nest.lanes, nest.rows) if nest else ())}
        return [i for i in statement.iterators if i not in taken]

    def _with(self, rows: list[Row], statement: Statement) -> list[Row]:
        """The rows that ``statement`` follows too."""
        chosen = align(self.scop, rows, self.subscripts, statement, self._free(statement))
        return [
            {**row, statement.name: iterator}
            for row, iterator in zip(rows, chosen, strict=True)
            if iterator is not None
        ]

    def _grown(self, rows: list[Row], part: Filter) -> list[Row]:
        """The rows that all statements of a part follow too."""
        waiting = [n for n in part.statements if not rows or n not in rows[0]]
        while waiting and rows:
            # Those that touch what the rows know come first: they have something to align by.
            name = max(waiting, key=lambda n: self._ties(rows, n))
            waiting.remove(name)
            rows = self._with(rows, self.scop.statement(name))
        return rows

    def _ties(self, rows: Sequence[Row], name: str) -> int:
        known = {t for n in rows[0] for t in self.subscripts[n].tensors}
        return len(known & self.subscripts[name].tensors)

    def _coincident(self, names: Sequence[str], rows: Sequence[Row]) -> list[Row]:
        """The rows that carry no dependence among ``names``."""
        domain = isl.part_of(self.scop.domain, names)
        pairs = self.ordered.intersect_domain(domain).intersect_range(domain)
        return [
            row
            for row in rows
            if pairs.subtract(
                pairs.eq_at_multi_union_pw_aff(as_schedule(self.scop, [row]))
            ).is_empty()
        ]


def _inside(scop: Scop, tree: Tree, names: Sequence[str], rows: Sequence[Row]) -> Tree | None:
    """``tree`` without the loops that follow ``rows``; ``None`` when one is not found."""
    for row in rows:
        made = _dropped(scop, tree, names, row)
        if made is None:
            return None
        tree = made
    return tree


def _dropped(scop: Scop, tree: Tree, names: Sequence[str], row: Row) -> Tree | None:
    """``tree`` without the loop that each of its statements follows ``row`` with."""
    match tree:
        case SequenceNode(filters):
            parts = []
            for f in filters:
                child = _dropped(scop, f.child, f.statements, row)
                if child is None:
                    return None
                parts.append(replace(f, child=child))
            return SequenceNode(tuple(parts))
        case Band():
            for k in range(tree.depth):
                follows = {n: iterator_of(tree, k, scop.statement(n)) for n in names}
                if all(follows[n] == row[n] for n in names):
                    rest = without(tree, k)
                    return tree.child if rest is None else rest
            child = _dropped(scop, tree.child, names, row)
            return None if child is None else replace(tree, child=child)
        case _:
            return None


def _flat(part: Filter) -> list[Filter]:
    """The nests of a part that run one after the other."""
    if isinstance(part.child, SequenceNode):
        return [inner for f in part.child.filters for inner in _flat(f)]
    return [part]


def _work(statement: Statement) -> int:
    return prod(extent(statement, i) for i in statement.iterators)
