"""``tcfuse verify --emulate``: run every kernel's CUDA on the CPU, every access checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tcfuse.commands.artifact import Artifact
from tcfuse.commands.progress import print_lines, print_table, progress
from tcfuse.debug import cache_dir, current
from tcfuse.emulator import SITE_HEADER, Emulated, Run, Site, site_rows
from tcfuse.errors import UnsupportedError, VerificationError
from tcfuse.kernels import compile_cuda_cached
from tcfuse.ort.emulated import verify_emulated
from tcfuse.ort.manifest import RegionReport
from tcfuse.ort.subgraph import one_of_each
from tcfuse.ort.verify import Subject, Verification
from tcfuse.store import Store
from tcfuse.targets.base import CudaSource
from tcfuse.targets.toolchain import Toolchain

HEADER = ("kernel", "runs", "error", "original", "moved", "global", "shared", "verdict")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one kernel.

    Attributes:
        verification: As of a kernel in its library.
        emulated: The checked run that moves most bytes; ``None`` when nothing ran.
        without: Why there is no kernel for GPUs.
    """

    verification: Verification
    emulated: Emulated | None = None
    without: str = ""


def run(path: Path, *, counters: bool, quiet: bool) -> int:
    """Print one line for each kernel; the exit status.

    Args:
        path: The optimized model.
        counters: Print what every access of every launch costs, too.
        quiet: Print nothing but errors.

    Raises:
        VerificationError: A kernel is wrong.
    """
    artifact = Artifact.read(path)
    found: dict[str, Outcome] = {}
    with progress(quiet) as show:
        nodes = one_of_each(artifact.model)
        for count, (name, node) in enumerate(nodes.items(), 1):
            show(f"emulating kernel {count} of {len(nodes)}")
            region = artifact.region(name)
            checked, interface = artifact.checked(region), artifact.interface(region)
            subject = Subject(artifact.model, node, None, checked, interface)
            found[name] = _verified(artifact, region, subject)
    if not quiet and found:
        _print(found, counters)
    wrong = {name: o.verification.problem for name, o in found.items()}
    wrong = {name: problem for name, problem in wrong.items() if problem}
    if wrong:
        name, problem = next(iter(wrong.items()))
        raise VerificationError(f"{path}: {len(wrong)} kernels are wrong; {name}: {problem}")
    if not quiet:
        left = sum(bool(o.without) for o in found.values())
        without = f", {left} have no kernel for GPUs" if left else ""
        print_lines([f"{path}: {len(found) - left} kernels verified in the emulator{without}"])
    return 0


def _verified(artifact: Artifact, region: RegionReport, subject: Subject) -> Outcome:
    try:
        source = _source(artifact, region)
    except UnsupportedError as reason:
        return Outcome(Verification("", 0.0, 0.0, 0), without=str(reason))
    runs: list[Emulated] = []
    found = verify_emulated(
        subject, source, Toolchain.default(cache_dir(), current().cxx), runs.append
    )
    return Outcome(found, max(runs, key=lambda run: run.moved_bytes, default=None))


def _source(artifact: Artifact, region: RegionReport) -> CudaSource:
    """The kernel for GPUs, with the options that the model was optimized with."""
    return compile_cuda_cached(
        artifact.checked(region),
        artifact.interface(region),
        region.name.rpartition("_")[0],
        *artifact.knobs(region, "cuda"),
        Store.default(),
    ).source


def _print(found: dict[str, Outcome], counters: bool) -> None:
    print_table(HEADER, (_row(name, outcome) for name, outcome in found.items()))
    if not counters:
        return
    for outcome in found.values():
        for launch in outcome.emulated.runs if outcome.emulated else ():
            print_lines(["", f"# {launch.symbol}: {launch.blocks} blocks", *_reports(launch)])
            print_table(SITE_HEADER, site_rows(launch.sites))


def _reports(launch: Run) -> list[str]:
    return [str(report) for report in launch.reports]


def _row(name: str, outcome: Outcome) -> tuple[str, ...]:
    v, done = outcome.verification, outcome.emulated
    verdict = outcome.without or v.problem or "ok"
    row = (name, str(v.runs), f"{v.error:.1e}", f"{v.original_error:.1e}")
    if done is None:
        return (*row, "", "", "", verdict)
    sites = [site for launch in done.runs for site in launch.sites]
    moved = done.moved_bytes / max(1, done.compulsory_bytes)
    factors = (_worst_factor(sites, space) for space in ("global", "shared"))
    return (*row, f"{moved:.2f}", *(f"{factor:.2f}" for factor in factors), verdict)


def _worst_factor(sites: Sequence[Site], space: str) -> float:
    """The most transactions over the ideal of any access in ``global`` or ``shared`` memory."""
    return max((site.factor for site in sites if site.space == space), default=1.0)
