"""The kernels of the papers in NumPy, written from the formulas and not from the definitions.

``REFERENCES[name](x)`` has the definition's inputs as attributes of ``x`` and returns its
outputs in order.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np

Array = np.ndarray
Reference = Callable[[SimpleNamespace], tuple[Array, ...]]
EPS = 1e-5
REFERENCES: dict[str, Reference] = {}


def reference(function: Reference) -> Reference:
    REFERENCES[function.__name__] = function
    return function


def windows(images: Array, kernel: Array, stride: int = 1) -> Array:
    """Windows of the size of ``kernel``'s last two axes over the last two of ``images``."""
    view = np.lib.stride_tricks.sliding_window_view(images, kernel.shape[-2:], (-2, -1))
    return view[..., ::stride, ::stride, :, :]


def normalized(x: Array, axes: tuple[int, ...]) -> Array:
    mean = x.mean(axes, keepdims=True)
    return (x - mean) / np.sqrt(x.var(axes, keepdims=True) + EPS)


def relu(x: Array) -> Array:
    return np.where(x > 0, x, 0)


# ---------------------------------------------------------------------- contractions


@reference
def tmm(x):
    return (x.A @ x.B.T,)


@reference
def tbmm(x):
    return (np.stack([a @ b for a, b in zip(x.X, x.Y, strict=True)]),)


@reference
def c3(x):
    return (x.I @ x.Weight.T,)


@reference
def mlp1(x):
    return (relu(x.I @ x.Weight + x.Bias),)


@reference
def fcrelu(x):
    return (relu(x.I @ x.Weight.T + x.Bias),)


@reference
def mlp3(x):
    first = relu(x.I @ x.W2.T + x.B2)
    second = relu(first @ x.W3.T + x.B3)
    return first, second, relu(second @ x.W4.T + x.B4)


@reference
def tensordot(x):
    found = np.zeros((*x.I0.shape[:2], x.I1.shape[2], *x.I0.shape[3:]))
    for c2 in range(x.I0.shape[2]):
        found += x.I0[:, :, None, c2] * x.I1[:, None, c2]
    return (found,)


@reference
def kronecker3(x):
    matrix = np.kron(np.kron(x.W0, x.W1), x.W2)
    flat = x.X.reshape(len(x.X), matrix.shape[1]) @ matrix.T
    return (flat.reshape(len(x.X), len(x.W0), len(x.W1), len(x.W2)),)


@reference
def kronecker3_step1(x):
    return (x.X @ x.W2.T,)


@reference
def kronecker3_step2(x):
    return (np.moveaxis(np.moveaxis(x.X2, 2, -1) @ x.W1.T, -1, 2),)


@reference
def kronecker3_step3(x):
    return (np.moveaxis(np.moveaxis(x.X1, 1, -1) @ x.W0.T, -1, 1),)


# ---------------------------------------------------------------------- convolutions


@reference
def conv(x):
    found = np.einsum("nchwij,fcij->nfhw", windows(x.I, x.Weight), x.Weight)
    return (found + x.Bias[:, None, None],)


@reference
def gconv(x):
    found = np.einsum("ngchwij,gfcij->ngfhw", windows(x.I, x.Weight), x.Weight)
    return (found + x.Bias[..., None, None],)


@reference
def strided_conv(x):
    return (np.einsum("nchwij,fcij->nfhw", windows(x.I, x.Weight, 2), x.Weight),)


@reference
def conv_gradients(x):
    full = [(0, 0), (0, 0), *((k - 1, k - 1) for k in x.Weight.shape[2:])]
    flipped = x.Weight[:, :, ::-1, ::-1]
    return (
        np.einsum("nfhwij,fcij->nchw", windows(np.pad(x.GO, full), flipped), flipped),
        np.einsum("ncijhw,nfhw->fcij", windows(x.I, x.GO), x.GO),
        x.GO.sum((0, 2, 3)),
    )


@reference
def masked_conv(x):
    admitted = x.I * x.Mask[:, None]
    taps = x.Weight.shape[2]
    padded = np.pad(admitted, [(0, 0), (0, 0), (taps - 1, 0)])
    found = [
        np.convolve(row, kernel)[taps - 1 : len(row)]
        for image in padded
        for kernels in x.Weight
        for row, kernel in zip(image, kernels, strict=True)
    ]
    shape = (len(x.I), len(x.Weight), x.I.shape[1], x.I.shape[2])
    return (np.reshape(found, shape).sum(2),)


@reference
def mobilenet(x):
    padded = np.pad(x.I, [(0, 0), (0, 0), (1, 1), (1, 1)])
    depthwise = np.einsum("nchwij,cij->nchw", windows(padded, x.Depthwise), x.Depthwise)
    depthwise = relu(depthwise * x.Scale1[:, None, None] + x.Shift1[:, None, None])
    pointwise = np.einsum("nchw,fc->nfhw", depthwise, x.Pointwise)
    return (relu(pointwise * x.Scale2[:, None, None] + x.Shift2[:, None, None]),)


@reference
def max_pool(x):
    return (windows(x.I, np.ones((2, 2)), 2).max((-2, -1)),)


@reference
def average_pool(x):
    return (windows(x.I, np.ones((2, 2)), 2).mean((-2, -1)),)


@reference
def wavenet(x):
    delay = len(x.Dilation)
    late = np.pad(x.Data, [(0, 0), (0, 0), (delay, 0)])[:, :, : x.Data.shape[2]]

    def dilated(weight, bias):
        return weight[:, :, 1] @ x.Data + weight[:, :, 0] @ late + bias[:, None]

    gate = dilated(x.WGate, x.BGate)
    gated = np.tanh(dilated(x.WFilter, x.BFilter)) * (1 / (1 + np.exp(-gate)))
    residual = x.WRes @ gated + x.BRes[:, None] + x.Data
    return residual, x.WSkip @ gated + x.BSkip[:, None]


# ---------------------------------------------------------------------- rows


@reference
def row_sum(x):
    return (x.I.sum(1),)


@reference
def row_mean(x):
    return (x.I.mean(1),)


@reference
def row_squares(x):
    return ((x.I**2).sum(1),)


@reference
def row_variance(x):
    return ((x.I**2).mean(1) - x.Mean**2,)


@reference
def row_sums(x):
    return x.I.sum(1), (x.I**2).sum(1)


@reference
def row_moments(x):
    return x.I.mean(1), x.I.var(1)


REFERENCES["group_norm_moments"] = row_moments


@reference
def group_norm(x):
    shape = (*x.Gamma.shape, 1, 1)
    return (normalized(x.I, (2, 3, 4)) * x.Gamma.reshape(shape) + x.Beta.reshape(shape),)


@reference
def group_norm_apply(x):
    mean, variance = (a[:, :, None, None, None] for a in (x.Mean, x.Variance))
    shape = (*x.Gamma.shape, 1, 1)
    scaled = (x.I - mean) / np.sqrt(variance + EPS) * x.Gamma.reshape(shape)
    return (scaled + x.Beta.reshape(shape),)


@reference
def layer_norm(x):
    return (normalized(x.I, (2,)),)


@reference
def batch_norm(x):
    mean, variance = x.I.mean((0, 2, 3)), x.I.var((0, 2, 3))
    scaled = (x.I - mean[:, None, None]) / np.sqrt(variance + x.Eps)[:, None, None]
    kept = x.Momentum
    new_mean = kept * x.OldMean + (1 - kept) * mean
    return scaled, new_mean, kept * x.OldVariance + (1 - kept) * variance


@reference
def softmax_d(x):
    top = x.I.max(1)
    exponentials = np.exp(x.I - top[:, None])
    total = exponentials.sum(1)
    return exponentials / total[:, None], top, exponentials, total


@reference
def softmax_a(x):
    found, _, _, total = softmax_d(x)
    return found, total


@reference
def softmax_b(x):
    found, top, _, total = softmax_d(x)
    return found, top, total


REFERENCES["softmax_c"] = softmax_b


@reference
def product(x):
    return (x.I.prod(1),)


@reference
def cosine_similarity(x):
    lengths = np.linalg.norm(x.A, axis=1)[:, None] * np.linalg.norm(x.B, axis=1)
    return (x.A @ x.B.T / lengths,)


@reference
def masked_cosine(x):
    lengths = np.linalg.norm(x.X, axis=2) * np.linalg.norm(x.Y, axis=2)
    cosines = (x.X * x.Y).sum(2) / lengths
    return (np.array([row[:n].mean() for row, n in zip(cosines, x.Length, strict=True)]),)


@reference
def min_distance(x):
    distances = ((x.X[:, None] - x.Y) ** 2).sum(2)
    return distances.min(1), distances.argmin(1)


# ---------------------------------------------------------------------- elements


@reference
def triple_hadamard(x):
    return (x.U * x.V * x.W,)


@reference
def concat(x):
    return (np.concatenate([x.A, x.B]),)


@reference
def lut1(x):
    return (x.Table[x.Index].sum(1),)


@reference
def lut2(x):
    return x.Table1[x.Index1].sum(1), x.Table2[x.Index2].sum(1)
