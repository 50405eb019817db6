"""Which loops of a tree compute reductions, for a target that has something special for them.

A band reduces when its last members carry nothing but the updates of one statement, each
iteration of the loops outside and of its leading coincident members is about one element, and
everything else below it can run entirely before or after the updates.

Source: "The Next 700 Accelerated Layers", section 4.4 (reduction detection); the conditions of
Tensor Comprehensions' detector, without those of its block reduction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tcfuse.poly import isl
from tcfuse.poly.dependences import Dependences
from tcfuse.poly.rows import iterator_of
from tcfuse.poly.scop import Scop
from tcfuse.poly.transforms import joined
from tcfuse.poly.tree import Band, Domain, Filter, Leaf, Mark, Sequence, Tree


@dataclass(frozen=True, slots=True, eq=False)
class Reduction:
    """A band that reduces.

    Attributes:
        band: The band.
        statement: The update.
        operator: ``+``, ``*``, ``min`` or ``max``.
        coincident: Leading members that are parallel.
        iterators: Iterators of the update that the other members follow.
        before: Statements below the band that can run before all updates.
        after: Statements that can run after them.
    """

    band: Band
    statement: str
    operator: str
    coincident: int
    iterators: tuple[str, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]


def find_reductions(scop: Scop, dependences: Dependences, tree: Domain) -> list[Reduction]:
    """The reducing bands of ``tree``, in pre-order."""
    names = tuple(s.name for s in scop.statements)
    finder = _Finder(scop, dependences)
    return list(finder.below(tree.child, names, (), dependences.all))


class _Finder:
    def __init__(self, scop: Scop, dependences: Dependences) -> None:
        self.scop = scop
        self.dependences = dependences

    def below(
        self,
        tree: Tree,
        names: tuple[str, ...],
        outer: tuple[isl.MultiUnionPwAff, ...],
        pairs: isl.UnionMap,
    ) -> Iterator[Reduction]:
        match tree:
            case Leaf():
                return
            case Sequence(filters):
                for f in filters:
                    yield from self.below(f.child, f.statements, outer, pairs)
            case Band():
                found = self._reduction(tree, names, outer, pairs)
                if found is not None:
                    yield found
                inside = pairs.eq_at_multi_union_pw_aff(tree.schedule)
                yield from self.below(tree.child, names, (*outer, tree.schedule), inside)
            case Mark() | Domain() | Filter():
                yield from self.below(tree.child, names, outer, pairs)

    def _reduction(
        self,
        band: Band,
        names: tuple[str, ...],
        outer: tuple[isl.MultiUnionPwAff, ...],
        pairs: isl.UnionMap,
    ) -> Reduction | None:
        """What ``band`` reduces, if it does."""
        leading = next((k for k, c in enumerate(band.coincident) if not c), band.depth)
        updates = [n for n in names if self.scop.statement(n).reduction]
        if not band.permutable or leading == band.depth or len(updates) != 1:
            return None
        update = self.scop.statement(updates[0])
        if not update.is_update:
            return None
        followed = [iterator_of(band, k, update) for k in range(leading, band.depth)]
        iterators = tuple(i for i in followed if i in update.reduction)
        if len(iterators) != len(followed) or not self._is_one_element(
            band, leading, update.name, outer
        ):
            return None
        sides = self._sides(names, update.name, pairs)
        if sides is None:
            return None
        operator = update.comprehension.assign.operator
        return Reduction(band, update.name, operator, leading, iterators, *sides)

    def _is_one_element(
        self, band: Band, leading: int, name: str, outer: tuple[isl.MultiUnionPwAff, ...]
    ) -> bool:
        """Whether the loops outside and the leading members determine the element."""
        rows = list(outer)
        if leading:
            rest = band.depth - leading
            rows.append(band.schedule.drop_dims(isl.dim_type.out, leading, rest))
        instances = isl.part_of(self.scop.domain, (name,))
        written = self.scop.writes.intersect_domain(instances)
        if not rows:
            return all(s.is_singleton() for s in isl.sets_of(written.range()))
        place = isl.UnionMap.from_multi_union_pw_aff(joined(rows))
        return bool(written.apply_domain(place).is_single_valued())

    def _sides(
        self, names: tuple[str, ...], update: str, pairs: isl.UnionMap
    ) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
        """The other statements, before and after the updates; ``None``: some are between."""
        inside = isl.part_of(self.scop.domain, names)
        pairs = pairs.intersect_domain(inside).intersect_range(inside)
        follows: dict[str, set[str]] = {n: set() for n in names}
        for pair in isl.maps_of(pairs):
            source = pair.get_tuple_name(isl.dim_type.in_)
            follows[source].add(pair.get_tuple_name(isl.dim_type.out))
        later = _reached(follows, update)
        if any(update in _reached(follows, n) for n in later if n != update):
            return None  # some statement needs updates and is needed by updates
        others = [n for n in names if n != update]
        return tuple(n for n in others if n not in later), tuple(
            n for n in others if n in later
        )


def _reached(follows: dict[str, set[str]], start: str) -> set[str]:
    """Everything that comes after ``start``, itself only where there is a circle of several."""
    found: set[str] = set()
    stack = [n for n in follows[start] if n != start]
    while stack:
        name = stack.pop()
        if name not in found:
            found.add(name)
            stack.extend(follows[name])
    return found
