"""Operators of com.microsoft on quantized tensors, each with one scale and one zero point.

Source: https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
"""

from __future__ import annotations

from op_library._rows import rows_of
from op_library._text import (
    Loops,
    at,
    attribute,
    broadcast,
    definition,
    loops,
    minus,
    names,
    needed,
    only_output,
    require_equal,
    statement,
    total,
)
from op_library.quantization import saturated
from op_library.slicing import choose
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import Kind, OpCall, onnx_op
from tcfuse.types import DType, Size, TensorType

MICROSOFT = "com.microsoft"


def scalar(call: OpCall, k: int, name: str) -> str:
    """A scale or zero point as it is read; empty if absent.

    Raises:
        UnsupportedError: It holds several numbers.
    """
    type_ = call.input(k)
    if type_ is None:
        return ""
    if type_.shape not in ((), (1,)):
        raise UnsupportedError(f"{call.op_type} with {name.lower()} of shape {type_.shape}")
    return at(name, ["0"] * type_.rank)


class Operand:
    """A quantized input: a tensor, its scale and its zero point, at consecutive positions."""

    def __init__(self, call: OpCall, first: int, name: str) -> None:
        self.name, self.type = name, needed(call, first)
        if self.type.dtype not in (DType.INT8, DType.UINT8):
            raise UnsupportedError(f"{call.op_type} of {self.type.dtype.tc}")
        scale, zero = f"{name}Scale", f"{name}Zero"
        self.params = {
            name: self.type,
            scale: needed(call, first + 1),
            zero: call.input(first + 2),
        }
        self.scale = scalar(call, first + 1, scale)
        self.zero = scalar(call, first + 2, zero)

    def value(self, subscripts: list[str] | tuple[str, ...]) -> str:
        """The number that an element stands for."""
        return f"{self.scale} * {self.difference(subscripts)}"

    def difference(self, subscripts: list[str] | tuple[str, ...]) -> str:
        """An element less the zero point, which is exact."""
        element = at(self.name, subscripts)
        if not self.zero:
            return f"int32({element})"
        return f"(int32({element}) - int32({self.zero}))"

    def broadcast_value(self, point: Loops) -> str:
        """The number at a point of the output."""
        return self.value(broadcast(self.type, point))


class Result:
    """The output, with its scale and zero point at consecutive positions."""

    def __init__(self, call: OpCall, first: int) -> None:
        self.type = only_output(call)
        self.params = {"Scale": needed(call, first), "Zero": call.input(first + 1)}
        self.scale, self.zero = scalar(call, first, "Scale"), scalar(call, first + 1, "Zero")

    def quantized(self, value: str) -> str:
        """``value`` rounded half to even, then shifted."""
        rounded = f"roundeven(({value}) / {self.scale})"
        return saturated(f"{rounded} + {self.zero}" if self.zero else rounded, self.type.dtype)

    def shifted(self, value: str) -> str:
        """``value`` shifted, then rounded half to even."""
        scaled = f"({value}) / {self.scale}"
        moved = f"{scaled} + {self.zero}" if self.zero else scaled
        return saturated(f"roundeven({moved})", self.type.dtype)


def pointwise(call: OpCall, operands: list[Operand], result: Result, value: str) -> str:
    """The definition of an operator whose output is ``value`` at every point."""
    point = loops(result.type.shape)
    params: dict[str, TensorType | None] = {}
    for operand in operands:
        params |= operand.params
    body = statement("Y", point, value)
    return definition(call, params | result.params, {"Y": result.type}, [body])


@onnx_op("QLinearAdd", since=1, kind=Kind.ELEMENTWISE, domain=MICROSOFT)
def add(call: OpCall) -> str:
    """The sum."""
    a, b, result = Operand(call, 0, "A"), Operand(call, 3, "B"), Result(call, 6)
    point = loops(result.type.shape)
    value = f"{a.broadcast_value(point)} + {b.broadcast_value(point)}"
    return pointwise(call, [a, b], result, result.shifted(value))


@onnx_op("QLinearMul", since=1, kind=Kind.ELEMENTWISE, domain=MICROSOFT)
def multiply(call: OpCall) -> str:
    """The product."""
    a, b, result = Operand(call, 0, "A"), Operand(call, 3, "B"), Result(call, 6)
    point = loops(result.type.shape)
    value = f"{a.broadcast_value(point)} * ({b.broadcast_value(point)})"
    return pointwise(call, [a, b], result, result.shifted(value))


@onnx_op("QLinearSigmoid", since=1, kind=Kind.ELEMENTWISE, domain=MICROSOFT)
def sigmoid(call: OpCall) -> str:
    """The logistic function."""
    x, result = Operand(call, 0, "X"), Result(call, 3)
    value = f"sigmoid({x.broadcast_value(loops(result.type.shape))})"
    return pointwise(call, [x], result, result.quantized(value))


@onnx_op("QLinearLeakyRelu", since=1, kind=Kind.ELEMENTWISE, domain=MICROSOFT)
def leaky_relu(call: OpCall) -> str:
    """Positive numbers, and negative ones times ``alpha``."""
    x, result = Operand(call, 0, "X"), Result(call, 3)
    number = x.broadcast_value(loops(result.type.shape))
    alpha = attribute(call, "alpha", 0.01)
    value = f"{number} >= 0 ? {number} : {alpha} * ({number})"
    return pointwise(call, [x], result, result.quantized(value))


@onnx_op("QLinearWhere", since=1, kind=Kind.ELEMENTWISE, domain=MICROSOFT)
def where(call: OpCall) -> str:
    """One of two inputs."""
    condition = needed(call, 0)
    x, y, result = Operand(call, 1, "A"), Operand(call, 4, "B"), Result(call, 7)
    point = loops(result.type.shape)
    chosen = at("Condition", broadcast(condition, point))
    value = f"{chosen} ? {x.broadcast_value(point)} : {y.broadcast_value(point)}"
    params = {"Condition": condition} | x.params | y.params | result.params
    body = statement("Y", point, result.quantized(value))
    return definition(call, params, {"Y": result.type}, [body])


@onnx_op("QLinearSoftmax", since=1, kind=Kind.REDUCTION, domain=MICROSOFT)
def softmax(call: OpCall) -> str:
    """Softmax along one axis, or over all from it on for models before opset 13.

    ONNX Runtime sums integers that stand for exponentials, which may differ by one.
    """
    x, result = Operand(call, 0, "X"), Result(call, 3)
    axis = call.axis(default=-1)
    along = [axis] if call.attributes.get("opset", 0) >= 13 else range(axis, x.type.rank)
    rows = rows_of(call, x.type, along)
    shifted = f"{x.scale} * (int32({rows.at_point('X')}) - int32({rows.at_row('Max')}))"
    share = f"{rows.at_point('Exp')} / {rows.at_row('Sum')}"
    body = [
        rows.fold("Max", rows.at_point("X"), "max=!"),
        rows.each_point("Exp", f"exp({shifted})"),
        rows.fold("Sum", rows.at_point("Exp")),
        rows.each_point("Y", result.quantized(share)),
    ]
    return definition(call, x.params | result.params, {"Y": result.type}, body)


@onnx_op("QLinearConcat", since=1, kind=Kind.MOVEMENT, domain=MICROSOFT)
def concat(call: OpCall) -> str:
    """The inputs one after the other, each quantized again."""
    result = Result(call, 0)
    operands = [Operand(call, k, f"X{k // 3}") for k in range(2, len(call.inputs), 3)]
    if not operands:
        raise UnsupportedError("QLinearConcat without inputs")
    axis = int(call.attributes["axis"]) % max(result.type.rank, 1)
    point, sizes = loops(result.type.shape), [o.type.shape[axis] for o in operands]
    if all(isinstance(size, int) for size in sizes):
        require_equal(total(sizes), result.type.shape[axis])
    params: dict[str, TensorType | None] = dict(result.params)
    pieces: list[tuple[Size, str]] = []
    for k, operand in enumerate(operands):
        params |= operand.params
        for d, (size, extent) in enumerate(zip(operand.type.shape, point, strict=True)):
            if d != axis:
                require_equal(size, extent[1])
        start = total(sizes[:k])
        subscripts = list(names(point))
        subscripts[axis] = minus(subscripts[axis], start)
        if sizes[k] != 0:
            pieces.append((start, operand.value(subscripts)))
    value = result.quantized(choose(point[axis][0], pieces))
    return definition(call, params, {"Y": result.type}, [statement("Y", point, value)])
