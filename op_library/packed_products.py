"""Products with weights of 2, 4 or 8 bits, packed in bytes and scaled by blocks.

Source: ONNX Runtime's docs/ContribOperators.md, MatMulNBits.
"""

from __future__ import annotations

from op_library._text import (
    at,
    broadcast_shape,
    definition,
    names,
    needed,
    only_output,
    require_defaults,
    require_equal,
    statement,
    widened,
)
from op_library.matmul import INNER, product_of
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import Kind, OpCall, onnx_op
from tcfuse.types import DType, TensorType

MICROSOFT = "com.microsoft"


@onnx_op("MatMulNBits", since=1, kind=Kind.CONTRACTION, domain=MICROSOFT)
def matmul_n_bits(call: OpCall) -> str:
    """The product of A and the unpacked, scaled B, plus a bias.

    Shapes:
        B: ``(N, blocks, bytes of a block)``.
        Scales: ``(N, blocks)``, or as a vector.
        Zeros: As Scales; ``(N, bytes of a row)`` where they are packed as B is.
    """
    require_defaults(call, {"weight_prepacked": 0})
    a, b, y = needed(call, 0), needed(call, 1), only_output(call)
    n, k = int(call.attributes["N"]), int(call.attributes["K"])
    bits, block = int(call.attributes.get("bits", 4)), int(call.attributes["block_size"])
    blocks = -(-k // block)
    if bits not in (2, 4, 8) or call.input(4):
        raise UnsupportedError(f"MatMulNBits of {bits} bits, or with g_idx")
    for size, wanted in zip(b.shape, (n, blocks, block * bits // 8), strict=True):
        require_equal(size, wanted)
    product = product_of(a.shape, (k, n), y.shape)
    column, here = product.columns[0][0], f"{INNER} / {block}"
    place = f"{INNER} % {block}"
    weight = unpacked("B", [column, here], place, bits)
    scale = at("Scales", of_block(needed(call, 2), column, here, blocks))
    zeros, bias = call.input(3), call.input(5)
    zero = str(2 ** (bits - 1))
    if zeros and zeros.dtype is DType.UINT8:
        row = -(-blocks * bits // 8)
        head = [column] if zeros.rank == 2 else []
        offset = "" if head else f"{column} * {row} + "
        zero = unpacked("Zeros", head, here, bits, offset)
    elif zeros:
        zero = at("Zeros", of_block(zeros, column, here, blocks))
    value = widened(a.dtype, at("A", product.left))
    value = f"{value} * (float({weight} - {zero}) * {scale})"
    params = {"A": a, "B": b, "Scales": needed(call, 2), "Zeros": zeros, "Bias": bias}
    if not bias:
        return definition(call, params, {"Y": y}, [product.summed("Y", value)])
    added = at("Bias", broadcast_shape(bias.shape, product.columns))
    body = [
        product.summed("Sum", value),
        statement("Y", product.point, f"{at('Sum', names(product.point))} + {added}"),
    ]
    return definition(call, params, {"Y": y}, body)


def of_block(type_: TensorType, column: str, block: str, blocks: int) -> list[str]:
    """The subscripts of what each block of a column has, in a matrix or a vector."""
    return [column, block] if type_.rank == 2 else [f"{column} * {blocks} + {block}"]


def unpacked(name: str, head: list[str], place: str, bits: int, offset: str = "") -> str:
    """The number at a place of a packed row, whose bytes hold the first one in the low bits."""
    if bits == 8:
        return f"int32({at(name, [*head, f'{offset}({place})'])})"
    byte = f"int32({at(name, [*head, f'{offset}({place}) / {8 // bits}'])})"
    shift = f"{bits} * (({place}) % {8 // bits})"
    return f"bitand(shr({byte}, int32({shift})), {2**bits - 1})"
