"""ONNX's own inference, one node at a time, for operators without a rule of ours.

A model of any size can be asked about that way, and what its file claims of inner values is not
believed.  ONNX's inference takes an unknown size for 0 in arithmetic, so it is asked with two
sets of numbers instead of names; a size that comes out as one of the inputs' sizes both times
is that size, one that does not change is that number, and any other gets a name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import onnx
import onnx.checker
import onnx.shape_inference
import onnx_ir as ir
import sympy

from tcfuse.graph.shape_call import MAX_RANK, Call, Known
from tcfuse.graph.shape_types import schema_of, tensor_type
from tcfuse.graph.symbols import Dim, Dims

_LARGEST_CONSTANT_BYTES = 1024
_PROBES = (101, 10007)  # names become consecutive primes from here

_REFUSALS = (
    *(onnx.shape_inference.InferenceError, onnx.checker.ValidationError),
    *(KeyError, RuntimeError, TypeError, ValueError),
)
_NOT_BELIEVED = {("", "STFT")}  # its one-sided result is not halved

_Types: TypeAlias = dict[str, onnx.TypeProto]
_Numbers: TypeAlias = Mapping[Dim, int | str]


def infer_with_onnx(call: Call) -> list[Known]:
    """What ONNX's inference says of one node; nothing where it has no answer."""
    node = call.node
    nothing = [Known() for _ in node.outputs]
    domain = "" if node.domain == "ai.onnx" else node.domain
    schema = schema_of(node.op_type, domain, call.opset)
    has_body = any(a.type is ir.AttributeType.GRAPH for a in node.attributes.values())
    if schema is None or has_body or (domain, node.op_type) in _NOT_BELIEVED:
        return nothing
    inputs = [(f"i{k}", v) for k, v in enumerate(node.inputs) if v is not None]
    present = [(name, v, call.scope.shape_of(v)) for name, v in inputs]
    if any(tensor_type(value) is None for _, value, _ in present):
        return nothing
    sizes = list(dict.fromkeys(d for _, _, shape in present for d in shape or ()))
    proto, data = _proto(call)

    def ask(numbers: _Numbers) -> _Types | None:
        types = {name: _type(value, shape, numbers) for name, value, shape in present}
        return _ask(schema, proto, types, data, call.opset)

    answers = [(numbers, ask(numbers)) for numbers in _assignments(sizes)]
    if any(answer is None for _, answer in answers):
        # The numbers contradict each other; with names only, no number is believed.
        numbers = {size: str(size) for size in sizes if not isinstance(size, int)}
        answers = [({**numbers, **{s: s for s in sizes if isinstance(s, int)}}, ask(numbers))]
    good = [(numbers, answer) for numbers, answer in answers if answer is not None]
    if not good:
        return nothing
    return [_known(f"o{k}", good, call) for k in range(len(node.outputs))]


def _assignments(sizes: list[Dim]) -> list[_Numbers]:
    """Numbers for all sizes: two different sets if any has a name."""
    expressions = [size for size in sizes if not isinstance(size, int)]
    names = sorted({s for e in expressions for s in e.free_symbols}, key=str)
    result: list[_Numbers] = []
    for start in _PROBES if names else (0,):
        values: dict[sympy.Symbol, int] = {}
        prime = start
        for name in names:
            prime = sympy.nextprime(prime)
            values[name] = prime
        result.append({d: d if isinstance(d, int) else int(d.xreplace(values)) for d in sizes})
    return result


def _proto(call: Call) -> tuple[onnx.NodeProto, dict[str, onnx.TensorProto]]:
    """The node with names for its inputs, and its small constant inputs."""
    node = call.node
    proto = onnx.NodeProto(op_type=node.op_type, domain=node.domain)
    proto.input.extend("" if v is None else f"i{k}" for k, v in enumerate(node.inputs))
    proto.output.extend(f"o{k}" if v.name else "" for k, v in enumerate(node.outputs))
    proto.attribute.extend(ir.serde.serialize_attribute(a) for a in node.attributes.values())
    data = {}
    for k, value in enumerate(node.inputs):
        array = call.array(k)
        if value is None or array is None or array.nbytes > _LARGEST_CONSTANT_BYTES:
            continue
        if value.dtype is not ir.DataType.STRING:
            data[f"i{k}"] = ir.serde.serialize_tensor(ir.tensor(array, dtype=value.dtype))
    return proto, data


def _type(value: ir.Value, shape: Dims | None, numbers: _Numbers) -> onnx.TypeProto:
    proto = onnx.TypeProto()
    dtype = tensor_type(value)
    assert dtype is not None
    proto.tensor_type.elem_type = dtype.value
    if shape is not None:
        proto.tensor_type.shape.SetInParent()
        for size in shape:
            dim, number = proto.tensor_type.shape.dim.add(), numbers.get(size, size)
            if isinstance(number, int):
                dim.dim_value = number
            else:
                dim.dim_param = str(number)
    return proto


def _ask(
    schema: onnx.defs.OpSchema,
    proto: onnx.NodeProto,
    types: _Types,
    data: dict[str, onnx.TensorProto],
    opset: int,
) -> _Types | None:
    opsets = [onnx.OperatorSetIdProto(domain=schema.domain, version=opset)]
    try:
        return onnx.shape_inference.infer_node_outputs(
            schema, proto, types, data, opset_imports=opsets
        )
    except _REFUSALS:
        return None


def _known(name: str, answers: list[tuple[_Numbers, _Types]], call: Call) -> Known:
    """What the answers agree on for output ``name``."""
    protos = [answer.get(name) for _, answer in answers]
    tensors = [p.tensor_type for p in protos if p is not None and p.HasField("tensor_type")]
    if len(tensors) < len(answers) or not tensors[0].elem_type:
        return Known()
    known = Known(ir.DataType(tensors[0].elem_type))
    ranks = {len(t.shape.dim) if t.HasField("shape") else -1 for t in tensors}
    if len(ranks) != 1 or not 0 <= min(ranks) <= MAX_RANK:
        return known
    numbers = [given for given, _ in answers]
    columns = zip(*(t.shape.dim for t in tensors), strict=True)
    known.shape = tuple(
        _size([_number(d) for d in column], numbers, call) for column in columns
    )
    return known


def _number(dim: onnx.TensorShapeProto.Dimension) -> int | str:
    return dim.dim_value if dim.HasField("dim_value") else dim.dim_param


def _size(found: list[int | str], numbers: list[_Numbers], call: Call) -> Dim:
    """The size that came out as ``found`` for each set of numbers."""
    for size in numbers[0]:
        if not isinstance(size, int) and [n[size] for n in numbers] == found:
            return size
    by_name = any(isinstance(n, str) for given in numbers for n in given.values())
    known = found[0]
    if by_name or len(set(found)) > 1 or not isinstance(known, int) or known < 0:
        return call.fresh()
    return known
