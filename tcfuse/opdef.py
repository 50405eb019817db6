"""What ``op_library`` is written against: a call of an ONNX operator in, TC text out.

A definition sees shapes, element types, attributes and the values of constant inputs; never the
graph.  It returns the text of one ``def`` whose parameters are the node's inputs that are
present and not *static*, in order, and whose returns are the node's outputs that are present,
in order; other names it writes are temporaries.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias

import numpy as np

from tcfuse.errors import UnsupportedError
from tcfuse.types import Size, TensorType

INDICES = ("i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s", "t")


class Kind(Enum):
    """How an operator's outputs depend on its inputs; what the fusion pass reasons with."""

    ELEMENTWISE = "elementwise"  # every output element needs one element of each input
    REDUCTION = "reduction"  # rows are combined: Reduce*, Softmax, normalisations
    MOVEMENT = "movement"  # elements move: Transpose, Slice, Concat, Pad, Expand, Tile, Gather
    VIEW = "view"  # row-major order is kept: Reshape, Flatten, Squeeze, Unsqueeze, Identity
    CONTRACTION = "contraction"  # more work than elements: MatMul, Conv, Attention, scatters


@dataclass(frozen=True, eq=False)
class OpCall:
    """One node as a definition sees it.

    Attributes:
        op_type: Operator name.
        opset: Version of the operator's domain that the model imports.
        inputs: Type of each input; ``None`` when it is absent (or beyond the last one given).
        outputs: Type of each output; ``None`` when it is unused.
        attributes: By name; tensors as arrays, strings as ``str``.
        constants: Value of each input that is a constant of at most 4096 elements; ``None`` for
            the others.
    """

    op_type: str
    opset: int
    inputs: tuple[TensorType | None, ...]
    outputs: tuple[TensorType | None, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    constants: tuple[np.ndarray | None, ...] = ()
    domain: str = ""

    def input(self, k: int) -> TensorType | None:
        """Type of input ``k``; ``None`` when absent."""
        return self.inputs[k] if k < len(self.inputs) else None

    def constant(self, k: int) -> np.ndarray | None:
        """Value of input ``k``; ``None`` when absent.

        Raises:
            UnsupportedError: The input is there and its value is not known.
        """
        if self.input(k) is None:
            return None
        value = self.constants[k] if k < len(self.constants) else None
        if value is None:
            raise UnsupportedError(f"input {k} of {self.op_type} is computed at run time")
        return value

    def axis(self, default: int, name: str = "axis") -> int:
        """The attribute ``axis`` counted from the front.

        Raises:
            UnsupportedError: It lies outside the first input's rank.
        """
        first = self.inputs[0]
        assert first is not None
        axis = int(self.attributes.get(name, default))
        if not -first.rank <= axis < max(first.rank, 1):
            raise UnsupportedError(
                f"axis {axis} of {self.op_type} is outside rank {first.rank}"
            )
        return axis % max(first.rank, 1)


Lowering: TypeAlias = Callable[[OpCall], str]


@dataclass(frozen=True, slots=True)
class OpDef:
    """A registered definition.

    Attributes:
        since: First opset the definition holds for.
        static: Positions of inputs whose values are used at compile time (axes, shapes).
    """

    op_type: str
    since: int
    kind: Kind
    lower: Lowering
    static: frozenset[int] = frozenset()
    domain: str = ""


_registry: dict[tuple[str, str], list[OpDef]] = {}
_loaded = False


def onnx_op(
    op_type: str, *, since: int, kind: Kind, static: Sequence[int] = (), domain: str = ""
) -> Callable[[Lowering], Lowering]:
    """Register the decorated function for ``op_type`` from opset ``since`` on."""

    def register(lower: Lowering) -> Lowering:
        definitions = _registry.setdefault((domain, op_type), [])
        assert all(d.since != since for d in definitions), f"{op_type}-{since} defined twice"
        definitions.append(OpDef(op_type, since, kind, lower, frozenset(static), domain))
        definitions.sort(key=lambda d: d.since, reverse=True)
        return lower

    return register


def _load() -> None:
    """Import every module of ``op_library`` once, so that all definitions are registered."""
    global _loaded
    if not _loaded:
        _loaded = True
        package = importlib.import_module("op_library")
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"op_library.{module.name}")


def find(op_type: str, opset: int, domain: str = "") -> OpDef:
    """The newest definition not newer than ``opset``.

    Raises:
        UnsupportedError: There is none.
    """
    _load()
    domain = "" if domain == "ai.onnx" else domain
    for definition in _registry.get((domain, op_type), ()):
        if definition.since <= opset:
            return definition
    name = f"{domain}::{op_type}" if domain else op_type
    raise UnsupportedError(f"{name}-{opset} has no definition in op_library")


def registered() -> tuple[OpDef, ...]:
    """Every definition, by name and opset."""
    _load()
    everything = (d for definitions in _registry.values() for d in definitions)
    return tuple(sorted(everything, key=lambda d: (d.domain, d.op_type, d.since)))


_TERM = re.compile(r"\s*([+-]?)\s*(?:(\d+)\s*\*\s*)?(?:(\d+)|([A-Za-z_]\w*))\s*")


def same_size(a: Size, b: Size) -> bool:
    """Whether two sizes are known to be equal: ``H + H`` and ``2*H`` are."""
    if a == b or isinstance(a, int) or isinstance(b, int):
        return a == b
    left, right = _terms(a), _terms(b)
    return left is not None and left == right


def _terms(size: str) -> dict[str, int] | None:
    """The coefficients of a sum of multiples of names; ``None`` when it is something else."""
    terms: dict[str, int] = {}
    position = 0
    while position < len(size):
        match = _TERM.match(size, position)
        if match is None or (position > 0 and not match[1]):
            return None
        sign, factor, constant, name = match.groups()
        value = int(factor or 1) * int(constant or 1) * (-1 if sign == "-" else 1)
        terms[name or ""] = terms.get(name or "", 0) + value
        position = match.end()
    return {name: value for name, value in terms.items() if value}
