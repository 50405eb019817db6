"""CUDA kernels that are right, with arguments and what they should give."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

TEXT = r"""
#define TS 16
extern "C" __global__ void __launch_bounds__(TS* TS)
matmul(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M,
       int N, int K) {
  __shared__ float As[TS][TS];
  __shared__ float Bs[TS][TS];
  int tx = threadIdx.x, ty = threadIdx.y;
  int row = blockIdx.y * TS + ty, col = blockIdx.x * TS + tx;
  float acc = 0.f;
  for (int k0 = 0; k0 < K; k0 += TS) {
    As[ty][tx] = (row < M && k0 + tx < K) ? A[row * K + k0 + tx] : 0.f;
    Bs[ty][tx] = (k0 + ty < K && col < N) ? B[(k0 + ty) * N + col] : 0.f;
    __syncthreads();  // loaded
    for (int k = 0; k < TS; ++k)
      acc += As[ty][k] * Bs[k][tx];
    __syncthreads();  // used
  }
  if (row < M && col < N)
    C[row * N + col] = acc;
}

extern "C" __global__ void block_reduce(const float* x, float* out, float* total, int n) {
  __shared__ float ws[32];
  float v = 0.f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
    v += x[i];
  int lane = threadIdx.x & 31, w = threadIdx.x >> 5;
  for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffffu, v, o);
  if (lane == 0) ws[w] = v;
  __syncthreads();
  if (w == 0) {
    v = lane < (blockDim.x + 31) / 32 ? ws[lane] : 0.f;
    for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffffu, v, o);
    if (lane == 0) {
      out[blockIdx.x] = v;
      atomicAdd(total, v);
    }
  }
}

__constant__ float weights[3] = {1, 2, 3};

extern "C" __global__ void constants(float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float a[3];
  for (int k = 0; k < 3; k++) a[(i + k) % 3] = weights[k];
  y[i] = a[0] + 10 * a[1] + 100 * a[2];
}

extern "C" __global__ void warp_sum(const float* x, float* y) {  // __syncwarp only
  volatile __shared__ float s[64];
  int t = threadIdx.x, l = t & 31, b = t - l;
  s[t] = x[blockIdx.x * 64 + t];
  __syncwarp();
  for (int o = 16; o; o >>= 1) {
    float v = l < o ? s[b + l + o] : 0;
    __syncwarp();
    if (l < o) s[t] += v;
    __syncwarp();
  }
  if (!l) y[blockIdx.x * 2 + t / 32] = s[b];
}

extern "C" __global__ void swap_pairs(const float* x, float* y, int n) {
  __shared__ float s[128];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;  // threads leave before the barrier
  s[threadIdx.x] = x[i];
  __syncthreads();
  y[i] = (i ^ 1) < n ? s[threadIdx.x ^ 1] : s[threadIdx.x];
}

extern "C" __global__ void swap_in_warp(const float* x, float* y, int n) {
  __shared__ float s[32];
  int t = threadIdx.x;
  if (t >= n) return;  // lanes leave before the warp meets
  s[t] = x[t];
  __syncwarp();
  y[t] = s[n - 1 - t];
}

extern "C" __global__ void rotate_groups(const float* x, float* y) {
  __shared__ float s[64];  // groups of 8 lanes wait for themselves alone, a few times each
  int t = threadIdx.x, group = t & ~7;
  unsigned members = 0xffu << (group & 31);
  s[t] = x[t];
  for (int k = 0; k <= group / 8; k++) {
    __syncwarp(members);
    float v = s[group + (t + 1) % 8];
    __syncwarp(members);
    s[t] = v;
  }
  y[t] = s[t];
}

extern "C" __global__ void double_buffer(const float* x, float* y, int n) {
  __shared__ float s[2][96];
  float a = 0;
  int t = threadIdx.x;
  s[0][t] = x[t];
  __syncthreads();
  for (int k = 0; k < n; k++) {
    if (k + 1 < n) s[(k + 1) & 1][t] = x[(k + 1) * 96 + t];
    a += s[k & 1][95 - t];
    __syncthreads();
  }
  y[t] = a;
}

extern "C" __global__ void histogram(const int* x, int* h, int n) {
  __shared__ int s[16];
  if (threadIdx.x < 16) s[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&s[x[i] & 15], 1);
  __syncthreads();
  if (threadIdx.x < 16) atomicAdd(&h[threadIdx.x], s[threadIdx.x]);
}

extern "C" __global__ void half_warps(float* x) {  // two masks in one warp
  float v = x[threadIdx.x];
  if (threadIdx.x < 16) {
    for (int o = 8; o; o >>= 1) v += __shfl_xor_sync(0x0000ffffu, v, o, 16);
  } else {
    for (int o = 8; o; o >>= 1) v += __shfl_xor_sync(0xffff0000u, v, o, 16);
  }
  x[threadIdx.x] = __all_sync(~0u, v == v) ? v : 0;
}

extern "C" __global__ void scan(const double* x, double* y) {
  extern __shared__ double s[];
  int t = threadIdx.x;
  s[t] = x[t];
  __syncthreads();
  for (int o = 1; o < 1024; o <<= 1) {
    double v = t >= o ? s[t - o] : 0;
    __syncthreads();
    s[t] += v;
    __syncthreads();
  }
  y[t] = s[t];
}

extern "C" __global__ void votes(const int* x, int* y) {
  int t = threadIdx.x, v = x[t];
  y[t] = __syncthreads_count(v > 0) + 1000 * __syncthreads_or(v > 90) +
         2000 * __syncthreads_and(v >= 0) + 4000 * __any_sync(~0u, v > 50) +
         8000 * (__popc(__ballot_sync(~0u, v & 1)) & 1) + 16000 * __shfl_up_sync(~0u, t, 3, 16);
}

extern "C" __global__ void read_then_overwrite(float* x) {  // all read a place, then one writes
  __shared__ float s[1];
  if (threadIdx.x == 0) s[0] = x[0];
  __syncwarp();
  float v = s[0];
  __syncwarp();
  if (threadIdx.x == 5) s[0] = v + 1;
  __syncwarp();
  x[threadIdx.x] = s[0];
}

extern "C" __global__ void bytes_side_by_side(const unsigned char* x, unsigned char* y) {
  y[threadIdx.x] = x[threadIdx.x] + 1;  // neighbours in one word are no race
}

extern "C" __global__ void vectors(const float4* x, float4* y, int n) {
  extern __shared__ float4 v[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  v[threadIdx.x] = __ldg(x + i);
  __syncthreads();
  float4 w = v[blockDim.x - 1 - threadIdx.x];
  __stcs(y + i, make_float4(w.x + n, w.y, w.z, w.w));
}
"""
SYMBOLS = tuple(re.findall(r"(\w+)\((?:const|float|unsigned)", TEXT))


@dataclass(frozen=True)
class Case:
    """A launch.  ``wanted`` holds, for the number of an argument, what it should be after."""

    symbol: str
    grid: int | tuple[int, ...]
    block: int | tuple[int, ...]
    args: tuple[np.ndarray | int, ...]
    wanted: dict[int, np.ndarray]
    shared_bytes: int = 0
    read_only: tuple[int, ...] = (0,)
    unwritten: tuple[int, ...] = ()

    def check(self) -> None:
        """The arguments hold what they should."""
        for number, value in self.wanted.items():
            np.testing.assert_allclose(self.args[number], value, rtol=1e-4, atol=1e-4)


def _floats(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def _empty(*shape: int) -> np.ndarray:
    return np.full(shape, np.nan, np.float32)


def matmul(m: int, n: int, k: int, seed: int = 0) -> Case:
    rng = np.random.default_rng(seed)
    a, b = _floats(rng, m, k), _floats(rng, k, n)
    grid = (-(-n // 16), -(-m // 16))
    args = (a, b, _empty(m, n), m, n, k)
    return Case("matmul", grid, (16, 16), args, {2: a @ b}, 0, (0, 1), (2,))


def block_reduce(n: int) -> Case:
    x = np.random.default_rng(0).random(n).astype(np.float32)
    args = (x, _empty(8), np.zeros(1, np.float32), n)
    return Case("block_reduce", 8, 256, args, {2: x.sum(keepdims=True)}, unwritten=(1,))


def _rotated() -> Case:
    x = np.arange(64, dtype=np.float32)
    want = np.concatenate([np.roll(x[8 * g : 8 * g + 8], -(g + 1)) for g in range(8)])
    return Case("rotate_groups", 1, 64, (x, _empty(64)), {1: want}, unwritten=(1,))


def _votes() -> Case:
    x = np.random.default_rng(3).integers(0, 99, 64).astype(np.int32)
    warps = x.reshape(2, 32)
    t = np.arange(64)
    want = (x > 0).sum() + 1000 * (x > 90).any() + 2000
    per_warp = 4000 * (warps > 50).any(1) + 8000 * ((warps & 1).sum(1) & 1)
    want = want + np.repeat(per_warp, 32) + 16000 * np.where(t % 16 >= 3, t - 3, t)
    return Case("votes", 1, 64, (x, np.zeros(64, np.int32)), {1: want}, unwritten=(1,))


def _small(symbol: str) -> Case:
    rng = np.random.default_rng(1)
    i = np.arange(64)
    x, ramp = _floats(rng, 512), np.arange(64, dtype=np.uint8)
    by_k = sum((k + 1) * 10.0 ** ((i + k) % 3) for k in range(3))
    counted = rng.integers(0, 99, 5000).astype(np.int32)
    vec = _floats(rng, 512, 4)
    flipped = vec.reshape(4, 128, 4)[:, ::-1].reshape(512, 4) + np.array([7, 0, 0, 0])
    long = rng.standard_normal(1024)
    halves = np.repeat(x[:32].reshape(2, 16).sum(1), 16)
    pairs = x[:300].reshape(-1, 2)[:, ::-1].ravel()
    frames = x[:480].reshape(5, 96)
    out = {"unwritten": (1,)}
    cases = {
        "constants": Case(
            symbol, 2, 32, (_empty(64),), {0: by_k}, read_only=(), unwritten=(0,)
        ),
        "warp_sum": Case(symbol, 8, 64, (x, _empty(16)), {1: x.reshape(16, 32).sum(1)}, **out),
        "swap_pairs": Case(symbol, 3, 128, (x[:300], _empty(300), 300), {1: pairs}, **out),
        "swap_in_warp": Case(symbol, 1, 32, (x[:20], _empty(20), 20), {1: x[:20][::-1]}, **out),
        "double_buffer": Case(
            symbol, 1, 96, (frames, _empty(96), 5), {1: frames[:, ::-1].sum(0)}, **out
        ),
        "histogram": Case(  # blocks of 100 threads: the last warp is not full
            symbol,
            4,
            100,
            (counted, np.zeros(16, np.int32), 5000),
            {1: np.bincount(counted & 15, minlength=16)},
        ),
        "half_warps": Case(symbol, 1, 32, (x[:32].copy(),), {0: halves}, read_only=()),
        "scan": Case(
            symbol, 1, 1024, (long, np.zeros(1024)), {1: np.cumsum(long)}, 1024 * 8, **out
        ),
        "read_then_overwrite": Case(
            symbol, 1, 32, (x[:32].copy(),), {0: np.full(32, x[0] + 1)}, read_only=()
        ),
        "bytes_side_by_side": Case(
            symbol, 1, 64, (ramp, np.zeros(64, np.uint8)), {1: ramp + 1}, **out
        ),
        "vectors": Case(symbol, 4, 128, (vec, _empty(512, 4), 7), {1: flipped}, 2048, **out),
    }
    return cases[symbol]


def case(symbol: str) -> Case:
    """A new case for a kernel, small enough for a traced run."""
    special: dict[str, Callable[[], Case]] = {
        "matmul": lambda: matmul(50, 40, 33),
        "block_reduce": lambda: block_reduce(1 << 12),
        "rotate_groups": _rotated,
        "votes": _votes,
    }
    return special.get(symbol, lambda: _small(symbol))()
