"""Whether two threads may meet in an element that one of them writes, asked of isl."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from tcfuse.codegen.cuda.touches import Span, Threads, Touch
from tcfuse.poly import isl
from tcfuse.poly.polynomial import Polynomial
from tcfuse.poly.scop import Scop

_FUNCTIONS = {"tcf_floor_div": "floord", "tcf_min": "min", "tcf_max": "max"}
_NAME = re.compile(r"[A-Za-z_]\w*")


class Conflicts:
    """Answers for the nodes of one kernel."""

    def __init__(self, scop: Scop) -> None:
        self.scop = scop
        self.known: dict[str, bool] = {}

    def any(
        self,
        earlier: Sequence[Touch],
        later: Sequence[Touch],
        *,
        loop: Span | None = None,
        apart: Collection[str] = (),
    ) -> bool:
        """Whether different threads touch an element in one of ``earlier`` and of ``later``.

        Args:
            earlier: Touches of what runs first.
            later: Touches of what runs then.
            loop: A loop around both, of which ``later`` is in a later iteration.
            apart: Iterators around both that may be different for the two.
        """
        return any(
            self._meet(a, b, loop, apart)
            for a in earlier
            for b in later
            if a.tensor == b.tensor and (a.is_write or b.is_write)
        )

    def _meet(self, a: Touch, b: Touch, loop: Span | None, apart: Collection[str]) -> bool:
        threads = {a.threads, b.threads}
        if threads == {Threads.FIRST}:
            return False
        around = () if loop is None else (loop,)
        one = _Side("a", (*around, *a.spans), apart)
        two = _Side("b", (*around, *b.spans), apart)
        where = [*one.bounds(), *two.bounds()]
        if loop is not None:
            where.append(f"{one.name(loop.iterator)} < {two.name(loop.iterator)}")
        for mine, yours in zip(a.cell, b.cell, strict=True):
            where += _relation(one.text(mine), "=", two.text(yours))
        names = {*one.names, *two.names}
        others: list[list[str]] = [[]]  # ways to be different threads
        if Threads.EVERY not in threads and _are_divided_alike(a, b):
            pairs = zip(a.lane or (_ZERO,), b.lane or (_ZERO,), strict=True)
            others = [_relation(one.text(m), "!=", two.text(y)) for m, y in pairs]
        return any(
            self._is_possible(" and ".join((*where, *apart)) or "1 = 1", names)
            for apart in others
        )

    def _is_possible(self, condition: str, dimensions: set[str]) -> bool:
        """Whether some sizes and iterations satisfy ``condition``."""
        if condition not in self.known:
            used = set(_NAME.findall(condition)) - {*_FUNCTIONS.values(), "and"}
            names = ", ".join(sorted(dimensions & used))
            parameters = ", ".join(sorted(used - dimensions))
            text = f"[{parameters}] -> {{ [{names}] : {condition} }}"
            found = isl.Set.read_from_str(self.scop.context, text)
            found = found.intersect_params(self.scop.parameters)
            self.known[condition] = not found.is_empty()
        return self.known[condition]


_ZERO = Polynomial()


def _are_divided_alike(a: Touch, b: Touch) -> bool:
    """Whether equal places in the loops of both are given to the same thread.

    The first thread of the team has the first place of any loop over lanes.
    """
    if len(a.lane) > 1 or len(b.lane) > 1:
        return len(a.lane) == len(b.lane) and a.divided == b.divided
    return True


class _Side:
    """One of two touches, its iterators with names of their own."""

    def __init__(self, prefix: str, spans: Sequence[Span], apart: Collection[str]) -> None:
        self.spans = spans
        own = {*(span.iterator for span in spans), *apart}
        self.renamed: Mapping[str, str] = {name: f"{prefix}_{name}" for name in sorted(own)}
        self.names = set(self.renamed.values())

    def name(self, iterator: str) -> str:
        """What an iterator is called."""
        return self.renamed[iterator]

    def bounds(self) -> Iterator[str]:
        """The ranges of the iterators."""
        for span in self.spans:
            name = self.name(span.iterator)
            yield from _relation(self.text(span.low), "<=", name)
            yield from _relation(name, "<", self.text(span.high))

    def text(self, value: Polynomial | None) -> str | None:
        """A value as isl writes it; ``None`` when it is not affine."""
        if value is None:
            return None
        for name, new in self.renamed.items():
            value = value.put(name, Polynomial.factor(new))
        if any(len(m) > 1 or any("?" in f for f in m) for m, _ in value.terms):
            return None
        return _NAME.sub(lambda found: _FUNCTIONS.get(found[0], found[0]), str(value))


def _relation(left: str | None, operator: str, right: str | None) -> list[str]:
    """The comparison, if both sides are known."""
    return [] if left is None or right is None else [f"({left}) {operator} ({right})"]
