"""Products of 8-bit integers that give floats: with scales, or with a factor quantized first.

Source: ONNX Runtime's docs/ContribOperators.md.
"""

from __future__ import annotations

from op_library._text import (
    at,
    broadcast_shape,
    definition,
    names,
    needed,
    only_output,
    statement,
)
from op_library.integer_products import (
    column_parameter,
    parameter,
    quantized,
    row_parameter,
    shifted,
)
from op_library.matmul import Product, product_of
from op_library.quantization import steps_of_range
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import Kind, OpCall, onnx_op
from tcfuse.types import DType, TensorType

MICROSOFT = "com.microsoft"


def scaled_sum(product: Product, factor: str, bias: TensorType | None) -> str:
    """The statement that scales the sums of a product, and adds a bias for each column."""
    result = f"float({at('Sum', names(product.point))}) * ({factor})"
    if bias:
        result += f" + {at('Bias', broadcast_shape(bias.shape, product.columns))}"
    return statement("Y", product.point, result)


@onnx_op("MatMulIntegerToFloat", since=1, kind=Kind.CONTRACTION, domain=MICROSOFT)
def matmul_integer_to_float(call: OpCall) -> str:
    """The product of A and B less their zero points, times their scales, plus a bias."""
    a, b, y = quantized(call, 0), quantized(call, 1), only_output(call)
    words = ("A", "B", "AScale", "BScale", "AZero", "BZero", "Bias")
    params = {word: call.input(k) for k, word in enumerate(words)}
    product = product_of(a.shape, b.shape, y.shape)
    left = shifted(at("A", product.left), row_parameter("AZero", params["AZero"], product))
    right = shifted(at("B", product.right), column_parameter("BZero", params["BZero"], product))
    scale = parameter("AScale", needed(call, 2), ())
    factor = f"{scale} * {column_parameter('BScale', needed(call, 3), product)}"
    body = [
        product.summed("Sum", f"{left} * {right}"),
        scaled_sum(product, factor, params["Bias"]),
    ]
    return definition(call, params, {"Y": y}, body)


@onnx_op("DynamicQuantizeMatMul", since=1, kind=Kind.CONTRACTION, domain=MICROSOFT)
def dynamic_quantize_matmul(call: OpCall) -> str:
    """The product of A, quantized to 8 bits over its own range, and a quantized B."""
    a, b, y = needed(call, 0), quantized(call, 1), only_output(call)
    if a.dtype is not DType.FLOAT32:
        raise UnsupportedError(f"DynamicQuantizeMatMul of {a.dtype.tc}")
    words = ("A", "B", "BScale", "BZero", "Bias")
    params = {word: call.input(k) for k, word in enumerate(words)}
    product = product_of(a.shape, b.shape, y.shape)
    right = shifted(at("B", product.right), column_parameter("BZero", params["BZero"], product))
    factor = f"Scale * {column_parameter('BScale', needed(call, 2), product)}"
    body = [
        *steps_of_range("A", a, "Steps"),
        product.summed("Sum", f"{shifted(at('Steps', product.left), 'Zero')} * {right}"),
        scaled_sum(product, factor, params["Bias"]),
    ]
    return definition(call, params, {"Y": y}, body)
