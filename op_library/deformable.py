"""Deformable convolutions: every tap of every position reads where an offset moves it to.

Source: https://onnx.ai/onnx/operators/onnx__DeformConv.html
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from op_library._text import (
    at,
    definition,
    names,
    needed,
    only_output,
    plus,
    require_equal,
    select,
    statement,
    widened,
)
from op_library.convolution import Convolution, convolution_of, with_bias
from op_library.pooling import row_major
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import Kind, OpCall, onnx_op
from tcfuse.types import Size, TensorType

SAMPLED = "s"
"""The index of the channels that are sampled."""

MOST_AXES = 3
"""A sample lies between ``2**axes`` elements."""


@onnx_op("DeformConv", since=19, kind=Kind.CONTRACTION)
def deform_conv(call: OpCall) -> str:
    """The convolution of samples of X with the filters W, plus B."""
    x, w, b, y = needed(call, 0), needed(call, 1), call.input(3), only_output(call)
    found = convolution_of(call, x.shape, w.shape, y.shape)
    if x.rank - 2 > MOST_AXES:
        raise UnsupportedError(f"DeformConv of rank {x.rank}")
    for type_ in (needed(call, 2), call.input(4)):
        for d, size in enumerate(type_.shape if type_ else ()):
            if d != 1:
                require_equal(size, y.shape[d])
    image, channel = found.data[:2]
    samples = (image, channel, *names(found.reduced[1:]), *names(found.point[2:]))
    value = f"{at('Sampled', samples)} * {at('W', found.weights)}"
    body = [
        sampling(call, x, found),
        *with_bias(replace(found, conditions=()), widened(x.dtype, value), b),
    ]
    params = {"X": x, "W": w, "Offset": needed(call, 2), "B": b, "Mask": call.input(4)}
    return definition(call, params, {"Y": y}, body)


def sampling(call: OpCall, x: TensorType, found: Convolution) -> str:
    """The statement that reads X for every tap, between its elements."""
    image, taps, positions = found.point[0], found.reduced[1:], found.point[2:]
    spatial = x.shape[2:]
    tap = tap_number(call, x.shape[1], [size for _, size in taps], names(taps))

    def moved(name: str, channel: str) -> str:
        return widened(x.dtype, at(name, (image[0], channel, *names(positions))))

    lets = {}
    for k, place in enumerate(found.data[2:]):
        offset = moved("Offset", plus(f"({tap}) * {len(spatial)}", k))
        lets[f"at{k}"] = f"{place} + {offset}"
        lets[f"low{k}"] = f"floor(at{k})"
        lets[f"part{k}"] = f"at{k} - low{k}"
    corners = product((0, 1), repeat=len(spatial))
    value = " + ".join(f"({corner(image[0], spatial, high)})" for high in corners)
    if call.input(4):
        value = f"({value}) * {moved('Mask', tap)}"
    over = (image, (SAMPLED, x.shape[1]), *taps, *positions)
    return statement("Sampled", over, widened(x.dtype, value), lets=lets)


def tap_number(
    call: OpCall, channels: Size, taps: Sequence[Size], indices: Sequence[str]
) -> str:
    """The number of a tap among those of all groups of offsets.

    Raises:
        UnsupportedError: Sizes are not constant, or channels do not divide into the groups.
    """
    sizes = [size for size in taps if isinstance(size, int)]
    if len(sizes) < len(taps):
        raise UnsupportedError(f"{call.op_type} with filters of {tuple(taps)}")
    groups = int(call.attributes.get("offset_group", 1))
    if groups == 1:
        return row_major(indices, sizes)
    if not isinstance(channels, int) or channels % groups:
        raise UnsupportedError(f"{call.op_type} of {channels} channels in {groups} groups")
    return row_major([f"{SAMPLED} / {channels // groups}", *indices], [groups, *sizes])


def corner(image: str, sizes: Sequence[Size], high: Sequence[int]) -> str:
    """One of the elements around a sample, times its share; nothing outside of X."""
    conditions, shares, subscripts = [], [], [image, SAMPLED]
    for k, (size, step) in enumerate(zip(sizes, high, strict=True)):
        index = plus(f"low{k}", step)
        conditions += [f"{index} >= 0", f"{index} < {size}"]
        shares.append(f"part{k}" if step else f"(1 - part{k})")
        subscripts.append(f"int64({index})")
    value = f"{' * '.join(shares)} * {at('X', subscripts)}"
    return select(" && ".join(conditions), value, "0")
