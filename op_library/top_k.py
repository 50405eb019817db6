"""The largest or smallest elements of rows, in order.

An element's rank is the number of elements that come before it, so the work grows with the
square of the axis.

Source: https://onnx.ai/onnx/operators/onnx__TopK.html
"""

from __future__ import annotations

from op_library._statistics import output
from op_library._text import at, definition, loops, names, needed, statement
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import Kind, OpCall, onnx_op
from tcfuse.types import DType


@onnx_op("TopK", since=1, kind=Kind.CONTRACTION)
@onnx_op("TopK", since=10, kind=Kind.CONTRACTION, static=[1])
def top_k(call: OpCall) -> str:
    """The first elements of each row by rank, and their positions."""
    x, values, indices = needed(call, 0), output(call, 0), output(call, 1)
    made = values or indices
    if made is None or not call.attributes.get("sorted", 1):
        raise UnsupportedError("TopK in no order, or of nothing")
    axis, point, chosen = call.axis(default=-1), loops(x.shape), loops(made.shape)
    place, size = point[axis]

    def at_place(tensor: str, subscript: str) -> str:
        subscripts = list(names(point))
        subscripts[axis] = subscript
        return at(tensor, subscripts)

    lets = {"other": at_place("X", "u"), "own": at_place("X", place)}
    first = precedes(x.dtype, largest=bool(call.attributes.get("largest", 1)))
    earlier = f"{first} || {same(x.dtype)} && u < {place}"
    found = f"{at_place('Rank', 'u')} == {place} ? u : {size}"
    body = [
        statement(
            "Rank",
            point,
            f"{earlier} ? 1 : 0",
            assign="+=!",
            reduce=(("u", size),),
            lets=lets,
        ),
        statement("Place", chosen, found, assign="min=!", reduce=(("u", size),)),
    ]
    if values:
        body.append(statement("Values", chosen, at_place("X", at("Place", names(chosen)))))
    if indices:
        body.append(statement("Indices", chosen, at("Place", names(chosen))))
    return definition(call, {"X": x}, {"Values": values, "Indices": indices}, body)


def precedes(dtype: DType, *, largest: bool) -> str:
    """Whether ``other`` comes before ``own``; NaN counts as largest, as in ONNX Runtime."""
    before, after = ("other", "own") if largest else ("own", "other")
    nan = f" || isnan({before}) && !isnan({after})" if dtype.is_float else ""
    return f"{before} > {after}{nan}"


def same(dtype: DType) -> str:
    """Whether ``other`` and ``own`` are equal; in parentheses."""
    nan = " || isnan(other) && isnan(own)" if dtype.is_float else ""
    return f"(other == own{nan})"
