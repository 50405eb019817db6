"""``tcfuse explain``: what each region is, and why each other node was left alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tcfuse.commands.optimize import describe
from tcfuse.commands.progress import print_lines, progress
from tcfuse.pipeline import explain

TIMES = ("before_us", "after_us", "speedup")


def run(model: Path, numerics: str, planning: Mapping[str, object]) -> int:
    """Print one line for each region and each node outside of one; the exit status."""
    with progress() as show:
        report = explain(model, progress=show, numerics=numerics, **planning)
    for number, region in enumerate(report.regions, 1):
        what = f"kernel {region.name}" if region.name else f"left alone: {region.reason}"
        print_lines([f"region {number}: {describe(region.nodes, most=40)}: {what}"])
        if region.predicted:
            before, after, speedup = (region.predicted[k] for k in TIMES)
            print_lines([f"  predicted: {before:.1f} us, {after:.1f} us fused, {speedup:.2f}"])
        print_lines(f"  {node}" for node in region.nodes)
    print_lines(f"{node}: {reason}" for node, reason in report.rejections)
    print_lines(f"note: {note}" for note in report.notes)
    n_fused = sum(len(region.nodes) for region in report.regions if region.name)
    n_nodes = sum(len(region.nodes) for region in report.regions) + len(report.rejections)
    n_kernels = len({region.name for region in report.regions if region.name})
    print_lines([f"{n_fused} of {n_nodes} nodes in regions, {n_kernels} different kernels"])
    return 0
