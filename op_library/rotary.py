"""Rotary embeddings: pairs of channels turned by an angle for each position.

Source: https://onnx.ai/onnx/operators/onnx__RotaryEmbedding.html and ONNX Runtime's
docs/ContribOperators.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from op_library._heads import Heads, heads_of, side_by_side
from op_library._text import (
    at,
    definition,
    minus,
    needed,
    only_output,
    plus,
    require_equal,
    select,
    statement,
    subscript,
)
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import Kind, OpCall, onnx_op
from tcfuse.types import TensorType

MICROSOFT = "com.microsoft"


@onnx_op("RotaryEmbedding", since=23, kind=Kind.REDUCTION)
def rotary_embedding(call: OpCall) -> str:
    """Each pair ``(x, y)`` of channels becomes ``(cos x - sin y, sin x + cos y)``.

    Shapes:
        X: ``(batch, heads, steps, width)`` or ``(batch, steps, heads * width)``.
        Cos, Sin: ``(batch, steps, half)``, or ``(positions, half)`` where Position tells which.
        Position: ``(batch, steps)``.
    """
    x, position = needed(call, 0), call.input(3)
    heads = heads_of(call, "X", x, int(call.attributes.get("num_heads", 0)))
    cos = needed(call, 1)
    if position is None:
        rows = at_step(cos, heads)
    else:
        rows = (at("Position", at_step(position, heads)),)
    params = {"X": x, "Cos": cos, "Sin": needed(call, 2), "Position": position}
    return rotation(call, params, heads, rows)


@onnx_op("RotaryEmbedding", since=1, kind=Kind.REDUCTION, domain=MICROSOFT)
def contributed_rotary_embedding(call: OpCall) -> str:
    """As ONNX's; a single position is that of the first step.

    Without ``rotary_embedding_dim`` a head is as wide as what is rotated.
    """
    if call.attributes.get("is_packed_batching", 0):
        raise UnsupportedError("RotaryEmbedding of batches of different lengths in one")
    x, position, cos = needed(call, 0), needed(call, 1), needed(call, 2)
    count = int(call.attributes.get("num_heads", 0))
    if x.rank == 3 and not call.attributes.get("rotary_embedding_dim", 0):
        count = whole(x.shape[2]) // max(2 * whole(cos.shape[-1]), 1)
    heads = heads_of(call, "X", x, count)
    params = {"X": x, "Position": position, "Cos": cos, "Sin": needed(call, 3)}
    if position.rank == 1:
        require_equal(position.shape[0], 1)
        row = "Position(0) + s"
    else:
        row = at("Position", at_step(position, heads))
    return rotation(call, params, heads, (row,))


def whole(size: int | str) -> int:
    """A size that must be a number.

    Raises:
        UnsupportedError: It is not.
    """
    if not isinstance(size, int):
        raise UnsupportedError(f"RotaryEmbedding of {size} channels")
    return size


def at_step(type_: TensorType, heads: Heads) -> tuple[str, ...]:
    """The subscripts of a batch and a step in a tensor's first two dimensions."""
    if type_.rank < 2:
        raise UnsupportedError(f"RotaryEmbedding with positions of rank {type_.rank}")
    batch, steps = type_.shape[:2]
    return subscript(batch, ("b", heads.batch)), subscript(steps, ("s", heads.steps))


def rotation(
    call: OpCall, params: Mapping[str, TensorType | None], heads: Heads, rows: tuple[str, ...]
) -> str:
    """The definition of a rotation.

    Args:
        call: The node.
        params: The inputs by name.
        heads: The input as heads.
        rows: The subscripts of a step's row of ``Cos`` and ``Sin``.
    """
    y = only_output(call)
    width = whole(heads.width)
    rotated = int(call.attributes.get("rotary_embedding_dim", 0)) or width
    if rotated % 2 or rotated > width:
        raise UnsupportedError(f"RotaryEmbedding of {rotated} of {width} channels")
    for name in ("Cos", "Sin"):
        type_ = params[name]
        assert type_ is not None
        if type_.rank != len(rows) + 1:
            raise UnsupportedError(f"RotaryEmbedding with {name} of rank {type_.rank}")
        require_equal(type_.shape[-1], rotated // 2)

    def read(name: str, channel: str) -> str:
        if name == "X":
            return heads.at("b", "h", "s", channel)
        return at(name, (*rows, channel))

    pairs = neighbours if call.attributes.get("interleaved", 0) else halves
    value = pairs(read, rotated)
    if rotated < width:
        value = select(f"d < {rotated}", value, read("X", "d"))
    apart = Heads("Rotated", heads.batch, heads.heads, heads.steps, heads.width)
    if not heads.packed:
        return definition(call, params, {"Y": y}, [statement("Y", apart.loops("bhsd"), value)])
    # In the order of the result, of which it is another shape.
    b, h, s, d = apart.loops("bhsd")
    point, source = side_by_side("Rotated", y, width, "bsc")
    value = f"{y.dtype.tc}({value})" if y.dtype.is_half else value
    body = [
        statement("Rotated", (b, s, h, d), value),
        statement("Y", point, source),
    ]
    return definition(call, params, {"Y": y}, body)


def halves(read: Callable[[str, str], str], rotated: int) -> str:
    """The value at channel ``d`` where the first half is paired with the second."""
    half = rotated // 2
    low, high = minus("d", half), plus("d", half)
    first = f"{read('Cos', 'd')} * {read('X', 'd')} - {read('Sin', 'd')} * {read('X', high)}"
    second = f"{read('Sin', low)} * {read('X', low)} + {read('Cos', low)} * {read('X', 'd')}"
    return select(f"d < {half}", first, second)


def neighbours(read: Callable[[str, str], str], rotated: int) -> str:
    """The value at channel ``d`` where each even channel is paired with the next one."""
    cos, sin = read("Cos", "d / 2"), read("Sin", "d / 2")
    first = f"{cos} * {read('X', 'd')} - {sin} * {read('X', 'd + 1')}"
    second = f"{sin} * {read('X', 'd - 1')} + {cos} * {read('X', 'd')}"
    return select("d % 2 == 0", first, second)
