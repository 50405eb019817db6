"""A definition for certain sizes: numbers in place of size names.

Rewrite:
    float(n0, n1) X, i in 0:n0  ->  float(128, n1) X, i in 0:128     with n0 = 128
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tcfuse.errors import OptionError
from tcfuse.interface import Interface
from tcfuse.tc.ast import Expr
from tcfuse.tc.checked import CheckedDef
from tcfuse.tc.linear import Linear, linear_of
from tcfuse.tc.parser import parse_expr
from tcfuse.types import Size


def with_fixed_sizes(checked: CheckedDef, sizes: Mapping[str, int]) -> CheckedDef:
    """``checked`` with the shapes and ranges that ``sizes`` determines as numbers.

    Values that mention a size keep its name, whose type a number would not have.
    """
    known = {name: Linear.of(value) for name, value in sizes.items()}

    def number(expr: Expr) -> Expr:
        form = linear_of(expr, known)
        return expr if form is None else form.expr

    def shape(size: Size) -> Size:
        form = None if isinstance(size, int) else linear_of(parse_expr(size), known)
        if form is None:
            return size
        return str(form) if form.terms else form.constant

    tensors = {
        name: replace(kind, shape=tuple(map(shape, kind.shape)))
        for name, kind in checked.tensors.items()
    }
    statements = tuple(
        replace(
            item,
            ranges=tuple(
                replace(r, low=number(r.low), high=number(r.high)) for r in item.ranges
            ),
        )
        for item in checked.statements
    )
    return replace(checked, tensors=tensors, statements=statements)


def with_fixed_interface(interface: Interface, sizes: Mapping[str, int]) -> Interface:
    """``interface`` of a kernel that is only right when the sizes have these values.

    Raises:
        OptionError: There is no such size.
    """
    for name in sizes:
        if name not in interface.sizes:
            known = ", ".join(interface.sizes) or "none"
            raise OptionError(f"no size {name!r} to fix; sizes are {known}")
    checks = tuple(
        (f"{name} == {value}", f"{name} is not {value}, which this kernel was made for")
        for name, value in sorted(sizes.items())
    )
    facts = tuple(f"{name} = {value}" for name, value in sorted(sizes.items()))
    return replace(interface, checks=interface.checks + checks, facts=interface.facts + facts)
