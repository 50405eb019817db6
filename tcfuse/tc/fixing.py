"""Definitions with numbers in place of some of their sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tcfuse.errors import OptionError
from tcfuse.tc.ast import Const, Def, Expr, Param, Var
from tcfuse.tc.checked import CheckedDef
from tcfuse.tc.linear import Linear, linear_of_size
from tcfuse.tc.rebuild import rebuild_statement
from tcfuse.tc.sema import check
from tcfuse.types import Size, TensorType, size_names


def check_with_sizes(
    definitions: Sequence[Def], sizes: Mapping[str, int], *, shown: bool = True
) -> tuple[CheckedDef, ...]:
    """Every definition checked, with the sizes of those names being these numbers.

    Args:
        definitions: As parsed.
        sizes: Numbers by name.
        shown: Also put numbers for sizes that the dimensions of an input show.

    Raises:
        TcError: A definition is ill-formed, or not a definition for these numbers.
        OptionError: No definition has a size of such a name, or a number is negative.
    """
    checked = tuple(check(definition, affine=False) for definition in definitions)
    for name, value in sizes.items():
        if value < 0:
            raise OptionError(f"size {name} is {value}; a size is not negative")
        if not any(name in c.sizes for c in checked):
            known = dict.fromkeys(size for c in checked for size in c.sizes)
            raise OptionError(f"no size {name!r}; sizes are {', '.join(known) or 'none'}")
    if not sizes:
        return checked
    return tuple(
        check(with_sizes(c.definition, _replaced(c, sizes, shown)), affine=False)
        for c in checked
    )


def _replaced(checked: CheckedDef, sizes: Mapping[str, int], shown: bool) -> dict[str, int]:
    """Those of ``sizes`` that the text of a definition is to have numbers for."""
    names = (*checked.inputs, *checked.inout)
    given = size_names(size for name in names for size in checked.tensors[name].shape)
    return {n: v for n, v in sizes.items() if n in checked.sizes and (shown or n not in given)}


def with_sizes(definition: Def, sizes: Mapping[str, int]) -> Def:
    """``definition`` with numbers for those size names.

    Args:
        definition: Checked: no other thing in it has the name of a size.
        sizes: Numbers by name.
    """
    if not sizes:
        return definition

    def rule(node: Expr) -> Expr:
        if isinstance(node, Var) and node.name in sizes:
            return Const(sizes[node.name], node.span)
        return node

    return replace(
        definition,
        params=tuple(_param(param, sizes) for param in definition.params),
        returns=tuple(_param(param, sizes) for param in definition.returns),
        body=tuple(rebuild_statement(statement, rule) for statement in definition.body),
    )


def _param(param: Param, sizes: Mapping[str, int]) -> Param:
    if param.type is None:
        return param
    shape = tuple(_size(size, sizes) for size in param.type.shape)
    return replace(param, type=TensorType(param.type.dtype, shape))


def _size(size: Size, sizes: Mapping[str, int]) -> Size:
    form = linear_of_size(size)
    assert form is not None, f"checked: {size}"
    for name, value in sizes.items():
        if factor := form.coefficient(name):
            form = form.without(name) + Linear.of(factor * value)
    return form.size
