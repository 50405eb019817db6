"""What a draft ties together: dimensions and variables by subscripts, arrays by views."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tcfuse.tc.affine import Affine, affine
from tcfuse.tc.ast import Access, Comprehension, Expr, Range, Var
from tcfuse.tc.axes import Axes, ConflictError
from tcfuse.tc.conditions import threshold
from tcfuse.tc.draft import Draft, View, bounds, is_full, target
from tcfuse.tc.pool import children
from tcfuse.tc.sizes import Sizes
from tcfuse.types import Size


class Ties:
    """The axes of a draft's tensors and statements, tied as the subscripts tie them.

    Attributes:
        dims: Axes of each tensor.
        variables: For each statement, the axis of each of its variables.
        same: For each tensor, the tensor that stands for all that hold the same elements.
    """

    def __init__(self, draft: Draft, sizes: Sizes) -> None:
        self.draft, self.axes, self.sizes = draft, Axes(sizes), sizes
        self.dims = {
            name: [self.axes.new(size) for size in type_.shape]
            for name, type_ in draft.tensors.items()
        }
        self.accessed: set[str] = set()
        self.variables = [self._tie_statement(statement) for statement in draft.body]
        self.same = {name: name for name in draft.tensors}
        self.anchor: dict[str, str] = {name: name for name in self.accessed}

    def unify_views(self) -> View | None:
        """Refine the shapes of every view; the first view that does not allow it, if any."""
        for view in self.draft.views:
            source, result = self.find(view.source), self.find(view.result)
            if source == result:
                continue
            a, b = self.anchor.get(source), self.anchor.get(result)
            if a is not None and b is not None:
                try:
                    self.axes.unify(self.dims[a], self.dims[b])
                except ConflictError:
                    return view
            self.same[result] = source
            if b is not None:
                self.anchor.setdefault(source, b)
        return None

    def find(self, name: str) -> str:
        """The tensor that stands for all that hold the elements of ``name``."""
        while self.same[name] != name:
            name = self.same[name]
        return name

    def shape(self, name: str) -> tuple[Size, ...]:
        """The refined shape of ``name``; one flat dimension when nothing accesses it."""
        anchor = self.anchor.get(self.find(name))
        if anchor is not None:
            return tuple(s for axis in self.dims[anchor] for s in self._factor_sizes(axis))
        total = self.sizes.product(self.draft.tensors[name].shape)
        return () if total == 1 else (total,)

    def _factor_sizes(self, axis: int) -> list[Size]:
        """What an axis becomes: itself, or its factors other than one."""
        sizes = [self.axes.size(factor) for factor in self.axes.factors(axis)]
        return sizes if len(sizes) == 1 else [size for size in sizes if size != 1]

    def _tie_statement(self, statement: Comprehension) -> dict[str, int]:
        variables: dict[str, int] = {}
        for domain in statement.ranges:
            low, high = bounds(domain)
            variables[domain.name] = axis = self.axes.new(high.size())
            if low != Affine(()):
                fixed = low.is_constant and high.is_constant
                self.axes.restrict(axis, math.gcd(low.constant, high.constant) if fixed else 1)
        ranges = {r.name: r for r in statement.ranges}
        self._tie_access(target(statement), ranges, variables)
        stack, seen = [statement.value], set()
        while stack:
            node = stack.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            if isinstance(node, Access):
                stack += self._tie_access(node, ranges, variables)
            elif isinstance(node, Var):
                if node.name in variables:
                    self.axes.restrict(variables[node.name], 1)
            elif (bound := threshold(node, variables)) is not None:
                fixed = bound.point.is_constant
                self.axes.restrict(
                    variables[bound.variable], bound.point.constant if fixed else 1
                )
            else:
                stack += children(node)
        return variables

    def _tie_access(
        self, access: Access, ranges: Mapping[str, Range], variables: Mapping[str, int]
    ) -> list[Expr]:
        """Tie the subscripts of ``access``; those that are not affine, for a closer look."""
        self.accessed.add(access.tensor)
        others = []
        shape = self.draft.tensors[access.tensor].shape
        for axis, size, subscript in zip(
            self.dims[access.tensor], shape, access.subscripts, strict=True
        ):
            value = affine(subscript)
            if value is None:
                self.axes.restrict(axis, 1)
                others.append(subscript)
                continue
            names = [name for name, _ in value.terms]
            if not names:
                if value.constant and not isinstance(size, int):
                    self.axes.restrict(axis, 1)
            elif len(names) == 1 and names[0] in variables and value.coefficient(names[0]) == 1:
                variable = variables[names[0]]
                if value.constant == 0 and is_full(ranges[names[0]], size):
                    self.axes.unite(variable, axis)
                else:
                    self.axes.relate(variable, axis, value.constant)
                    if not isinstance(size, int):
                        self.axes.restrict(axis, 1)
            else:
                for tied in (axis, *(variables[n] for n in names if n in variables)):
                    self.axes.restrict(tied, 1)
        return others
