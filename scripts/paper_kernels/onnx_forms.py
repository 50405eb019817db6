"""The kernels in stock ONNX operators, in every formulation that may be the fastest.

Every function takes a draft, the inputs and the sizes, both as attributes, and returns outputs
in order: all of them, or the first ones when the strongest operator gives no more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace

import numpy as np
import onnx_ir as ir

from models.draft import Draft

Values = Sequence[ir.Value]
Form = Callable[[Draft, SimpleNamespace, SimpleNamespace], Values]
EPS = 1e-5


def axes(g: Draft, *values: int) -> ir.Value:
    """A constant list of integers."""
    return g.constant(values, np.int64)


def matmul(a: str, b: str, *, transposed: bool = False) -> Form:
    """One ``MatMul``."""

    def form(g: Draft, x: SimpleNamespace, _: SimpleNamespace) -> Values:
        right = getattr(x, b)
        right = g.op("Transpose", right, perm=[1, 0]) if transposed else right
        return (g.op("MatMul", getattr(x, a), right),)

    return form


def gemm(
    a: str, b: str, bias: str | None = None, *, relu: bool = False, trans: int = 1
) -> Form:
    """One ``Gemm``, with a rectifier or not."""

    def form(g: Draft, x: SimpleNamespace, _: SimpleNamespace) -> Values:
        inputs = [getattr(x, name) for name in (a, b, bias) if name is not None]
        found = g.op("Gemm", *inputs, transB=trans)
        return (g.op("Relu", found) if relu else found,)

    return form


def einsum(text: str, *names: str) -> Form:
    """One ``Einsum``."""

    def form(g: Draft, x: SimpleNamespace, _: SimpleNamespace) -> Values:
        return (g.op("Einsum", *(getattr(x, name) for name in names), equation=text),)

    return form


def mlp1(g: Draft, x: SimpleNamespace, _: SimpleNamespace) -> Values:
    """``MatMul``, ``Add``, ``Relu``, as most exporters write it."""
    return (g.op("Relu", g.op("Add", g.op("MatMul", x.I, x.Weight), x.Bias)),)


def mlp3(g: Draft, x: SimpleNamespace, _: SimpleNamespace) -> Values:
    """Three times ``Gemm`` and ``Relu``."""
    found, outputs = x.I, []
    for weight, bias in ((x.W2, x.B2), (x.W3, x.B3), (x.W4, x.B4)):
        found = g.op("Relu", g.op("Gemm", found, weight, bias, transB=1))
        outputs.append(found)
    return outputs


def conv(g: Draft, x: SimpleNamespace, _: SimpleNamespace) -> Values:
    """One ``Conv``."""
    return (g.op("Conv", x.I, x.Weight, x.Bias),)


def gconv(g: Draft, x: SimpleNamespace, s: SimpleNamespace) -> Values:
    """One ``Conv`` with groups."""
    return (g.op("Conv", x.I, x.Weight, x.Bias, group=s.G),)


def group_normalization(g: Draft, x: SimpleNamespace, s: SimpleNamespace) -> Values:
    """The operator of opset 21, on ``(N, C, H, W)``."""
    attributes = {"num_groups": s.G, "epsilon": EPS}
    return (g.op("GroupNormalization", x.I, x.Gamma, x.Beta, **attributes),)


def group_by_instance(g: Draft, x: SimpleNamespace, s: SimpleNamespace) -> Values:
    """``InstanceNormalization`` of the groups, then the channels."""
    rows = g.op("Reshape", x.I, axes(g, s.N, s.G, s.D * s.H * s.W))
    ones, zeros = g.constant(np.ones(s.G)), g.constant(np.zeros(s.G))
    rows = g.op("InstanceNormalization", rows, ones, zeros, epsilon=EPS)
    return _scaled(g, x, s, rows)


def group_by_layer(g: Draft, x: SimpleNamespace, s: SimpleNamespace) -> Values:
    """``LayerNormalization`` of the groups, then the channels."""
    rows = g.op("Reshape", x.I, axes(g, s.N, s.G, s.D * s.H * s.W))
    ones = g.constant(np.ones(s.D * s.H * s.W))
    rows = g.op("LayerNormalization", rows, ones, axis=-1, epsilon=EPS)
    return _scaled(g, x, s, rows)


def group_by_moments(g: Draft, x: SimpleNamespace, s: SimpleNamespace) -> Values:
    """One factor and one summand for each channel, from means."""
    rows = g.op("Reshape", x.I, axes(g, s.N, s.G, s.D * s.H * s.W))
    mean = g.op("ReduceMean", rows, axes(g, 2), keepdims=1)
    squares = g.op("ReduceSumSquare", rows, axes(g, 2), keepdims=1)
    scale = g.constant(1 / (s.D * s.H * s.W))
    variance = g.op("Sub", g.op("Mul", squares, scale), g.op("Mul", mean, mean))
    root = g.op("Sqrt", g.op("Add", variance, g.constant(EPS)))
    gamma, beta = (g.op("Reshape", v, axes(g, 1, s.G, s.D)) for v in (x.Gamma, x.Beta))
    factor = g.op("Div", gamma, root)
    summand = g.op("Sub", beta, g.op("Mul", mean, factor))
    last = axes(g, 3)
    images = g.op("Reshape", x.I, axes(g, s.N, s.G, s.D, s.H * s.W))
    scaled = g.op("Mul", images, g.op("Unsqueeze", factor, last))
    return (g.op("Add", scaled, g.op("Unsqueeze", summand, last)),)


def _scaled(g: Draft, x: SimpleNamespace, s: SimpleNamespace, rows: ir.Value) -> Values:
    images = g.op("Reshape", rows, axes(g, s.N, s.G * s.D, s.H * s.W))
    gamma, beta = (g.op("Reshape", v, axes(g, s.G * s.D, 1)) for v in (x.Gamma, x.Beta))
    return (g.op("Add", g.op("Mul", images, gamma), beta),)


def row_sum(g: Draft, x: SimpleNamespace, _: SimpleNamespace) -> Values:
    """``ReduceSum``."""
    return (g.op("ReduceSum", x.I, axes(g, 1), keepdims=0),)


def row_mean(g: Draft, x: SimpleNamespace, _: SimpleNamespace) -> Values:
    """``ReduceMean``."""
    return (g.op("ReduceMean", x.I, axes(g, 1), keepdims=0),)


def row_sum_product(g: Draft, x: SimpleNamespace, s: SimpleNamespace) -> Values:
    """A product with ones."""
    return (g.op("MatMul", x.I, g.constant(np.ones(s.K))),)


def row_mean_product(g: Draft, x: SimpleNamespace, s: SimpleNamespace) -> Values:
    """A product with a constant vector."""
    return (g.op("MatMul", x.I, g.constant(np.full(s.K, 1 / s.K))),)


def row_squares(g: Draft, x: SimpleNamespace, _: SimpleNamespace) -> Values:
    """``ReduceSumSquare``."""
    return (g.op("ReduceSumSquare", x.I, axes(g, 1), keepdims=0),)


def row_squares_product(g: Draft, x: SimpleNamespace, s: SimpleNamespace) -> Values:
    """A small product for each row."""
    left, right = (g.op("Unsqueeze", x.I, axes(g, axis)) for axis in (1, 2))
    return (g.op("Reshape", g.op("MatMul", left, right), axes(g, s.N)),)


def _variance(g: Draft, s: SimpleNamespace, squares: ir.Value, mean: ir.Value) -> ir.Value:
    scaled = g.op("Mul", squares, g.constant(1 / s.K))
    return g.op("Sub", scaled, g.op("Mul", mean, mean))


def row_variance(squares: Form) -> Form:
    """From the sum of squares in one of its forms."""

    def form(g: Draft, x: SimpleNamespace, s: SimpleNamespace) -> Values:
        return (_variance(g, s, squares(g, x, s)[0], x.Mean),)

    return form


def row_sums(first: Form, second: Form) -> Form:
    """Two forms together."""

    def form(g: Draft, x: SimpleNamespace, s: SimpleNamespace) -> Values:
        return first(g, x, s)[0], second(g, x, s)[0]

    return form


def row_moments(means: Form, squares: Form) -> Form:
    """From two sums."""

    def form(g: Draft, x: SimpleNamespace, s: SimpleNamespace) -> Values:
        mean = means(g, x, s)[0]
        return mean, _variance(g, s, squares(g, x, s)[0], mean)

    return form


def kronecker3(g: Draft, x: SimpleNamespace, s: SimpleNamespace) -> Values:
    """Three products, the small matrix on the left from the second on."""
    found = g.op("MatMul", x.X, g.op("Transpose", x.W2, perm=[1, 0]))
    found = g.op("MatMul", x.W1, found)
    found = g.op("Reshape", found, axes(g, s.M, s.N0, s.D1 * s.D2))
    return (g.op("MatMul", x.W0, found),)


def wavenet(*, joined: bool, products: bool) -> Form:
    """Dilated convolutions, one or two; the branches as convolutions or products."""

    def form(g: Draft, x: SimpleNamespace, s: SimpleNamespace) -> Values:
        delay = {"dilations": [s.DILATION], "pads": [s.DILATION, 0]}
        if joined:
            weight = g.op("Concat", x.WFilter, x.WGate, axis=0)
            bias = g.op("Concat", x.BFilter, x.BGate, axis=0)
            both = g.op("Conv", x.Data, weight, bias, **delay)
            filtered, gate = g.ops("Split", both, n=2, axis=1, num_outputs=2)
        else:
            filtered = g.op("Conv", x.Data, x.WFilter, x.BFilter, **delay)
            gate = g.op("Conv", x.Data, x.WGate, x.BGate, **delay)
        gated = g.op("Mul", g.op("Tanh", filtered), g.op("Sigmoid", gate))

        def branch(weight: ir.Value, bias: ir.Value) -> ir.Value:
            if products:
                column = g.op("Unsqueeze", bias, axes(g, 1))
                return g.op("Add", g.op("MatMul", weight, gated), column)
            return g.op("Conv", gated, g.op("Unsqueeze", weight, axes(g, 2)), bias)

        residual = g.op("Add", branch(x.WRes, x.BRes), x.Data)
        return residual, branch(x.WSkip, x.BSkip)

    return form


def lut1(g: Draft, x: SimpleNamespace, _: SimpleNamespace) -> Values:
    """``Gather`` and ``ReduceSum``."""
    return (_looked_up(g, x.Table, x.Index),)


def lut2(g: Draft, x: SimpleNamespace, _: SimpleNamespace) -> Values:
    """Twice ``Gather`` and ``ReduceSum``."""
    return _looked_up(g, x.Table1, x.Index1), _looked_up(g, x.Table2, x.Index2)


def _looked_up(g: Draft, table: ir.Value, index: ir.Value) -> ir.Value:
    return g.op("ReduceSum", g.op("Gather", table, index), axes(g, 1), keepdims=0)


def tensordot_slices(g: Draft, x: SimpleNamespace, s: SimpleNamespace) -> Values:
    """A product of images for each step of the short axis."""
    left = g.ops("Split", x.I0, n=s.C2, axis=2, num_outputs=s.C2)
    right = g.ops("Split", x.I1, n=s.C2, axis=1, num_outputs=s.C2)
    found: ir.Value | None = None
    for a, b in zip(left, right, strict=True):
        term = g.op("Mul", a, b)
        found = term if found is None else g.op("Add", found, term)
    assert found is not None
    return (found,)


def tensordot_matmul(g: Draft, x: SimpleNamespace, _: SimpleNamespace) -> Values:
    """A small product for each point, between transposes."""
    left, right = (g.op("Transpose", v, perm=[0, 3, 4, 1, 2]) for v in (x.I0, x.I1))
    return (g.op("Transpose", g.op("MatMul", left, right), perm=[0, 3, 4, 1, 2]),)


def triple_hadamard(g: Draft, x: SimpleNamespace, _: SimpleNamespace) -> Values:
    """Two ``Mul``."""
    return (g.op("Mul", g.op("Mul", x.U, x.V), x.W),)


def layer_norm(g: Draft, x: SimpleNamespace, s: SimpleNamespace) -> Values:
    """``LayerNormalization`` with a scale of ones."""
    ones = g.constant(np.ones(s.C))
    return (g.op("LayerNormalization", x.I, ones, axis=-1, epsilon=EPS),)


def softmax(g: Draft, x: SimpleNamespace, _: SimpleNamespace) -> Values:
    """``Softmax``, which gives the first output alone."""
    return (g.op("Softmax", x.I, axis=1),)


def softmax_d(g: Draft, x: SimpleNamespace, _: SimpleNamespace) -> Values:
    """Every step, as all of them are outputs."""
    top = g.op("ReduceMax", x.I, axes(g, 1), keepdims=1)
    exponentials = g.op("Exp", g.op("Sub", x.I, top))
    total = g.op("ReduceSum", exponentials, axes(g, 1), keepdims=1)
    return g.op("Div", exponentials, total), top, exponentials, total
