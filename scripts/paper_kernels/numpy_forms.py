"""The kernels in NumPy, in any floating type, as fast as plain expressions make them.

Every function takes the inputs as attributes and returns the outputs in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace

import numpy as np

Array = np.ndarray
Outputs = Sequence[Array]
EPS = 1e-5


def windows(images: Array, kernel: Array) -> Array:
    """Windows of the last two sizes of ``kernel`` over the last two axes of ``images``."""
    return np.lib.stride_tricks.sliding_window_view(images, kernel.shape[-2:], (-2, -1))


def relu(x: Array) -> Array:
    """In place."""
    return np.maximum(x, 0, out=x)


def product(
    a: str, b: str, *, transposed: bool = False
) -> Callable[[SimpleNamespace], Outputs]:
    """``a @ b``, or ``a @ b.T``."""

    def form(x: SimpleNamespace) -> Outputs:
        right = getattr(x, b)
        return (getattr(x, a) @ (right.T if transposed else right),)

    return form


def einsum(text: str, *names: str) -> Callable[[SimpleNamespace], Outputs]:
    """``numpy.einsum`` in its best order."""

    def form(x: SimpleNamespace) -> Outputs:
        operands = [getattr(x, name) for name in names]
        return (np.ascontiguousarray(np.einsum(text, *operands, optimize=True)),)

    return form


def mlp1(x: SimpleNamespace) -> Outputs:
    """A product, then in place."""
    found = x.I @ x.Weight
    found += x.Bias
    return (relu(found),)


def mlp3(x: SimpleNamespace) -> Outputs:
    """Three products."""
    found, outputs = x.I, []
    for weight, bias in ((x.W2, x.B2), (x.W3, x.B3), (x.W4, x.B4)):
        found = found @ weight.T
        found += bias
        outputs.append(relu(found))
    return outputs


def conv_windows(x: SimpleNamespace) -> Outputs:
    """One contraction over the windows."""
    found = np.einsum("nchwij,fcij->nfhw", windows(x.I, x.Weight), x.Weight, optimize=True)
    return (np.ascontiguousarray(found) + x.Bias[:, None, None],)


def conv_taps(x: SimpleNamespace) -> Outputs:
    """A product for each tap of the filter."""
    h, w = (i - k + 1 for i, k in zip(x.I.shape[-2:], x.Weight.shape[-2:], strict=True))
    found = np.zeros((*x.I.shape[:-3], x.Weight.shape[-4], h * w), x.I.dtype)
    for i, j in np.ndindex(*x.Weight.shape[-2:]):
        part = x.I[..., i : i + h, j : j + w]
        found += x.Weight[..., i, j] @ part.reshape(*part.shape[:-2], h * w)
    found += x.Bias[..., None]
    return (found.reshape(*found.shape[:-1], h, w),)


def gconv_windows(x: SimpleNamespace) -> Outputs:
    """One contraction over the windows of every group."""
    view = windows(x.I, x.Weight)
    found = np.einsum("ngchwij,gfcij->ngfhw", view, x.Weight, optimize=True)
    return (np.ascontiguousarray(found) + x.Bias[..., None, None],)


def group_norm(x: SimpleNamespace) -> Outputs:
    """One factor and one summand for each channel."""
    n, g, d = x.I.shape[:3]
    rows = x.I.reshape(n, g, -1)
    mean = rows.mean(2)
    variance = np.einsum("ngk,ngk->ng", rows, rows) / rows.shape[2] - mean * mean
    factor = x.Gamma / np.sqrt(variance + EPS)[..., None]
    summand = x.Beta - mean[..., None] * factor
    found = x.I.reshape(n, g, d, -1) * factor[..., None]
    found += summand[..., None]
    return (found.reshape(x.I.shape),)


def row_sum(x: SimpleNamespace) -> Outputs:
    """Pairwise summation."""
    return (x.I.sum(1),)


def row_sum_product(x: SimpleNamespace) -> Outputs:
    """A product with ones."""
    return (x.I @ np.ones(x.I.shape[1], x.I.dtype),)


def row_mean(x: SimpleNamespace) -> Outputs:
    """Pairwise summation."""
    return (x.I.mean(1),)


def row_mean_product(x: SimpleNamespace) -> Outputs:
    """A product with a constant vector."""
    return (x.I @ np.full(x.I.shape[1], 1 / x.I.shape[1], x.I.dtype),)


def row_squares(x: SimpleNamespace) -> Outputs:
    """Without a square in memory."""
    return (np.einsum("nk,nk->n", x.I, x.I),)


def row_squares_product(x: SimpleNamespace) -> Outputs:
    """A dot product for each row."""
    return (np.array([row @ row for row in x.I]),)


def row_variance(x: SimpleNamespace) -> Outputs:
    """Of the squares."""
    return (row_squares(x)[0] / x.I.shape[1] - x.Mean * x.Mean,)


def row_variance_product(x: SimpleNamespace) -> Outputs:
    """Of the squares by dot products."""
    return (row_squares_product(x)[0] / x.I.shape[1] - x.Mean * x.Mean,)


def row_sums(x: SimpleNamespace) -> Outputs:
    """Both."""
    return row_sum(x)[0], row_squares(x)[0]


def row_sums_product(x: SimpleNamespace) -> Outputs:
    """Both by products."""
    return row_sum_product(x)[0], row_squares_product(x)[0]


def row_moments(x: SimpleNamespace) -> Outputs:
    """From both sums."""
    mean = row_mean(x)[0]
    return mean, row_squares(x)[0] / x.I.shape[1] - mean * mean


def row_moments_product(x: SimpleNamespace) -> Outputs:
    """From both sums by products."""
    mean = row_mean_product(x)[0]
    return mean, row_squares_product(x)[0] / x.I.shape[1] - mean * mean


def kronecker3(x: SimpleNamespace) -> Outputs:
    """Three products."""
    m, n0 = x.X.shape[:2]
    found = x.W1 @ (x.X @ x.W2.T)
    shape = (m, len(x.W0), len(x.W1), len(x.W2))
    return ((x.W0 @ found.reshape(m, n0, -1)).reshape(shape),)


def wavenet(x: SimpleNamespace) -> Outputs:
    """Products over all times, the late ones on a shifted copy."""
    delay = len(x.Dilation)
    late = np.zeros_like(x.Data)
    late[..., delay:] = x.Data[..., : x.Data.shape[2] - delay]
    taps = np.concatenate([late, x.Data], 1)

    def dilated(weight: Array, bias: Array) -> Array:
        both = np.concatenate([weight[..., 0], weight[..., 1]], 1) @ taps
        both += bias[:, None]
        return both

    gated = np.tanh(dilated(x.WFilter, x.BFilter))
    gated /= 1 + np.exp(-dilated(x.WGate, x.BGate))
    residual = x.WRes @ gated
    residual += x.Data
    residual += x.BRes[:, None]
    skip = x.WSkip @ gated
    skip += x.BSkip[:, None]
    return residual, skip


def lut1(x: SimpleNamespace) -> Outputs:
    """A gather and a sum."""
    return (x.Table[x.Index].sum(1),)


def lut2(x: SimpleNamespace) -> Outputs:
    """Twice a gather and a sum."""
    return x.Table1[x.Index1].sum(1), x.Table2[x.Index2].sum(1)


def tensordot(x: SimpleNamespace) -> Outputs:
    """A product of images for each step of the short axis."""
    found = x.I0[:, :, None, 0] * x.I1[:, None, 0]
    for c2 in range(1, x.I0.shape[2]):
        found += x.I0[:, :, None, c2] * x.I1[:, None, c2]
    return (found,)


def triple_hadamard(x: SimpleNamespace) -> Outputs:
    """The second product in place."""
    found = x.U * x.V
    found *= x.W
    return (found,)


def layer_norm(x: SimpleNamespace) -> Outputs:
    """Centred once."""
    centred = x.I - x.I.mean(-1, keepdims=True)
    variance = np.einsum("tbc,tbc->tb", centred, centred) / x.I.shape[-1]
    centred *= (1 / np.sqrt(variance + EPS))[..., None]
    return (centred,)


def _softmax(x: SimpleNamespace) -> tuple[Array, Array, Array]:
    top = x.I.max(1)
    exponentials = x.I - top[:, None]
    np.exp(exponentials, out=exponentials)
    return exponentials, top, exponentials.sum(1)


def softmax_a(x: SimpleNamespace) -> Outputs:
    """In place."""
    found, _, total = _softmax(x)
    found /= total[:, None]
    return found, total


def softmax_bc(x: SimpleNamespace) -> Outputs:
    """In place."""
    found, top, total = _softmax(x)
    found /= total[:, None]
    return found, top, total


def softmax_d(x: SimpleNamespace) -> Outputs:
    """The exponentials are kept."""
    exponentials, top, total = _softmax(x)
    return exponentials / total[:, None], top, exponentials, total
