"""Plausible inputs for a whole model, for measuring it: sizes and values nobody gave us.

The same size name gets the same number everywhere; indices stay inside the table they look up,
masks are ones, states are zeros, everything else is standard normal.  What the user says
(``--dim``, ``--input-shapes``) goes first.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from tcfuse.errors import OptionError
from tcfuse.types import DType

# Sizes to try for (batch, channels, image side, anything else), until the model runs.
GUESSES: tuple[tuple[int, int, int, int], ...] = (
    (1, 3, 224, 64),
    (1, 3, 64, 512),
    (1, 4, 32, 128),
    (2, 4, 32, 16),
    (1, 1, 16, 1),
)
INDEX_ROWS = 100  # rows of a table nobody can see
_PASSES_ON = {
    *("Cast", "Identity", "Reshape", "Unsqueeze", "Squeeze", "Flatten", "Transpose", "Slice"),
    *("Split", "Gather", "Concat", "Expand"),
}


@dataclass(frozen=True, slots=True)
class Wishes:
    """Sizes and shapes the user asked for."""

    dim: Mapping[str, int] = field(default_factory=dict)
    input_shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def names(self, model: ir.Model) -> set[str]:
        """The size names of ``model`` that were asked for, by name or in a shape."""
        return {
            dim.value
            for value in required_inputs(model)
            for dim in value.shape or ()
            if not isinstance(dim, int) and dim.value is not None
            if dim.value in self.dim or value.name in self.input_shapes
        }

    def check(self, model: ir.Model) -> None:
        """Raise ``OptionError`` when a name is not in the model."""
        inputs = {str(v.name): v for v in required_inputs(model)}
        for name in self.input_shapes:
            if name not in inputs:
                raise OptionError(
                    f"no input {name!r}; inputs are {', '.join(inputs) or 'none'}"
                )
        sizes = {
            s.value for v in inputs.values() for s in (v.shape or ()) if not isinstance(s, int)
        }
        names = sorted(name for name in sizes if name)
        for name in self.dim:
            if name not in names:
                known = f"size names are {', '.join(names)}" if names else "it names no size"
                raise OptionError(f"no size {name!r} in the model's inputs; {known}")


def required_inputs(model: ir.Model) -> list[ir.Value]:
    """Graph inputs that have no default."""
    graph = model.graph
    return [v for v in graph.inputs if v.name not in graph.initializers]


def shape_guesses(model: ir.Model, wishes: Wishes) -> Iterator[dict[str, tuple[int, ...]]]:
    """Shapes of all inputs, best guess first; nothing when an input is not a tensor."""
    inputs = required_inputs(model)
    if any(_dtype(value) is None for value in inputs):
        return
    seen: list[dict[str, tuple[int, ...]]] = []
    for guess in GUESSES:
        sizes: dict[str, int] = dict(wishes.dim)
        shapes = {
            str(v.name): wishes.input_shapes.get(str(v.name)) or _shape(v, guess, sizes)
            for v in inputs
        }
        if shapes not in seen:
            seen.append(shapes)
            yield shapes


def named_sizes(model: ir.Model, wishes: Wishes) -> dict[str, int]:
    """The sizes of the best guess, by name."""
    shapes = next(shape_guesses(model, wishes), {})
    return {
        dim.value: size
        for value in required_inputs(model)
        for dim, size in zip(value.shape or (), shapes.get(str(value.name), ()), strict=False)
        if not isinstance(dim, int) and dim.value is not None
    }


def model_feeds(
    model: ir.Model, shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, np.ndarray]:
    """One array for each input; depends on its name and shape only."""
    return {
        str(value.name): _values(value, shapes[str(value.name)])
        for value in required_inputs(model)
    }


def _dtype(value: ir.Value) -> DType | None:
    return DType.from_onnx(value.dtype.value) if value.dtype is not None else None


def _shape(
    value: ir.Value, guess: tuple[int, int, int, int], sizes: dict[str, int]
) -> tuple[int, ...]:
    """A shape for one input; remembers the size names it meets."""
    batch, channels, side, length = guess
    dims = list(value.shape) if value.shape is not None else []
    shape = []
    for axis, dim in enumerate(dims):
        name = None if isinstance(dim, int) else dim.value
        if isinstance(dim, int) and dim >= 0:  # some exporters write -1 for any size
            size = dim
        elif name is not None and name in sizes:
            size = sizes[name]
        elif axis == 0 or "batch" in (name or "").lower():
            size = batch
        elif len(dims) == 4:
            size = channels if axis == 1 else side
        else:
            size = length
        if name is not None:
            sizes.setdefault(name, size)
        shape.append(size)
    return tuple(shape)


def _values(value: ir.Value, shape: tuple[int, ...]) -> np.ndarray:
    """Values that suit the input's type, name and use."""
    dtype = _dtype(value)
    assert dtype is not None, f"{value.name} is not a tensor"
    name = str(value.name).lower()
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    if dtype is DType.BOOL or ("mask" in name and not dtype.is_float):
        return np.ones(shape, dtype.numpy)
    if dtype.is_float:
        if name in ("state", "h", "c", "h0", "c0"):
            return np.zeros(shape, dtype.numpy)
        return rng.standard_normal(shape).astype(dtype.numpy)
    if dtype.bytes == 1:
        return rng.integers(0, 128, shape).astype(dtype.numpy)
    if name in ("sr", "sample_rate", "sampling_rate"):
        return np.full(shape, 16000, dtype.numpy)
    if "token_type" in name or "segment" in name:
        return np.zeros(shape, dtype.numpy)
    if "position" in name or name == "pos":
        return (
            (np.arange(int(np.prod(shape))) % _rows(value)).reshape(shape).astype(dtype.numpy)
        )
    return rng.integers(0, _rows(value), shape).astype(dtype.numpy)


def _rows(value: ir.Value) -> int:
    """One more than the largest index ``value`` may hold: the rows of the tables it reads."""
    queue, seen, rows = [value], {value}, [INDEX_ROWS]
    while queue:
        for node, position in queue.pop().uses():
            if node.op_type == "Gather" and position == 1:
                table = node.inputs[0]
                attribute = node.attributes.get("axis")
                axis = attribute.as_int() if attribute is not None else 0
                size = (
                    table.shape[axis] if table is not None and table.shape is not None else None
                )
                if isinstance(size, int):
                    rows.append(size)
            elif node.op_type in _PASSES_ON and position == 0:
                queue.extend(v for v in node.outputs if v not in seen)
                seen.update(node.outputs)
    return max(min(rows), 1)
