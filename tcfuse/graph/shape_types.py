"""Element types of outputs, from the operators' schemas and a few attributes."""

from __future__ import annotations

from functools import cache

import onnx
import onnx_ir as ir

from tcfuse.graph.shape_call import Call

_NAMES = {
    "tensor(float)": ir.DataType.FLOAT,
    "tensor(double)": ir.DataType.DOUBLE,
    "tensor(bool)": ir.DataType.BOOL,
    "tensor(int64)": ir.DataType.INT64,
    "tensor(int32)": ir.DataType.INT32,
    "tensor(int8)": ir.DataType.INT8,
    "tensor(uint8)": ir.DataType.UINT8,
    "tensor(string)": ir.DataType.STRING,
}
_BY_ATTRIBUTE = {
    "Cast": ("to", None),
    "BitCast": ("to", None),
    "RandomNormal": ("dtype", ir.DataType.FLOAT),
    "RandomUniform": ("dtype", ir.DataType.FLOAT),
    "RandomNormalLike": ("dtype", None),
    "RandomUniformLike": ("dtype", None),
    "EyeLike": ("dtype", None),
    "Bernoulli": ("dtype", None),
    "Multinomial": ("dtype", ir.DataType.INT32),
}
_FLOAT, _FIRST = ir.DataType.FLOAT, (0,)
# What no schema tells: a type, or the inputs of which the first one present has the same.
_UNTOLD: dict[str, tuple[ir.DataType | tuple[int, ...], ...]] = {
    "::LinearAttention": (_FIRST, (3, 0)),
    "::SimplifiedLayerNormalization": ((1,), _FLOAT),
    "com.microsoft::EmbedLayerNormalization": ((2,), _FIRST, (2,)),
    "com.microsoft::LinearAttention": (_FIRST, (3, 0)),
    "com.microsoft::MatMulIntegerToFloat": ((2,),),
    "com.microsoft::QLinearConcat": ((1,),),
    "com.microsoft::QLinearConv": ((7, 0),),
    "com.microsoft::QLinearWhere": ((1,),),
    "com.microsoft::SkipLayerNormalization": (_FIRST, _FLOAT, _FLOAT, _FIRST),
    "com.microsoft::SkipSimplifiedLayerNormalization": (_FIRST, _FLOAT, _FLOAT, _FIRST),
}
_BY_INPUT = {"CastLike": 1, "OneHot": 2, "DequantizeLinear": 1}


@cache
def schema_of(op_type: str, domain: str, opset: int) -> onnx.defs.OpSchema | None:
    """The definition ONNX has of an operator; ``None`` when it has none."""
    try:
        return onnx.defs.get_schema(op_type, opset, domain)
    except (onnx.defs.SchemaError, TypeError):  # or the opset is no small number
        return None


@cache
def _output_types(
    op_type: str, domain: str, opset: int, n: int
) -> tuple[ir.DataType | tuple[int, ...] | None, ...]:
    """For each of ``n`` outputs: its type, or the inputs that have the same one.

    Without a schema that is the first input.
    """
    untold = _UNTOLD.get(f"{domain}::{op_type}")
    if untold is not None:
        return untold[:n]
    schema = schema_of(op_type, domain, opset)
    if schema is None:
        return ((0,),) * n
    if not schema.outputs:
        return (None,) * n
    result: list[ir.DataType | tuple[int, ...] | None] = []
    single = {
        c.type_param_str: next(iter(c.allowed_type_strs))
        for c in schema.type_constraints
        if len(c.allowed_type_strs) == 1
    }
    for k in range(n):
        name = schema.outputs[min(k, len(schema.outputs) - 1)].type_str
        alike = tuple(i for i, formal in enumerate(schema.inputs) if formal.type_str == name)
        result.append(_NAMES.get(single.get(name, name)) or alike or None)
    return tuple(result)


def tensor_type(value: ir.Value | None) -> ir.DataType | None:
    """Element type of a tensor; ``None`` when it is unknown, or the value is no tensor."""
    if value is None or not isinstance(value.type, ir.TensorType):
        return None
    return value.type.dtype


def output_types(call: Call) -> list[ir.DataType | None]:
    """The element type of each output; ``None`` when the schema does not tell."""
    node = call.node
    domain = "" if node.domain == "ai.onnx" else node.domain
    special = _special_type(call) if domain in ("", "com.microsoft") else None
    types: list[ir.DataType | None] = []
    for rule in _output_types(node.op_type, domain, call.opset, call.n_outputs):
        if not isinstance(rule, tuple):
            types.append(rule)
            continue
        inputs = (call.input(k) for k in rule)
        types.append(next((t for v in inputs if (t := tensor_type(v)) is not None), None))
    if special is not None and types:
        types[0] = special
    return types


def _special_type(call: Call) -> ir.DataType | None:
    """The type of the first output where an attribute or one certain input decides."""
    op_type = call.node.op_type
    if op_type in _BY_ATTRIBUTE:
        name, default = _BY_ATTRIBUTE[op_type]
        given = call.attribute(name)
        if given:
            return ir.DataType(given)
        first = call.input(0)
        return default or tensor_type(first)
    if op_type in ("Constant", "ConstantOfShape"):
        value = call.attribute("value")
        return value.dtype if value is not None else _constant_type(call)
    if op_type == "QuantizeLinear":
        zero, given = call.input(2), call.attribute("output_dtype")
        if zero is not None:
            return zero.dtype
        return ir.DataType(given) if given else ir.DataType.UINT8
    if op_type in _BY_INPUT:
        like, given = call.input(_BY_INPUT[op_type]), call.attribute("output_dtype")
        return ir.DataType(given) if given else tensor_type(like)
    return None


def _constant_type(call: Call) -> ir.DataType | None:
    if call.node.op_type == "ConstantOfShape":
        return ir.DataType.FLOAT
    for name, dtype in (("int", "INT64"), ("float", "FLOAT"), ("string", "STRING")):
        if any(f"value_{name}{s}" in call.node.attributes for s in ("", "s")):
            return ir.DataType[dtype]
    return None
