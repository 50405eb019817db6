"""A device and how kernels are compiled for it: a GPU with NVRTC, or the CPU's stand-ins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tcfuse import gpu
from tcfuse.cuda_options import CudaOptions
from tcfuse.debug import cache_dir
from tcfuse.gpu.images import Image
from tcfuse.interface import Interface
from tcfuse.mapping_options import MappingOptions
from tcfuse.store import key_of, write_atomically
from tcfuse.targets.base import CudaSource
from tcfuse.tc.checked import CheckedDef

Compiler = Callable[[CudaSource], Sequence[Image]]


@dataclass(frozen=True)
class Emulated:
    """An emulator's library, as the fake libcuda takes it."""

    data: bytes
    arch: str = "sm_90"
    kind: str = "cubin"


@dataclass(frozen=True)
class Settings:
    """What the command line says about the device; a worker process gets it as it is.

    Attributes:
        backend: ``driver`` or ``pycuda``.
        ordinal: Which GPU, counted as CUDA counts.
        dry_run: Use the emulator and a libcuda without a GPU; sizes are small.
        shared: Folder with ``bench/`` and ``models/``.
        models: Folder with ``NAME.onnx``.
        megabytes: What a bench moves at least, so that it does not stay in the L2 cache.
        rounds: Turns of the contenders.
    """

    backend: str = "driver"
    ordinal: int = 0
    dry_run: bool = False
    shared: Path = Path("../shared")
    models: Path = Path()
    megabytes: int = 512
    rounds: int = 15


@dataclass
class Workbench:
    """What every item gets."""

    settings: Settings
    device: gpu.Device
    images: Compiler
    loaded: list[gpu.LoadedKernel] = field(default_factory=list)

    @classmethod
    def open(cls, settings: Settings) -> Workbench:
        """The device that the command line asks for.

        Raises:
            DeviceError: There is none.
        """
        if settings.dry_run:
            return cls(settings, stand_in(), emulated)
        device = gpu.device(settings.ordinal, settings.backend)
        return cls(settings, device, lambda source: compiled(source, device.facts.arch))

    def load(self, source: CudaSource) -> gpu.LoadedKernel:
        """A kernel, compiled and on the device."""
        return gpu.LoadedKernel(self.device, source, self.images(source))


def cuda_source(checked: CheckedDef, interface: Interface, name: str) -> CudaSource:
    """The kernel of a definition, as CUDA C, with default options.

    Raises:
        UnsupportedError: The target cannot do this.
    """
    from tcfuse.targets.cuda import compile_kernel

    options = MappingOptions()
    return compile_kernel(checked, interface, name, options, CudaOptions()).source


def compiled(source: CudaSource, arch: str) -> Sequence[Image]:
    """Machine code by NVRTC; PTX where the device is newer than that."""
    from tcfuse.targets.cuda_archs import arch_name
    from tcfuse.targets.nvrtc import compile_cuda
    from tcfuse.targets.nvrtc_library import find_nvrtc
    from tcfuse.targets.object_cache import ObjectCache

    cache = ObjectCache(cache_dir() / "objects")
    known = arch in map(arch_name, find_nvrtc().archs)
    return compile_cuda(source, [arch] if known else (), cache=cache).images


def emulated(source: CudaSource) -> Sequence[Image]:
    """A library that runs on the CPU."""
    from tcfuse.emulator.build import Build, library
    from tests import fake_libcuda

    symbols = [launch.symbol for launch in source.launches]
    build = Build.of(source.text, symbols, traced=False, contract=source.contract)
    data = library(build)
    path = cache_dir() / "emulated" / f"{key_of(data)}.so"
    write_atomically(path, data)
    ports = (*source.interface.inputs, *source.interface.outputs)
    n_parameters = len(ports) + 2 + len(source.interface.sizes)
    return [Emulated(fake_libcuda.emulated_image(path, n_parameters))]


def stand_in() -> gpu.Device:
    """A device without a GPU."""
    from tests import fake_libcuda

    return gpu.device(library=fake_libcuda.build(cache_dir()))
