"""The ILP scheduler under a fusion strategy.

isl's incremental clustering leaves a reduction apart from its pointwise neighbours, and its
whole-component mode shifts loops past each other and takes minutes beyond a few dozen
statements.  So fusion is decided here, as Tensor Comprehensions did through isl's merge
callback: statements join a cluster, in textual order, while the ILP still finds enough
coincident outer loops for the union.  Inside the outer loops isl schedules what is left.

Source: "The Next 700 Accelerated Layers", section 4.3 (fusion strategies); Verdoolaege and
Janssens, "Scheduling for PPCG", 2017 (coincidence, clustering).
"""

from __future__ import annotations

from collections.abc import Sequence as Seq
from dataclasses import dataclass, replace
from itertools import groupby

from tcfuse.poly import isl
from tcfuse.poly.dependences import Dependences
from tcfuse.poly.rows import iterator_of
from tcfuse.poly.scop import Scop, Statement
from tcfuse.poly.tree import Band, Domain, Filter, Leaf, Sequence, Tree, rewrite
from tcfuse.poly.tree_isl import from_isl, statement_order
from tcfuse.poly.volume import domain_volume, shared_volume

OPERATION_LIMIT = 40_000_000  # about a second of isl on one core


@dataclass(frozen=True, slots=True, eq=False)
class Cluster:
    """Statements that share outer loops.

    Attributes:
        statements: Names, in textual order.
        outer: The shared coincident members; ``None`` when there are none.
    """

    statements: tuple[str, ...]
    outer: isl.MultiUnionPwAff | None

    @property
    def depth(self) -> int:
        """Number of shared coincident loops."""
        return 0 if self.outer is None else int(self.outer.dim(isl.dim_type.out))


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
    limit: int = OPERATION_LIMIT,
) -> Scheduled:
    """The schedule of ``scop``.

    Args:
        scop: What to schedule.
        dependences: What must be respected.
        fusion: ``max`` joins whenever one outer loop stays parallel, ``preserve`` only without
            losing parallel loops or when that saves reading a tensor again, ``min`` never.
        limit: isl operations for the whole kernel; beyond it, textual order is used.
    """
    scheduler = _Scheduler(scop, dependences, fusion)
    try:
        with isl.limited(scop.context, limit):
            return Scheduled(scheduler.run())
    except isl.OperationLimit:
        note = f"isl needed more than {limit} operations; statements run in textual order"
        return Scheduled(textual_schedule(scop, dependences), note)


def textual_schedule(scop: Scop, dependences: Dependences) -> Domain:
    """Each statement in a loop nest of its own, one after the other."""
    filters = tuple(
        Filter((s.name,), _own_loops(scop, dependences, s)) for s in scop.statements
    )
    child: Tree = filters[0].child if len(filters) == 1 else Sequence(filters)
    return Domain(scop.domain, child)


def _own_loops(scop: Scop, dependences: Dependences, statement: Statement) -> Tree:
    if not statement.iterators:
        return Leaf()
    rows = ", ".join(f"{{ {statement.instance()} -> [{i}] }}" for i in statement.iterators)
    sizes = scop.checked.sizes
    head = f"[{', '.join(sizes)}] -> " if sizes else ""  # isl reads [] as the whole schedule
    schedule = isl.MultiUnionPwAff.read_from_str(scop.context, f"{head}[{rows}]")
    coincident = tuple(i not in statement.reduction for i in statement.iterators)
    return Band(schedule, True, coincident, Leaf())


class _Scheduler:
    def __init__(self, scop: Scop, dependences: Dependences, fusion: str) -> None:
        self.scop = scop
        self.dependences = dependences
        self.fusion = fusion
        self.ordered = dependences.all

    def run(self) -> Domain:
        filters = tuple(Filter(c.statements, self._tree(c)) for c in self._clusters())
        child: Tree = filters[0].child if len(filters) == 1 else Sequence(filters)
        return Domain(self.scop.domain, child)

    # -------------------------------------------------------------- which statements fuse

    def _clusters(self) -> list[Cluster]:
        clusters: list[Cluster] = []
        for item in self._items():
            own = self._cluster(item)
            for position in range(len(clusters) - 1, -1, -1):
                merged = self._merge(clusters[position], own)
                if merged is not None:
                    clusters[position] = merged
                    break
                if self._depends(clusters[position].statements, item):
                    clusters.append(own)
                    break
            else:
                clusters.append(own)
        return clusters

    def _items(self) -> list[tuple[str, ...]]:
        """Statements, an initialisation together with its reduction."""
        items: list[list[str]] = []
        for s in self.scop.statements:
            if items and items[-1][-1] == f"{s.name}_init":
                items[-1].append(s.name)
            else:
                items.append([s.name])
        return [tuple(item) for item in items]

    def _merge(self, cluster: Cluster, own: Cluster) -> Cluster | None:
        if self.fusion == "min" or min(cluster.depth, own.depth) == 0:
            return None
        names = statement_order(cluster.statements + own.statements)
        shared = shared_volume(self.scop, cluster.statements, own.statements)
        if shared == 0:
            return None
        merged = self._cluster(names)
        if merged.depth < min(cluster.depth, own.depth):
            return merged if self.fusion == "max" and merged.depth > 0 else None
        lossless = merged.depth >= max(cluster.depth, own.depth)
        largest = max(domain_volume(self.scop.statement(n)) for n in names)
        if lossless or self.fusion == "max" or 2 * shared >= largest:
            return merged
        return merged if self._small(own) and merged.depth == own.depth else None

    def _small(self, own: Cluster) -> bool:
        """Whether the statements keep all their loops, so that they ride along for free."""
        return all(
            len(self.scop.statement(n).iterators) - len(self.scop.statement(n).reduction)
            == own.depth
            for n in own.statements
        )

    def _depends(self, before: Seq[str], after: Seq[str]) -> bool:
        pairs = self.ordered.intersect_domain(self._domain(before))
        return not pairs.intersect_range(self._domain(after)).is_empty()

    # -------------------------------------------------------------- outer loops of a cluster

    def _domain(self, names: Seq[str]) -> isl.UnionSet:
        return isl.part_of(self.scop.domain, names)

    def _cluster(self, names: tuple[str, ...]) -> Cluster:
        """``names`` with the coincident loops that the ILP finds for all of them together."""
        domain = self._domain(names)
        root = self._solve(domain, whole=True).get_root().child(0)
        if isl.kind_of(root) != "band":
            return Cluster(names, None)
        band = from_isl(root)
        assert isinstance(band, Band)
        depth = 0
        while depth < band.depth and band.coincident[depth]:
            depth += 1
        if depth == 0:
            return Cluster(names, None)
        outer = band.schedule.drop_dims(isl.dim_type.out, depth, band.depth - depth)
        return Cluster(names, outer)

    def _solve(self, domain: isl.UnionSet, *, whole: bool) -> isl.Schedule:
        def within(relation: isl.UnionMap) -> isl.UnionMap:
            return relation.intersect_domain(domain).intersect_range(domain)

        context = self.scop.context
        context.set_schedule_whole_component(int(whole))
        context.set_schedule_separate_components(int(not whole))
        validity = within(self.ordered)
        proximity = within(self.dependences.flow)
        if whole:
            proximity = proximity.union(within(self._common_reads()))
        return (
            isl.ScheduleConstraints.on_domain(domain)
            .set_context(self.scop.parameters)
            .set_validity(validity)
            .set_coincidence(validity)
            .set_proximity(proximity)
            .compute_schedule()
        )

    def _common_reads(self) -> isl.UnionMap:
        """Pairs of instances of different statements that read one element of an input."""
        if not hasattr(self, "_rar"):
            inputs = {f"T_{name}" for name in self.scop.checked.inputs}
            reads = [
                m
                for m in isl.maps_of(self.scop.reads)
                if m.get_tuple_name(isl.dim_type.out) in inputs
            ]
            total = isl.union_map(self.scop.context, "{ }")
            for k, first in enumerate(reads):
                for second in reads[k + 1 :]:
                    if first.get_tuple_name(isl.dim_type.out) == second.get_tuple_name(
                        isl.dim_type.out
                    ):
                        pair = first.apply_range(second.reverse())
                        total = total.union(isl.UnionMap.from_map(pair))
            self._rar = total
        return self._rar

    # -------------------------------------------------------------- inside the outer loops

    def _tree(self, cluster: Cluster) -> Tree:
        """Outer loops, then all reductions' identities, then what isl makes of the rest."""
        inits = tuple(n for n in cluster.statements if n.endswith("_init"))
        rest = [n for n in cluster.statements if n not in inits]
        runs = [tuple(run) for _, run in groupby(rest, lambda n: self._inner_depth(n, cluster))]
        parts = [
            Filter(names, self._inner(names, cluster.outer))
            for names in (inits, *runs)
            if names
        ]
        child: Tree = parts[0].child if len(parts) == 1 else Sequence(tuple(parts))
        if cluster.outer is None:
            return child
        return Band(cluster.outer, True, (True,) * cluster.depth, child)

    def _inner_depth(self, name: str, cluster: Cluster) -> int:
        """Iterators of a statement that the outer loops leave free.

        Statements are scheduled with those of equal depth only: isl would put a scalar into the
        first iteration of its neighbour's loop, which then carries a dependence.
        """
        statement = self.scop.statement(name)
        if cluster.outer is None:
            return len(statement.iterators)
        rows = Band(cluster.outer, True, (True,) * cluster.depth, Leaf())
        fixed = {iterator_of(rows, k, statement) for k in range(cluster.depth)}
        return len(set(statement.iterators) - fixed)

    def _inner(self, names: tuple[str, ...], outer: isl.MultiUnionPwAff | None) -> Tree:
        """The schedule of ``names`` within one iteration of the outer loops."""
        domain = self._domain(names)
        if outer is not None:
            fixed = ", ".join(f"fixed{k}" for k in range(outer.dim(isl.dim_type.out)))
            point = isl.union_set(self.scop.context, f"[{fixed}] -> {{ [{fixed}] }}")
            instances = isl.UnionMap.from_multi_union_pw_aff(outer).intersect_range(point)
            domain = instances.domain().intersect(domain)
        node = self._solve(domain, whole=False).get_root().child(0)
        return _without_fixed(from_isl(node))


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
