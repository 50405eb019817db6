"""What ONNX Runtime fuses or runs well by itself, so that a region does not take it away.

Three tables and the rules that read them:

* ``SLOW_ALONE``: operators whose own kernel is so slow that even one of them is worth a region.
* epilogues and prologues: nodes that ONNX Runtime merges into the convolution or matrix product
  next to them (``absorbed``).  Such a node at a region's border is given back: it is free
  there.
* ``PATTERNS``: whole subgraphs that ONNX Runtime replaces by one good kernel.
  LayerNormalization, SkipLayerNormalization and Gelu are missing on purpose: their kernels run
  at 8, 1.7 and 8 GB/s where a copy runs at 65, so regions that contain them win.

Source: the optimized models that ONNX Runtime 1.32 writes for the CPU, and its kernels'
measured bandwidth.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import onnx_ir as ir

from tcfuse.graph.constants import constant_value
from tcfuse.graph.layout import Surroundings
from tcfuse.graph.legality import ALLOWED, Verdict
from tcfuse.graph.shapes import dims
from tcfuse.graph.traffic import elements

SLOW_ALONE: Mapping[str, str] = {
    "Acos": "one libm call an element",
    "Acosh": "one libm call an element",
    "Asin": "one libm call an element",
    "Asinh": "one libm call an element",
    "Atan": "one libm call an element",
    "Atanh": "one libm call an element",
    "Celu": "runs as its function body, four kernels",
    "Cos": "3.4 GB/s",
    "Cosh": "one libm call an element",
    "Elu": "3.6 GB/s",
    "Erf": "13 GB/s",
    "Gelu": "8 GB/s",
    "GroupNormalization": "runs as its function body",
    "HardSwish": "runs as its function body, two kernels",
    "InstanceNormalization": "9 GB/s, one channel at a time",
    "LayerNormalization": "8 GB/s",
    "Log": "3.9 GB/s",
    "LpNormalization": "strided, one element at a time",
    "MeanVarianceNormalization": "runs as its function body, ten kernels",
    "Mish": "Softplus inside, 0.5 GB/s",
    "PRelu": "1.5 GB/s, one broadcast span at a time",
    "QuickGelu": "17 GB/s",
    "Selu": "3.5 GB/s",
    "Sin": "3.4 GB/s",
    "Sinh": "one libm call an element",
    "Softplus": "0.5 GB/s",
    "Tan": "one libm call an element",
    "Where": "2 GB/s, one broadcast span at a time",
}
"""Operators that are worth a region of their own, and what is slow about them now."""

SLOW_ELEMENTS = 1024
"""Elements below which a slow kernel is over before it matters."""

CONV_ACTIVATIONS = frozenset({"Clip", "HardSigmoid", "LeakyRelu", "Relu", "Sigmoid", "Tanh"})
CONV_FOLDED = frozenset({"Add", "BatchNormalization", "Mul"})
GEMM_ACTIVATIONS = frozenset(
    {
        "Elu",
        "HardSigmoid",
        "LeakyRelu",
        "Relu",
        "Selu",
        "Sigmoid",
        "Softplus",
        "Softsign",
        "Tanh",
        "ThresholdedRelu",
    }
)
RANGES = frozenset({"Clip", "Relu"})
"""Activations that ONNX Runtime drops before a QuantizeLinear that saturates in their place."""

QUANTIZED_ANCHORS = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})
POOLS = frozenset({"AveragePool", "MaxPool"})


@dataclass(frozen=True, slots=True)
class Anchor:
    """A matrix product or convolution with what ONNX Runtime has merged into it so far.

    Attributes:
        op_type: ``Conv``, ``Gemm``, ``MatMul`` or ``MatMulInteger``.
        closed: Nothing further can be merged behind it.
        quantized: It runs on 8-bit integers if a QuantizeLinear comes next.
    """

    op_type: str
    closed: bool = False
    quantized: bool = False


Absorbed = dict[ir.Node, Anchor]


def anchor_of(value: ir.Value | None, absorbed: Absorbed) -> Anchor | None:
    """The anchor that ``value`` comes out of, if the next node alone reads it."""
    if value is None or len(value.uses()) != 1 or value.is_graph_output():
        return None
    producer = value.producer()
    if producer is None:
        return None
    if producer in absorbed:
        return absorbed[producer]
    if producer.op_type not in ("Conv", "Gemm", "MatMul", "MatMulInteger"):
        return None
    return Anchor(producer.op_type, quantized=_reads_integers(producer))


def _reads_integers(node: ir.Node) -> bool:
    """Whether every input of ``node`` comes out of a DequantizeLinear."""
    makers = [value.producer() for value in node.inputs if value is not None]
    return all(maker is not None and maker.op_type == "DequantizeLinear" for maker in makers)


def is_quantized(node: ir.Node) -> bool:
    """Whether ONNX Runtime runs a product or convolution on 8-bit integers."""
    return quantized_output(node) is not None


def quantized_output(node: ir.Node) -> ir.Value | None:
    """The result of the QuantizeLinear that ONNX Runtime merges into ``node``, if it does."""
    if not _reads_integers(node):
        return None
    while len(node.outputs) == 1 and len(node.outputs[0].uses()) == 1:
        ((node, _),) = node.outputs[0].uses()
        if node.op_type == "QuantizeLinear":
            return node.outputs[0]
        if node.op_type not in RANGES:
            break
    return None


def epilogue(
    node: ir.Node, absorbed: Absorbed, around: Surroundings
) -> tuple[Anchor, str] | None:
    """The anchor with ``node`` merged behind it and the reason, if ONNX Runtime does that.

    Args:
        node: A node at the start of a region.
        absorbed: Nodes that were found to be merged already.
        around: What is known of the graph.
    """
    for value in () if around.final else node.inputs:
        anchor = anchor_of(value, absorbed)
        if anchor is None or value is None:
            continue
        if node.op_type == "QuantizeLinear" and anchor.quantized:
            reason = f"ONNX Runtime runs the {anchor.op_type} before it on 8-bit integers"
            return Anchor(anchor.op_type, closed=True), reason
        after = None if anchor.closed else EPILOGUES[anchor.op_type](node, value, around)
        if after is not None:
            reason = f"ONNX Runtime fuses {node.op_type} into the {anchor.op_type} before it"
            quantized = anchor.quantized and node.op_type in RANGES
            return replace(after, quantized=quantized), reason
    return None


def prologue(node: ir.Node, around: Surroundings) -> str | None:
    """The reason why ``node``, at the end of a region, is left to the nodes that read it."""
    if len(node.outputs) != 1 or node.outputs[0].is_graph_output():
        return None
    readers = {user.op_type for user, _ in node.outputs[0].uses()}
    name = node.op_type
    if not readers or around.final:
        return None
    if name == "DequantizeLinear" and readers <= QUANTIZED_ANCHORS:
        return "ONNX Runtime runs the quantized operator behind this DequantizeLinear"
    if name == "DequantizeLinear":
        return "what is read behind this DequantizeLinear is larger than its 8-bit integers"
    if readers == {"MatMul"} and (
        _swaps_matrix(node) or (_scales(node, around) and not _is_scaled_too_late(node, around))
    ):
        return f"ONNX Runtime fuses {name} into the MatMul behind it"
    if readers <= POOLS | {"Conv"} and _pads_zeros(node) and _may_pad_readers(node):
        return f"ONNX Runtime fuses Pad into the {min(readers)} behind it"
    return None


def _after_conv(node: ir.Node, value: ir.Value, around: Surroundings) -> Anchor | None:
    """Constants per channel are folded, a residual is summed, one activation is fused."""
    if value.dtype is not ir.DataType.FLOAT:
        return None
    if node.op_type in CONV_ACTIVATIONS and _others_fixed(node, value, around):
        return Anchor("Conv", closed=True)
    if node.op_type not in CONV_FOLDED:
        return None
    if _others_fixed(node, value, around):
        per_channel = node.op_type == "BatchNormalization" or _is_per_channel(node, value)
        return Anchor("Conv") if per_channel else None
    others = [v for v in node.inputs if v is not value]
    same = all(v is not None and v in around.blocked and dims(v) == dims(value) for v in others)
    return Anchor("Conv") if node.op_type == "Add" and same else None


def _after_gemm(node: ir.Node, value: ir.Value, around: Surroundings) -> Anchor | None:
    """One activation."""
    fused = node.op_type in GEMM_ACTIVATIONS and value.dtype is ir.DataType.FLOAT
    return Anchor("Gemm", closed=True) if fused else None


def _after_matmul(node: ir.Node, value: ir.Value, around: Surroundings) -> Anchor | None:
    """A constant factor, or a bias when the product is one that Gemm can do."""
    if value.dtype is not ir.DataType.FLOAT:
        return None
    if _scales(node, around):
        return Anchor("MatMul")
    product = value.producer()
    if product is None or product.op_type != "MatMul" or not _is_bias(node, value, around):
        return None
    left = dims(product.inputs[0]) if product.inputs[0] is not None else None
    # A longer shape puts a Reshape in between.
    return Anchor("Gemm", closed=left is not None and len(left) != 2)


def _is_bias(node: ir.Node, value: ir.Value, around: Surroundings) -> bool:
    """Whether ``node`` adds to the product ``value`` what makes a Gemm of both."""
    product = value.producer()
    assert product is not None, "a product is made by a node"
    left, right = (dims(v) if v is not None else None for v in product.inputs[:2])
    if node.op_type != "Add" or left is None or right is None or len(right) != 2:
        return False
    is_gemm = len(left) == 2 or all(isinstance(d, int) for d in left)
    bias = next((v for v in node.inputs if v is not None and v is not value), None)
    if not is_gemm or bias is None or not around.is_fixed(bias):
        return False
    return dims(bias) in ((right[1],), (1, right[1]))


def _is_scaled_too_late(node: ir.Node, around: Surroundings) -> bool:
    """Whether a product that reads ``node`` is a Gemm before factors are looked for."""
    products = {user for user, _ in node.outputs[0].uses()}
    return any(
        _is_bias(user, value, around)
        for product in products
        for value in product.outputs
        for user, _ in value.uses()
    )


def _after_integer(node: ir.Node, value: ir.Value, around: Surroundings) -> Anchor | None:
    """The Cast, the product with the scales and the bias behind an integer product."""
    others = [v for v in node.inputs if v is not None and v is not value]
    if node.op_type == "Cast":
        return Anchor("MatMulInteger")
    small = all(elements(v) == 1 or around.is_fixed(v) for v in others)
    if node.op_type == "Mul" and small:
        return Anchor("MatMulInteger")
    if node.op_type == "Add" and all(around.is_fixed(v) for v in others):
        return Anchor("MatMulInteger", closed=True)
    return None


EPILOGUES: Mapping[str, Callable[[ir.Node, ir.Value, Surroundings], Anchor | None]] = {
    "Conv": _after_conv,
    "Gemm": _after_gemm,
    "MatMul": _after_matmul,
    "MatMulInteger": _after_integer,
}


FOLLOWERS = frozenset(
    {"Add", "Cast", "Div", "Mul", "QuantizeLinear", *CONV_ACTIVATIONS, *CONV_FOLDED}
    | GEMM_ACTIVATIONS
)
"""Operators that may be epilogues."""


def may_be_epilogue(node: ir.Node, around: Surroundings, known: dict[ir.Node, bool]) -> bool:
    """Whether a product or convolution is before ``node``, with epilogues between at most.

    Args:
        node: Any node.
        around: What is known of the graph.
        known: Filled in: the answer for nodes that were asked about.
    """
    seen: set[ir.Node] = set()
    stack = [] if around.final else [node]
    while stack:
        current = stack.pop()
        if known.get(current):
            known[node] = True
            return True
        if current in seen or current in known or current.op_type not in FOLLOWERS:
            continue
        seen.add(current)
        for value in current.inputs:
            maker = value.producer() if value is not None else None
            if value is None or maker is None or len(value.uses()) != 1:
                continue
            if maker.op_type in EPILOGUES:
                known[node] = True
                return True
            stack.append(maker)
    known.update(dict.fromkeys(seen, False))
    return False


def _others_fixed(node: ir.Node, value: ir.Value, around: Surroundings) -> bool:
    """Whether every operand but ``value`` is a constant."""
    return all(v is None or v is value or around.is_fixed(v) for v in node.inputs)


def _is_per_channel(node: ir.Node, value: ir.Value) -> bool:
    """Whether the constants of ``node`` vary along axis 1 of ``value`` only, and fill it."""
    shape = dims(value)
    for operand in node.inputs:
        if operand is None or operand is value:
            continue
        own = dims(operand)
        if shape is None or own is None or len(own) not in (len(shape), len(shape) - 1):
            return False
        if (1,) * (len(shape) - len(own)) + own != (1, shape[1], *(1,) * (len(shape) - 2)):
            return False
    return True


def _scales(node: ir.Node, around: Surroundings) -> bool:
    """Whether ``node`` multiplies or divides by one constant number."""
    if node.op_type not in ("Mul", "Div") or len(node.inputs) != 2:
        return False
    left, right = node.inputs
    candidates = (right,) if node.op_type == "Div" else (left, right)
    return any(v is not None and around.is_fixed(v) and elements(v) == 1 for v in candidates)


def _swaps_matrix(node: ir.Node) -> bool:
    """Whether ``node`` is a Transpose of the last two axes."""
    perm = node.attributes.get_ints("perm", ()) if node.op_type == "Transpose" else ()
    n = len(perm)
    return n >= 2 and tuple(perm) == (*range(n - 2), n - 1, n - 2)


def _pads_zeros(node: ir.Node) -> bool:
    """Whether ``node`` is a Pad with zeros."""
    if node.op_type != "Pad" or node.attributes.get_string("mode", "constant") != "constant":
        return False
    fill = node.inputs[2] if len(node.inputs) > 2 else None
    if fill is None:
        return node.attributes.get_float("value", 0.0) == 0
    value = constant_value(fill)
    return value is not None and not value.any()


def _may_pad_readers(node: ir.Node) -> bool:
    """Whether those that read ``node`` say by numbers how they pad."""
    users = {user for value in node.outputs for user, _ in value.uses()}
    modes = {user.attributes.get_string("auto_pad", "NOTSET") for user in users}
    return modes == {"NOTSET"}


PATTERNS: tuple[tuple[str, Mapping[str, int]], ...] = (
    ("QuickGelu", {"Sigmoid": 1, "Mul": 1}),
    ("QuickGelu", {"Sigmoid": 1, "Mul": 2}),
    (
        "SimplifiedLayerNormalization",
        {"ReduceMean": 1, "Pow": 1, "Add": 1, "Sqrt": 1, "Div": 1, "Mul": 1},
    ),
)
"""Subgraphs, by the operators they consist of, that become one good kernel."""

LARGEST_PATTERN = max(sum(pattern.values()) for _, pattern in PATTERNS)

ROUNDING = frozenset({"DequantizeLinear", "QuantizeLinear"})

QUANTIZED = frozenset(
    {"Add", "AveragePool", "Concat", "LeakyRelu", "Mul", "Sigmoid", "Softmax", "Where"}
)
"""Operators that run on 8-bit integers between DequantizeLinear and QuantizeLinear."""


def not_one_native_kernel(nodes: Sequence[ir.Node], around: Surroundings) -> Verdict:
    """Refuses a region that is exactly what ONNX Runtime makes one kernel of."""
    if around.final:
        return ALLOWED
    if len(nodes) <= LARGEST_PATTERN:
        count = Counter(node.op_type for node in nodes)
        for name, pattern in PATTERNS:
            if count == pattern and _is_closed(nodes, around):
                return Verdict(f"ONNX Runtime fuses this into {name}")
    if is_one_anchor(nodes, around):
        return Verdict(f"ONNX Runtime fuses this into one {nodes[0].op_type}")
    middle = list(islice((n.op_type for n in nodes if n.op_type not in ROUNDING), 2))
    if (
        len(middle) <= 1
        and QUANTIZED.issuperset(middle)
        and sum(node.op_type == "QuantizeLinear" for node in nodes) == 1
    ):
        return Verdict(f"ONNX Runtime runs {min(middle, default='this')} on 8-bit integers")
    return ALLOWED


def is_one_anchor(nodes: Sequence[ir.Node], around: Surroundings) -> bool:
    """Whether all nodes but the first are merged into it, a convolution or matrix product."""
    absorbed: Absorbed = {}
    for node in islice(nodes, 1, None):
        after = epilogue(node, absorbed, around)
        if after is None:
            return False
        absorbed[node] = after[0]
    return len(nodes) > 1


def _is_closed(nodes: Sequence[ir.Node], around: Surroundings) -> bool:
    """Whether one variable value goes in, one comes out, and reductions keep the last axis."""
    members = set(nodes)
    read = {v for n in nodes for v in n.inputs if v is not None and not around.is_fixed(v)}
    made = {v for n in nodes for v in n.outputs}
    visible = [v for v in made if v.is_graph_output() or {u for u, _ in v.uses()} - members]
    reduced = [n for n in nodes if n.op_type == "ReduceMean"]
    kept = all(n.attributes.get_int("keepdims", 1) for n in reduced)
    return len(read - made) == 1 and len(visible) == 1 and kept
