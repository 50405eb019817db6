"""Which loop becomes vector lanes: a mapping decision, like threads on a GPU.

Every path from the root to a statement gets at most one lanes loop.  A loop may be given to
lanes when no dependence is carried by it (its statements then run in all lanes at once, inner
loops included: how a reduction along an outer axis is vectorised), or, for an innermost loop,
when only updates of reductions are (each lane then keeps a partial result).  Among the legal
choices the one with the fewest vector operations wins; an access that is neither contiguous nor
the same for all lanes costs ``STRIDED`` a lane, twice that when it writes.  What is computed
and used up inside the loop each lane keeps for itself, side by side with its neighbours', and
accesses that are contiguous along a loop inside are turned in registers (``codegen``).

Source: "The Next 700 Accelerated Layers", section 4.4 (mapping to threads), with lanes in place
of threads.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from tcfuse.mapping.access import touches
from tcfuse.mapping.legality import among, carries_nothing, inside
from tcfuse.mapping.squares import NONE, WIDTH, Squares, contiguous_member, is_flat, only_set
from tcfuse.poly import isl
from tcfuse.poly.dependences import Dependences
from tcfuse.poly.rows import iterator_of
from tcfuse.poly.scop import Scop
from tcfuse.poly.transforms import member, without
from tcfuse.poly.tree import Band, Domain, Filter, Leaf, Mark, Sequence, Tree, below
from tcfuse.poly.volume import domain_volume, extent
from tcfuse.tc.ast import walk

STRIDED = 1.5  # a strided access costs this much a lane; contiguous or uniform, one for all
TURNED = 0.4  # the same for reads of which whole squares are turned in registers
CLOSED = 0.5  # and for writes, which wait until their square is full
FOLD = 10  # the lanes of a partial result combined into one
OUTER = 1.25  # lanes across an outer loop use part of each cache line a row at a time
LANES = "lanes"
PARALLEL = "parallel"


@dataclass(frozen=True, slots=True, eq=False)
class _Choice:
    cost: float
    tree: Tree


class _Mapper:
    def __init__(
        self,
        scop: Scop,
        dependences: Dependences,
        *,
        reassociate: bool,
        vectors: bool,
        rank: int,
    ) -> None:
        self.scop = scop
        self.rank = rank
        self.vectors = vectors
        self.ordered = dependences.ordered if reassociate else dependences.all
        self.rows: dict[tuple[int, str, int], str | None] = {}
        self.given = {*scop.checked.inputs, *scop.checked.outputs}
        self.users: dict[str, set[str]] = {}
        for statement in scop.statements:
            for touch in touches(scop, statement):
                self.users.setdefault(touch.tensor, set()).add(statement.name)

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
                        choices.append(self._across(tree, position, statements, outer))
                choices.sort(key=lambda c: c.cost)
                return choices[0 if outer else min(self.rank, len(choices) - 1)]
            case Domain() | Filter():
                raise AssertionError(f"{type(tree).__name__} inside a schedule")

    def _across(
        self, band: Band, position: int, statements: tuple[str, ...], outer: tuple[Band, ...]
    ) -> _Choice:
        """Lanes along one member, which becomes the innermost of its band."""
        cost = 0.0
        nested = not isinstance(band.child, Leaf)
        looks_inside = nested and self.vectors
        own = self._own(statements) if self.vectors else frozenset()
        once = only_set(self.scop, self.users, statements) if self.vectors else frozenset()
        turned = self._turned(band, position, statements) if self.vectors else None
        for name in statements:
            inner = self._inner((*outer, band), name) if looks_inside else frozenset()
            along = inner if turned is None else inner | {self._iterator(band, turned, name)}
            squares = Squares(inner, along, once)
            cost += self._cost(name, self._iterator(band, position, name), inner, own, squares)
        if nested and not self.vectors:
            cost *= OUTER
        lane = Band(member(band, position), True, (band.coincident[position],), band.child)
        rest = without(band, position)
        mapped: Tree = Mark(LANES, lane)
        return _Choice(cost, mapped if rest is None else replace(rest, child=mapped))

    def _turned(self, band: Band, position: int, statements: tuple[str, ...]) -> int | None:
        """The member that ``tiling`` will put inside lanes along another."""
        if not (is_flat(band.child) and band.permutable and band.coincident[position]):
            return None
        iterator = partial(self._iterator, band)
        return contiguous_member(self.scop, band, position, statements, iterator)

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

    def _cost(
        self,
        name: str,
        iterator: str | None,
        inner: frozenset[str] = frozenset(),
        own: frozenset[str] = frozenset(),
        squares: Squares = NONE,
    ) -> float:
        """Vector operations of a statement with lanes along ``iterator``.

        Args:
            name: Of the statement.
            iterator: Which lanes run along, if any do.
            inner: Iterators of the loops inside the lanes.
            own: Temporaries that lie lane by lane.
            squares: What may be turned in registers.
        """
        statement = self.scop.statement(name)
        volume = domain_volume(statement)
        work = float(sum(1 for value in statement.comprehension.values for _ in walk(value)))
        if iterator is None:
            return volume * work
        strided, split = 0.0, False
        for touch in dict.fromkeys(touches(self.scop, statement)):  # read twice, loaded once
            stride = touch.offset.stride(iterator)
            if stride is not None and (touch.tensor in own or stride.number == 0):
                continue
            if stride is not None and stride.number == 1:
                split = split or any(touch.offset.mentions(i) for i in inner)
            elif squares.turn(touch, statement, iterator):
                strided += CLOSED if touch.is_write else TURNED
            else:
                strided += STRIDED * (2 if touch.is_write else 1)
        length = extent(statement, iterator)
        vectors = work / min(WIDTH, length)
        if iterator in statement.reduction and self.vectors:
            vectors += FOLD / length
        return volume * (vectors + strided) * (OUTER if split else 1)

    def _inner(self, bands: tuple[Band, ...], name: str) -> frozenset[str]:
        """The iterators of a statement that loops inside all of ``bands`` run along."""
        outside = {self._iterator(b, k, name) for b in bands for k in range(b.depth)}
        return frozenset(self.scop.statement(name).iterators) - outside

    def _own(self, statements: tuple[str, ...]) -> frozenset[str]:
        """Temporaries that no other statement touches."""
        names = frozenset(statements)
        return frozenset(
            tensor
            for tensor, users in self.users.items()
            if users <= names and tensor not in self.given
        )

    def _iterator(self, band: Band, position: int, name: str) -> str | None:
        key = (id(band), name, position)
        if key not in self.rows:
            self.rows[key] = iterator_of(band, position, self.scop.statement(name))
        return self.rows[key]


def choose_lanes(
    scop: Scop,
    dependences: Dependences,
    tree: Domain,
    *,
    reassociate: bool = True,
    vectors: bool = True,
    rank: int = 0,
) -> Domain:
    """``tree`` with a ``lanes`` mark above each loop that becomes vector lanes.

    Args:
        scop: What is mapped.
        dependences: What must be respected.
        tree: Its schedule.
        reassociate: Whether lanes may keep partial results of a reduction.
        vectors: Whether lanes are those of a vector, which folds and turns them, not threads.
        rank: Which choice for the outermost loops is taken, from the cheapest one on.
    """
    mapper = _Mapper(scop, dependences, reassociate=reassociate, vectors=vectors, rank=rank)
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
