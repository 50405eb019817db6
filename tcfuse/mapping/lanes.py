"""Which loop becomes vector lanes: a mapping decision, like threads on a GPU.

Every path from the root to a statement gets at most one lanes loop.  A loop may be given to
lanes when no dependence is carried by it (its statements then run in all lanes at once, inner
loops included: how a reduction along an outer axis is vectorised), or, for an innermost loop,
when only updates of reductions are (each lane then keeps a partial result).  Among the legal
choices the one with the fewest vector operations wins; an access that is neither contiguous nor
the same for all lanes costs ``STRIDED`` a lane, twice that when it writes.  What is computed
and used up inside the loop each lane keeps for itself, side by side with its neighbours'.

Source: "The Next 700 Accelerated Layers", section 4.4 (mapping to threads), with lanes in place
of threads.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, replace

from tcfuse.mapping.access import touches
from tcfuse.mapping.legality import among, carries_nothing, inside
from tcfuse.poly import isl
from tcfuse.poly.dependences import Dependences
from tcfuse.poly.rows import iterator_of
from tcfuse.poly.scop import Scop
from tcfuse.poly.transforms import member, without
from tcfuse.poly.tree import Band, Domain, Filter, Leaf, Mark, Sequence, Tree, below
from tcfuse.poly.volume import domain_volume, extent
from tcfuse.tc.ast import walk

WIDTH = 8  # lanes the choice is made for; the count itself is chosen with the instruction set
STRIDED = 1.5  # a strided access costs this much a lane; contiguous or uniform, one for all
OUTER = 1.25  # lanes across an outer loop use part of each cache line a row at a time
LANES = "lanes"
PARALLEL = "parallel"


@dataclass(frozen=True, slots=True, eq=False)
class _Choice:
    cost: float
    tree: Tree


class _Mapper:
    def __init__(self, scop: Scop, dependences: Dependences, reassociate: bool) -> None:
        self.scop = scop
        self.ordered = dependences.ordered if reassociate else dependences.all
        self.rows: dict[tuple[int, str, int], str | None] = {}
        self.users: dict[str, set[str]] = defaultdict(set)
        for statement in scop.statements:
            for touch in touches(scop, statement):
                self.users[touch.tensor].add(statement.name)

    def best(self, tree: Tree, statements: tuple[str, ...], outer: tuple[Band, ...]) -> _Choice:
        """The cheapest mapping of ``tree``, whose loops lie inside those of ``outer``."""
        match tree:
            case Leaf():
                return _Choice(sum(self._cost(s, None) for s in statements), tree)
            case Sequence(filters):
                parts = [self.best(f.child, f.statements, outer) for f in filters]
                rebuilt = tuple(
                    replace(f, child=p.tree) for f, p in zip(filters, parts, strict=True)
                )
                return _Choice(sum(p.cost for p in parts), Sequence(rebuilt))
            case Mark():
                return _Choice(0.0, tree)  # somebody has chosen
            case Band():
                deeper = self.best(tree.child, statements, (*outer, tree))
                choices = [_Choice(deeper.cost, replace(tree, child=deeper.tree))]
                for position in range(tree.depth):
                    if self._legal(tree, position, statements, outer):
                        choices.append(self._across(tree, position, statements))
                return min(choices, key=lambda c: c.cost)
            case Domain() | Filter():
                raise AssertionError(f"{type(tree).__name__} inside a schedule")

    def _across(self, band: Band, position: int, statements: tuple[str, ...]) -> _Choice:
        """Lanes along one member, which becomes the innermost of its band."""
        cost, own = 0.0, self._used_up(statements)
        for name in statements:
            cost += self._cost(name, self._iterator(band, position, name), own)
        if not isinstance(band.child, Leaf):
            cost *= OUTER
        lane = Band(member(band, position), True, (band.coincident[position],), band.child)
        rest = without(band, position)
        mapped: Tree = Mark(LANES, lane)
        return _Choice(cost, mapped if rest is None else replace(rest, child=mapped))

    def _legal(
        self, band: Band, position: int, statements: tuple[str, ...], outer: tuple[Band, ...]
    ) -> bool:
        if not (band.permutable or band.depth == 1 or position == band.depth - 1):
            return False
        if any(isinstance(node, Mark) for node in below(band.child)):
            return False
        if band.coincident[position]:
            return True
        if not isinstance(band.child, Leaf) and any(
            isinstance(n, Band) for n in below(band.child)
        ):
            return False
        pairs = among(self.ordered, isl.part_of(self.scop.domain, statements))
        pairs = inside(pairs, [b.schedule for b in outer])
        others = [member(band, k) for k in range(band.depth) if k != position]
        return carries_nothing(inside(pairs, others), member(band, position))

    def _used_up(self, statements: tuple[str, ...]) -> set[str]:
        """Temporaries that nothing but ``statements`` writes and reads."""
        checked, inside = self.scop.checked, set(statements)
        return {
            name
            for name, users in self.users.items()
            if users <= inside and name not in (*checked.inputs, *checked.outputs)
        }

    def _cost(self, name: str, iterator: str | None, own: Collection[str] = ()) -> float:
        """Vector operations of a statement with lanes along ``iterator``.

        Args:
            name: The statement.
            iterator: ``None`` for no lanes.
            own: Tensors of which each lane has its own.
        """
        statement = self.scop.statement(name)
        volume = domain_volume(statement)
        work = sum(1 for value in statement.comprehension.values for _ in walk(value))
        if iterator is None:
            return float(volume * work)
        width = min(WIDTH, extent(statement, iterator))
        strided = 0
        for touch in touches(self.scop, statement):
            stride = touch.offset.stride(iterator)
            if touch.tensor in own and stride is not None:
                continue
            if stride is None or stride.number not in (0, 1):
                strided += 2 if touch.is_write else 1  # reads can be turned in registers
        return volume * (work / width + STRIDED * strided)

    def _iterator(self, band: Band, position: int, name: str) -> str | None:
        key = (id(band), name, position)
        if key not in self.rows:
            self.rows[key] = iterator_of(band, position, self.scop.statement(name))
        return self.rows[key]


def choose_lanes(
    scop: Scop, dependences: Dependences, tree: Domain, *, reassociate: bool = True
) -> Domain:
    """``tree`` with a ``lanes`` mark above each loop that becomes vector lanes."""
    mapper = _Mapper(scop, dependences, reassociate)
    names = tuple(s.name for s in scop.statements)
    return replace(tree, child=mapper.best(tree.child, names, ()).tree)


def mark_parallel(tree: Domain) -> Domain:
    """``tree`` with a ``parallel`` mark above each coincident outermost loop of every nest."""

    def nests(node: Tree) -> Tree:
        match node:
            case Sequence(filters):
                return Sequence(tuple(replace(f, child=nests(f.child)) for f in filters))
            case Band() if node.coincident[0]:
                first, rest = member(node, 0), without(node, 0)
                child = node.child if rest is None else nests(rest)
                return Mark(PARALLEL, Band(first, True, (True,), child))
            case Mark(name, Band() as band) if name == LANES and band.coincident[0]:
                return Mark(PARALLEL, node)
            case _:
                return node

    return replace(tree, child=nests(tree.child))
