"""CUDA C to what a GPU's driver loads, with no GPU, driver or toolkit.

Each architecture gets machine code (a cubin), and the newest one's PTX goes along for GPUs that
are newer still.  Results are kept in the cache of objects.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from os import sched_getaffinity
from typing import Literal

from tcfuse.errors import ToolchainError
from tcfuse.store import key_of
from tcfuse.targets.base import CudaSource
from tcfuse.targets.cubin import read_cubin
from tcfuse.targets.cuda_archs import arch_number, default_archs, newest
from tcfuse.targets.nvrtc_library import Compilation, Nvrtc, find_nvrtc
from tcfuse.targets.object_cache import ObjectCache
from tcfuse.targets.ptx_version import lowered
from tcfuse.targets.resources import Resources, ResourceWarning, resources, spill_warning

HEADER = "tcf_device.hpp"
FLAGS = (
    "-std=c++17",
    "--device-as-default-execution-space",
    "-w",
    "--ptxas-options=-v",  # the log is the one place that tells of spills
)
PARTS = ("cubin", "ptx", "log")  # of a compilation, each an object in the cache


@dataclass(frozen=True, slots=True)
class Image:
    """What ``cuModuleLoadData`` takes.

    Attributes:
        arch: ``sm_90``; ``cuda_archs.runs_on`` tells where that runs.
        kind: Machine code or text.
        data: The text's last byte is zero, as the driver wants it.
    """

    arch: str
    kind: Literal["cubin", "ptx"]
    data: bytes


@dataclass(frozen=True, slots=True)
class CudaImages:
    """A kernel, compiled.

    Attributes:
        images: Machine code for each architecture, ascending, then texts.
        resources: What each kernel function needs, by symbol, then by architecture.
        warnings: What costs time.
    """

    images: tuple[Image, ...]
    resources: dict[str, dict[str, Resources]]
    warnings: tuple[ResourceWarning, ...] = ()


def compile_cuda(
    source: CudaSource,
    archs: Sequence[str] = (),
    *,
    header: str,
    ptx: Sequence[str] | None = None,
    cache: ObjectCache | None = None,
    workers: int = 0,
) -> CudaImages:
    """Compile a kernel for every architecture, several at a time.

    Args:
        source: The kernel.
        archs: ``sm_80``, ``sm_90``, ... (``cuda_archs.parse_archs``); none for the common ones.
        header: What the source gets for ``#include "tcf_device.hpp"``.
        ptx: Those of ``archs`` whose PTX is an image too; ``None`` for the newest.
        cache: Where results are kept; ``None`` compiles everything anew.
        workers: Architectures compiled at the same time; 0 is one a core.

    Raises:
        ToolchainError: NVRTC is missing, or the text does not compile.
    """
    nvrtc = find_nvrtc()
    chosen = sorted(archs or default_archs(nvrtc.archs), key=arch_number)
    with ThreadPoolExecutor(workers or len(sched_getaffinity(0))) as pool:
        jobs = [pool.submit(_compile, source, arch, header, nvrtc, cache) for arch in chosen]
        try:
            made = dict(zip(chosen, [job.result() for job in jobs], strict=True))
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    images = [Image(arch, "cubin", made[arch].cubin) for arch in chosen]
    for arch in chosen:
        if arch in ((newest(chosen),) if ptx is None else ptx):
            images.append(Image(arch, "ptx", lowered(made[arch].ptx).encode() + b"\0"))
    needs = {arch: _resources(source, made[arch]) for arch in chosen}
    symbols = [launch.symbol for launch in source.launches]
    found = {symbol: {arch: needs[arch][symbol] for arch in chosen} for symbol in symbols}
    warnings = [
        spill_warning(symbol, arch, needs)
        for symbol, by_arch in found.items()
        for arch, needs in by_arch.items()
    ]
    return CudaImages(tuple(images), found, tuple(filter(None, warnings)))


def flags(source: CudaSource, arch: str) -> tuple[str, ...]:
    """What NVRTC is told about a source."""
    contract = () if source.contract else ("--fmad=false",)
    return (f"--gpu-architecture={arch}", *FLAGS, *contract)


def _compile(
    source: CudaSource, arch: str, header: str, nvrtc: Nvrtc, cache: ObjectCache | None
) -> Compilation:
    """One architecture's code, from the cache or compiled."""
    name, options = f"{source.name}.cu", flags(source, arch)
    key = key_of(source.text, header, options, nvrtc, name)
    keys = [key_of(key, part) for part in PARTS]
    if cache is not None:
        cubin, text, log = (cache.get(part) for part in keys)
        if cubin is not None and text is not None and log is not None:
            return Compilation(cubin, text.decode(), log.decode())
    made = nvrtc.compile(name, source.text, [(HEADER, header)], options)
    if cache is not None:
        parts = (made.cubin, made.ptx.encode(), made.log.encode())
        for part, data in zip(keys, parts, strict=True):
            cache.put(part, data)
    return made


def _resources(source: CudaSource, made: Compilation) -> dict[str, Resources]:
    """What each kernel function of a source needs."""
    found = resources(read_cubin(made.cubin), made.ptx, made.log)
    for launch in source.launches:
        if launch.symbol not in found:
            raise ToolchainError(f"{source.name} has no kernel function {launch.symbol}")
    return found
