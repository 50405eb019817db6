"""Counters equal what one works out by hand for a warp of 32 threads."""

from __future__ import annotations

import numpy as np
import pytest

from tcfuse.emulator import Run, site_rows
from tests.emulator.kernels import matmul

pytestmark = pytest.mark.compiler

TILED = r"""
extern "C" __global__ void %s(const float* x, float* y, int n) {
  __shared__ float t[32][%d];
  int bx = blockIdx.x * 32, by = blockIdx.y * 32;
  t[threadIdx.y][threadIdx.x] = x[(by + threadIdx.y) * n + bx + threadIdx.x];
  __syncthreads();
  y[(bx + threadIdx.y) * n + by + threadIdx.x] = t[threadIdx.x][threadIdx.y];
}
"""
TEXT = (
    TILED % ("conflicts", 32)
    + TILED % ("padded", 33)
    + r"""
extern "C" __global__ void by_columns(const float* x, float* y, int n) {
  int i = blockIdx.x * 32 + threadIdx.x, j = blockIdx.y * 32 + threadIdx.y;
  y[i * n + j] = x[j * n + i];
}
extern "C" __global__ void every_second(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (2 * i < n) y[i] = x[2 * i];
}
extern "C" __global__ void one_off(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i + 1 < n) y[i] = x[i + 1];
}
extern "C" __global__ void broadcast(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i / 32];
}
extern "C" __global__ void halves(const unsigned short* x, unsigned short* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i];
}
extern "C" __global__ void sixteen_bytes(const float4* x, float4* y, int n) {
  extern __shared__ float4 s[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  tcf_emulator::write(s + threadIdx.x, __ldg(x + i));
  __syncthreads();
  __stcs(y + i, tcf_emulator::read(s + blockDim.x - 1 - threadIdx.x));
}
extern "C" __global__ void sixteen_bytes_apart(const float4* x, float4* y, int n) {
  __shared__ float4 s[8 * 32];
  tcf_emulator::write(s + 8 * threadIdx.x, __ldg(x + threadIdx.x));
  __syncwarp();
  __stcs(y + threadIdx.x, tcf_emulator::read(s + 8 * threadIdx.x));
}
extern "C" __global__ void doubles(const double* x, double* y, int n) {
  __shared__ double s[64];
  s[2 * threadIdx.x] = x[threadIdx.x];
  __syncwarp();
  y[threadIdx.x] = s[2 * threadIdx.x];
}
extern "C" __global__ void divergent(const float* x, float* y, int n) {
  float v = 0;
  for (int k = 0; k <= (int)threadIdx.x; k++) v += x[k * 32 + threadIdx.x];
  y[threadIdx.x] = v;
}
extern "C" __global__ void twice(const float* x, float* y, int n) {
  float v = 0;
  for (int k = 0; k < 2; k++)
    for (int i = threadIdx.x; i < n; i += blockDim.x) v += x[i] * (k + 1);
  y[threadIdx.x] = v;
}
"""
)
SYMBOLS = tuple(w.split("(")[0].split()[-1] for w in TEXT.split("__global__")[1:])
READ, WRITE = ("global", "read"), ("global", "write")
LOAD, STORE = ("shared", "read"), ("shared", "write")


def per_request(run: Run) -> list[tuple[str, str, int, float]]:
    """Sectors or wavefronts of one request of each access, sorted."""
    assert run.finished
    assert run.reports == ()
    return sorted((s.space, s.operation, s.bytes, s.per_request) for s in run.sites)


@pytest.fixture
def launch(compile_cuda):
    def run(symbol, grid, block, x, shared_bytes=0, n=None):
        y = np.zeros_like(x)
        program = compile_cuda(TEXT, SYMBOLS)
        size = x.size if n is None else n
        return program.run(symbol, grid, block, shared_bytes, [x, y, size]), y

    return run


@pytest.mark.parametrize(
    ("symbol", "want"),
    [
        ("conflicts", [(*READ, 4, 4), (*WRITE, 4, 4), (*LOAD, 4, 32), (*STORE, 4, 1)]),
        ("padded", [(*READ, 4, 4), (*WRITE, 4, 4), (*LOAD, 4, 1), (*STORE, 4, 1)]),
        ("by_columns", [(*READ, 4, 4), (*WRITE, 4, 32)]),
    ],
)
def test_transposes(launch, symbol, want):
    x = np.arange(128 * 128, dtype=np.float32).reshape(128, 128)
    run, y = launch(symbol, (4, 4), (32, 32), x, n=128)
    assert per_request(run) == want
    np.testing.assert_array_equal(y, x.T)


@pytest.mark.parametrize(
    ("symbol", "dtype", "want"),
    [
        ("every_second", np.float32, [(*READ, 4, 8), (*WRITE, 4, 4)]),
        ("broadcast", np.float32, [(*READ, 4, 1), (*WRITE, 4, 4)]),
        ("halves", np.uint16, [(*READ, 2, 2), (*WRITE, 2, 2)]),
    ],
)
def test_sectors(launch, symbol, dtype, want):
    run, _ = launch(symbol, 32, 128, np.zeros(4096, dtype))
    assert per_request(run) == want


def test_a_warp_that_is_not_aligned_touches_one_sector_more(launch):
    run, _ = launch("one_off", 32, 128, np.zeros(4097, np.float32))
    assert per_request(run) == [(*READ, 4, 5), (*WRITE, 4, 4)]
    (read, write) = run.sites if run.sites[0].operation == "read" else run.sites[::-1]
    assert (read.factor, write.factor) == (1.25, 1)


def test_accesses_of_16_bytes(launch):
    """16 sectors of global memory; 4 wavefronts of shared memory, a quarter warp each."""
    x = np.arange(512 * 4, dtype=np.float32).reshape(512, 4)
    run, y = launch("sixteen_bytes", 4, 128, x, shared_bytes=128 * 16)
    assert per_request(run) == [
        (*READ, 16, 16),
        (*WRITE, 16, 16),
        (*LOAD, 16, 4),
        (*STORE, 16, 4),
    ]
    assert all(site.factor == 1 for site in run.sites)
    np.testing.assert_array_equal(y, x.reshape(4, 128, 4)[:, ::-1].reshape(512, 4))
    # 128 bytes apart, each lane of a quarter warp needs the same four banks
    run, _ = launch("sixteen_bytes_apart", 1, 32, x[:32].copy())
    shared = [s for s in run.sites if s.space == "shared"]
    assert [(s.per_request, s.ideal, s.factor) for s in shared] == [(32, 4, 8)] * 2


def test_accesses_of_8_bytes_go_by_half_warps(launch):
    """16 bytes apart: of the 16 lanes that go together, two at a time need the same banks."""
    run, _ = launch("doubles", 1, 32, np.zeros(32))
    assert per_request(run) == [(*READ, 8, 8), (*WRITE, 8, 8), (*LOAD, 8, 4), (*STORE, 8, 4)]


def test_lanes_that_go_different_ways(launch):
    """The k-th access of each lane is part of one request: 32 of them, of 32, 31, ... lanes."""
    run, _ = launch("divergent", 1, 32, np.zeros(32 * 32, np.float32))
    read = next(s for s in run.sites if s.operation == "read")
    assert (read.requests, read.lanes) == (32, 32 * 33 // 2)
    assert read.transactions == sum(4 - k // 8 for k in range(32))


def test_traffic(launch, compile_cuda):
    """What is read twice is requested twice, but moves once when a cache holds it."""
    run, _ = launch("twice", 1, 64, np.zeros(1024, np.float32))
    x, y = run.buffers
    assert (x.bytes, x.read, x.read_requested, x.written) == (4096, 4096, 8192, 0)
    assert (y.read, y.written, y.written_requested) == (0, 256, 256)
    rows = site_rows(run.sites)
    assert [row[1:4] for row in rows] == [
        ("arg0", "global read", "4"),
        ("arg1", "global write", "4"),
    ]


def test_matmul(kernels):
    c = matmul(64, 64, 64)
    run = kernels.run("matmul", c.grid, c.block, 0, c.args)
    assert (run.blocks, run.barriers) == (16, 4 * 2 * 16)
    if not kernels.source.traced:
        assert run.sites == ()
        return
    tiles = [(*READ, 4, 4)] * 2 + [(*WRITE, 4, 4)] + [(*LOAD, 4, 1)] * 2 + [(*STORE, 4, 1)] * 2
    assert per_request(run) == tiles
    size = 64 * 64 * 4
    unique = [(b.buffer, b.bytes, b.read, b.written) for b in run.buffers]
    assert unique == [
        ("arg0", size, size, 0),
        ("arg1", size, size, 0),
        ("arg2", size, 0, size),
    ]
    assert [b.read_requested for b in run.buffers] == [4 * size, 4 * size, 0]
