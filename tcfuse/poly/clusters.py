"""Fusion strategy: which statements share outer loops.

Statements join a cluster in textual order while the loops they share stay coincident.  Three
strategies, those of Tensor Comprehensions: ``min`` never fuses; ``max`` fuses as long as one
parallel loop is shared; ``preserve`` fuses when no statement loses a parallel loop or three are
left, or when a tensor as large as the loop nest need not be read again.

Source: "The Next 700 Accelerated Layers", section 4.3 (fusion strategies).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence as Seq
from dataclasses import dataclass

from tcfuse.poly import isl
from tcfuse.poly.alignment import Row, Subscripts, align, as_schedule, subscripts_of
from tcfuse.poly.dependences import Dependences
from tcfuse.poly.scop import Scop, Statement, accesses
from tcfuse.poly.tree_isl import statement_order
from tcfuse.poly.volume import domain_volume, shared_volume

ENOUGH = 3  # parallel loops that are as good as any number


@dataclass(frozen=True, slots=True, eq=False)
class Cluster:
    """Statements that share coincident outer loops.

    Attributes:
        statements: Names, in textual order.
        rows: The shared loops: each statement's iterator.
    """

    statements: tuple[str, ...]
    rows: tuple[Row, ...]

    @property
    def depth(self) -> int:
        """Number of shared loops."""
        return len(self.rows)


@dataclass(frozen=True, slots=True, eq=False)
class Clusters:
    """The clusters of a scop, in an order that respects every dependence.

    Attributes:
        found: The clusters.
        exhausted: Whether isl was stopped, so that loops were left apart that might be shared.
    """

    found: tuple[Cluster, ...]
    exhausted: bool


def find_clusters(
    scop: Scop, dependences: Dependences, fusion: str, limit: int = 0
) -> Clusters:
    """The clusters of a scop.

    Args:
        scop: Whose statements are clustered.
        dependences: What must be respected.
        fusion: ``max``, ``preserve`` or ``min``.
        limit: isl operations for one question about a loop; a loop about which isl needs more
            is not shared.  0 sets no limit.
    """
    clustering = _Clustering(scop, dependences, fusion, limit)
    return Clusters(tuple(clustering.run()), clustering.exhausted)


class _Clustering:
    def __init__(self, scop: Scop, dependences: Dependences, fusion: str, limit: int) -> None:
        self.scop = scop
        self.fusion = fusion
        self.limit = limit
        self.exhausted = False
        self.bound = dependences.self_dependent
        self.subscripts: dict[str, Subscripts] = {
            s.name: subscripts_of(s) for s in scop.statements
        }
        self.depends = dependences.pairs
        self.touching: defaultdict[str, list[tuple[frozenset[str], isl.Map]]] = defaultdict(
            list
        )
        for pair in isl.maps_of(dependences.all):
            ends = frozenset(map(pair.get_tuple_name, (isl.dim_type.in_, isl.dim_type.out)))
            for name in ends:
                self.touching[name].append((ends, pair))

    def run(self) -> list[Cluster]:
        clusters: list[Cluster] = []
        for own in self._items():
            for position in range(len(clusters) - 1, -1, -1):
                merged = self._merge(clusters[position], own)
                if merged is not None:
                    clusters[position] = merged
                    break
                if self._needs(own, clusters[position]):
                    clusters.append(own)
                    break
            else:
                clusters.append(own)
        return self._gathered(clusters)

    def _gathered(self, clusters: list[Cluster]) -> list[Cluster]:
        """``clusters`` with single statements moved to the first cluster that needs them.

        Only where neither loses a loop.
        Two sums over one matrix have no loop over columns in common that their accesses would
        show; a statement that combines the sums shows it.
        """
        for position in range(len(clusters) - 2, -1, -1):
            own = clusters[position]
            later = range(position + 1, len(clusters))
            first = next((k for k in later if self._needs(clusters[k], own)), None)
            if first is None or len(self._updated(own)) > 1:
                continue
            merged = self._merge(clusters[first], own)
            if merged is not None and merged.depth == clusters[first].depth == own.depth:
                clusters[first] = merged
                del clusters[position]
        return clusters

    def _updated(self, cluster: Cluster) -> set[str]:
        """The comprehensions of a cluster, by the name of their last statement."""
        return {name.removesuffix("_init") for name in cluster.statements}

    def _items(self) -> list[Cluster]:
        """Each statement alone, a reduction together with its identity."""
        items: list[list[Statement]] = []
        for s in self.scop.statements:
            if items and items[-1][-1].name == f"{s.name}_init":
                items[-1].append(s)
            else:
                items.append([s])
        return [self._alone(item) for item in items]

    def _alone(self, item: Seq[Statement]) -> Cluster:
        names = tuple(s.name for s in item)
        rows: list[Row] = [{s.name: i for s in item} for i in _free(item[-1])]
        if self.bound.intersection(names):
            rows = self._coincident(names, names, rows)
        return Cluster(names, tuple(rows))

    def _needs(self, own: Cluster, before: Cluster) -> bool:
        return any((a, b) in self.depends for a in before.statements for b in own.statements)

    def _merge(self, cluster: Cluster, own: Cluster) -> Cluster | None:
        if self.fusion == "min" or min(cluster.depth, own.depth) == 0:
            return None
        if any(self.scop.statement(n).is_copy for n in (*cluster.statements, *own.statements)):
            return None
        if self._reads_whole(cluster, own):
            return None
        shared = shared_volume(self.scop, cluster.statements, own.statements)
        if shared == 0:
            return None
        merged = self._joint(cluster, own)
        if merged.depth == 0:
            return None
        as_parallel = min(max(cluster.depth, own.depth), ENOUGH)
        if self.fusion == "max" or merged.depth >= as_parallel:
            return merged
        if merged.depth < min(cluster.depth, own.depth):
            return None
        largest = max(domain_volume(self.scop.statement(n)) for n in merged.statements)
        # a statement that keeps all its loops rides along for free
        lossless = merged.depth == own.depth == cluster.depth
        return merged if lossless or 2 * shared >= largest or self._rides(own, merged) else None

    def _reads_whole(self, cluster: Cluster, own: Cluster) -> bool:
        """Whether one reads what the other has to finish first."""
        statements = [self.scop.statement(n) for n in (*cluster.statements, *own.statements)]
        written = {s.comprehension.tensor for s in statements} & self.scop.checked.whole
        if not written:
            return False
        return any(a.tensor in written for s in statements for a in accesses(s))

    def _rides(self, own: Cluster, merged: Cluster) -> bool:
        return merged.depth == own.depth and all(
            len(_free(self.scop.statement(n))) == own.depth for n in own.statements
        )

    def _joint(self, cluster: Cluster, own: Cluster) -> Cluster:
        """Both together, with the loops that can be shared."""
        names = statement_order(cluster.statements + own.statements)
        last = self.scop.statement(own.statements[-1])
        chosen = align(self.scop, cluster.rows, self.subscripts, last, _free(last))
        rows = [
            {**row, **dict.fromkeys(own.statements, iterator)}
            for row, iterator in zip(cluster.rows, chosen, strict=True)
            if iterator is not None
        ]
        return Cluster(names, tuple(self._coincident(own.statements, names, rows)))

    def _coincident(self, added: Seq[str], names: Seq[str], rows: Seq[Row]) -> list[Row]:
        """The rows that carry no dependence of ``added``, among ``names``, on any of these.

        The rows of a cluster carry none among its statements already.
        """
        pairs = isl.union_map(self.scop.context, "{ }")
        involved: set[str] = set()
        for name in added:
            for ends, pair in self.touching.get(name, ()):
                if ends.issubset(names):
                    pairs = pairs.union(isl.UnionMap.from_map(pair))
                    involved |= ends
        pairs = pairs.intersect_domain(self.scop.domain).intersect_range(self.scop.domain)
        kept: list[Row] = []
        for row in rows:
            try:
                with isl.limited(self.scop.context, self.limit):
                    own = {name: row[name] for name in row if name in involved}
                    inside = pairs.eq_at_multi_union_pw_aff(as_schedule(self.scop, [own]))
                    if pairs.subtract(inside).is_empty():
                        kept.append(row)
            except isl.OperationLimit:
                self.exhausted = True  # what is not known to be parallel is not shared
        return kept


def _free(statement: Statement) -> tuple[str, ...]:
    """The iterators that are not reduced."""
    return tuple(i for i in statement.iterators if i not in statement.reduction)
