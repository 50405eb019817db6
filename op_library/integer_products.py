"""Products and convolutions of 8-bit integers, summed in 32 bits; quantized again by QLinear.

A zero point or a scale belongs to a whole tensor, or to a row of A, a column of B, a filter.

Source: https://onnx.ai/onnx/operators/onnx__QLinearMatMul.html, onnx__QLinearConv.html and
onnx__MatMulInteger.html.
"""

from __future__ import annotations

from op_library._text import (
    Loops,
    at,
    broadcast_shape,
    definition,
    names,
    needed,
    only_output,
    require_equal,
    statement,
)
from op_library.convolution import Convolution, convolution_of
from op_library.matmul import Product, product_of
from op_library.quantization import saturated
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import Kind, OpCall, onnx_op
from tcfuse.types import DType, Size, TensorType


def quantized(call: OpCall, k: int) -> TensorType:
    """The type of an input that holds 8-bit integers.

    Raises:
        UnsupportedError: It is absent or holds something else.
    """
    type_ = needed(call, k)
    if type_.dtype not in (DType.INT8, DType.UINT8):
        raise UnsupportedError(f"{call.op_type} of {type_.dtype.tc}")
    return type_


def parameter(name: str, type_: TensorType | None, along: Loops) -> str:
    """A scale or zero point, one for all or one for each point of a loop; empty if absent.

    Raises:
        UnsupportedError: There is another number of them.
    """
    if type_ is None:
        return ""
    if type_.shape in ((), (1,)):
        return at(name, ["0"] * type_.rank)
    return at(name, broadcast_shape(type_.shape, along))


def row_parameter(name: str, type_: TensorType | None, product: Product) -> str:
    """A scale or zero point of the first factor, or of the result, at a point.

    Raises:
        UnsupportedError: It is neither one for all nor one a row.
    """
    if type_ is None or type_.rank < 2:
        return parameter(name, type_, product.rows)
    if type_.shape[-1] != 1:
        raise UnsupportedError(f"{name} of shape {type_.shape}")
    return at(name, (*broadcast_shape(type_.shape[:-1], product.batch + product.rows), "0"))


def column_parameter(name: str, type_: TensorType | None, product: Product) -> str:
    """A scale or zero point of the second factor at a point.

    Raises:
        UnsupportedError: It is neither one for all nor one a column.
    """
    if type_ is None or type_.rank < 2:
        return parameter(name, type_, product.columns)
    if type_.shape[-2] != 1:
        raise UnsupportedError(f"{name} of shape {type_.shape}")
    batch = broadcast_shape(type_.shape[:-2], product.batch)
    return at(name, (*batch, "0", *broadcast_shape(type_.shape[-1:], product.columns)))


def shifted(value: str, zero: str) -> str:
    """``value`` less its zero point, in 32 bits."""
    return f"(int32({value}) - int32({zero}))" if zero else f"int32({value})"


def rounded(value: str, zero: str, dtype: DType) -> str:
    """``value`` rounded half to even, plus the zero point, as near as ``dtype`` comes."""
    return saturated(f"roundeven({value})" + (f" + float({zero})" if zero else ""), dtype)


def rescaling(x: str, w: str, y: str) -> str:
    """The factor from a sum of products to the quantized result."""
    return f"(float({x}) * float({w}) / float({y}))"


@onnx_op("MatMulInteger", since=10, kind=Kind.CONTRACTION)
def matmul_integer(call: OpCall) -> str:
    """The product of A and B less their zero points."""
    a, b, y = quantized(call, 0), quantized(call, 1), only_output(call)
    a_zero, b_zero = call.input(2), call.input(3)
    product = product_of(a.shape, b.shape, y.shape)
    left = shifted(at("A", product.left), row_parameter("AZero", a_zero, product))
    right = shifted(at("B", product.right), column_parameter("BZero", b_zero, product))
    params = {"A": a, "B": b, "AZero": a_zero, "BZero": b_zero}
    return definition(call, params, {"Y": y}, [product.summed("Y", f"{left} * {right}")])


@onnx_op("QLinearMatMul", since=10, kind=Kind.CONTRACTION)
def qlinear_matmul(call: OpCall) -> str:
    """The product of two quantized tensors, quantized."""
    a, b, y = quantized(call, 0), quantized(call, 3), only_output(call)
    product = product_of(a.shape, b.shape, y.shape)
    names_ = ("A", "AScale", "AZero", "B", "BScale", "BZero", "YScale", "YZero")
    params = {name: call.input(k) for k, name in enumerate(names_)}

    def row(name: str) -> str:
        return row_parameter(name, params[name], product)

    def column(name: str) -> str:
        return column_parameter(name, params[name], product)

    left = shifted(at("A", product.left), row("AZero"))
    right = shifted(at("B", product.right), column("BZero"))
    factor = rescaling(row("AScale"), column("BScale"), row("YScale"))
    result = f"float({at('Sum', names(product.point))}) * {factor}"
    body = [
        product.summed("Sum", f"{left} * {right}"),
        statement("Y", product.point, rounded(result, row("YZero"), y.dtype)),
    ]
    return definition(call, params, {"Y": y}, body)


def channels_second(shape: tuple[Size, ...]) -> tuple[Size, ...]:
    """A shape whose last axis are the channels, as ONNX orders axes."""
    return (*shape[:1], *shape[-1:], *shape[1:-1])


def products(found: Convolution, x_zero: TensorType | None, w_zero: TensorType | None) -> str:
    """The product of an element and a weight less their zero points."""
    data = shifted(at("X", found.data), parameter("XZero", x_zero, ()))
    weight = parameter("WZero", w_zero, (found.filters,))
    return f"{data} * {shifted(at('W', found.weights), weight)}"


@onnx_op("ConvInteger", since=10, kind=Kind.CONTRACTION)
def conv_integer(call: OpCall) -> str:
    """The convolution of X with the filters W, less their zero points."""
    x, w, y = quantized(call, 0), quantized(call, 1), only_output(call)
    x_zero, w_zero = call.input(2), call.input(3)
    found = convolution_of(call, x.shape, w.shape, y.shape)
    params = {"X": x, "W": w, "XZero": x_zero, "WZero": w_zero}
    body = [found.summed("Y", products(found, x_zero, w_zero))]
    return definition(call, params, {"Y": y}, body)


@onnx_op("QLinearConv", since=10, kind=Kind.CONTRACTION)
@onnx_op("QLinearConv", since=1, kind=Kind.CONTRACTION, domain="com.microsoft")
def qlinear_conv(call: OpCall) -> str:
    """The convolution of a quantized tensor with quantized filters, plus B, quantized."""
    x, w, y, b = quantized(call, 0), quantized(call, 3), only_output(call), call.input(8)
    if call.attributes.get("channels_last", 0):
        shapes = (channels_second(x.shape), w.shape, channels_second(y.shape))
        found = convolution_of(call, *shapes).channels_last
    else:
        found = convolution_of(call, x.shape, w.shape, y.shape)
    names_ = ("X", "XScale", "XZero", "W", "WScale", "WZero", "YScale", "YZero", "B")
    params = {name: call.input(k) for k, name in enumerate(names_)}
    total = at("Sum", names(found.point))
    if b:
        require_equal(b.shape[0], found.filters[1])
        total = f"({total} + {at('B', [found.filters[0]])})"
    factor = rescaling(
        parameter("XScale", params["XScale"], ()),
        parameter("WScale", params["WScale"], (found.filters,)),
        parameter("YScale", params["YScale"], ()),
    )
    zero = parameter("YZero", params["YZero"], ())
    body = [
        found.summed("Sum", products(found, params["XZero"], params["WZero"])),
        statement("Y", found.point, rounded(f"float({total}) * {factor}", zero, y.dtype)),
    ]
    return definition(call, params, {"Y": y}, body)
