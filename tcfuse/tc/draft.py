"""A definition while it is being composed: what the passes of ``tc.compose`` map to each other.

Every statement of a draft carries the range of each of its variables (left-hand indices in
order, then reduction variables), has no lets, and its expressions are nodes of the
composition's ``Pool``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tcfuse.tc.affine import Affine, affine
from tcfuse.tc.ast import Access, AssignKind, Comprehension, Def, Expr, Param, Range, Var
from tcfuse.tc.pool import Pool
from tcfuse.types import Size, TensorType


@dataclass(frozen=True, slots=True)
class View:
    """``result`` holds the elements of ``source`` in the same row-major order.

    Attributes:
        label: Where it comes from; handed back when the view cannot be expressed.
    """

    source: str
    result: str
    label: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """Statements and views over tensors of known types.

    Attributes:
        inputs: Parameters, in order.
        outputs: Returned tensors, in order.
        tensors: Type of every tensor, temporaries included.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    tensors: Mapping[str, TensorType]
    body: tuple[Comprehension, ...]
    views: tuple[View, ...] = ()

    def definition(self, name: str) -> Def:
        """The draft as a ``def``."""
        assert not self.views, "views must be solved first"
        params = tuple(Param(x, self.tensors[x]) for x in self.inputs)
        returns = tuple(Param(y, self.tensors[y]) for y in self.outputs)
        return Def(name, params, returns, self.body)


def draft_of(definition: Def, tensors: Mapping[str, TensorType], pool: Pool) -> Draft:
    """A draft with the statements of ``definition``, whose ranges are all explicit.

    Args:
        definition: Without lets.
        tensors: Types of all tensors, as ``sema.check`` finds them.
        pool: Where the draft's expressions live.
    """
    body = tuple(replace(s, value=pool.add(s.value), span=None) for s in definition.body)
    return Draft(
        tuple(p.name for p in definition.params),
        tuple(p.name for p in definition.returns),
        dict(tensors),
        body,
    )


def bounds(domain: Range) -> tuple[Affine, Affine]:
    """Low and high bound of a range."""
    low, high = affine(domain.low), affine(domain.high)
    assert low is not None, f"bound of {domain.name} is not affine"
    assert high is not None, f"bound of {domain.name} is not affine"
    return low, high


def full_range(name: str, size: Size) -> Range:
    """``name in 0:size``."""
    return Range(name, Affine((), 0).expr(), Affine.from_size(size).expr())


def is_full(domain: Range, size: Size) -> bool:
    """Whether the range is ``0:size``."""
    low, high = bounds(domain)
    return low == Affine(()) and high == Affine.from_size(size)


def target(statement: Comprehension) -> Access:
    """The element a statement writes; not a node of the pool."""
    return Access(statement.tensor, tuple(Var(name) for name in statement.indices))


def reduction_variables(statement: Comprehension) -> tuple[str, ...]:
    """Names of the variables that are not on the left-hand side."""
    return tuple(r.name for r in statement.ranges if r.name not in statement.indices)


def copy_statement(
    result: str, source: Expr, names: tuple[str, ...], shape: tuple[Size, ...]
) -> Comprehension:
    """``result(names) = source`` over the whole of ``shape``."""
    ranges = tuple(full_range(n, s) for n, s in zip(names, shape, strict=True))
    return Comprehension(result, names, AssignKind.SET, source, ranges)
