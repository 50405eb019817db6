"""The ILP scheduler under a fusion strategy.

isl's incremental clustering leaves a reduction apart from its pointwise neighbours, and its
whole-component mode shifts loops past each other and takes minutes on a plain layer norm.  So
which statements share outer loops is decided first (``clusters``), as Tensor Comprehensions did
through isl's merge callback; isl's integer linear programs find the loops inside.

Source: "The Next 700 Accelerated Layers", section 4.3 (fusion strategies); Verdoolaege and
Janssens, "Scheduling for PPCG", 2017 (coincidence, clustering).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby

from tcfuse.poly import isl
from tcfuse.poly.alignment import as_schedule
from tcfuse.poly.clusters import Cluster, find_clusters
from tcfuse.poly.dependences import Dependences
from tcfuse.poly.rows import follows_sums, is_backward, runs_backwards
from tcfuse.poly.scop import Scop
from tcfuse.poly.separation import counts_tiles
from tcfuse.poly.transforms import joined, judged, member, reversed_by
from tcfuse.poly.tree import Band, Domain, Filter, Leaf, Sequence, Tree, rewrite
from tcfuse.poly.tree_isl import from_isl

OPERATION_LIMIT = 20_000_000  # about half a second of isl on one core
MOST_TOGETHER = 12  # statements in one integer linear program


@dataclass(frozen=True, slots=True)
class Strategy:
    """How loops may look.

    Attributes:
        fusion: The strategy of ``clusters``: ``max``, ``preserve`` or ``min``.
        skewing: Whether a loop may follow a sum of iterators.
        positive: Whether no loop may run against an iterator that it follows.
        limit: isl operations for each question; beyond it, the statements concerned run in
            textual order.
    """

    fusion: str = "preserve"
    skewing: bool = False
    positive: bool = True
    limit: int = OPERATION_LIMIT


@dataclass(frozen=True, slots=True, eq=False)
class Scheduled:
    """A schedule tree, and a sentence when a simpler one than asked for was used."""

    tree: Domain
    note: str | None = None


def compute_schedule(
    scop: Scop,
    dependences: Dependences,
    *,
    fusion: str = "preserve",
    skewing: bool = False,
    positive: bool = True,
    limit: int = OPERATION_LIMIT,
) -> Scheduled:
    """The schedule of ``scop`` that respects ``dependences``; see ``Strategy`` for the rest."""
    scheduler = _Scheduler(scop, dependences, Strategy(fusion, skewing, positive, limit))
    tree = Domain(scop.domain, scheduler.whole())
    return Scheduled(tree, scheduler.note)


def reschedule_tiles(
    scop: Scop, dependences: Dependences, tree: Domain, strategy: Strategy
) -> Scheduled:
    """``tree`` with everything below its tile loops scheduled anew.

    Two instances in different tiles are in the order of the tiles whatever happens inside, so
    only the dependences within a tile count: more statements may be fused, or fewer.

    Rewrite:
        band [floor(i / 32)] / band [i] / ...  ->  band [floor(i / 32)] / a schedule of its own

    Source:
        "The Next 700 Accelerated Layers", section 4.3 (intra-tile scheduling).
    """
    notes: dict[str, None] = {}

    def visit(node: Tree, names: tuple[str, ...], pairs: Dependences) -> Tree:
        match node:
            case Sequence(filters):
                return Sequence(
                    tuple(
                        replace(f, child=visit(f.child, f.statements, pairs)) for f in filters
                    )
                )
            case Band(schedule, _, _, Band()) if counts_tiles(schedule):
                inside = pairs.restricted(lambda p: p.eq_at_multi_union_pw_aff(schedule))
                scheduler = _Scheduler(part_of(scop, names), inside, strategy)
                below_tiles = scheduler.whole()
                if scheduler.note:
                    notes[scheduler.note] = None
                return replace(node, child=below_tiles)
            case _:
                return node

    everything = tuple(s.name for s in scop.statements)
    child = visit(tree.child, everything, dependences)
    return Scheduled(replace(tree, child=child), "; ".join(notes) or None)


def part_of(scop: Scop, names: tuple[str, ...]) -> Scop:
    """``scop`` with some of its statements only."""
    statements = tuple(s for s in scop.statements if s.name in names)
    return replace(scop, statements=statements, domain=isl.part_of(scop.domain, names))


def _sequence(parts: list[Filter]) -> Tree:
    return parts[0].child if len(parts) == 1 else Sequence(tuple(parts))


class _Scheduler:
    """Schedules the statements of ``scop``; ``note`` tells when a simpler schedule was used."""

    def __init__(self, scop: Scop, dependences: Dependences, strategy: Strategy) -> None:
        self.scop = scop
        domain = scop.domain
        self.dependences = dependences.restricted(
            lambda pairs: pairs.intersect_domain(domain).intersect_range(domain)
        )
        self.ordered = self.dependences.all
        self.depends = self.dependences.pairs
        self.bound = self.dependences.self_dependent
        self.strategy = strategy
        self.notes: dict[str, None] = {}

    @property
    def note(self) -> str | None:
        """Why some statements run in textual order."""
        if not self.notes:
            return None
        return "; ".join([*self.notes, "some statements run in textual order"])

    def whole(self) -> Tree:
        """The order of all statements."""
        strategy = self.strategy
        clusters = find_clusters(self.scop, self.dependences, strategy.fusion, strategy.limit)
        if clusters.exhausted:
            self._exhausted()
        return _sequence([Filter(c.statements, self.tree(c)) for c in clusters.found])

    def _exhausted(self) -> None:
        self.notes[f"isl needed more than {self.strategy.limit} operations"] = None

    def tree(self, cluster: Cluster) -> Tree:
        """Outer loops, then reductions' identities, then what isl makes of the rest.

        An identity stays in its place when the tensor had a value that was used before it.
        Statements are scheduled with those of equal depth only: isl would put a scalar into the
        first iteration of its neighbour's loop, which then carries a dependence.
        """
        inits = tuple(n for n in cluster.statements if self._is_first_init(n, cluster))
        rest = [n for n in cluster.statements if n not in inits]
        runs = [tuple(run) for _, run in groupby(rest, lambda n: len(self._inner(n, cluster)))]
        parts = [Filter(names, self._run(names, cluster)) for names in (inits, *runs) if names]
        child = _sequence(parts)
        if not cluster.rows:
            return child
        outer = as_schedule(self.scop, cluster.rows)
        return Band(outer, True, (True,) * cluster.depth, child)

    def _is_first_init(self, name: str, cluster: Cluster) -> bool:
        """Whether a statement stores an identity over nothing the cluster computed before."""
        before = cluster.statements[: cluster.statements.index(name)]
        return name.endswith("_init") and not any((n, name) in self.depends for n in before)

    def _inner(self, name: str, cluster: Cluster) -> tuple[str, ...]:
        """The iterators of a statement that the outer loops leave free."""
        fixed = {row[name] for row in cluster.rows}
        return tuple(i for i in self.scop.statement(name).iterators if i not in fixed)

    def _run(self, names: tuple[str, ...], cluster: Cluster) -> Tree:
        """The loops inside the outer ones for statements of equal depth."""
        if self._inner(names[0], cluster) and (
            len(names) > 1 or self.bound.intersection(names)
        ):
            solved = self._tried(names, cluster)
            if solved is not None:
                return solved
        return _sequence([Filter((n,), self._own_loops(n, cluster)) for n in names])

    def _tried(self, names: tuple[str, ...], cluster: Cluster) -> Tree | None:
        """What isl makes of ``names``; ``None``, with a note, when that cannot be had."""
        if len(names) > MOST_TOGETHER:
            self.notes[f"{len(names)} statements are too many for one linear program"] = None
            return None
        try:
            with isl.limited(self.scop.context, self.strategy.limit):
                solved = _forward(self._solved(names, cluster))
        except isl.OperationLimit:
            self._exhausted()
            return None
        if not self.strategy.skewing and follows_sums(solved):
            return None
        if self.strategy.positive and runs_backwards(solved):
            return None
        return solved

    def _own_loops(self, name: str, cluster: Cluster) -> Tree:
        """A statement's own loops: the coincident ones as a band, each reduction below."""
        if name in self.bound:
            return self._textual(name, cluster)
        statement = self.scop.statement(name)
        inner = self._inner(name, cluster)
        tree: Tree = Leaf()
        for iterator in reversed([i for i in inner if i in statement.reduction]):
            tree = Band(as_schedule(self.scop, [{name: iterator}]), True, (False,), tree)
        free = [i for i in inner if i not in statement.reduction]
        if free:
            schedule = as_schedule(self.scop, [{name: i} for i in free])
            tree = Band(schedule, True, (True,) * len(free), tree)
        return tree

    def _textual(self, name: str, cluster: Cluster) -> Tree:
        """The loops of a statement that needs its own values, in textual order.

        Neighbours share a band as long as none of them reverses a dependence.
        """
        domain = isl.part_of(self.scop.domain, (name,))
        pairs = self.ordered.intersect_domain(domain).intersect_range(domain)
        if cluster.rows:
            pairs = pairs.eq_at_multi_union_pw_aff(as_schedule(self.scop, cluster.rows))
        bands: list[Band] = []
        for iterator in self._inner(name, cluster):
            row = as_schedule(self.scop, [{name: iterator}])
            if bands and bands[-1].permutable and reversed_by(pairs, row).is_empty():
                bands[-1] = judged(joined([bands[-1].schedule, row]), pairs, Leaf())
                continue
            for band in bands[-1:]:
                pairs = pairs.eq_at_multi_union_pw_aff(band.schedule)
            bands.append(judged(row, pairs, Leaf()))
        tree: Tree = Leaf()
        for band in reversed(bands):
            tree = replace(band, child=tree)
        return tree

    def _solved(self, names: tuple[str, ...], cluster: Cluster) -> Tree:
        """Isl's schedule of ``names`` within one iteration of the outer loops."""
        domain = isl.part_of(self.scop.domain, names)
        if cluster.rows:
            fixed = ", ".join(f"fixed{k}" for k in range(cluster.depth))
            point = isl.union_set(self.scop.context, f"[{fixed}] -> {{ [{fixed}] }}")
            outer = isl.UnionMap.from_multi_union_pw_aff(as_schedule(self.scop, cluster.rows))
            domain = outer.intersect_range(point).domain().intersect(domain)
        validity = self.ordered.intersect_domain(domain).intersect_range(domain)
        flow = self.dependences.flow.intersect_domain(domain).intersect_range(domain)
        schedule = (
            isl.ScheduleConstraints.on_domain(domain)
            .set_context(self.scop.parameters)
            .set_validity(validity)
            .set_coincidence(validity)
            .set_proximity(flow)
            .compute_schedule()
        )
        return _without_fixed(from_isl(schedule.get_root().child(0)))


def _forward(tree: Tree) -> Tree:
    """``tree`` with parallel loops that run backwards turned around."""

    def rule(node: Tree) -> Tree | None:
        if not isinstance(node, Band):
            return None
        turned = [node.coincident[k] and is_backward(node, k) for k in range(node.depth)]
        if not any(turned):
            return None
        rows = [
            member(node, k).neg() if turned[k] else member(node, k) for k in range(len(turned))
        ]
        return replace(node, schedule=joined(rows))

    return rewrite(tree, rule)


def _without_fixed(tree: Tree) -> Tree:
    """Drop members that the outer loops determine, and the parameters that fix those."""

    def rule(node: Tree) -> Tree | None:
        if not isinstance(node, Band):
            return None
        keep = [k for k in range(node.depth) if not _is_constant(node.schedule, k)]
        if not keep:
            return node.child
        schedule = node.schedule
        for k in reversed(range(node.depth)):
            if k not in keep:
                schedule = schedule.drop_dims(isl.dim_type.out, k, 1)
        coincident = tuple(node.coincident[k] for k in keep)
        return replace(node, schedule=_without_parameters(schedule), coincident=coincident)

    return rewrite(tree, rule)


def _without_parameters(schedule: isl.MultiUnionPwAff) -> isl.MultiUnionPwAff:
    """The same functions without the parameters that fixed the outer loops."""
    head, arrow, rows = str(schedule).partition("] -> ")
    if not arrow or "fixed" not in head:
        return schedule
    names = [n.strip() for n in head.strip("[ ").split(",")]
    kept = ", ".join(n for n in names if not n.startswith("fixed"))
    assert "fixed" not in rows, f"an inner loop depends on an outer one: {schedule}"
    text = f"[{kept}] -> {rows}" if kept else rows
    return isl.MultiUnionPwAff.read_from_str(schedule.get_ctx(), text)


def _is_constant(schedule: isl.MultiUnionPwAff, member: int) -> bool:
    """Whether a member takes one value for every instance inside the fixed outer loops."""
    row = isl.UnionMap.from_union_pw_aff(schedule.get_union_pw_aff(member))
    values = row.range()
    return bool(values.is_empty()) or all(s.is_singleton() for s in isl.sets_of(values))
