"""Which nodes and which edges may be fused; every refusal is a sentence.

A rule looks at one ``Candidate`` (a node) or one ``Edge`` (a value from a producer to a
consumer) and returns a ``Verdict``.  The rules say what is *legal*; what is *worthwhile* is
decided by ``graph.worth``.  Rules run in order and the first objection wins, so the order goes
from what explains most (a random operator) to what explains least (an unknown shape).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import onnx_ir as ir

from tcfuse import opdef
from tcfuse.errors import UnsupportedError
from tcfuse.graph.constants import constant_tensor, constant_value
from tcfuse.graph.quantized import STAYS
from tcfuse.graph.shapes import dims
from tcfuse.graph.views import reshape_target
from tcfuse.opdef import Kind, OpDef
from tcfuse.types import DType

MAX_RANK = 8
"""Longest shape a region may hold: the index names of ``opdef`` and isl's costs end there."""

MAX_NODES = 768
"""Most nodes in a region: those of a recurrence over a hundred steps, written out.  How many
statements they become is bounded by ``tc.compose``, which has them divided."""

STANDARD_DOMAINS = ("", "ai.onnx")

OLDEST_OPSET = 7
"""Before it, operators broadcast by attributes of their own, and sizes mean something else."""

CONTROL_FLOW = frozenset({"If", "Loop", "Scan", "SequenceMap"})
"""Operators that run graphs of their own."""

RANDOM = frozenset(
    {
        "Bernoulli",
        "Multinomial",
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
    }
)
"""Operators whose result differs from call to call: never moved, copied or merged."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer of a fusion rule; true when fusion is allowed."""

    reason: str | None = None

    def __bool__(self) -> bool:
        return self.reason is None


ALLOWED = Verdict()


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A node that asks to join a region.

    Attributes:
        opsets: Version of every imported domain.
        is_shape_arithmetic: The node only computes sizes (``graph.shape_math``).
        is_folded: Its inputs are constants (``constant_nodes``).
    """

    node: ir.Node
    opsets: Mapping[str, int]
    is_shape_arithmetic: bool = False
    is_folded: bool = False

    @property
    def definition(self) -> OpDef:
        """The operator's definition.

        Raises:
            UnsupportedError: ``op_library`` has none for the imported opset.
        """
        return definition_of(self.node, self.opsets)

    @property
    def values(self) -> tuple[ir.Value, ...]:
        """The inputs and outputs whose elements a kernel would touch."""
        static = self.definition.static
        inputs = (
            v for k, v in enumerate(self.node.inputs) if v is not None and k not in static
        )
        return tuple(inputs) + present_outputs(self.node)


@dataclass(frozen=True, slots=True, eq=False)
class Edge:
    """A value made by ``producer`` that ``consumer`` reads, and the sizes of their regions."""

    producer: ir.Node
    consumer: ir.Node
    producer_nodes: int = 1
    consumer_nodes: int = 1


def definition_of(node: ir.Node, opsets: Mapping[str, int]) -> OpDef:
    """The definition that ``op_library`` has for ``node``.

    Raises:
        UnsupportedError: There is none, or the domain is not imported.
    """
    domain = "" if node.domain in STANDARD_DOMAINS else node.domain
    version = next((opsets[d] for d in (node.domain, domain, "ai.onnx") if d in opsets), None)
    if version is None or (domain and domain not in opsets):
        raise UnsupportedError(f"domain {node.domain!r} of {node.op_type} is not imported")
    return opdef.find(node.op_type, version, domain)


def is_elementwise(node: ir.Node) -> bool:
    """Whether every element of the result needs one element of each operand."""
    opsets = node.graph.opset_imports if node.graph is not None else {}
    try:
        return definition_of(node, opsets).kind in (Kind.ELEMENTWISE, Kind.VIEW)
    except UnsupportedError:
        return False


def present_outputs(node: ir.Node) -> tuple[ir.Value, ...]:
    """The outputs that are not left out (an output that is left out has an empty name)."""
    return tuple(v for v in node.outputs if v.name != "" or v.uses() or v.is_graph_output())


def has_subgraph(node: ir.Node) -> bool:
    """Whether an attribute of ``node`` holds a graph."""
    kinds = (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)
    return any(attribute.type in kinds for attribute in node.attributes.values())


def is_fixed(value: ir.Value) -> bool:
    """Whether ``value`` is a constant, of whatever size; its data is not read."""
    return constant_tensor(value) is not None


def constant_nodes(nodes: Iterable[ir.Node]) -> frozenset[ir.Node]:
    """Those of ``nodes``, in topological order, whose inputs are constants all the way up."""
    found: set[ir.Node] = set()
    for node in nodes:
        read = [value for value in node.inputs if value is not None]
        unfolded = has_subgraph(node) or node.op_type in RANDOM | {"DequantizeLinear"}
        if read and not unfolded and all(v.producer() in found or is_fixed(v) for v in read):
            found.add(node)
    return frozenset(found)


def not_too_old(candidate: Candidate) -> Verdict:
    """Nothing of a model from before ``OLDEST_OPSET`` is fused; it runs as it is."""
    opset = next((candidate.opsets[d] for d in STANDARD_DOMAINS if d in candidate.opsets), None)
    if opset is not None and opset < OLDEST_OPSET:
        return Verdict(
            f"the model has opset {opset}, older than {OLDEST_OPSET}: export it again with a "
            "newer one, or convert it with onnx.version_converter"
        )
    return ALLOWED


def not_random(candidate: Candidate) -> Verdict:
    """A random operator keeps its place: it must run once for each time it is written."""
    if candidate.node.op_type in RANDOM and candidate.node.domain in STANDARD_DOMAINS:
        return Verdict(f"{candidate.node.op_type} draws random numbers and keeps its place")
    return ALLOWED


def not_control_flow(candidate: Candidate) -> Verdict:
    """A node with a body stays; its body is optimized by itself."""
    if has_subgraph(candidate.node) or candidate.node.op_type in CONTROL_FLOW:
        return Verdict(f"{candidate.node.op_type} is control flow; its bodies are fused apart")
    return ALLOWED


def not_constant(candidate: Candidate) -> Verdict:
    """A constant is a value, not work."""
    if candidate.node.op_type == "Constant":
        return Verdict("a constant")
    return ALLOWED


def not_folded(candidate: Candidate) -> Verdict:
    """What constants alone determine is computed when the model is loaded, not when it runs."""
    if candidate.is_folded:
        return Verdict("made of constants; ONNX Runtime computes it once")
    return ALLOWED


def not_training(candidate: Candidate) -> Verdict:
    """In training Dropout draws random numbers, unless it drops nothing."""
    node = candidate.node
    if node.op_type == "Dropout" and len(node.inputs) > 2 and node.inputs[2] is not None:
        mode, ratio = constant_value(node.inputs[2]), constant_value(node.inputs[1])
        drops = ratio is None or bool(ratio.any())
        if drops and (mode is None or bool(mode)):
            return Verdict("Dropout is, or may be, in training mode")
    return ALLOWED


def has_definition(candidate: Candidate) -> Verdict:
    """``op_library`` defines the operator for the opset that the model imports."""
    try:
        _ = candidate.definition
    except UnsupportedError as error:
        return Verdict(str(error))
    return ALLOWED


def not_beside_a_convolution(candidate: Candidate) -> Verdict:
    """What ONNX Runtime cancels against a quantized convolution's own Transpose stays there."""
    if STAYS in candidate.node.meta:
        return Verdict("ONNX Runtime cancels this Transpose beside a quantized convolution")
    return ALLOWED


def not_shape_arithmetic(candidate: Candidate) -> Verdict:
    """A handful of sizes: ONNX Runtime folds or computes them in no time."""
    return Verdict("shape arithmetic") if candidate.is_shape_arithmetic else ALLOWED


def static_inputs_are_constant(candidate: Candidate) -> Verdict:
    """Axes, shapes, starts and the like decide the loops, so they must be known."""
    node = candidate.node
    for position in sorted(candidate.definition.static):
        value = node.inputs[position] if position < len(node.inputs) else None
        if value is None or constant_value(value) is not None:
            continue
        if reshape_target(node) is None:
            return Verdict(
                f"input {position} ({value.name}) of {node.op_type} is not a constant"
            )
    return ALLOWED


def types_are_supported(candidate: Candidate) -> Verdict:
    """Every value a kernel would touch has an element type that TC has."""
    for value in candidate.values:
        if value.dtype is None:
            return Verdict(f"the type of {value.name} is unknown")
        if not isinstance(value.type, ir.TensorType):
            return Verdict(f"{value.name} is not a tensor")
        if DType.from_onnx(int(value.dtype)) is None:
            return Verdict(f"element type {value.dtype.name} of {value.name} is not supported")
    return ALLOWED


def shapes_are_known(candidate: Candidate) -> Verdict:
    """Every value a kernel would touch has a known rank and known or named sizes."""
    for value in candidate.values:
        shape = dims(value)
        if shape is None:
            return Verdict(f"the shape of {value.name} is unknown")
        if len(shape) > MAX_RANK:
            return Verdict(
                f"{value.name} has rank {len(shape)}; at most {MAX_RANK} is supported"
            )
    return ALLOWED


NodeRule: TypeAlias = Callable[[Candidate], Verdict]
EdgeRule: TypeAlias = Callable[[Edge], Verdict]

NODE_RULES: tuple[NodeRule, ...] = (
    not_constant,
    not_too_old,
    not_random,
    not_control_flow,
    not_training,
    not_folded,
    has_definition,
    not_beside_a_convolution,
    not_shape_arithmetic,
    static_inputs_are_constant,
    types_are_supported,
    shapes_are_known,
)


def small_enough(edge: Edge) -> Verdict:
    """A region ends at ``MAX_NODES``."""
    if edge.producer_nodes + edge.consumer_nodes > MAX_NODES:
        return Verdict(f"the region would have more than {MAX_NODES} nodes")
    return ALLOWED


EDGE_RULES: tuple[EdgeRule, ...] = (small_enough,)


def may_join(candidate: Candidate) -> Verdict:
    """The first objection of any node rule, or ``ALLOWED``."""
    return next((v for rule in NODE_RULES if not (v := rule(candidate))), ALLOWED)


def may_fuse(edge: Edge) -> Verdict:
    """The first objection of any edge rule, or ``ALLOWED``."""
    return next((v for rule in EDGE_RULES if not (v := rule(edge))), ALLOWED)
