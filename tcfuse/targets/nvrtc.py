"""CUDA C to what a GPU's driver loads, with no GPU, driver or toolkit.

Each architecture gets machine code (a cubin), and the newest one's PTX goes along for GPUs that
are newer still.  Results are kept in the cache of objects.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from os import sched_getaffinity
from typing import Literal

from tcfuse.codegen.device import NAME, device_header
from tcfuse.errors import ToolchainError
from tcfuse.profile import timed
from tcfuse.store import key_of, tool_digest
from tcfuse.targets.base import CudaSource
from tcfuse.targets.cubin import read_cubin
from tcfuse.targets.cuda_archs import arch_number, default_archs, newest
from tcfuse.targets.nvrtc_library import Compilation, Nvrtc, find_nvrtc
from tcfuse.targets.object_cache import ObjectCache
from tcfuse.targets.ptx import Ptx
from tcfuse.targets.ptx_version import lowered
from tcfuse.targets.resources import LaunchWarning, Resources, resources, warnings

FLAGS = (
    "-std=c++17",
    "--device-as-default-execution-space",
    "-w",
    "--ptxas-options=-v",  # the log is the one place that tells of spills
)


@dataclass(frozen=True, slots=True)
class Image:
    """What ``cuModuleLoadData`` takes.

    Attributes:
        arch: ``sm_90``; of a text the oldest that it serves.
        kind: Machine code or text.
        data: A text without the zero byte that ends it for the driver.
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
    warnings: tuple[LaunchWarning, ...] = ()


def compile_cuda(
    source: CudaSource,
    archs: Sequence[str] = (),
    *,
    header: str | None = None,
    ptx: Sequence[str] | None = None,
    cache: ObjectCache | None = None,
) -> CudaImages:
    """Compile one kernel, as ``compile_all`` does."""
    return compile_all([source], archs, header=header, ptx=ptx, cache=cache)[0]


@timed("GPU compiler")
def compile_all(
    sources: Sequence[CudaSource],
    archs: Sequence[str] = (),
    *,
    header: str | None = None,
    ptx: Sequence[str] | None = None,
    cache: ObjectCache | None = None,
    workers: int = 0,
) -> list[CudaImages]:
    """Compile kernels for every architecture, several at a time.

    Args:
        sources: The kernels.
        archs: ``sm_80``, ``sm_90``, ... (``cuda_archs.parse_archs``); none for the common ones.
        header: What ``#include "tcf_device.hpp"`` includes; ``None`` for ``codegen.device``'s.
        ptx: Those of ``archs`` whose PTX is an image too; ``None`` for the newest, which newer
            GPUs compile, and the oldest, which drivers do that are too old for machine code.
        cache: Where results are kept; ``None`` compiles everything anew.
        workers: How many are compiled at the same time; 0 is one a core.

    Raises:
        ToolchainError: NVRTC is missing, or a text does not compile.
    """
    nvrtc = find_nvrtc()
    chosen = sorted(archs or default_archs(nvrtc.archs), key=arch_number)
    text = device_header() if header is None else header
    texts = frozenset((chosen[0], newest(chosen)) if ptx is None else ptx)
    with ThreadPoolExecutor(workers or len(sched_getaffinity(0))) as pool:
        jobs = [
            {arch: pool.submit(_code, source, arch, text, nvrtc, cache) for arch in chosen}
            for source in sources
        ]
        try:
            made = [{arch: job.result() for arch, job in of.items()} for of in jobs]
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return [_images(*of, texts) for of in zip(sources, made, strict=True)]


def _images(source: CudaSource, made: Mapping[str, _Code], texts: frozenset[str]) -> CudaImages:
    """Everything about one kernel, from its code for each architecture."""
    images = [Image(arch, "cubin", code.cubin) for arch, code in made.items()]
    images += [Image(a, "ptx", code.ptx.encode()) for a, code in made.items() if a in texts]
    needs: dict[str, dict[str, Resources]] = {}
    found: list[LaunchWarning] = []
    for launch in source.launches:
        needs[launch.symbol] = {arch: code.needs(launch.symbol) for arch, code in made.items()}
        for arch in made:
            found += warnings(launch, arch, needs[launch.symbol][arch])
    return CudaImages(tuple(images), needs, tuple(found))


def flags(source: CudaSource, arch: str) -> tuple[str, ...]:
    """What NVRTC is told about a source."""
    contract = () if source.contract else ("--fmad=false",)
    return (f"--gpu-architecture={arch}", *FLAGS, *contract)


@dataclass(frozen=True, slots=True)
class _Code:
    """One architecture's code, and what was read from it.

    Attributes:
        ptx: With the version that it needs.
        resources: Of each kernel function.
    """

    cubin: bytes
    ptx: str
    resources: dict[str, Resources]

    @classmethod
    def of(cls, made: Compilation) -> _Code:
        ptx = Ptx.parse(made.ptx)
        return cls(made.cubin, lowered(ptx), resources(read_cubin(made.cubin), ptx, made.log))

    def reading(self) -> bytes:
        """All but the cubin, as JSON."""
        needs = {symbol: asdict(needs) for symbol, needs in self.resources.items()}
        return json.dumps({"ptx": self.ptx, "resources": needs}).encode()

    @classmethod
    def read_before(cls, cubin: bytes, reading: bytes) -> _Code:
        record = json.loads(reading)
        needs = {symbol: Resources(**of) for symbol, of in record["resources"].items()}
        return cls(cubin, record["ptx"], needs)

    def needs(self, symbol: str) -> Resources:
        if symbol not in self.resources:
            raise ToolchainError(f"there is no kernel function {symbol}")
        return self.resources[symbol]


def _code(
    source: CudaSource, arch: str, header: str, nvrtc: Nvrtc, cache: ObjectCache | None
) -> _Code:
    """One architecture's code, compiled and read, or from the cache."""
    name, options = f"{source.name}.cu", flags(source, arch)

    def compiled() -> Compilation:
        return nvrtc.compile(name, source.text, [(NAME, header)], options)

    if cache is None:
        return _Code.of(compiled())
    key = key_of(source.text, header, options, nvrtc, name)
    reading_key = key_of(key, tool_digest())  # what is read depends on tcfuse too
    cubin, reading = cache.get(key_of(key, "cubin")), cache.get(reading_key)
    if cubin is not None and reading is not None:
        return _Code.read_before(cubin, reading)
    code = _Code.of(_compilation(key, cache, compiled))
    cache.put(reading_key, code.reading())
    return code


def _compilation(
    key: str, cache: ObjectCache, compiled: Callable[[], Compilation]
) -> Compilation:
    """What NVRTC made, or makes now."""
    keys = [key_of(key, part) for part in ("cubin", "ptx", "log")]
    cubin, ptx, log = (cache.get(key) for key in keys)
    if cubin is not None and ptx is not None and log is not None:
        return Compilation(cubin, ptx.decode(), log.decode())
    made = compiled()
    for key, data in zip(keys, (made.cubin, made.ptx.encode(), made.log.encode()), strict=True):
        cache.put(key, data)
    return made
