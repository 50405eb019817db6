"""Shape rules of matrix products, convolutions, pools and recurrent layers."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from tcfuse.graph.shape_call import Call, Shapes, UnknownShapeError, shape_rule
from tcfuse.graph.shape_pointwise import broadcast, broadcast_dim
from tcfuse.graph.symbols import (
    Dim,
    Dims,
    add,
    ceil_divide,
    exact_divide,
    floor_divide,
    multiply,
    subtract,
)


def _matmul(a: Dims, b: Dims, call: Call) -> Dims:
    if not a or not b:
        raise UnknownShapeError
    left: Dims = (1, *a) if len(a) == 1 else a
    right: Dims = (*b, 1) if len(b) == 1 else b
    call.scope.require(left[-1], right[-2])
    batch = broadcast([left[:-2], right[:-2]], call.scope)
    rows: Dims = () if len(a) == 1 else (left[-2],)
    columns: Dims = () if len(b) == 1 else (right[-1],)
    return batch + rows + columns


@shape_rule("MatMul", "MatMulInteger", "com.microsoft::DynamicQuantizeMatMul")
@shape_rule("com.microsoft::MatMulIntegerToFloat")
def matmul(call: Call) -> Shapes:
    """Batch axes broadcast."""
    return [_matmul(call.shape(0), call.shape(1), call)]


@shape_rule("QLinearMatMul")
def qlinear_matmul(call: Call) -> Shapes:
    """As ``MatMul`` of inputs 0 and 3."""
    return [_matmul(call.shape(0), call.shape(3), call)]


@shape_rule("com.microsoft::FusedMatMul", "com.microsoft::TransposeMatMul")
def fused_matmul(call: Call) -> Shapes:
    """As ``MatMul`` of factors whose axes are in another order."""
    left, right = (_reordered(call.shape(k), call, name) for k, name in enumerate(("A", "B")))
    return [_matmul(left, right, call)]


def _reordered(shape: Dims, call: Call, name: str) -> Dims:
    """A factor's shape as it is multiplied: batch first, and not transposed."""
    if len(shape) > 1 and call.attribute(f"transBatch{name}", 0):
        shape = (*shape[1:-1], shape[0], shape[-1])
    if len(shape) > 1 and call.attribute(f"trans{name}", 0):
        shape = (*shape[:-2], shape[-1], shape[-2])
    return shape


@shape_rule("Gemm", "com.microsoft::FusedGemm")
def gemm(call: Call) -> Shapes:
    """Rows of A, columns of B."""
    a, b = call.shape(0), call.shape(1)
    rows, inner = reversed(a) if call.attribute("transA", 0) else a
    other_inner, columns = reversed(b) if call.attribute("transB", 0) else b
    call.scope.require(inner, other_inner)
    return [(rows, columns)]


class _Window:
    """The attributes of a sliding window over ``n`` spatial axes."""

    def __init__(self, call: Call, kernel: Sequence[Dim], dilated: bool = True) -> None:
        n = len(kernel)
        self.strides = call.attribute("strides") or (1,) * n
        dilations = (call.attribute("dilations") if dilated else None) or (1,) * n
        self.pads = call.attribute("pads") or (0,) * (2 * n)
        self.auto_pad = call.attribute("auto_pad", "NOTSET")
        self.extent = [
            add(multiply(d, subtract(k, 1)), 1) for k, d in zip(kernel, dilations, strict=True)
        ]
        self.ceil = bool(call.attribute("ceil_mode", 0))
        self.n = n

    def output(self, k: int, size: Dim, call: Call) -> Dim:
        """Positions of the window along axis ``k``."""
        stride = self.strides[k]
        if self.auto_pad.startswith("SAME"):
            return ceil_divide(size, stride)
        before, after = (0, 0) if self.auto_pad == "VALID" else self.pads[k :: self.n]
        span = subtract(add(size, before + after), self.extent[k])
        if isinstance(span, int) and span < 0:
            # Larger than the data: division truncates at run time, so one position may be left.
            return max(1 - -span // stride, 0)
        if not self.ceil:
            return add(floor_divide(span, stride), 1)
        # A last window that starts in the padding behind the data is dropped.
        result = add(ceil_divide(span, stride), 1)
        extent = self.extent[k]
        if isinstance(extent, int) and stride <= extent - after:
            return result
        if isinstance(result, int) and isinstance(size, int):
            return result - 1 if (result - 1) * stride >= size + before else result
        return call.fresh()


def _kernel(call: Call, w: Dims) -> Sequence[Dim]:
    """The spatial sizes of the weights, as an attribute may say too."""
    given: Sequence[Dim] = call.attribute("kernel_shape") or w[2:]
    for a, b in zip(given, w[2:], strict=True):
        call.scope.require(a, b)
    return given


def _convolution(call: Call, x: Dims, w: Dims) -> Dims:
    call.scope.require(x[1], multiply(w[1], int(call.attribute("group", 1))))
    window = _Window(call, _kernel(call, w))
    spatial = [window.output(k, size, call) for k, size in enumerate(x[2:])]
    return (x[0], w[0], *spatial)


@shape_rule("Conv", "ConvInteger", "DeformConv", "com.microsoft::FusedConv")
def conv(call: Call) -> Shapes:
    """Batch, filters, positions of the window; the weights tell the rank of an unknown X."""
    w = call.shape(1)
    x = call.shape_or_none(0) or tuple(call.fresh() for _ in w)
    return [_convolution(call, x, w)]


def blocked_convolution(call: Call) -> Shapes:
    """As ``Conv``; the filters are padded, and those of a plain input need not be."""
    x, w = call.shape(0), call.shape(1)
    window = _Window(call, call.attribute("kernel_shape") or w[2:])
    spatial = [window.output(k, size, call) for k, size in enumerate(x[2:])]
    return [(x[0], w[0], *spatial)]


@shape_rule("QLinearConv", "com.microsoft::QLinearConv")
def qlinear_conv(call: Call) -> Shapes:
    """As ``Conv`` of inputs 0 and 3, whose channels may be last."""
    x, w = call.shape(0), call.shape(3)
    if not call.attribute("channels_last", 0):
        return [_convolution(call, x, w)]
    images, filters, *spatial = _convolution(call, (x[0], x[-1], *x[1:-1]), w)
    return [(images, *spatial, filters)]


@shape_rule("ConvTranspose")
def conv_transpose(call: Call) -> Shapes:
    """The inverse of the formula of ``Conv``, or the shape given."""
    x, w = call.shape(0), call.shape(1)
    n = len(x) - 2
    channels = multiply(w[1], int(call.attribute("group", 1)))
    given = call.attribute("output_shape")
    if given:
        return [(x[0], channels, *given[-n:])]
    call.scope.require(x[1], w[0])
    window = _Window(call, _kernel(call, w))
    extra = call.attribute("output_padding") or (0,) * n
    spatial: list[Dim] = []
    for k, size in enumerate(x[2:]):
        stride = window.strides[k]
        if window.auto_pad.startswith("SAME"):
            spatial.append(multiply(size, stride))
            continue
        pads = 0 if window.auto_pad == "VALID" else sum(window.pads[k::n])
        full = add(multiply(stride, subtract(size, 1)), add(extra[k], window.extent[k]))
        spatial.append(subtract(full, pads))
    return [(x[0], channels, *spatial)]


@shape_rule("Col2Im")
def col2im(call: Call) -> Shapes:
    """The image's shape behind the batch and the channels."""
    x, image, block = call.shape(0), call.integers(1), call.integers(2)
    if image is None or block is None:
        raise UnknownShapeError
    return [(x[0], exact_divide(x[1], math.prod(block)), *image)]


@shape_rule("Det")
def determinant(call: Call) -> Shapes:
    """One number for each matrix."""
    *batch, rows, columns = call.shape(0)
    call.scope.require(rows, columns)
    return [tuple(batch)]


@shape_rule("AveragePool", "MaxPool", "LpPool", "com.microsoft::QLinearAveragePool")
def pool(call: Call) -> Shapes:
    """Positions of the window; the indices of ``MaxPool`` likewise."""
    x, spatial = _spatial(call)
    window = _Window(call, call.attribute("kernel_shape"))
    for k, d in enumerate(spatial):
        x[d] = window.output(k, x[d], call)
    return [tuple(x)] * 2


@shape_rule(
    *("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"),
    "com.microsoft::QLinearGlobalAveragePool",
)
def global_pool(call: Call) -> Shapes:
    """Spatial axes shrink to 1."""
    x, spatial = _spatial(call)
    for d in spatial:
        x[d] = 1
    return [tuple(x)]


def _spatial(call: Call) -> tuple[list[Dim], range]:
    """The sizes of the first input, and its axes that are neither images nor channels."""
    x = list(call.shape(0))
    first = 1 if call.attribute("channels_last", 0) else 2
    return x, range(first, first + len(x) - 2)


@shape_rule("LSTM", "GRU", "RNN")
def recurrent(call: Call) -> Shapes:
    """All states, the last state, the last cell; ``layout`` 1 puts the batch first."""
    x, directions = call.shape(0), call.shape(2)[0]
    hidden: Dim = call.attribute("hidden_size") or call.shape(2)[2]
    if call.attribute("layout", 0):
        batch, steps = x[0], x[1]
        last: Dims = (batch, directions, hidden)
        return [(batch, steps, directions, hidden), last, last]
    steps, batch = x[0], x[1]
    last = (directions, batch, hidden)
    return [(steps, directions, batch, hidden), last, last]


@shape_rule("Einsum")
def einsum(call: Call) -> Shapes:
    """Each letter is a size; an ellipsis stands for axes that broadcast."""
    equation = re.sub(r"\s", "", str(call.attribute("equation")))
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    sizes: dict[str, list[Dim]] = {}
    ellipses: list[Dims] = []
    for k, term in enumerate(terms):
        shape = call.shape(k)
        before, dots, after = term.partition("...")
        if len(shape) < len(before) + len(after) or (
            not dots and len(shape) != len(before) + len(after)
        ):
            raise UnknownShapeError
        for letter, size in zip(before, shape, strict=False):
            sizes.setdefault(letter, []).append(size)
        for letter, size in zip(reversed(after), reversed(shape), strict=False):
            sizes.setdefault(letter, []).append(size)
        if dots:
            ellipses.append(shape[len(before) : len(shape) - len(after)])
    if not arrow:
        letters = left.replace("...", "").replace(",", "")
        right = ("..." if ellipses else "") + "".join(
            sorted(c for c in sizes if letters.count(c) == 1)
        )
    shared = broadcast(ellipses, call.scope) if ellipses else ()
    before, dots, after = right.partition("...")

    def axes(letters: str) -> Dims:
        return tuple(broadcast_dim(sizes[c], call.scope) for c in letters)

    return [axes(before) + (shared if dots else ()) + axes(after)]
