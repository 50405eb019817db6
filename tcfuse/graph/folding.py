"""Constant folding: nodes whose results are known before the model runs become initializers.

Two ways to know a result.  Small integer tensors come out of shape inference as numbers
(``Shape``, ``Gather``, ``Concat`` on static sizes).  Other operators are evaluated by
``onnx.reference`` when all their inputs are constants, and only operators that have one right
answer to the last bit are: data movement, conversions, IEEE arithmetic.  What is left is left
to ONNX Runtime, which folds with its own kernels.

Time and memory are bounded whatever the file says: the size of a result is known from shape
inference before it is computed.
"""

from __future__ import annotations

import math

import numpy as np
import onnx
import onnx_ir as ir

from tcfuse.graph import shapes
from tcfuse.graph.constants import constant_tensor, renamed
from tcfuse.graph.names import names_of, unused_name
from tcfuse.graph.settling import settled
from tcfuse.types import DType

_SMALL_BYTES = 1 << 20  # a result this small may be larger than what it is made of
_LARGEST_BYTES = 16 << 20
_LARGEST_INPUT_BYTES = 64 << 20
_TOTAL_BYTES = 256 << 20  # of all results of one model

_MOVEMENT = frozenset(
    (
        *("Concat", "ConstantOfShape", "DepthToSpace", "Expand", "Flatten", "Gather"),
        *("GatherElements", "GatherND", "Identity", "NonZero", "Range", "Reshape", "Slice"),
        *("SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze", "Where"),
        *("Cast", "Shape", "Size", "ScatterND", "ScatterElements"),
    )
)
_ARITHMETIC = frozenset(
    (
        *("Abs", "Add", "And", "Ceil", "Div", "Equal", "Floor", "Greater", "GreaterOrEqual"),
        *("Less", "LessOrEqual", "Max", "Min", "Mul", "Neg", "Not", "Or", "Relu", "Round"),
        *("Sign", "Sqrt", "Sub", "Xor"),
    )
)
_INTEGER_ONLY = frozenset(("Mod", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum"))
_ONE_ELEMENT_ONLY = frozenset(("Sqrt",))  # vectorised square roots may differ in the last bit
_EVALUATED = _MOVEMENT | _ARITHMETIC | _INTEGER_ONLY
_EXACT_TYPES = (DType.FLOAT32, DType.FLOAT64, DType.INT32, DType.INT64, DType.BOOL)
_NEVER_DROPPED = frozenset(
    (
        *("Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike"),
        *("RandomUniform", "RandomUniformLike"),
    )
)
_REFUSALS = (
    *(ArithmeticError, AttributeError, IndexError, KeyError, MemoryError, NotImplementedError),
    *(RuntimeError, TypeError, ValueError),
)


class Folder:
    """Folds a model's constants, called with each node once shape inference has seen it."""

    def __init__(self, model: ir.Model) -> None:
        self._model = model
        self._total_bytes = 0
        self._names: set[str] = set()

    def __call__(self, node: ir.Node) -> None:
        """Replace ``node`` by constants if its results are known."""
        self._settle(node)
        if node.domain not in ("", "ai.onnx") or any(v.is_graph_output() for v in node.outputs):
            return
        if node.op_type == "Constant":
            tensor = constant_tensor(node.outputs[0])
            name = node.outputs[0].name
            if tensor is not None and self._model.ir_version >= 4:
                self._replace(node, [renamed(tensor, name) if name else tensor])
            return
        arrays = _from_elements(node) or self._evaluate(node)
        if arrays is not None:
            self._total_bytes += sum(a.nbytes for a in arrays)
            self._replace(node, [ir.tensor(a) for a in arrays])

    def _settle(self, node: ir.Node) -> None:
        """Give ``node`` constants in the place of inputs that mean the same."""
        graph = node.graph
        if self._model.ir_version < 4 or not isinstance(graph, ir.Graph):
            return
        for position, array in settled(node).items():
            old = node.inputs[position]
            assert old is not None
            name = self._unused(f"{old.name}_settled")
            new = ir.Value(name=name, const_value=ir.tensor(array, name=name))
            new.dtype, new.shape = ir.DataType.from_numpy(array.dtype), ir.Shape(array.shape)
            graph.register_initializer(new)
            node.replace_input_with(position, new)
            producer = old.producer()
            if producer is not None and not old.uses() and _is_dead(producer):
                _remove(producer)

    def _unused(self, name: str) -> str:
        """``name``, or with a number behind it, so that nothing else has it."""
        if not self._names:
            self._names = names_of(self._model)
        return unused_name(name, self._names)

    def _evaluate(self, node: ir.Node) -> list[np.ndarray] | None:
        """The results of a node all of whose inputs are constants."""
        if not node.inputs or node.op_type not in _EVALUATED:
            return None
        tensors: list[ir.TensorProtocol | None] = []
        for value in node.inputs:
            tensors.append(constant_tensor(value))
            if tensors[-1] is None and value is not None:
                return None
        if not _has_one_answer(node):
            return None
        sizes = _result_bytes(node)
        in_bytes = sum(t.nbytes for t in tensors if t is not None)
        if sizes is None or in_bytes > _LARGEST_INPUT_BYTES:
            return None
        if any(s > _LARGEST_BYTES or (s > _SMALL_BYTES and s > in_bytes) for s in sizes):
            return None
        if self._total_bytes + sum(sizes) > _TOTAL_BYTES:
            return None
        arrays = [None if t is None else t.numpy() for t in tensors]
        results = _run(node, arrays, self._opset(node))
        return results if results is not None and _as_inferred(node, results) else None

    def _opset(self, node: ir.Node) -> int:
        opsets = self._model.graph.opset_imports
        return node.version or opsets.get(node.domain) or opsets.get("", 1)

    def _replace(self, node: ir.Node, tensors: list[ir.TensorProtocol]) -> None:
        """Put constants of the same names where the outputs of ``node`` are."""
        graph = node.graph
        assert isinstance(graph, ir.Graph)
        for old, tensor in zip(node.outputs, tensors, strict=True):
            if not old.name or not (old.uses() or self._model.ir_version < 4):
                continue
            new = ir.Value(
                name=old.name,
                type=ir.TensorType(tensor.dtype),
                shape=ir.Shape(tensor.shape.numpy()),
                doc_string=old.doc_string,
                metadata_props=dict(old.metadata_props),
            )
            if self._model.ir_version < 4:
                # Before version 4 every initializer is an input too: it stays a node.
                value = ir.AttrTensor("value", tensor)
                graph.insert_before(node, ir.Node("", "Constant", [], [value], outputs=[new]))
            else:
                new.const_value = tensor
                graph.register_initializer(new)
            old.replace_all_uses_with(new)
        _remove(node)


def _from_elements(node: ir.Node) -> list[np.ndarray] | None:
    """The results when they are small integer tensors whose every number is known."""
    results = []
    for value in node.outputs:
        numbers, shape = shapes.elements(value), shapes.dims(value)
        dtype = None if value.dtype is None else DType.from_onnx(value.dtype.value)
        if numbers is None or shape is None or dtype is None or dtype.is_float:
            return None
        if not all(isinstance(e, int) for e in numbers):
            return None
        results.append(np.array(numbers, dtype=dtype.numpy).reshape([int(d) for d in shape]))
    return results


def _has_one_answer(node: ir.Node) -> bool:
    """Whether every right implementation computes the same bits."""
    values = [v for v in (*node.inputs, *node.outputs) if v is not None]
    types = [None if v.dtype is None else DType.from_onnx(v.dtype.value) for v in values]
    if any(t is None for t in types):
        return False
    if node.op_type in _MOVEMENT:
        return True
    if node.op_type in _INTEGER_ONLY:
        return all(t in (DType.INT32, DType.INT64) for t in types)
    if not all(t in _EXACT_TYPES for t in types):
        return False
    return node.op_type not in _ONE_ELEMENT_ONLY or shapes.dims(node.outputs[0]) in ((), (1,))


def _result_bytes(node: ir.Node) -> list[int] | None:
    """Bytes of each result; ``None`` when a size is not a number."""
    sizes = []
    for value in node.outputs:
        shape = shapes.dims(value)
        dtype = None if value.dtype is None else DType.from_onnx(value.dtype.value)
        if shape is None or dtype is None or not all(isinstance(d, int) for d in shape):
            return None
        sizes.append(math.prod(int(d) for d in shape) * dtype.bytes)
    return sizes


def _run(node: ir.Node, arrays: list[np.ndarray | None], opset: int) -> list[np.ndarray] | None:
    """What ``onnx.reference`` computes; ``None`` when it raises, overflows or divides by 0."""
    from onnx.reference import ReferenceEvaluator  # only here: many models have none of these

    proto = onnx.NodeProto(op_type=node.op_type)
    proto.input.extend("" if a is None else f"i{k}" for k, a in enumerate(arrays))
    proto.output.extend(f"o{k}" for k in range(len(node.outputs)))
    feeds = {f"i{k}": a for k, a in enumerate(arrays) if a is not None}
    try:
        if node.op_type == "Cast" and not _fits(arrays[0], node):
            return None
        proto.attribute.extend(
            ir.serde.serialize_attribute(a) for a in node.attributes.values()
        )
        with np.errstate(divide="raise", invalid="raise", over="raise", under="ignore"):
            results = ReferenceEvaluator(proto, opsets={"": opset}).run(None, feeds)
    except _REFUSALS:
        return None
    return [np.asarray(r) for r in results]


def _fits(array: np.ndarray | None, node: ir.Node) -> bool:
    """Whether a conversion of these numbers is defined: in the range of an integer type."""
    target = DType.from_onnx(node.attributes["to"].as_int())
    if array is None or target is None or array.size == 0:
        return False
    if target is DType.BOOL or (target.is_float and array.dtype.kind != "f"):
        return True
    if target.is_float:
        return bool(np.isfinite(array.astype(np.float64)).all())
    if not np.isfinite(array.astype(np.float64)).all():
        return False
    least, largest = target.limits
    low, high = int(np.trunc(array.min())), int(np.trunc(array.max()))
    return least <= low and high <= largest


def _as_inferred(node: ir.Node, results: list[np.ndarray]) -> bool:
    """Whether the results have the types and shapes that were inferred for them."""
    if len(results) != len(node.outputs):
        return False
    for value, array in zip(node.outputs, results, strict=True):
        assert value.dtype is not None
        if array.dtype != value.dtype.numpy() or array.shape != shapes.dims(value):
            return False
    return True


def _remove(node: ir.Node) -> None:
    """Remove a node without uses, then what was only there for its sake."""
    pending = [node]
    while pending:
        node = pending.pop()
        inputs = [v for v in dict.fromkeys(node.inputs) if v is not None]
        graph = node.graph
        assert isinstance(graph, ir.Graph)
        graph.remove(node, safe=True)
        for value in inputs:
            if value.uses() or value.is_graph_output():
                continue
            producer = value.producer()
            if producer is not None and _is_dead(producer):
                pending.append(producer)
            elif value.is_initializer() and not value.is_graph_input():
                owner = value.graph
                assert owner is not None
                assert value.name is not None
                owner.initializers.pop(value.name)


def _is_dead(node: ir.Node) -> bool:
    """Whether nobody needs a node that does nothing but compute its outputs."""
    if node.domain not in ("", "ai.onnx") or node.op_type in _NEVER_DROPPED:
        return False
    if any(a.type is ir.AttributeType.GRAPH for a in node.attributes.values()):
        return False
    return not any(v.uses() or v.is_graph_output() for v in node.outputs)
