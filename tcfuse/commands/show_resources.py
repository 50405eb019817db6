"""``tcfuse show --stage resources``: what every launch of kernels for GPUs takes of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tcfuse.commands.artifact import Artifact
from tcfuse.commands.progress import print_lines, print_table
from tcfuse.commands.tc_file import chosen, definitions_of
from tcfuse.cuda_options import CudaOptions
from tcfuse.debug import cache_dir
from tcfuse.errors import InputError, OptionError
from tcfuse.layers.compiling import compile_cuda_definition
from tcfuse.mapping_options import MappingOptions
from tcfuse.targets.launch_report import HEADER, Record, launch_records, resources_table
from tcfuse.targets.nvrtc import compile_cuda
from tcfuse.targets.object_cache import ObjectCache


@dataclass(frozen=True, slots=True)
class _Kernel:
    """A kernel's launches, and the sentences about what costs time in them."""

    name: str
    records: list[Record]
    warnings: list[str]


def resources(path: Path, name: str | None, target: str | None) -> int:
    """Print a table of launches, then the warnings; the exit status.

    Args:
        path: An optimized model, or a file of definitions, which are compiled for the common
            architectures.
        name: The only kernel to show.
        target: ``cuda``, or ``None``, which is the same here.

    Raises:
        OptionError: Another target is wanted.
        InputError: No kernel is for GPUs.
        ToolchainError: There is no compiler for the definitions of a file.
    """
    if target not in (None, "cuda"):
        raise OptionError("--stage resources is about kernels for GPUs, --target cuda")
    found = list(_of_definitions(path, name) if path.suffix == ".tc" else _of_model(path, name))
    print_table(HEADER, resources_table((kernel.name, kernel.records) for kernel in found))
    print_lines(f"warning: {text}" for kernel in found for text in kernel.warnings)
    return 0


def _of_model(path: Path, name: str | None) -> Iterator[_Kernel]:
    """Those of an optimized model, as its manifest has them."""
    artifact = Artifact.read(path)
    regions = artifact.report.kept if name is None else [artifact.region(name)]
    about = {region.name: region.cuda for region in regions if region.cuda is not None}
    if not about:
        raise InputError(f"{path}: no kernel for GPUs; optimize the model with --target cuda")
    for kernel, cuda in about.items():
        yield _Kernel(kernel, cuda["launches"], cuda["warnings"])


def _of_definitions(path: Path, name: str | None) -> Iterator[_Kernel]:
    """Those of a file, compiled now."""
    options = MappingOptions()
    definitions = definitions_of(path, {}, options)
    cache = ObjectCache(cache_dir() / "objects")
    for checked in definitions if name is None else [chosen(definitions, name)]:
        source = compile_cuda_definition(checked, options, CudaOptions()).source
        made = compile_cuda(source, cache=cache)
        records = launch_records(source, made.resources)
        yield _Kernel(source.name, records, [str(warning) for warning in made.warnings])
