"""Values of random graphs: in float64 and in their own type, and how near counts as equal.

ONNX's reference implementation computes every node twice while a graph grows: in the types it
has, and with every float a double.  The second is what a kernel is compared with; how far the
first is from it shows how much rounding matters where the value is made.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import onnx
import scipy.special as special
from onnx import AttributeProto, helper
from onnx.reference import ReferenceEvaluator

from tcfuse.ort.accuracy import EPSILON
from tcfuse.types import DType

Label = int | str
MOST = 1e3  # so that no type overflows on the way
MOST_ELEMENTS = 4096


DOUBLES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "Erf": special.erf,
    "Gelu": lambda x: x * special.ndtr(x),
    "HardSwish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
}
"""What the reference computes in single precision, or with constants of it."""


class DiscardError(Exception):
    """A node cannot be had: the reference has no answer, or one that says nothing."""


@dataclass(frozen=True, eq=False)
class Value:
    """A tensor of a graph, in every run.

    Attributes:
        shape: A number or the name of each size.
        runs: What it is, run by run, in its own type.
        exact: The same where every float is a double.
        sharp: Nothing has been rounded on the way here, and in no order of operations would be.
        epsilon: Of the coarsest type on the way here; 0 where there is no float.
        length: The most elements that were summed up to one on the way here.
        scales: The largest number on the way here, run by run.
    """

    name: str
    dtype: DType
    shape: tuple[Label, ...]
    runs: tuple[np.ndarray, ...]
    exact: tuple[np.ndarray, ...]
    sharp: bool = True
    epsilon: float = 0.0
    length: int = 1
    scales: tuple[float, ...] = ()
    constant: bool = False

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def within(self, low: float, high: float) -> bool:
        """Whether every element of every run is between two numbers."""
        return all(bool(np.all((a >= low) & (a <= high))) for a in self.exact)

    def tolerance(self, run: int) -> float:
        """How far a kernel's answer may be from the exact one, see ``tolerance``."""
        if self.sharp or not self.dtype.is_float:
            return 0.0
        exact = self.exact[run].astype(np.float64)
        rounding = np.abs(self.runs[run].astype(np.float64) - exact).max(initial=0.0)
        return tolerance(self.epsilon, self.length, self.scales[run], float(rounding))


def tolerance(epsilon: float, length: int, scale: float, rounding: float) -> float:
    """Largest difference from the exact answer that is taken for rounding.

    Args:
        epsilon: Of the coarsest type on the way.
        length: The most elements summed up to one.
        scale: The largest number on the way.
        rounding: How far the reference is from the exact answer in the types of the graph.
    """
    return 8 * rounding + epsilon * (4 + math.log2(max(length, 1))) * scale


def computed(
    node: onnx.NodeProto, opset: int, inputs: Sequence[Value | None], *, exact: bool
) -> list[list[np.ndarray]]:
    """A node's outputs run by run, by the reference.

    Raises:
        DiscardError: It has none.
    """
    if exact and node.op_type in DOUBLES:
        assert inputs[0] is not None
        return [[np.asarray(DOUBLES[node.op_type](array))] for array in inputs[0].exact]
    present = [(n, v) for n, v in zip(node.input, inputs, strict=True) if v is not None]
    results = []
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            reference = ReferenceEvaluator(
                with_doubles(node) if exact else node, opsets={"": opset}
            )
            for run in range(len(present[0][1].runs)):
                given = {name: (v.exact if exact else v.runs)[run] for name, v in present}
                results.append([np.asarray(x) for x in reference.run(None, given)])
    except Exception as error:
        raise DiscardError(f"{type(error).__name__}: {error}") from None
    return results


def with_doubles(node: onnx.NodeProto) -> onnx.NodeProto:
    """The node, casting to double where it casts to another float."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    for attribute in copy.attribute:
        kind = DType.from_onnx(attribute.i) if attribute.name in ("to", "stash_type") else None
        if kind is not None and kind.is_float:
            attribute.i = DType.FLOAT64.onnx
    return copy


def doubled(array: np.ndarray) -> np.ndarray:
    """Floats as doubles, anything else as it is."""
    kind = next((d for d in DType if d.numpy == array.dtype), None)
    return array.astype(np.float64) if kind is not None and kind.is_float else array


def epsilon_of(dtype: DType) -> float:
    """The distance from 1 to the next number; 0 where numbers are whole."""
    return EPSILON.get(dtype, 0.0)


@cache
def admitted(op_type: str, opset: int) -> tuple[tuple[frozenset[str], str], ...]:
    """What each input of an operator may be: ONNX's names of types, and the type's variable.

    Raises:
        DiscardError: The opset does not have the operator.
    """
    try:
        schema = onnx.defs.get_schema(op_type, opset)
    except onnx.defs.SchemaError:
        raise DiscardError(f"no {op_type} in opset {opset}") from None
    kinds = {c.type_param_str: frozenset(c.allowed_type_strs) for c in schema.type_constraints}
    return tuple(
        (kinds.get(p.type_str, frozenset([p.type_str])), p.type_str) for p in schema.inputs
    )


def types_of(op_type: str, opset: int, inputs: Sequence[Value | None]) -> dict[str, DType]:
    """The type that each of an operator's type variables stands for.

    Raises:
        DiscardError: ONNX does not allow inputs of those types.
    """
    allowed = admitted(op_type, opset)
    bound: dict[str, DType] = {}
    for k, value in enumerate(inputs):
        kinds, variable = allowed[min(k, len(allowed) - 1)]
        if value is None:
            continue
        name = f"tensor({onnx_name(value.dtype)})"
        if name not in kinds or bound.setdefault(variable, value.dtype) is not value.dtype:
            raise DiscardError(f"{op_type} of {name}")
    return bound


def as_declared(
    array: np.ndarray, op_type: str, opset: int, k: int, bound: Mapping[str, DType]
) -> np.ndarray:
    """Output ``k`` in the type ONNX says, where the reference has a wider one."""
    outputs = onnx.defs.get_schema(op_type, opset).outputs
    dtype = bound.get(outputs[min(k, len(outputs) - 1)].type_str)
    if dtype is None or dtype.numpy == array.dtype:
        return array
    if dtype.is_float or array.dtype.kind not in "iu":
        raise DiscardError("the reference loses the type")
    return array.astype(dtype.numpy)


def onnx_name(dtype: DType) -> str:
    """ONNX's name of a type: ``float``, ``int8``."""
    known = {DType.FLOAT32: "float", DType.FLOAT64: "double"}
    return known.get(dtype, dtype.name.lower())


def make_node(
    op_type: str, inputs: Sequence[Value | None], outputs: Sequence[str], **attributes: Any
) -> onnx.NodeProto:
    """A node of values; an empty list of numbers is one of integers."""
    names = ["" if value is None else value.name for value in inputs]
    while names and not names[-1]:
        names.pop()
    empty = {name: value for name, value in attributes.items() if value == []}
    node = helper.make_node(
        op_type, names, list(outputs), **{n: v for n, v in attributes.items() if n not in empty}
    )
    for name in empty:
        node.attribute.append(helper.make_attribute(name, [], attr_type=AttributeProto.INTS))
    return node


def sizes_in(shape: Sequence[Label], sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The shape in one run."""
    return tuple(sizes[s] if isinstance(s, str) else s for s in shape)
