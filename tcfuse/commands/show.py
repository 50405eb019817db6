"""``tcfuse show``: one kernel as the text of one stage."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

from tcfuse.commands.artifact import Artifact
from tcfuse.commands.progress import print_lines
from tcfuse.commands.show_resources import resources
from tcfuse.commands.tc_file import chosen, definitions_of
from tcfuse.cuda_options import CudaOptions
from tcfuse.errors import InputError, OptionError
from tcfuse.kernels import CompiledKernel, compile_cached, compile_cuda_cached
from tcfuse.layers.compiling import compile_cuda_definition, compile_definition
from tcfuse.mapping_options import MappingOptions
from tcfuse.options import TARGETS
from tcfuse.ort.manifest import RegionReport
from tcfuse.store import Store
from tcfuse.targets.base import CudaSource, KernelSource

STAGES = ("tc", "tree", "mapped", "source", "proof", "resources")

Compiled: TypeAlias = CompiledKernel[KernelSource] | CompiledKernel[CudaSource]


def run(path: Path, stage: str, kernel: str | None, target: str | None) -> int:
    """Print the text of a stage for one kernel or all; the exit status.

    Args:
        path: An optimized model, or a file of definitions.
        stage: One of ``STAGES``.
        kernel: The only one to show.
        target: Whose; default: the CPU's, where the model has one.
    """
    if stage not in STAGES:
        raise OptionError(f"no stage {stage!r}; stages are {', '.join(STAGES)}")
    if target not in (None, *TARGETS):
        raise OptionError(f"no target {target!r}; targets are {', '.join(TARGETS)}")
    if stage == "resources":
        return resources(path, kernel, target)
    if path.suffix == ".tc":
        return _definitions(path, stage, kernel, target)
    artifact = Artifact.read(path)
    names = dict.fromkeys(region.name for region in artifact.report.kept)
    for name in [kernel] if kernel is not None else names:
        region = artifact.region(name)
        print_lines([f"# {name}", text(artifact, region, stage, target).rstrip()])
    return 0


def _definitions(path: Path, stage: str, name: str | None, target: str | None) -> int:
    """The same for the definitions of a file."""
    options = MappingOptions()
    definitions = definitions_of(path, {}, options)
    for checked in definitions if name is None else [chosen(definitions, name)]:
        kernel: Compiled
        if target == "cuda":
            kernel = compile_cuda_definition(checked, options, CudaOptions())
        else:
            kernel = compile_definition(checked, options)
        print_lines([f"# {kernel.name}", stage_text(kernel, stage).rstrip()])
    return 0


def stage_text(kernel: Compiled, stage: str) -> str:
    """What one stage made of a kernel."""
    texts = {"tc": kernel.source.tc, "tree": kernel.tree, "mapped": kernel.mapped}
    return {**texts, "source": kernel.source.text, "proof": kernel.proof}[stage]


def text(artifact: Artifact, region: RegionReport, stage: str, target: str | None) -> str:
    """One kernel's text; what the manifest does not hold is compiled again."""
    if stage == "tc":
        return region.tc
    if stage == "proof" and target is None:
        return region.proof
    return stage_text(_compile(artifact, region, target), stage)


def _compile(artifact: Artifact, region: RegionReport, target: str | None) -> Compiled:
    """The kernel for a target: the one given, else the first of those that were asked for."""
    given = artifact.report.options
    asked = str(given.get("target", "cpu")).split(",")
    wanted = target or asked[0]
    if wanted not in asked:
        raise InputError(f"{artifact.path}: its kernels are for {', '.join(asked)}")
    if wanted in region.left_out and wanted == "cuda":
        raise InputError(f"{region.name} has no kernel for GPUs: {region.left_out[wanted]}")
    options, knobs = artifact.knobs(region, wanted)
    hint = region.name.rpartition("_")[0]
    checked, interface = artifact.checked(region), artifact.interface(region)
    store = Store.default()
    if wanted == "cuda":
        return compile_cuda_cached(checked, interface, hint, options, knobs, store)
    return compile_cached(checked, interface, hint, options, store)
