"""Which dimensions and variables are one thing, and how they fall into factors.

An *axis* is a dimension of a tensor or a variable of a statement.  Axes that a bare subscript
ties together are united.  An axis may be split into an outer and an inner factor, and all that
is united with it is split alike.  Axes tied by ``i + 64`` are *related*: they have the inner
factors in common, which must divide 64, and outer factors of their own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

from tcfuse.tc.sizes import Sizes
from tcfuse.types import Size

_State: TypeAlias = tuple[
    list[int],
    list[Size],
    list[tuple[int, int] | None],
    list[int],
    dict[int, list[int]],
    dict[int, int],
]


class ConflictError(Exception):
    """Two shapes have no common refinement."""


class Axes:
    """A union-find of axes, each a whole or an ordered list of factors, outermost first."""

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes
        self._parent: list[int] = []
        self._size: list[Size] = []
        self._factors: list[tuple[int, int] | None] = []
        # a family: the axes related to each other, and what inner factors must divide (0: free)
        self._family: list[int] = []
        self._members: dict[int, list[int]] = {}
        self._modulus: dict[int, int] = {}

    def new(self, size: Size) -> int:
        """A new axis of that size, tied to nothing."""
        axis = len(self._parent)
        self._parent.append(axis)
        self._size.append(size)
        self._factors.append(None)
        self._family.append(axis)
        self._members[axis], self._modulus[axis] = [axis], 0
        return axis

    def find(self, axis: int) -> int:
        """What represents the axes united with ``axis``."""
        while self._parent[axis] != axis:
            self._parent[axis] = self._parent[self._parent[axis]]
            axis = self._parent[axis]
        return axis

    def size(self, axis: int) -> Size:
        """The size of ``axis``."""
        return self._size[self.find(axis)]

    def modulus(self, axis: int) -> int:
        """What inner factors of ``axis`` must divide; 0 when anything goes."""
        return self._modulus[self._family[self.find(axis)]]

    def is_plain(self, axis: int) -> bool:
        """Whether every subscript of ``axis`` is a variable that walks all of it."""
        members = self._members[self._family[self.find(axis)]]
        return self.modulus(axis) == 0 and len({self.find(m) for m in members}) == 1

    def restrict(self, axis: int, modulus: int) -> None:
        """Let inner factors of ``axis`` and its relatives be divisors of ``modulus`` only."""
        family = self._family[self.find(axis)]
        self._modulus[family] = math.gcd(self._modulus[family], modulus)

    def relate(self, a: int, b: int, offset: int) -> None:
        """Tie axes by a subscript with an offset: equal inner factors, which divide it."""
        self._join_families(self.find(a), self.find(b))
        self.restrict(a, offset)

    def unite(self, a: int, b: int) -> None:
        """Make two axes of one size the same; neither may have factors."""
        a, b = self.find(a), self.find(b)
        if a != b:
            assert self._factors[a] is None, "only whole axes are united"
            assert self._factors[b] is None, "only whole axes are united"
            self._join_families(a, b)
            self._parent[b] = a

    def _join_families(self, a: int, b: int) -> None:
        keep, drop = self._family[a], self._family[b]
        if keep != drop:
            if len(self._members[keep]) < len(self._members[drop]):
                keep, drop = drop, keep
            for member in self._members[drop]:
                self._family[member] = keep
            self._members[keep] += self._members.pop(drop)
            self._modulus[keep] = math.gcd(self._modulus[keep], self._modulus.pop(drop))

    def factors(self, axis: int) -> list[int]:
        """The axes that ``axis`` consists of, outermost first; itself when it is whole."""
        result, stack = [], [self.find(axis)]
        while stack:
            top = self.find(stack.pop())
            pair = self._factors[top]
            if pair is None:
                result.append(top)
            else:
                stack += reversed(pair)
        return result

    def split(self, axis: int, inner: Size) -> None:
        """Split a whole axis, and all that are related to it, into ``outer`` and ``inner``.

        Raises:
            ConflictError: A subscript does not allow it.
        """
        family = self._family[self.find(axis)]
        modulus = self._modulus[family]
        if modulus and not (isinstance(inner, int) and modulus % inner == 0):
            raise ConflictError(f"subscripts do not allow an inner factor of {inner}")
        members = sorted({self.find(m) for m in self._members[family]})
        shared = self.new(inner)
        outer_axes = []
        for member in members:
            size = self._sizes.quotient(self._size[member], inner)
            if size is None:
                raise ConflictError(f"{self._size[member]} is not a multiple of {inner}")
            outer_axes.append(self.new(size))
            self._factors[member] = (outer_axes[-1], shared)
        for outer in outer_axes:
            self._join_families(outer_axes[0], outer)
            self.restrict(outer, modulus // inner if modulus and isinstance(inner, int) else 0)

    def unify(self, left: Sequence[int], right: Sequence[int]) -> None:
        """Refine two lists of axes that hold the same elements until their factors are equal.

        Raises:
            ConflictError: They have no common refinement; nothing is changed then.
        """
        saved = self._save()
        try:
            self._unify(list(left), list(right))
        except ConflictError:
            self._restore(saved)
            raise

    def _unify(self, left: list[int], right: list[int]) -> None:
        while True:
            a, b = self._innermost(left), self._innermost(right)
            if a is None or b is None:
                break
            if a != b:
                size_a, size_b = self._size[a], self._size[b]
                if size_a == size_b:
                    self.unite(a, b)
                elif self._sizes.quotient(size_a, size_b) is not None:
                    self.split(a, size_b)
                    left.append(a)
                    right.append(b)
                elif self._sizes.quotient(size_b, size_a) is not None:
                    self.split(b, size_a)
                    left.append(a)
                    right.append(b)
                else:
                    raise ConflictError(f"{size_a} and {size_b} have no common refinement")
        if a is not None or b is not None:
            raise ConflictError("the shapes do not have the same number of elements")

    def _innermost(self, axes: list[int]) -> int | None:
        """Take the last factor other than one off ``axes``, which keeps what is left."""
        while axes:
            top = self.find(axes.pop())
            pair = self._factors[top]
            if pair is not None:
                axes += pair
            elif self._size[top] != 1:
                return top
        return None

    def _save(self) -> _State:
        return (
            list(self._parent),
            list(self._size),
            list(self._factors),
            list(self._family),
            {k: list(v) for k, v in self._members.items()},
            dict(self._modulus),
        )

    def _restore(self, saved: _State) -> None:
        (
            self._parent,
            self._size,
            self._factors,
            self._family,
            self._members,
            self._modulus,
        ) = saved
