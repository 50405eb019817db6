"""Kernels under NVIDIA's compute-sanitizer, where it is installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from scripts.gpu.outcome import Outcome
from scripts.gpu.workbench import Settings, Workbench

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
PAPERS = ("softmax_a", "layer_norm", "tmm", "group_norm", "row_moments", "lut1")
CASES = ("test_softmax_axis_0", "test_transpose_all_permutations_3")
FOUND = 86
LIMIT_S = 300
ROOT = Path(__file__).resolve().parents[2]


def find() -> str | None:
    """The program, on the path or in the usual place of the toolkit."""
    usual = "/usr/local/cuda/bin/compute-sanitizer"
    return shutil.which("compute-sanitizer") or (usual if Path(usual).exists() else None)


def names(settings: Settings) -> list[str]:
    """The tools."""
    del settings
    return list(TOOLS)


def run(tool: str, bench: Workbench) -> Outcome:
    """Some kernels under one tool, in a process of their own."""
    program = find()
    if program is None:
        return {"status": "absent", "why": "compute-sanitizer is not installed"}
    from scripts.gpu.worker import as_arguments

    items = kernels()
    worker = [sys.executable, "-m", "scripts.gpu.worker", *as_arguments(bench.settings), *items]
    done = subprocess.run(
        [program, "--tool", tool, "--error-exitcode", str(FOUND), *worker],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=LIMIT_S,
    )
    if done.returncode == 0:
        return {"status": "ok", "kernels": len(items)}
    lines = [line for line in done.stdout.splitlines() if line.startswith("=========")]
    return {"status": "wrong", "why": "\n".join(lines[:12]) or done.stderr[-500:]}


def kernels() -> list[str]:
    """The items that run under it: few, because it makes them many times slower."""
    from scripts.gpu.papers import all_papers

    firsts = {paper: name for name, (paper, _) in reversed(all_papers().items())}
    return [f"papers/{firsts[name]}" for name in PAPERS] + [f"cases/{name}" for name in CASES]
