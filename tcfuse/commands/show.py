"""``tcfuse show``: one kernel as the text of one stage."""

from __future__ import annotations

from pathlib import Path

from tcfuse.commands.artifact import Artifact
from tcfuse.commands.progress import print_lines
from tcfuse.commands.tc_file import chosen, definitions_of
from tcfuse.errors import OptionError
from tcfuse.kernels import CompiledKernel, compile_cached
from tcfuse.layers.compiling import compile_definition
from tcfuse.options import MappingOptions
from tcfuse.ort.manifest import RegionReport
from tcfuse.store import Store

STAGES = ("tc", "tree", "mapped", "source", "proof")


def run(path: Path, stage: str, kernel: str | None) -> int:
    """Print the text of a stage for one kernel or all; the exit status."""
    if stage not in STAGES:
        raise OptionError(f"no stage {stage!r}; stages are {', '.join(STAGES)}")
    if path.suffix == ".tc":
        return _definitions(path, stage, kernel)
    artifact = Artifact.read(path)
    names = dict.fromkeys(region.name for region in artifact.report.kept)
    for name in [kernel] if kernel is not None else names:
        region = artifact.region(name)
        print_lines([f"# {name}", text(artifact, region, stage).rstrip()])
    return 0


def _definitions(path: Path, stage: str, name: str | None) -> int:
    """The same for the definitions of a file."""
    definitions = definitions_of(path, {}, MappingOptions())
    for checked in definitions if name is None else [chosen(definitions, name)]:
        kernel = compile_definition(checked, MappingOptions())
        print_lines([f"# {kernel.name}", stage_text(kernel, stage).rstrip()])
    return 0


def stage_text(kernel: CompiledKernel, stage: str) -> str:
    """What one stage made of a kernel."""
    texts = {"tc": kernel.source.tc, "tree": kernel.tree, "mapped": kernel.mapped}
    return {**texts, "source": kernel.source.text, "proof": kernel.proof}[stage]


def text(artifact: Artifact, region: RegionReport, stage: str) -> str:
    """One kernel's text; what the manifest does not hold is compiled again."""
    if stage == "tc":
        return region.tc
    if stage == "proof":
        return region.proof
    return stage_text(_compile(artifact, region), stage)


def _compile(artifact: Artifact, region: RegionReport) -> CompiledKernel:
    options = MappingOptions.of(artifact.report.options.get("mapping", {}))
    hint = region.name.rpartition("_")[0]
    return compile_cached(
        artifact.checked(region), artifact.interface(region), hint, options, Store.default()
    )
