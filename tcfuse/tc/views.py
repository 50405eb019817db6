"""Views without loops: tensors that hold the same elements get one shape that fits all uses.

A reshape keeps row-major order, so source and result are one array seen in two shapes.  All
shapes of an array are refined until they have the same factors: ``(4, 240)`` and ``(4, 3, 80)``
both become ``(4, 3, 80)``, and each variable that walks a split dimension becomes several.  A
dimension may be split where every subscript is a bare variable, a constant, or a
variable with an offset that the inner factor divides.

Rewrite:
    R = reshape(S, (4, 240)); Y(i, j) = relu(R(i, j)), S of shape (4, 3, 80)
    ->  Y(i, j, k) = relu(S(i, j, k))
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from tcfuse.errors import UnsupportedError
from tcfuse.tc.affine import Affine, affine
from tcfuse.tc.ast import Access, Binary, Comprehension, Const, Expr, Range, Var
from tcfuse.tc.conditions import threshold
from tcfuse.tc.draft import Draft, View, bounds, copy_statement, full_range, target
from tcfuse.tc.pool import Pool
from tcfuse.tc.rename import index_name, rename_tensors
from tcfuse.tc.sizes import Sizes
from tcfuse.tc.ties import Ties
from tcfuse.types import Size, TensorType


class ViewError(UnsupportedError):
    """A view cannot be expressed; ``label`` says which."""

    def __init__(self, message: str, label: int) -> None:
        super().__init__(message)
        self.label = label


def solve_views(draft: Draft, pool: Pool, sizes: Sizes) -> Draft:
    """``draft`` without views, its tensors in shapes that fit all uses.

    A view whose shapes have no common refinement becomes a statement that copies, with ``/``
    and ``%`` in its subscripts, when its sizes are constant.

    Raises:
        ViewError: A view cannot be expressed at all.
    """
    while True:
        ties = Ties(draft, sizes)
        failed = ties.unify_views()
        if failed is None:
            return _Rewriter(draft, pool, ties).draft()
        copy = _copy_view(failed, draft, pool, sizes)
        position = _last_write(draft, failed.source) + 1
        body = (*draft.body[:position], copy, *draft.body[position:])
        views = tuple(view for view in draft.views if view is not failed)
        draft = replace(draft, body=body, views=views)


class _Rewriter:
    """Expresses a draft in the refined shapes."""

    def __init__(self, draft: Draft, pool: Pool, ties: Ties) -> None:
        self.before, self.pool, self.ties, self.axes = draft, pool, ties, ties.axes

    def draft(self) -> Draft:
        """The refined draft."""
        before = self.before
        body = [
            self._statement(statement, variables)
            for statement, variables in zip(before.body, self.ties.variables, strict=True)
        ]
        names, copies = self._names()
        tensors = {
            names[name]: TensorType(type_.dtype, self.ties.shape(name))
            for name, type_ in before.tensors.items()
        }
        body = rename_tensors(body, names, self.pool)
        for result, source in copies:
            shape = self.ties.shape(source)
            tensors[result] = TensorType(before.tensors[result].dtype, shape)
            indices = tuple(map(index_name, range(len(shape))))
            access = self.pool.add(Access(names[source], tuple(map(Var, indices))))
            body.append(copy_statement(result, access, indices, shape))
        return Draft(before.inputs, before.outputs, tensors, tuple(body))

    def _names(self) -> tuple[dict[str, str], list[tuple[str, str]]]:
        """The one name of each array, and outputs that must be copied as (result, source)."""
        groups: dict[str, list[str]] = {}
        for name in self.before.tensors:
            groups.setdefault(self.ties.find(name), []).append(name)
        names: dict[str, str] = {}
        copies = []
        for source, members in groups.items():
            outputs = [m for m in members if m in self.before.outputs]
            if source in self.before.inputs or source in outputs:
                chosen = source
            else:
                chosen = outputs[0] if outputs else source
            names |= dict.fromkeys(members, chosen)
            copies += [(output, source) for output in outputs if output != chosen]
        return names, copies

    def _statement(self, before: Comprehension, variables: Mapping[str, int]) -> Comprehension:
        names = {v: self._variable_names(v, axis) for v, axis in variables.items()}

        def rule(node: Expr) -> Expr:
            if isinstance(node, Access):
                return self.pool.add(self._access(node, names))
            bound = threshold(node, variables)
            if bound is None or len(names[bound.variable]) == 1:
                return node
            outer, *_ = names[bound.variable]
            inner = self._inner(variables[bound.variable])
            point = Affine((), bound.point.constant // inner)
            return self.pool.add(replace(bound, variable=outer, point=point).expr())

        value = self.pool.rewrite(before.value, rule, {})
        indices = tuple(
            s.name for s in self._access(target(before), names).subscripts if isinstance(s, Var)
        )
        ranges, single = [], {}
        for domain in before.ranges:
            for part in self._ranges(domain, names, variables):
                low, high = bounds(part)
                if (
                    part is not domain
                    and high - low == Affine((), 1)
                    and part.name not in indices
                ):
                    single[part.name] = self.pool.add(part.low)
                else:
                    ranges.append(part)
        if single:
            value = self.pool.substitute(value, single)
        return replace(before, indices=indices, value=value, ranges=tuple(ranges))

    def _variable_names(self, name: str, axis: int) -> list[str]:
        count = len(self.axes.factors(axis))
        return [name] if count == 1 else [f"{name}_{k}" for k in range(count)]

    def _inner(self, axis: int) -> int:
        """The product of all factors of ``axis`` but the outermost."""
        return math.prod(map(int, map(self.axes.size, self.axes.factors(axis)[1:])))

    def _ranges(
        self, domain: Range, names: Mapping[str, list[str]], variables: Mapping[str, int]
    ) -> list[Range]:
        axis = variables[domain.name]
        outer, *inner = names[domain.name]
        if not inner:
            return [domain]
        first, *rest = map(self.axes.size, self.axes.factors(axis))
        low, _ = bounds(domain)
        start = low.constant // self._inner(axis) if low.constant else 0
        high = Affine.from_size(first).expr()
        return [Range(outer, Const(start), high), *map(full_range, inner, rest)]

    def _access(self, node: Access, names: Mapping[str, list[str]]) -> Access:
        subscripts: list[Expr] = []
        for axis, subscript in zip(self.ties.dims[node.tensor], node.subscripts, strict=True):
            factors = self.axes.factors(axis)
            if len(factors) == 1:
                subscripts.append(subscript)
                continue
            parts = self._parts(axis, subscript, names)
            subscripts += (
                part
                for part, factor in zip(parts, factors, strict=True)
                if self.axes.size(factor) != 1
            )
        return Access(node.tensor, tuple(subscripts))

    def _parts(self, axis: int, subscript: Expr, names: Mapping[str, list[str]]) -> list[Expr]:
        """``subscript`` in each of the factors of ``axis``."""
        value = affine(subscript)
        assert value is not None, "an axis is split where its subscripts are affine only"
        if value.is_constant:
            return self._digits(value.constant, self.axes.factors(axis))
        ((name, _),) = value.terms
        outer, *inner = names[name]
        offset = value.constant and value.constant // self._inner(axis)
        return [(Affine(((outer, 1),)) + offset).expr(), *map(Var, inner)]

    def _digits(self, value: int, factors: list[int]) -> list[Expr]:
        """A constant subscript in each of the factors."""
        digits: list[Expr] = []
        for factor in reversed(factors):
            size = self.axes.size(factor)
            if isinstance(size, int):
                value, digit = divmod(value, size)
            else:
                digit = 0
            digits.append(Const(digit))
        return digits[::-1]


def _last_write(draft: Draft, tensor: str) -> int:
    """Position of the last write to ``tensor`` or what it is a view of; -1 if none."""
    origin = {view.result: view.source for view in draft.views}
    while tensor in origin:
        tensor = origin[tensor]
    writes = (k for k, statement in enumerate(draft.body) if statement.tensor == tensor)
    return max(writes, default=-1)


def _copy_view(view: View, draft: Draft, pool: Pool, sizes: Sizes) -> Comprehension:
    """``view`` as a statement that copies element by element.

    Raises:
        ViewError: That takes sizes that are not constant.
    """
    source, result = draft.tensors[view.source].shape, draft.tensors[view.result].shape
    indices = tuple(map(index_name, range(len(result))))
    subscripts: list[Expr] = [Const(0)] * len(source)
    for ours, theirs in _groups(source, result, sizes):
        if len(ours) == len(theirs) == 1:
            subscripts[ours[0]] = Var(indices[theirs[0]])
            continue
        if not all(isinstance(source[d], int) for d in ours) or not all(
            isinstance(result[d], int) for d in theirs
        ):
            text = f"{', '.join(map(str, source))} to {', '.join(map(str, result))}"
            raise ViewError(f"reshape of ({text}) has no common refinement", view.label)
        linear, stride = Affine(()), 1
        for d in reversed(theirs):
            linear += Affine(((indices[d], 1),)) * stride
            stride *= int(result[d])
        stride = 1
        for d in reversed(ours):
            expr = linear.expr() if stride == 1 else Binary("/", linear.expr(), Const(stride))
            subscripts[d] = expr if d == ours[0] else Binary("%", expr, Const(int(source[d])))
            stride *= int(source[d])
    access = pool.add(Access(view.source, tuple(subscripts)))
    return copy_statement(view.result, access, indices, result)


def _groups(
    source: tuple[Size, ...], result: tuple[Size, ...], sizes: Sizes
) -> list[tuple[list[int], list[int]]]:
    """Dimensions of both shapes, cut from the right wherever their products agree."""
    groups: list[tuple[list[int], list[int]]] = []
    a, b = len(source), len(result)
    while a or b:
        ours, theirs = list(range(a)), list(range(b))
        cuts = ((i, j) for i in range(a - 1, -1, -1) for j in range(b - 1, -1, -1))
        for i, j in cuts:
            if sizes.product(source[i:a]) == sizes.product(result[j:b]):
                ours, theirs = list(range(i, a)), list(range(j, b))
                break
        groups.append((ours, theirs))
        a, b = ours[0] if ours else 0, theirs[0] if theirs else 0
    return groups
