"""Planted faults: each is found, and the line that is named is the one with the fault."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from tcfuse.emulator import Finding, Run
from tests.emulator import kernels as right

pytestmark = pytest.mark.compiler

TEXT = r"""
extern "C" __global__ void no_syncwarp(const float* x, float* y) {
  volatile __shared__ float s[64];
  int t = threadIdx.x, l = t & 31, b = t - l;
  s[t] = x[t];
  for (int o = 16; o; o >>= 1)
    if (l < o) s[t] += s[b + l + o];  // BUG no_syncwarp
  if (!l) y[t / 32] = s[b];
}
extern "C" __global__ void syncwarp_of_half(const float* x, float* y) {
  __shared__ float s[32];
  int t = threadIdx.x;
  s[t] = x[t];
  __syncwarp(t < 16 ? 0x0000ffffu : 0xffff0000u);
  y[t] = s[31 - t];  // BUG syncwarp_of_half
}
extern "C" __global__ void one_buffer(const float* x, float* y, int n) {
  __shared__ float s[96];
  float a = 0;
  int t = threadIdx.x;
  for (int k = 0; k < n; k++) {
    s[t] = x[k * 96 + t];  // BUG one_buffer
    __syncthreads();
    a += s[95 - t];
  }
  y[t] = a;
}
extern "C" __global__ void lanes_read_one_writes(float* y) {
  __shared__ float s[1];
  if (threadIdx.x == 0) s[0] = 1;
  __syncthreads();
  float v = s[0];
  if (threadIdx.x == 7) s[0] = 2;  // BUG lanes_read_one_writes
  y[threadIdx.x] = v;
}
extern "C" __global__ void blocks_overlap(float* y) {
  y[threadIdx.x] = blockIdx.x;  // BUG blocks_overlap
}
extern "C" __global__ void read_of_other_block(float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = y[i ^ 32];  // BUG read_of_other_block
}
extern "C" __global__ void plain_total(int* h) {
  h[threadIdx.x & 15] += 1;  // BUG plain_total
}
extern "C" __global__ void shift_in_place(float* x) {
  int i = threadIdx.x;
  x[i] = x[i + 1];  // BUG shift_in_place
}
extern "C" __global__ void no_guard(float* y, int n) {
  y[blockIdx.x * blockDim.x + threadIdx.x] = 1;  // BUG no_guard
}
extern "C" __global__ void before_begin(const float* x, float* y) {
  y[threadIdx.x] = x[(int)threadIdx.x - 1];  // BUG before_begin
}
extern "C" __global__ void past_dynamic(float* y) {
  extern __shared__ float s[];
  s[threadIdx.x] = 1;  // BUG past_dynamic
  y[threadIdx.x] = s[threadIdx.x];
}
extern "C" __global__ void row_overflow(float* y, int n) {
  __shared__ float s[4][32];
  for (int k = 0; k < n; k++) s[0][threadIdx.x + k] = 1;  // BUG row_overflow
  y[threadIdx.x] = s[0][threadIdx.x];
}
extern "C" __global__ void half_barrier(float* y) {
  __shared__ float s[64];
  s[threadIdx.x] = 1;
  if (threadIdx.x < 32) __syncthreads();
  y[threadIdx.x] = s[63 - threadIdx.x];  // BUG half_barrier
}
extern "C" __global__ void stale_output(float* y) {
  y[threadIdx.x] += 1;  // BUG stale_output
}
extern "C" __global__ void shared_of_last_block(float* y) {
  __shared__ float s[32];
  if (blockIdx.x == 0) s[threadIdx.x] = 1;
  y[blockIdx.x * 32 + threadIdx.x] = s[threadIdx.x];  // BUG shared_of_last_block
}
extern "C" __global__ void odd_address(const float* x, float* y) {
  y[threadIdx.x] = *(const double*)(x + threadIdx.x);  // BUG odd_address
}
extern "C" __global__ void shuffle_and_vote(int* y) {
  int v = threadIdx.x;
  if (v < 16) v = __shfl_xor_sync(~0u, v, 1);  // BUG shuffle_and_vote
  else v = __any_sync(~0u, v);  // BUG shuffle_and_vote
  y[threadIdx.x] = v;
}
extern "C" __global__ void not_in_mask(int* y) {
  y[threadIdx.x] = __shfl_sync(0xffffu, (int)threadIdx.x, 0);  // BUG not_in_mask
}
extern "C" __global__ void divide(int* y, int n) {
  y[threadIdx.x] = 100 / ((int)threadIdx.x - n);  // BUG divide
}
extern "C" __global__ void far_away(float* y, int64_t n) {
  y[(n << 33) + threadIdx.x] = 1;  // BUG far_away
}
extern "C" __global__ void deep(float* y, int n) {
  volatile char big[150000];
  for (int i = 0; i < n; i += 64) big[i] = 1;  // BUG deep
  y[0] = big[0];
}
extern "C" __global__ void null(float* y) {
  if (threadIdx.x == 3) *(volatile float*)(y == nullptr) = 1;  // BUG null
}
extern "C" __global__ void spin(volatile int* flag) {
  while (*flag == 0) { }  // BUG spin
}
extern "C" __global__ void spin_at_barrier(int* y, int n) {
  for (int i = 0; i < n; i = (i + 1) % 2) __syncthreads();  // BUG spin_at_barrier
  *y = 1;
}
"""
SYMBOLS = tuple(w.split("(")[0].split()[-1] for w in TEXT.split("__global__")[1:])


def floats(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def ints(n: int) -> np.ndarray:
    return np.zeros(n, np.int32)


W_W, R_W, W_R = (
    Finding.RACE_WRITE_WRITE,
    Finding.RACE_READ_AFTER_WRITE,
    Finding.RACE_WRITE_AFTER_READ,
)
RACES = {W_W, R_W, W_R}


@dataclass(frozen=True)
class Fault:
    """A launch of a kernel with a fault, and what must be found."""

    grid: int
    block: int
    args: tuple[np.ndarray | int, ...]
    kinds: set[Finding]
    shared_bytes: int = 0
    options: tuple[tuple[str, object], ...] = ()


FAULTS = {
    "no_syncwarp": Fault(1, 64, (floats(64), floats(2)), RACES),
    "syncwarp_of_half": Fault(1, 32, (floats(32), floats(32)), {R_W}),
    "one_buffer": Fault(1, 96, (floats(5, 96), floats(96), 5), {R_W, W_R}),
    "lanes_read_one_writes": Fault(1, 32, (floats(32),), {R_W, W_R}),
    "blocks_overlap": Fault(2, 32, (floats(32),), {W_W}),
    "read_of_other_block": Fault(2, 32, (floats(64),), RACES),
    "plain_total": Fault(1, 64, (ints(16),), RACES),
    "shift_in_place": Fault(1, 64, (floats(65),), {R_W, W_R}),
    "no_guard": Fault(2, 64, (floats(100), 100), {Finding.OUT_OF_BOUNDS_WRITE}),
    "before_begin": Fault(1, 32, (floats(32), floats(32)), {Finding.OUT_OF_BOUNDS_READ}),
    "past_dynamic": Fault(1, 64, (floats(64),), {Finding.OUT_OF_BOUNDS_WRITE}, 63 * 4),
    "row_overflow": Fault(1, 32, (floats(32), 2), {Finding.ARRAY_INDEX, W_W}),
    "half_barrier": Fault(1, 64, (floats(64),), {R_W, Finding.UNINITIALISED}),
    "stale_output": Fault(
        1, 32, (floats(32),), {Finding.UNINITIALISED}, options=(("unwritten", (0,)),)
    ),
    "shared_of_last_block": Fault(2, 32, (floats(64),), {Finding.UNINITIALISED}),
    "odd_address": Fault(1, 32, (floats(40), floats(32)), {Finding.MISALIGNED}),
    "shuffle_and_vote": Fault(1, 32, (ints(32),), {Finding.WARP_DIVERGENCE}),
    "not_in_mask": Fault(1, 32, (ints(32),), {Finding.LANE_OUTSIDE_MASK}),
    "divide": Fault(1, 32, (ints(32), 5), {Finding.ARITHMETIC_FAULT}),
    "far_away": Fault(1, 32, (floats(32), 100), {Finding.OUT_OF_BOUNDS_WRITE}),
    "deep": Fault(
        1, 1, (floats(1), 150000), {Finding.OUT_OF_BOUNDS_WRITE, Finding.STACK_OVERFLOW}
    ),
    "null": Fault(1, 32, (floats(1),), {Finding.OUT_OF_BOUNDS_WRITE}),
    "spin": Fault(1, 32, (ints(1),), {Finding.TIME_LIMIT}, options=(("limit_s", 0.3),)),
    "spin_at_barrier": Fault(
        1, 32, (ints(1), 9), {Finding.TIME_LIMIT}, options=(("limit_s", 0.3),)
    ),
}


def lines_with(text: str, marker: str) -> set[int]:
    return {i for i, line in enumerate(text.split("\n"), 1) if line.endswith(marker)}


def located(run: Run, kinds: set[Finding], lines: set[int]) -> bool:
    """Whether one of some kinds of findings is reported for one of some lines."""
    found = [r for r in run.reports if r.kind in kinds and r.by.place.line in lines]
    assert found, [str(r) for r in run.reports]
    return True


@pytest.mark.parametrize("seed", [0, 3])
@pytest.mark.parametrize("name", FAULTS)
def test_faults(compile_cuda, name, seed):
    fault = FAULTS[name]
    program = compile_cuda(TEXT, SYMBOLS)
    args = [a.copy() if isinstance(a, np.ndarray) else a for a in fault.args]
    run = program.run(
        name,
        fault.grid,
        fault.block,
        fault.shared_bytes,
        args,
        seed=seed,
        **dict(fault.options),
    )
    assert located(run, fault.kinds, lines_with(TEXT, f"// BUG {name}"))
    assert all(r.by.place.file == "kernel.cu" for r in run.reports)


def test_every_faulty_kernel_is_run():
    assert set(FAULTS) == set(SYMBOLS)


def test_a_race_names_both_threads(compile_cuda):
    program = compile_cuda(TEXT, SYMBOLS)
    (report,) = program.run("blocks_overlap", 2, 32, 0, [floats(32)]).reports
    (line,) = lines_with(TEXT, "// BUG blocks_overlap")
    assert str(report) == (
        f"kernel.cu:{line}: blocks_overlap race: two threads write, 4 bytes at arg0[byte 0], "
        f"block 1 thread 0 and kernel.cu:{line} block 0 thread 0 (32 times)"
    )


SHUFFLES = (
    "    for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffffu, v, o);\n    if"
)
HALF_SHUFFLES = """
    if (lane < 16) v += __shfl_down_sync(0xffffffffu, v, 1);
    else __syncthreads();
    if"""
TWO_BARRIERS = """if (tx < 8) __syncthreads();
    else __syncthreads();"""
STORE = "  if (lane == 0) ws[w] = v;\n"

# What is done to a right kernel: the kernel, text in it, what stands in its place, text of a
# line that must be named, what is found.
EDITS = {
    "second barrier missing": (
        "matmul",
        "    __syncthreads();  // used\n",
        "",
        "s[ty][",
        RACES,
    ),
    "first barrier missing": (
        "matmul",
        "    __syncthreads();  // loaded\n",
        "",
        "acc +=",
        RACES,
    ),
    "store without a guard": (
        "matmul",
        "if (row < M && col < N)\n",
        "\n",
        "C[row",
        {Finding.OUT_OF_BOUNDS_WRITE},
    ),
    "write to an input": (
        "matmul",
        "C[row * N + col] = acc",
        "((float*)A)[0] = acc",
        "((float*)A)",
        {Finding.WRITE_TO_READ_ONLY},
    ),
    "element left out": (
        "matmul",
        "    As[ty][tx] =",
        "    if (tx) As[ty][tx] =",
        "acc += As",
        {Finding.UNINITIALISED},
    ),
    "past an array": ("matmul", "k < TS;", "k <= TS;", "acc += As", {Finding.ARRAY_INDEX}),
    "two barriers": (
        "matmul",
        "__syncthreads();  // loaded",
        TWO_BARRIERS,
        "__syncthreads();",
        {Finding.BARRIER_DIVERGENCE},
    ),
    "mask of absent lanes": (
        "block_reduce",
        SHUFFLES,
        HALF_SHUFFLES,
        "__shfl_down_sync",
        {Finding.WARP_DEADLOCK},
    ),
    "total that is not atomic": (
        "block_reduce",
        "atomicAdd(total, v)",
        "*total += v",
        "*total",
        RACES,
    ),
    "reduction without barrier": (
        "block_reduce",
        f"{STORE}  __syncthreads();\n",
        STORE,
        "? ws[lane]",
        {*RACES, Finding.UNINITIALISED},
    ),
}


def text_of(symbol: str) -> str:
    """One of the right kernels, alone."""
    parts = right.TEXT.split('extern "C"')
    (part,) = (p for p in parts if f" {symbol}(" in p or f"\n{symbol}(" in p)
    return f'{parts[0]}extern "C"{part.split("__constant__")[0]}'


@pytest.mark.parametrize("what", EDITS)
def test_edited_kernels(compile_cuda, what):
    symbol, old, new, marker, kinds = EDITS[what]
    text = text_of(symbol)
    assert text.count(old) == 1
    text = text.replace(old, new)
    c = right.case(symbol)
    program = compile_cuda(text, (symbol,))
    run = program.run(symbol, c.grid, c.block, 0, c.args, read_only=c.read_only)
    assert located(run, kinds, {i for i, s in enumerate(text.split("\n"), 1) if marker in s})


@pytest.mark.parametrize("seed", range(4))
def test_a_missing_barrier_shows_in_values(compile_cuda, seed):
    """Even where nothing is checked: a thread runs as far as it can."""
    text = text_of("matmul").replace("    __syncthreads();  // used\n", "")
    c = right.matmul(64, 64, 64)
    program = compile_cuda(text, ("matmul",), False)
    run = program.run("matmul", c.grid, c.block, 0, c.args, seed=seed)
    assert run.finished
    with pytest.raises(AssertionError):
        c.check()


def test_the_fast_build_survives_bad_addresses(compile_cuda):
    program = compile_cuda(TEXT, SYMBOLS, False)
    run = program.run("far_away", 1, 32, 0, [floats(32), 100])
    assert [r.kind for r in run.reports] == [Finding.SEGMENTATION_FAULT]
    run = program.run("null", 1, 32, 0, [floats(1)])
    assert [r.kind for r in run.reports] == [Finding.SEGMENTATION_FAULT]
    assert run.reports[0].by.thread == (3, 0, 0)
    run = program.run("spin", 1, 32, 0, [ints(1)], limit_s=0.3)
    assert [r.kind for r in run.reports] == [Finding.TIME_LIMIT]
    assert not run.finished
    run = program.run("blocks_overlap", 1, 32, 0, [floats(32)])
    assert run.finished  # a launch after one that was stopped


def test_impossible_launches(compile_cuda):
    program = compile_cuda(TEXT, SYMBOLS)
    for grid, block, shared in ((1, 1025, 0), (0, 32, 0), (1, 32, 1 << 20)):
        run = program.run("blocks_overlap", grid, block, shared, [floats(32)])
        assert [r.kind for r in run.reports] == [Finding.LAUNCH]
