"""Long reductions with few results, in two stages: partial results, then their combination.

Rewrite, with a chunk of C values:
    Y(i) +=! X(i, k) where k in 0:K
    ->  Y_part(i, s) +=! X(i, s * C + k) where s in 0:K / C, k in 0:C
        Y(i) +=! Y_part(i, s)
        Y(i) += X(i, K / C * C + k) where k in 0:K % C

Every access is affine and stays inside its tensor whatever ``K`` is, the parts are equally
long, and a range shorter than a chunk leaves the first stage nothing to run: what remains is
the reduction as it was.  The combination is split again where it is long.

Source: Harris, "Optimizing Parallel Reduction in CUDA", 2007 (algorithm cascading).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from tcfuse.mapping.cuts import Cut, adds_neighbours, extent, find_cuts
from tcfuse.tc.ast import Access, AssignKind, Comprehension, Const, Expr, Range, Var, walk
from tcfuse.tc.checked import CheckedDef, CheckedStatement
from tcfuse.tc.linear import Linear, floor_div, linear_of
from tcfuse.tc.rebuild import rebuild
from tcfuse.tc.rename import free_name
from tcfuse.types import Size, TensorType

T = TypeVar("T")


def split_reductions(
    checked: CheckedDef, *, parts: int = 0, reassociate: bool = True
) -> CheckedDef:
    """``checked`` with a first stage for each long reduction with few results.

    Args:
        checked: In kernel form.
        parts: Parts of a reduction whose length is known; 0 chooses, 1 does not split.  One of
            a length that is not known is cut into parts of a fixed number of elements.
        reassociate: Whether sums and products of floats may be computed in another order.
    """
    if parts == 1:
        return checked
    types = dict(checked.tensors)
    statements: list[CheckedStatement] = []
    for item in checked.statements:
        statements += _stages(replace(checked, tensors=types), item, types, parts, reassociate)
    if len(statements) == len(checked.statements):
        return checked
    whole = checked.whole | (types.keys() - checked.tensors.keys())
    return replace(checked, statements=tuple(statements), tensors=types, whole=whole)


def _stages(
    checked: CheckedDef,
    item: CheckedStatement,
    types: dict[str, TensorType],
    parts: int,
    reassociate: bool,
) -> Iterator[CheckedStatement]:
    """The statements that ``item`` becomes; new tensors enter ``types``."""
    cuts: tuple[Cut, ...] = ()
    if item.reduction and not item.is_copy and (reassociate or _is_exact(item, types)):
        cuts = find_cuts(checked, item, parts)
    if not cuts or _reads_itself(item):
        yield item
        return
    made = _Split(checked, item, cuts)
    first = made.first()
    types[first.comprehension.tensor] = made.type()
    yield first
    combine = made.combination()
    again = all(cut.chunk == 1 for cut in cuts) or not made.rest_is_open
    if again:
        yield from _stages(checked, combine, types, parts, reassociate)
    else:
        yield combine
    if made.rest is not None:
        yield made.rest


def _is_exact(item: CheckedStatement, types: dict[str, TensorType]) -> bool:
    """Whether the order of the updates does not matter to the last bit."""
    written = item.comprehension
    return written.assign.operator in ("min", "max") or not types[written.tensor].dtype.is_float


def _reads_itself(item: CheckedStatement) -> bool:
    """Whether a value depends on what the statement has combined so far."""
    written = item.comprehension
    return any(
        isinstance(node, Access) and node.tensor == written.tensor
        for value in written.values
        for node in walk(value)
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """A cut variable: the index of its parts and how many there are."""

    cut: Cut
    index: str
    low: Linear
    length: Linear

    @property
    def count(self) -> Linear:
        """Parts."""
        return floor_div(self.length, self.cut.chunk)

    @property
    def start(self) -> Linear:
        """The variable's value at the start of a part."""
        return self.low + Linear.of(self.index) * self.cut.chunk

    @property
    def left(self) -> Linear:
        """Values that no part has."""
        return self.length - self.count * self.cut.chunk


class _Split:
    """The stages of one reduction."""

    def __init__(
        self, checked: CheckedDef, item: CheckedStatement, cuts: tuple[Cut, ...]
    ) -> None:
        self.checked, self.item = checked, item
        self.written = item.comprehension
        self.name = free_name(f"{self.written.tensor}_part", checked.tensors)
        lets = {let.name for let in self.written.lets}
        taken = {*checked.tensors, *checked.sizes, *lets, *(r.name for r in item.ranges)}
        ranges = {r.name: r for r in item.ranges}
        self.parts: list[_Part] = []
        for cut in cuts:
            index = free_name(f"{cut.name}_part", taken)
            taken.add(index)
            low, length = linear_of(ranges[cut.name].low, {}), extent(ranges[cut.name])
            assert low is not None, "a cut range is affine"
            assert length is not None, "a cut range is affine"
            self.parts.append(_Part(cut, index, low, length))
        self.inner = adds_neighbours(checked, item)

    def type(self) -> TensorType:
        """The type of the partial results."""
        kind = self.checked.tensors[self.written.tensor]
        counts: tuple[Size, ...] = tuple(part.count.size for part in self.parts)
        return TensorType(kind.dtype.compute, self._placed(kind.shape, counts))

    def first(self) -> CheckedStatement:
        """The reduction of each part."""
        starts = {part.cut.name: part.start for part in self.parts}
        whole = {part.cut.name for part in self.parts if part.cut.chunk == 1}
        chunks = {part.cut.name: part.cut.chunk for part in self.parts}
        kept = [r for r in self.item.ranges if r.name in self.item.reduction]
        reduced = [
            Range(r.name, Const(0), Const(chunks[r.name])) if r.name in chunks else r
            for r in kept
            if r.name not in whole
        ]
        outer = [Range(p.index, Const(0), p.count.expr) for p in self.parts]
        results = self.item.ranges[: len(self.written.indices)]
        written = replace(
            self._shifted(starts, whole),
            tensor=self.name,
            indices=self._indices(),
            assign=AssignKind(f"{self.written.assign.operator}=!"),
        )
        ranges = (*self._placed(results, tuple(outer)), *reduced)
        return _statement(written, ranges, tuple(r.name for r in reduced))

    def combination(self) -> CheckedStatement:
        """The reduction of the partial results."""
        indices = self._indices()
        value = Access(self.name, tuple(Var(name) for name in indices))
        results = self.item.ranges[: len(self.written.indices)]
        outer = tuple(Range(p.index, Const(0), p.count.expr) for p in self.parts)
        written = replace(self.written, value=value, lets=(), exists=(), equivalent=None)
        return _statement(written, (*results, *outer), tuple(p.index for p in self.parts))

    @property
    def rest_is_open(self) -> bool:
        """Whether it depends on sizes how many parts of more than one value there are."""
        return any(part.cut.chunk > 1 and bool(part.length.terms) for part in self.parts)

    @property
    def rest(self) -> CheckedStatement | None:
        """What is left of the variable that is cut into chunks; ``None`` when nothing is."""
        part = next((p for p in self.parts if p.cut.chunk > 1), None)
        if part is None or part.left == Linear.of(0):
            return None
        name = part.cut.name
        shifted = self._shifted({name: part.low + part.count * part.cut.chunk}, set())
        ranges = tuple(
            Range(name, Const(0), part.left.expr) if r.name == name else r
            for r in self.item.ranges
        )
        assign = AssignKind(f"{self.written.assign.operator}=")
        return _statement(replace(shifted, assign=assign), ranges, self.item.reduction)

    def _indices(self) -> tuple[str, ...]:
        return self._placed(self.written.indices, tuple(p.index for p in self.parts))

    def _placed(self, results: tuple[T, ...], parts: tuple[T, ...]) -> tuple[T, ...]:
        """Neighbours are what the combination reads together, and the first stage writes."""
        return (*results, *parts) if self.inner else (*parts, *results)

    def _shifted(self, starts: dict[str, Linear], whole: set[str]) -> Comprehension:
        """The reduction with its cut variables counted from ``starts``."""

        def swap(node: Expr) -> Expr:
            if not isinstance(node, Var) or node.name not in starts:
                return node
            start = starts[node.name]
            return (start if node.name in whole else start + Linear.of(node.name)).expr

        written = self.written
        return replace(
            written,
            value=rebuild(written.value, swap),
            lets=tuple(replace(let, value=rebuild(let.value, swap)) for let in written.lets),
            exists=tuple(rebuild(e, swap) for e in written.exists),
            equivalent=None,
        )


def _statement(
    written: Comprehension, ranges: tuple[Range, ...], reduction: tuple[str, ...]
) -> CheckedStatement:
    return CheckedStatement(replace(written, ranges=ranges), ranges, reduction)
