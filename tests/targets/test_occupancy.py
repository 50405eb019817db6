"""Blocks of a multiprocessor, by hand and beside NVIDIA's own calculation."""

from __future__ import annotations

import ctypes
import importlib.metadata
import itertools
from pathlib import Path

import pytest

from tcfuse.targets.compilers import find_compiler, run
from tcfuse.targets.occupancy import LIMITS, occupancy

TEXT = r"""
#include <cuda_occupancy.h>
extern "C" __attribute__((visibility("default"))) int blocks(
    int arch, int warps, int shared, int most, int reserved, int registers, int threads,
    int declared, int dynamic, unsigned* factors) {
  cudaOccDeviceProp device = {};
  device.computeMajor = arch / 10;
  device.computeMinor = arch % 10;
  device.maxThreadsPerBlock = 1024;
  device.maxThreadsPerMultiprocessor = 32 * warps;
  device.regsPerBlock = device.regsPerMultiprocessor = 65536;
  device.warpSize = 32;
  device.sharedMemPerBlock = 49152;
  device.sharedMemPerMultiprocessor = shared;
  device.numSms = 1;
  device.sharedMemPerBlockOptin = most;
  device.reservedSharedMemPerBlock = reserved;
  cudaOccFuncAttributes function = {};
  function.maxThreadsPerBlock = 1024;
  function.numRegs = registers;
  function.sharedSizeBytes = declared;
  function.partitionedGCConfig = PARTITIONED_GC_OFF;
  function.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
  function.maxDynamicSharedSizeBytes = most - declared;
  function.numBlockBarriers = 1;
  cudaOccDeviceState state = {};
  state.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED;
  cudaOccResult result = {};
  int error = cudaOccMaxActiveBlocksPerMultiprocessor(
      &result, &device, &function, &state, threads, dynamic);
  *factors = result.limitingFactors;
  return error ? -error : result.activeBlocksPerMultiprocessor;
}
"""
FLAGS = ("-x", "c++", "-O1", "-w", "-shared", "-fPIC", "-nostdlib", "-fno-sanitize=undefined")
BITS = {"warps": 1, "registers": 2, "shared memory": 4, "blocks": 8}


def header() -> Path | None:
    """The folder of ``cuda_occupancy.h``, where a wheel brought it."""
    for wheel in ("nvidia-cuda-runtime", "nvidia-cuda-runtime-cu12"):
        try:
            files = importlib.metadata.files(wheel) or ()
        except importlib.metadata.PackageNotFoundError:
            continue
        for file in files:
            if file.name == "cuda_occupancy.h":
                return Path(str(file.locate())).parent
    return None


@pytest.mark.compiler
def test_agrees_with_nvidias_calculation(tmp_path: Path) -> None:
    """3,380 kernels on every architecture in the table."""
    if (include := header()) is None:
        pytest.skip("cuda_occupancy.h is missing: pip install nvidia-cuda-runtime")
    library, text = tmp_path / "occupancy.so", tmp_path / "occupancy.cpp"
    text.write_text(TEXT, encoding="utf-8")
    run((*find_compiler().argv, *FLAGS, f"-I{include}", str(text), "-o", str(library)))
    theirs, factors = ctypes.CDLL(str(library)).blocks, ctypes.c_uint()
    registers = (1, 16, 24, 32, 33, 40, 64, 65, 96, 128, 168, 200, 255)
    threads = (1, 32, 33, 64, 96, 128, 192, 256, 384, 512, 640, 768, 1024)
    declared, dynamic = (0, 1, 2048, 32 << 10), (0, 1000, 16 << 10, 60 << 10, 180 << 10)
    for arch, *kernel in itertools.product(LIMITS, registers, threads, declared, dynamic):
        have = LIMITS[arch]
        device = (arch, have.warps, have.shared, have.block_shared, have.reserved)
        blocks = theirs(*device, *kernel, ctypes.byref(factors))
        ours = occupancy(arch, *kernel[:2], sum(kernel[2:]))
        assert ours is not None
        assert (ours.blocks, arch, kernel) == (blocks, arch, kernel)
        assert BITS[ours.limiter] & factors.value, (arch, kernel)


def test_by_hand() -> None:
    # 124 registers are 128 for a warp's sake: 32768 a block of 256 threads, two of which fit.
    assert str(occupancy(90, 124, 256, 8192)) == (
        "Occupancy(blocks=2, share=0.25, limiter='registers')"
    )
    full = occupancy(80, 32, 256, 0)
    assert full is not None
    assert (full.blocks, full.share) == (8, 1.0)
    few = occupancy(86, 16, 32, 0)
    assert few is not None
    assert (few.blocks, few.limiter) == (16, "blocks")
    shared = occupancy(90, 32, 128, 100 << 10)
    assert shared is not None
    assert (shared.blocks, shared.limiter) == (2, "shared memory")


def test_what_cannot_start_has_no_block() -> None:
    for arguments in ((90, 32, 256, 228 << 10), (80, 256, 32, 0), (80, 32, 1056, 0)):
        found = occupancy(*arguments)
        assert found is not None
        assert found.blocks == 0


def test_an_architecture_without_limits_has_no_occupancy() -> None:
    assert occupancy(999, 32, 32, 0) is None
