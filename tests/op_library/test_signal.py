"""Fourier transforms and the mel scale agree with ONNX Runtime where ONNX has no cases."""

from __future__ import annotations

import numpy as np
import pytest

from tcfuse.types import DType, TensorType
from tests.op_library.test_against_onnxruntime import compare, data, scalar

pytestmark = pytest.mark.ort


def length_of(value: int | None) -> list[np.ndarray | None]:
    return [None if value is None else scalar(value, np.int64)]


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("inverse", [0, 1])
@pytest.mark.parametrize("length", [None, 5, 12])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_transforms_cut_and_filled_up(run, parts, inverse, length, dtype):
    x = data(2, 8, 3, parts, dtype=dtype)
    compare(run, "DFT", 17, [x, *length_of(length)], {"inverse": inverse})
    arrays = [x, *length_of(length), scalar(-2, np.int64)]
    compare(run, "DFT", 20, arrays, {"inverse": inverse})


@pytest.mark.parametrize("length", [None, 7, 16])
def test_half_of_a_spectrum(run, length):
    x = data(2, 9, 1)
    compare(run, "DFT", 17, [x, *length_of(length)], {"onesided": 1})
    compare(run, "DFT", 20, [x, *length_of(length)], {"onesided": 1})


@pytest.mark.parametrize("onesided", [0, 1])
@pytest.mark.parametrize("window", [False, True])
def test_transforms_of_frames(run, onesided, window):
    weights = data(6) if window else None
    arrays = [data(2, 20, 1), scalar(3, np.int64), weights, scalar(6, np.int64)]
    compare(run, "STFT", 17, arrays, {"onesided": onesided})


@pytest.mark.parametrize("edges", [(0.0, 8192 / 2), (100.0, 3000.0)])
def test_the_mel_scale(run, edges):
    arrays = [*(scalar(n, np.int64) for n in (8, 64, 8192)), *map(scalar, edges)]
    compare(run, "MelWeightMatrix", 17, arrays)


@pytest.mark.parametrize("length", [6, 7])
def test_a_real_signal_comes_back_from_half_of_its_spectrum(run, length):
    signal = data(2, length)
    spectrum = np.fft.rfft(signal)
    x = np.stack([spectrum.real, spectrum.imag], -1).astype(np.float32)
    attributes = {"onesided": 1, "inverse": 1}
    types = [TensorType(DType.FLOAT32, (2, length, 1))]
    (got,) = run("DFT", [x, scalar(length, np.int64)], types, attributes, opset=20)
    np.testing.assert_allclose(got[..., 0], signal, atol=1e-5)
