"""Indices of which a statement reads the quotient become two: the group, and the place in it.

A convolution in groups reads channel ``f / 4 * 8 + c`` for filter ``f``: what a group shares
hides behind a division.  With the filters' index split into group and filter of the group,
every subscript is affine, and a register block of a group's filters reads a channel once.

Rewrite:
    Y(f, x) +=! I(f / 4 * 8 + c, x) * W(f, c)
    ->  Y(g, h, x) +=! I(g, c, x) * W(g, h, c), where f is 4 * g + h

Source: strip-mining, as in Allen and Kennedy, "Optimizing Compilers for Modern Architectures",
2001; tensors are seen in another shape, as in ``tc.views``.
"""

from __future__ import annotations

from dataclasses import replace

from tcfuse.tc.ast import Access, Binary, Comprehension, Const, Expr, Range, Var, walk
from tcfuse.tc.checked import CheckedDef, CheckedStatement
from tcfuse.tc.rebuild import rebuild_statement
from tcfuse.tc.rename import free_name
from tcfuse.types import Size, TensorType

Place = tuple[str, int]  # a dimension of a tensor, or a variable of a statement


class _ConflictError(Exception):
    """The indices cannot be split."""


def with_groups(checked: CheckedDef) -> CheckedDef:
    """``checked`` without quotients of indices, where all that they are tied to allows it."""
    split = _Splitting(checked)
    try:
        return split.done() if split.found() else checked
    except _ConflictError:
        return checked


class _Splitting:
    """Finds and splits dimensions and variables; each by the size of its inner part."""

    def __init__(self, checked: CheckedDef) -> None:
        self.checked = checked
        self.dimensions: dict[Place, int] = {}
        self.variables: dict[Place, int] = {}

    def found(self) -> bool:
        """Whether there is something to split; all of it is known then."""
        for number, item in enumerate(self.checked.statements):
            for node in (n for v in item.comprehension.values for n in walk(v)):
                match node:
                    case Binary("/", Var(name), Const(int(inner))) if inner > 1:
                        self._split_variable((name, number), inner)
        return bool(self.variables)

    def _split_variable(self, place: Place, inner: int) -> None:
        if self.variables.get(place, inner) != inner:
            raise _ConflictError
        if place in self.variables:
            return
        name, number = place
        item = self.checked.statements[number]
        extent = _extent(item, name)
        if extent is None or extent % inner or item.comprehension.lets:
            raise _ConflictError
        self.variables[place] = inner
        for access in _accesses(item.comprehension):
            for dimension, subscript in enumerate(access.subscripts):
                if subscript == Var(name):
                    self._split_dimension((access.tensor, dimension), inner)
                    continue
                group = _group(item, subscript, name, inner)
                if group is not None and group[1] is not None:
                    self._split_dimension((access.tensor, dimension), group[0])

    def _split_dimension(self, place: Place, inner: int) -> None:
        if self.dimensions.get(place, inner) != inner:
            raise _ConflictError
        if place in self.dimensions:
            return
        tensor, dimension = place
        size = self.checked.tensors[tensor].shape[dimension]
        if not isinstance(size, int) or size % inner or tensor in self.checked.origins:
            raise _ConflictError
        self.dimensions[place] = inner
        for number, item in enumerate(self.checked.statements):
            for access in _accesses(item.comprehension):
                subscript = access.subscripts[dimension] if access.tensor == tensor else None
                if isinstance(subscript, Var):
                    self._split_variable((subscript.name, number), inner)

    # ------------------------------------------------------------------ the definition

    def done(self) -> CheckedDef:
        """The definition with everything split."""
        tensors = {}
        for name, kind in self.checked.tensors.items():
            shape: list[Size] = []
            for dimension, size in enumerate(kind.shape):
                inner = self.dimensions.get((name, dimension))
                shape += [size] if inner is None else [int(size) // inner, inner]
            tensors[name] = TensorType(kind.dtype, tuple(shape))
        statements = tuple(
            self._statement(number, item) for number, item in enumerate(self.checked.statements)
        )
        return replace(self.checked, statements=statements, tensors=tensors)

    def _statement(self, number: int, item: CheckedStatement) -> CheckedStatement:
        split = {v: inner for (v, k), inner in self.variables.items() if k == number}
        taken = {*self.checked.tensors, *(r.name for r in item.ranges)}
        names = {}
        for name in split:
            outer = free_name(f"{name}_group", taken)
            names[name] = outer, free_name(f"{name}_in_group", {*taken, outer})

        def swap(node: Expr) -> Expr:
            if not isinstance(node, Access):
                return node
            subscripts: list[Expr] = []
            for dimension, subscript in enumerate(node.subscripts):
                is_split = (node.tensor, dimension) in self.dimensions
                subscripts += self._subscript(item, subscript, is_split, split, names)
            return replace(node, subscripts=tuple(subscripts))

        written = rebuild_statement(item.comprehension, swap)
        if any(isinstance(n, Var) and n.name in split for v in written.values for n in walk(v)):
            raise _ConflictError
        ranges = tuple(part for r in item.ranges for part in _parts(r, split, names))
        written = replace(
            written,
            indices=tuple(n for i in written.indices for n in names.get(i, (i,))),
            ranges=tuple(part for r in written.ranges for part in _parts(r, split, names)),
        )
        reduction = tuple(n for i in item.reduction for n in names.get(i, (i,)))
        return replace(item, comprehension=written, ranges=ranges, reduction=reduction)

    def _subscript(
        self,
        item: CheckedStatement,
        subscript: Expr,
        is_split: bool,
        split: dict[str, int],
        names: dict[str, tuple[str, str]],
    ) -> tuple[Expr, ...]:
        """A subscript in the dimensions that its own has become."""
        if isinstance(subscript, Var) and subscript.name in split:
            if not is_split:
                raise _ConflictError
            outer, inner = names[subscript.name]
            return Var(outer), Var(inner)
        for name, size in split.items():
            group = _group(item, subscript, name, size)
            if group is not None and (group[1] is not None) == is_split:
                place = () if group[1] is None else (Var(group[1]),)
                return (Var(names[name][0]), *place)
        if is_split:
            raise _ConflictError
        return (subscript,)


def _group(
    item: CheckedStatement, subscript: Expr, name: str, inner: int
) -> tuple[int, str | None] | None:
    """What ``f / 4 * 8 + c`` reads: groups of 8 at place ``c``; ``f / 4`` has no place."""
    match subscript:
        case Binary("/", Var(found), Const(size)) if (found, size) == (name, inner):
            return 1, None
        case Binary(
            "+",
            Binary("*", Binary("/", Var(found), Const(size)), Const(int(width))),
            Var(place),
        ) if (found, size) == (name, inner) and _extent(item, place) == width:
            return width, place
        case _:
            return None


def _parts(
    r: Range, split: dict[str, int], names: dict[str, tuple[str, str]]
) -> tuple[Range, ...]:
    """The ranges of what a variable is split into."""
    if r.name not in split:
        return (r,)
    assert isinstance(r.high, Const), "its extent is known"
    outer, inner = names[r.name]
    size = split[r.name]
    return Range(outer, Const(0), Const(int(r.high.value) // size)), Range(
        inner, Const(0), Const(size)
    )


def _extent(item: CheckedStatement, name: str) -> int | None:
    """The values of a variable that starts at 0; ``None`` where they are not known."""
    found = next((r for r in item.ranges if r.name == name), None)
    match found:
        case Range(_, Const(0), Const(int(high))):
            return high
        case _:
            return None


def _accesses(written: Comprehension) -> list[Access]:
    """The target and every access of a statement."""
    target = Access(written.tensor, tuple(map(Var, written.indices)))
    read = [n for v in written.values for n in walk(v) if isinstance(n, Access)]
    return [target, *read]
