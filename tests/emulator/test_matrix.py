"""Tensor cores: fragments laid out as PTX says multiply to what NumPy says."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

pytestmark = pytest.mark.compiler

TEXT = r"""
// One warp: D (16 x 8) = A (16 x K, by rows) * B (K x 8, by columns) + C.
template <class Element, int K>
static __device__ void pairs(const unsigned* A, const unsigned* B, const float* C, float* D) {
  const int group = threadIdx.x / 4, t = threadIdx.x % 4, words = K / 2;
  unsigned a[K / 4], b[K / 8];
  for (int i = 0; i < K / 4; i++) a[i] = A[(group + i % 2 * 8) * words + i / 2 * 4 + t];
  for (int i = 0; i < K / 8; i++) b[i] = B[group * words + i * 4 + t];
  float c[4];
  for (int i = 0; i < 4; i++) c[i] = C[(group + i / 2 * 8) * 8 + 2 * t + i % 2];
  tcf_emulator::mma_pairs<Element>(c, a, b, c);
  for (int i = 0; i < 4; i++) D[(group + i / 2 * 8) * 8 + 2 * t + i % 2] = c[i];
}
#define PAIRS(name, Element, K)                                                               \
  extern "C" __global__ void name(const unsigned* A, const unsigned* B, const float* C,       \
                                  float* D) {                                                 \
    pairs<tcf_emulator::Element, K>(A, B, C, D);                                              \
  }
PAIRS(half16, half_element, 16)
PAIRS(half8, half_element, 8)
PAIRS(bfloat16, bfloat_element, 16)

extern "C" __global__ void tf32(const unsigned* A, const unsigned* B, const float* C,
                                float* D) {
  const int group = threadIdx.x / 4, t = threadIdx.x % 4;
  unsigned a[4], b[2];
  for (int i = 0; i < 4; i++) a[i] = A[(group + i % 2 * 8) * 8 + i / 2 * 4 + t];
  for (int i = 0; i < 2; i++) b[i] = B[group * 8 + i * 4 + t];
  float c[4];
  for (int i = 0; i < 4; i++) c[i] = C[(group + i / 2 * 8) * 8 + 2 * t + i % 2];
  float d[4];
  tcf_emulator::mma_tf32(d, a, b, c);
  for (int i = 0; i < 4; i++) D[(group + i / 2 * 8) * 8 + 2 * t + i % 2] = d[i];
}

// Four matrices of 8 x 8, one below the other, each read by rows and by columns.
extern "C" __global__ void matrices(const uint4* x, unsigned* y, unsigned* z) {
  __shared__ uint4 s[32];
  tcf_emulator::write(s + threadIdx.x, __ldg(x + threadIdx.x));
  __syncwarp();
  unsigned r[4];
  tcf_emulator::ldmatrix<false>(r, s + threadIdx.x);
  for (int i = 0; i < 4; i++) y[i * 32 + threadIdx.x] = r[i];
  tcf_emulator::ldmatrix<true>(r, s + threadIdx.x);
  for (int i = 0; i < 4; i++) z[i * 32 + threadIdx.x] = r[i];
}
extern "C" __global__ void part_of_a_warp(const uint4* x, unsigned* y) {
  unsigned r[1] = {0};
  if (threadIdx.x < 16) tcf_emulator::ldmatrix<false>(r, x);
  y[threadIdx.x] = r[0];
}
"""
SYMBOLS = ("half16", "half8", "bfloat16", "tf32", "matrices", "part_of_a_warp")


@pytest.fixture(params=[False, True], ids=["fast", "traced"])
def program(request, compile_cuda):
    return compile_cuda(TEXT, SYMBOLS, request.param)


@pytest.mark.parametrize(
    ("symbol", "dtype", "k"),
    [
        ("half16", np.float16, 16),
        ("half8", np.float16, 8),
        ("bfloat16", ml_dtypes.bfloat16, 16),
        ("tf32", np.float32, 8),
    ],
)
def test_products(program, symbol, dtype, k):
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(dtype) for shape in ((16, k), (8, k)))
    if dtype == np.float16:
        a[0, :6] = [6e-8, -6e-5, 65504, -0.0, np.inf, -np.inf]  # denormals and extremes
    c, d = rng.standard_normal((16, 8), np.float32), np.zeros((16, 8), np.float32)
    run = program.run(symbol, 1, 32, 0, [a, b, c, d], read_only=(0, 1, 2), unwritten=(3,))
    assert (run.finished, run.reports) == (True, ())
    if symbol == "tf32":
        a, b = ((v.view(np.uint32) & 0xFFFFE000).view(np.float32) for v in (a, b))
    with np.errstate(invalid="ignore"):
        want = a.astype(np.float64) @ b.astype(np.float64).T + c
    np.testing.assert_array_equal(d, want.astype(np.float32))


def test_loads_of_matrices(program):
    x = np.arange(4 * 8 * 8, dtype=np.uint16).reshape(4, 8, 8)
    y, z = np.zeros((4, 8, 8), np.uint16), np.zeros((4, 8, 8), np.uint16)
    run = program.run("matrices", 1, 32, 0, [x, y, z])
    assert (run.finished, run.reports) == (True, ())
    np.testing.assert_array_equal(y, x)
    np.testing.assert_array_equal(z, x.transpose(0, 2, 1))
    loads = [s for s in run.sites if (s.space, s.operation) == ("shared", "read")]
    assert all((s.bytes, s.per_request, s.factor) == (16, 4, 1) for s in loads)


def test_all_lanes_must_take_part(program):
    x, y = np.zeros(4, np.uint32), np.zeros(32, np.uint32)
    run = program.run("part_of_a_warp", 1, 32, 0, [x, y])
    assert not run.finished
    run = program.run("part_of_a_warp", 1, 16, 0, [x, y])
    assert not run.finished
