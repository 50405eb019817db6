"""One TC for a whole fusion group, in the shape that a polyhedral compiler makes fast code of.

Each node is lowered to statements and the statements are put one after the other (``build``).
Then views disappear (``views``), pointwise producers move into their consumers (``inline``),
choices by an index are decided (``unroll``, ``split``) and dimensions that are always walked
together are merged (``coalesce``).  ``finish`` gives the result its names and its interface.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import onnx_ir as ir

from tcfuse.graph.plan import FusionGroup
from tcfuse.interface import Interface
from tcfuse.profile import timed
from tcfuse.tc.ast import Def
from tcfuse.tc.build import Built, ComposeError, TooLargeError, build
from tcfuse.tc.builtins import BUILTINS
from tcfuse.tc.coalesce import coalesce
from tcfuse.tc.draft import Draft
from tcfuse.tc.emptiness import read_nothing
from tcfuse.tc.finish import finish
from tcfuse.tc.inline import inline
from tcfuse.tc.lexer import KEYWORDS
from tcfuse.tc.rename import canonical_indices
from tcfuse.tc.split import split
from tcfuse.tc.units import drop_units
from tcfuse.tc.unroll import unroll
from tcfuse.tc.views import ViewError, solve_views
from tcfuse.types import TensorType

__all__ = ["ComposeError", "Composed", "TooLargeError", "compose", "name_of", "normalize"]

MOST_NAMES = 4
MOST_STATEMENTS = 160  # of a region: 20 s of scheduling and proof for the steps of a recurrence


@dataclass(frozen=True, slots=True, eq=False)
class Composed:
    """A fusion group as one definition.

    Attributes:
        inputs: The group's inputs that the definition reads, in the order of its parameters.
        outputs: The group's outputs, in the order of its returns.
        baked: A digest of the nodes and of the constants that became part of the text.
    """

    definition: Def
    interface: Interface
    inputs: tuple[ir.Value, ...]
    outputs: tuple[ir.Value, ...]
    baked: str


@timed("compose")
def compose(
    group: FusionGroup, opsets: Mapping[str, int], numerics: str = "default"
) -> Composed:
    """The definition of ``group``.

    Args:
        group: What to compose.
        opsets: Version of each operator domain the model imports.
        numerics: ``fast`` drops the rounding of 16-bit intermediates.

    Raises:
        ComposeError: A member cannot be expressed.
        TooLargeError: It is too much for one kernel.
    """
    built = build(group, opsets)
    try:
        draft = normalize(built, numerics)
    except ViewError as error:
        raise ComposeError(str(error), group.nodes[error.label]) from error
    if len(draft.body) > MOST_STATEMENTS:
        raise TooLargeError(f"{len(draft.body)} statements are too many for one kernel")
    definition, interface, inputs = finish(draft, built, name_of(group))
    return Composed(definition, interface, inputs, group.outputs, built.baked)


def normalize(built: Built, numerics: str = "default") -> Draft:
    """The group's draft without views, with few statements and few dimensions."""
    pool, sizes = built.pool, built.sizes
    draft = read_nothing(_with_wide_sums(built.draft), pool)
    draft = coalesce(drop_units(draft, pool), pool, sizes)
    draft = drop_units(solve_views(draft, pool, sizes), pool)
    draft = replace(draft, body=tuple(canonical_indices(s, pool) for s in draft.body))
    draft = inline(draft, pool, numerics)
    unrolled = unroll(draft, pool)
    if unrolled is not draft:  # what was a reduction may now move
        draft = inline(unrolled, pool, numerics)
    return coalesce(split(draft, pool), pool, sizes)


def _with_wide_sums(draft: Draft) -> Draft:
    """``draft`` with temporaries that sums write as wide as the sums are computed."""
    sums = {s.tensor for s in draft.body if s.assign.operator in ("+", "*")}
    viewed = {name for view in draft.views for name in (view.source, view.result)}
    tensors = {
        name: TensorType(type_.dtype.compute, type_.shape)
        if name in sums - viewed - set(draft.outputs)
        else type_
        for name, type_ in draft.tensors.items()
    }
    return replace(draft, tensors=tensors)


def name_of(group: FusionGroup) -> str:
    """``mul_add_softmax``: the operators of the group, the first few of them."""
    names = [node.op_type.lower() for node in group.nodes]
    more = [f"{len(names) - MOST_NAMES}_more"] if len(names) > MOST_NAMES else []
    name = "_".join([*names[:MOST_NAMES], *more])
    return f"onnx_{name}" if name in BUILTINS or name in KEYWORDS else name
