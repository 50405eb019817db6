"""``tcfuse verify``: run every kernel of an optimized model against the original operators."""

from __future__ import annotations

from pathlib import Path

import onnx_ir as ir

from tcfuse.commands.artifact import Artifact
from tcfuse.commands.progress import print_lines, print_table, progress
from tcfuse.errors import VerificationError
from tcfuse.ort.subgraph import one_of_each
from tcfuse.ort.verify import Subject, Verification, verify_kernel

__all__ = ["run"]


def run(path: Path, quiet: bool) -> int:
    """Print one line for each kernel; the exit status.

    Raises:
        VerificationError: A kernel is wrong.
    """
    artifact = Artifact.read(path)
    found: dict[str, Verification] = {}
    skipped = 0
    with progress(quiet) as show:
        nodes: dict[str, ir.Node] = one_of_each(artifact.model)
        for count, (name, node) in enumerate(nodes.items(), 1):
            show(f"verifying kernel {count} of {len(nodes)}")
            region = artifact.region(name)
            if "cpu" not in region.targets:
                skipped += 1
                continue
            checked, interface = artifact.checked(region), artifact.interface(region)
            subject = Subject(artifact.model, node, artifact.library, checked, interface)
            found[name] = verify_kernel(subject)
    wrong = {name: v.problem for name, v in found.items() if v.problem}
    if not quiet and found:
        header = ("kernel", "runs", "error", "original", "verdict")
        print_table(header, (_row(name, v) for name, v in found.items()))
    if wrong:
        name, problem = next(iter(wrong.items()))
        raise VerificationError(f"{path}: {len(wrong)} kernels are wrong; {name}: {problem}")
    if not quiet:
        print_lines([f"{path}: {len(found)} kernels verified"])
        if skipped:
            print_lines([f"{path}: {skipped} kernels for GPUs were not run"])
    return 0


def _row(name: str, v: Verification) -> tuple[str, ...]:
    verdict = v.problem or "ok"
    return (name, str(v.runs), f"{v.error:.1e}", f"{v.original_error:.1e}", verdict)
