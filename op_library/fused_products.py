"""Products and convolutions with what ONNX Runtime's optimizer merges into them.

Source: ONNX Runtime's docs/ContribOperators.md.
"""

from __future__ import annotations

from op_library import activation
from op_library._text import (
    at,
    attribute,
    broadcast,
    definition,
    names,
    needed,
    number,
    only_output,
    require_equal,
    statement,
    widened,
)
from op_library.convolution import convolution_of
from op_library.matmul import RESULT, factor, gemm_then, product_of, scaled
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import Kind, OpCall, onnx_op
from tcfuse.types import DType

MICROSOFT = "com.microsoft"


@onnx_op("FusedMatMul", since=1, kind=Kind.CONTRACTION, domain=MICROSOFT)
@onnx_op("TransposeMatMul", since=1, kind=Kind.CONTRACTION, domain=MICROSOFT)
def fused_matmul(call: OpCall) -> str:
    """``alpha * A * B``, where A and B may be given with their axes in another order."""
    a, b, y = needed(call, 0), needed(call, 1), only_output(call)
    orders = [axis_order(call, type_.rank, name) for type_, name in ((a, "A"), (b, "B"))]
    a_shape, b_shape = (
        tuple(type_.shape[axis] for axis in order)
        for type_, order in zip((a, b), orders, strict=True)
    )
    product = product_of(a_shape, b_shape, y.shape)
    left, right = (
        [subscripts[order.index(axis)] for axis in range(len(order))]
        for subscripts, order in zip((product.left, product.right), orders, strict=True)
    )
    value, alpha = f"{at('A', left)} * {at('B', right)}", factor(call, "alpha")
    params = {"A": a, "B": b}
    if alpha == "1":
        return definition(call, params, {"Y": y}, [product.summed("Y", value)])
    body = [
        product.summed("Product", widened(a.dtype, value)),
        statement("Y", product.point, scaled(alpha, at("Product", names(product.point)))),
    ]
    return definition(call, params, {"Y": y}, body)


def axis_order(call: OpCall, rank: int, name: str) -> list[int]:
    """The axes of a factor in the order that they are multiplied in; a vector has one only."""
    order = list(range(rank))
    if rank > 1 and call.attributes.get(f"transBatch{name}", 0):
        order = [*order[1:-1], 0, order[-1]]
    if rank > 1 and call.attributes.get(f"trans{name}", 0):
        order[-2:] = order[:-3:-1]
    return order


@onnx_op("FusedGemm", since=1, kind=Kind.CONTRACTION, domain=MICROSOFT)
def fused_gemm(call: OpCall) -> str:
    """An activation of ``alpha * A * B + beta * C``."""
    name = str(call.attributes.get("activation", ""))
    if not name:
        return gemm_then(call, RESULT)
    row = activation.TABLE.get(name)
    if row is None:
        raise UnsupportedError(f"FusedGemm with activation {name!r}")
    words = {
        key: attribute(call, f"activation_{key}", default)
        for key, default in row.attributes.items()
    }
    return gemm_then(call, row.value.format(RESULT, T=only_output(call).dtype.tc, **words))


@onnx_op("FusedConv", since=1, kind=Kind.CONTRACTION, domain=MICROSOFT)
def fused_conv(call: OpCall) -> str:
    """An activation of the convolution of X with the filters W, plus B, plus Z."""
    x, w, b, z = needed(call, 0), needed(call, 1), call.input(2), call.input(3)
    y = only_output(call)
    found = convolution_of(call, x.shape, w.shape, y.shape)
    value = widened(x.dtype, f"{at('X', found.data)} * {at('W', found.weights)}")
    result = at("Sum", names(found.point))
    if b:
        require_equal(b.shape[0], found.filters[1])
        result += f" + {at('B', [found.filters[0]])}"
    if z:
        result += f" + {at('Z', broadcast(z, found.point))}"
    lets = {RESULT: result}
    body = [
        found.summed("Sum", value),
        statement("Y", found.point, activated(call, y.dtype), lets=lets),
    ]
    return definition(call, {"X": x, "W": w, "B": b, "Z": z}, {"Y": y}, body)


def activated(call: OpCall, dtype: DType) -> str:
    """The activation of ``RESULT``, whose parameters are a list in the order of their names.

    Raises:
        UnsupportedError: There is no such activation.
    """
    name = str(call.attributes.get("activation", ""))
    given = [number(float(v)) for v in call.attributes.get("activation_params") or ()]
    if not name:
        return RESULT
    if name == "Clip" and len(given) == 2:
        return f"min(max({RESULT}, {given[0]}), {given[1]})"
    row = activation.TABLE.get(name)
    if row is None or len(given) != len(row.attributes):
        raise UnsupportedError(f"FusedConv with activation {name!r} of {given}")
    words = dict(zip(row.attributes, given, strict=True))
    return row.value.format(RESULT, T=dtype.tc, **words)
