"""From compiled regions to the library that holds all their kernels, kept in the cache."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from tcfuse.ahead import contract_of
from tcfuse.attempt import Attempt
from tcfuse.debug import current
from tcfuse.errors import ToolchainError
from tcfuse.kernels import CompiledKernel, Kernels
from tcfuse.options import OptimizeOptions
from tcfuse.ort.library import build_library
from tcfuse.ort.operators import CudaKernel, Operator
from tcfuse.store import Store, key_of, tool_digest
from tcfuse.targets.base import CudaSource
from tcfuse.targets.compilers import find_compiler
from tcfuse.targets.launch_report import launch_records
from tcfuse.targets.nvrtc import CudaImages, compile_all, compile_cuda
from tcfuse.targets.nvrtc_library import find_nvrtc
from tcfuse.targets.object_cache import ObjectCache

log = logging.getLogger(__name__)


def shared_library(
    attempts: Sequence[Attempt],
    options: OptimizeOptions,
    store: Store,
    standby: Collection[str] = (),
    *,
    block: int = 0,
) -> Path:
    """The library of those regions' kernels; ``strict`` contracts nothing.

    Args:
        attempts: Regions with kernels.
        options: Of the run.
        store: The cache.
        standby: Operators whose kernel for the CPU serves only where there is a GPU.
        block: Channels in a block of the layout they work on; 0 for plain tensors.
    """
    contract = contract_of(options)
    unique = {a.name: a.compiled.kernels for a in attempts if a.compiled is not None}
    on_gpus = any(kernels.cuda is not None for kernels in unique.values())
    gpus = [options.cuda_arch, str(find_nvrtc())] if on_gpus else []
    waiting = sorted(unique.keys() & set(standby))
    keys = sorted(kernels.key for kernels in unique.values())
    key = key_of(keys, waiting, contract, current().cxx, gpus, block, tool_digest())
    path = store.root / "libraries" / key[:2] / f"{key}.so"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        _compile_for_gpus(unique.values(), options, store)
        made = [_operator(k, options, store, k.name in standby) for k in unique.values()]
        build_library(made, path, contract=contract, block=block)
    return path


def build_all(
    attempts: Sequence[Attempt], options: OptimizeOptions, store: Store, *, block: int = 0
) -> tuple[Path | None, dict[str, str]]:
    """One library of all kernels, or of those that compile; the reason for each other.

    Raises:
        ToolchainError: There is no compiler.
    """
    if not attempts:
        return None, {}
    try:
        return shared_library(attempts, options, store, block=block), {}
    except ToolchainError:
        find_compiler(current().cxx)  # without one no kernel is to blame
    broken: dict[str, str] = {}
    for name, alone in {attempt.name: attempt for attempt in attempts}.items():
        try:
            shared_library([alone], options, store)
        except ToolchainError as error:
            log.warning("%s does not compile: %s", name, error.output or error)
            broken[name] = f"does not compile: {' '.join(str(error).split())[:300]}"
    working = [attempt for attempt in attempts if attempt.name not in broken]
    library = shared_library(working, options, store, block=block) if working else None
    return library, broken


def code_for_gpus(
    attempts: Sequence[Attempt], options: OptimizeOptions, store: Store
) -> dict[str, dict[str, Any]]:
    """What the report says about each operator's code for GPUs, by the operator's name.

    Units:
        bytes: Of each image, and in what each launch takes (``targets.launch_report``).
    """
    found: dict[str, dict[str, Any]] = {}
    for attempt in attempts:
        kernel = attempt.compiled.kernels.cuda if attempt.compiled is not None else None
        if kernel is None or attempt.name in found:
            continue
        made = _images(kernel, options, store)
        found[attempt.name] = {
            "images": [
                {"arch": image.arch, "kind": image.kind, "bytes": len(image.data)}
                for image in made.images
            ],
            "launches": launch_records(kernel.source, made.resources),
            "warnings": [str(warning) for warning in made.warnings],
        }
    return found


def _operator(
    kernels: Kernels, options: OptimizeOptions, store: Store, standby: bool
) -> Operator:
    cuda = None
    if kernels.cuda is not None:
        images = _images(kernels.cuda, options, store).images
        cuda = CudaKernel(kernels.cuda.source, images)
    return Operator(None if kernels.cpu is None else kernels.cpu.source, cuda, standby)


def _compile_for_gpus(given: Iterable[Kernels], options: OptimizeOptions, store: Store) -> None:
    """Have the code of all kernels in the cache: together they keep every core busy."""
    if sources := [kernels.cuda.source for kernels in given if kernels.cuda is not None]:
        compile_all(sources, _archs(options), cache=_cache(store))


def _images(
    kernel: CompiledKernel[CudaSource], options: OptimizeOptions, store: Store
) -> CudaImages:
    """The kernel's code for every architecture, from the cache if it was compiled before."""
    return compile_cuda(kernel.source, _archs(options), cache=_cache(store))


def _archs(options: OptimizeOptions) -> tuple[str, ...]:
    return tuple(filter(None, options.cuda_arch.split(",")))


def _cache(store: Store) -> ObjectCache:
    return ObjectCache(store.root / "objects")
