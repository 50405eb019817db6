"""Numbers for the size names of a kernel: given by shapes, or chosen to try it."""

from __future__ import annotations

import ast
import contextlib
import math
import operator
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tcfuse.errors import UnsupportedError
from tcfuse.targets.base import Interface
from tcfuse.types import Size

MOST_ELEMENTS = 20_000_000  # all tensors of one run together
ALL_ELEMENTS = 8_000_000  # all runs together; one run of the smallest sizes is always allowed
FEW_ELEMENTS = 300_000  # beyond this two fills must do
FEW_FILLS = 2

# Values for the free size names, in order of appearance; cycled when there are more names.
SIZES: tuple[tuple[int, ...], ...] = (
    (3, 5, 7, 2),
    (1,),
    (19, 33, 6, 17),
    (0, 5, 7, 2),
    (64, 48, 12, 16),
)

_OPERATORS: dict[type[ast.AST], Callable[..., int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def evaluate_size(size: Size, values: Mapping[str, int]) -> int:
    """The number a size expression stands for.

    Raises:
        UnsupportedError: It is not made of ``+ - * / %``, numbers and known names.
    """
    if isinstance(size, int):
        return size

    def value(node: ast.AST) -> int:
        match node:
            case ast.Constant(value=int(number)):
                return number
            case ast.Name(id=name) if name in values:
                return values[name]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -value(operand)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                return _OPERATORS[type(op)](value(left), value(right))
        raise UnsupportedError(f"cannot evaluate the size {size!r}")

    return value(ast.parse(size, mode="eval").body)


def bind_sizes(interface: Interface, shapes: list[tuple[int, ...]]) -> dict[str, int]:
    """The value of every size name when the inputs have those shapes."""
    values: dict[str, int] = {}
    derived = dict(interface.derived)
    for name in interface.sizes:
        if name in derived:
            values[name] = evaluate_size(derived[name], values)
            continue
        for port, shape in zip(interface.inputs, shapes, strict=True):
            if name in port.type.shape:
                values[name] = shape[port.type.shape.index(name)]
                break
    return values


def known_sizes(
    interface: Interface, shapes: Sequence[Sequence[Size | None]], named: Mapping[str, int]
) -> dict[str, int]:
    """The size names of a kernel in a model, as far as the model's own names have values.

    Args:
        interface: The kernel's signature.
        shapes: Of its inputs in the model, in the model's names; ``None`` where there is none.
        named: Value of names of the model.
    """
    values: dict[str, int] = {}
    for port, shape in zip(interface.inputs, shapes, strict=True):
        for name, size in zip(port.type.shape, shape, strict=False):
            if isinstance(name, str) and name in interface.sizes and size is not None:
                with contextlib.suppress(UnsupportedError, SyntaxError, ZeroDivisionError):
                    values.setdefault(name, evaluate_size(size, named))
    for name, text in interface.derived:
        with contextlib.suppress(UnsupportedError, ZeroDivisionError):
            values[name] = evaluate_size(text, values)
    return values


@dataclass(frozen=True, slots=True)
class ChosenSizes:
    """A number for each size name, and how many fills are worth running with them."""

    free: tuple[str, ...]
    values: Mapping[str, int]
    n_elements: int
    n_fills: int

    def __str__(self) -> str:
        return ", ".join(f"{name}={self.values[name]}" for name in self.free)


def choose_sizes(
    interface: Interface,
    within: Iterable[tuple[Size, ...]],
    n_fills: int,
    known: Collection[int] = (),
) -> list[ChosenSizes]:
    """Sizes to run a kernel with; fewer the more there is to compute.

    Args:
        interface: The kernel's signature.
        within: Shapes of its temporaries.
        n_fills: Number of fills there are.
        known: Positions of inputs that are constants; they are there whatever is chosen.
    """
    free = tuple(name for name in interface.sizes if name not in dict(interface.derived))
    inputs = [port.type.shape for port in interface.inputs]
    others = [port.type.shape for port in interface.outputs] + list(within)
    found: list[ChosenSizes] = []
    for chosen in SIZES if free else SIZES[:1]:
        values = {name: chosen[i % len(chosen)] for i, name in enumerate(free)}
        for name, text in interface.derived:
            values[name] = evaluate_size(text, values)
        if any(evaluate_size(size, values) < 0 for shape in inputs for size in shape):
            continue
        made = [shape for k, shape in enumerate(inputs) if k not in known]
        shapes = [[max(evaluate_size(s, values), 0) for s in x] for x in (*made, *others)]
        total = sum(map(math.prod, shapes))
        fills = FEW_FILLS if total > FEW_ELEMENTS else n_fills
        found.append(ChosenSizes(free, values, total, fills))
    return _affordable(found)


def _affordable(found: list[ChosenSizes]) -> list[ChosenSizes]:
    """What fits, in order; the smallest that is not empty goes first if nothing else does."""
    kept: list[ChosenSizes] = []
    spent = 0
    for chosen in found:
        cost = chosen.n_elements * chosen.n_fills
        if spent + cost <= ALL_ELEMENTS:
            kept.append(chosen)
            spent += cost
    if not any(all(chosen.values[name] for name in chosen.free) for chosen in kept):
        full = [c for c in found if all(c.values[name] for name in c.free)]
        smallest = min(full, key=lambda chosen: chosen.n_elements, default=None)
        if smallest is not None and smallest.n_elements <= MOST_ELEMENTS:
            kept.insert(0, smallest)
    return kept
