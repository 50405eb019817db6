"""Which kernels ONNX Runtime launches for a set of nodes.

Its optimizer makes one kernel of several nodes: an operator between DequantizeLinear and
QuantizeLinear runs on 8-bit integers, ``x * (1 + erf(x / sqrt(2))) / 2`` is a Gelu, and so on.
Priced node by node such nodes would look many times slower than they are.

Source: the optimized models that ONNX Runtime 1.32 writes for the CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

import onnx_ir as ir

from tcfuse.graph.constants import constant_value
from tcfuse.graph.legality import is_fixed
from tcfuse.graph.native_kernel import NativeKernel, alone, kernel_name
from tcfuse.graph.shapes import dims

FREE = "tcfuse.free"
"""Key in the ``meta`` of a node that ONNX Runtime has no kernel for where nothing is fused."""

ON_INTEGERS = frozenset(
    {
        *("Add", "AveragePool", "Concat", "Conv", "Gemm", "GlobalAveragePool", "LeakyRelu"),
        *("MatMul", "Mul", "Sigmoid", "Softmax", "Where"),
    }
)
"""Operators that have a kernel of their own for 8-bit integers."""

UNQUANTIZED = frozenset(
    {
        *(
            "DepthToSpace",
            "Expand",
            "Flatten",
            "Gather",
            "GatherElements",
            "MaxPool",
            "Reshape",
        ),
        *("Resize", "Slice", "Squeeze", "Transpose", "Unsqueeze"),
    }
)
"""Operators that run on 8-bit integers as they do on floats."""

RANGES = frozenset({"Clip", "Relu"})
"""What a QuantizeLinear that saturates makes unnecessary."""


def native_kernels(nodes: Sequence[ir.Node]) -> list[NativeKernel]:
    """What is launched for ``nodes`` of one graph, given in topological order."""
    left = dict.fromkeys(node for node in nodes if FREE not in node.meta)
    found: list[NativeKernel] = []
    by_type: dict[str, list[ir.Node]] = {}
    for node in left:
        by_type.setdefault(node.op_type, []).append(node)
    for hearts, rule in RULES:
        for node in [node for heart in hearts for node in by_type.get(heart, ())]:
            merged = rule(node, left) if node in left else None
            if merged is not None:
                found.append(merged)
                for member in merged.nodes:
                    del left[member]
    return found + [alone(node) for node in left]


def _merged(name: str, nodes: Sequence[ir.Node]) -> NativeKernel:
    """One kernel of several nodes; it reads nothing that one of them makes."""
    members = set(nodes)
    made = {value for node in nodes for value in node.outputs}
    reads = dict.fromkeys(v for node in nodes for v in node.inputs if v is not None)
    seen = [
        v for v in made if v.is_graph_output() or any(u not in members for u, _ in v.uses())
    ]
    return NativeKernel(
        name, tuple(nodes), tuple(v for v in reads if v not in made), tuple(seen)
    )


Left = Collection[ir.Node]


def _on_integers(node: ir.Node, left: Left) -> NativeKernel | None:
    """An operator between DequantizeLinear and this QuantizeLinear."""
    nodes = [node]
    while (before := _only_maker(nodes[-1].inputs[0], left)) is not None:
        nodes.append(before)
        if before.op_type not in RANGES:
            break
    operator = nodes[-1]
    if operator.op_type not in ON_INTEGERS | UNQUANTIZED:
        return None
    values = [v for v in operator.inputs if v is not None and v.dtype is ir.DataType.FLOAT]
    makers = [v.producer() for v in values]
    if not all(m is not None and m.op_type == "DequantizeLinear" for m in makers):
        return None
    integers = [m.inputs[0] for m in makers if m is not None]
    others = [v for v in operator.inputs if v is not None and v not in values]
    nodes += [
        m for m in dict.fromkeys(makers) if m is not None and _is_only_for(m, operator, left)
    ]
    name = kernel_name(operator)
    prefix = "QLinear" if operator.op_type in ON_INTEGERS else ""
    reads = tuple(v for v in (*integers, *others) if v is not None)
    return NativeKernel(f"{prefix}{name}", tuple(reversed(nodes)), reads, tuple(node.outputs))


def _is_only_for(node: ir.Node, reader: ir.Node, left: Left) -> bool:
    """Whether ``node`` is there for ``reader`` alone."""
    return node in left and _only_reader(node, (reader,)) is reader


def _gelu(node: ir.Node, left: Left) -> NativeKernel | None:
    """``x * (1 + erf(x / sqrt(2))) * 0.5``, in whichever order its factors come."""
    scale = _only_maker(node.inputs[0], left)
    one = _only_reader(node, left)
    if scale is None or scale.op_type not in ("Div", "Mul") or one is None:
        return None
    product = _only_reader(one, left)
    if one.op_type != "Add" or product is None or product.op_type != "Mul":
        return None
    nodes = [scale, node, one, product]
    half = next(_halves(product, left), None)
    return _merged("Gelu", [*nodes, half] if half is not None else nodes)


def _halves(product: ir.Node, left: Left) -> Iterator[ir.Node]:
    """Products with a number right before or behind ``product``."""
    near = [_only_reader(product, left), *(_only_maker(v, left) for v in product.inputs)]
    for node in near:
        if node is not None and node.op_type == "Mul" and any(map(_is_number, node.inputs)):
            yield node


def _fast_gelu(node: ir.Node, left: Left) -> NativeKernel | None:
    """``0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3)))``."""
    one = _only_reader(node, left)
    product = _only_reader(one, left) if one is not None else None
    if one is None or one.op_type != "Add" or product is None or product.op_type != "Mul":
        return None
    nodes = [node, one, product, *_halves(product, left)]
    stack, cubed = [node], False
    while stack:
        before = _only_maker(stack.pop().inputs[0], left)
        if before is not None and before.op_type in ("Add", "Mul", "Pow") and len(nodes) < 9:
            cubed = cubed or before.op_type == "Pow"
            nodes.append(before)
            stack.append(before)
            makers = (_only_maker(v, left) for v in before.inputs[1:])
            others = [maker for maker in makers if maker is not None]
            stack += others
            nodes += others
    return _merged("FastGelu", list(dict.fromkeys(nodes))) if cubed else None


def _quick_gelu(node: ir.Node, left: Left) -> NativeKernel | None:
    """``x * sigmoid(a * x)``."""
    product = _only_reader(node, left)
    if product is None or product.op_type != "Mul":
        return None
    scale = _only_maker(node.inputs[0], left)
    if node.inputs[0] in product.inputs:
        return _merged("QuickGelu", [node, product])
    if scale is not None and scale.op_type == "Mul" and set(scale.inputs) & set(product.inputs):
        return _merged("QuickGelu", [scale, node, product])
    return None


def _skip_normalization(node: ir.Node, left: Left) -> NativeKernel | None:
    """A LayerNormalization of a sum of two values of one shape and three axes."""
    total = _only_maker(node.inputs[0], left)
    if total is None or total.op_type != "Add":
        return None
    shapes = [dims(v) for v in total.inputs if v is not None]
    weights = (v for v in node.inputs[1:] if v is not None)
    if shapes[0] is None or len(shapes[0]) != 3 or shapes[0] != shapes[-1]:
        return None
    return (
        _merged(f"Skip{node.op_type}", [total, node]) if all(map(is_fixed, weights)) else None
    )


def _square_mean(node: ir.Node, left: Left) -> NativeKernel | None:
    """``x / sqrt(mean(x * x) + e) * w``: a SimplifiedLayerNormalization."""
    nodes, current = [node], node
    for op_type in ("Add", "ReduceMean", "Pow"):
        before = next((m for v in current.inputs if (m := _only_maker(v, left))), None)
        if before is None or before.op_type != op_type:
            return None
        nodes.append(before)
        current = before
    for op_types in (("Div", "Reciprocal"), ("Mul",), ("Mul",)):
        after = _only_reader(nodes[0], left)
        if after is None or after.op_type not in op_types:
            break
        nodes.insert(0, after)
    return _merged("SimplifiedLayerNormalization", nodes[::-1])


RULES: Sequence[tuple[tuple[str, ...], Callable[[ir.Node, Left], NativeKernel | None]]] = (
    (("Erf",), _gelu),
    (("Tanh",), _fast_gelu),
    (("Sigmoid",), _quick_gelu),
    (("Sqrt",), _square_mean),
    (("LayerNormalization", "SimplifiedLayerNormalization"), _skip_normalization),
    (("QuantizeLinear",), _on_integers),
)
"""Each finds what one node is the heart of, which is one of those operators, among nodes that
are left; the first wins."""


def _only_maker(value: ir.Value | None, left: Left) -> ir.Node | None:
    """The node among those left that makes a value nobody else reads."""
    if value is None or value.is_graph_output() or len({u for u, _ in value.uses()}) != 1:
        return None
    maker = value.producer()
    return maker if maker is not None and maker in left else None


def _only_reader(node: ir.Node, left: Left) -> ir.Node | None:
    """The one node that reads what ``node`` makes, if it is left."""
    readers = {user for value in node.outputs for user, _ in value.uses()}
    if len(readers) != 1 or any(value.is_graph_output() for value in node.outputs):
        return None
    (reader,) = readers
    return reader if reader in left else None


def _is_number(value: ir.Value | None) -> bool:
    """Whether a value is one constant number."""
    tensor = constant_value(value) if value is not None else None
    return tensor is not None and tensor.size == 1
