"""Kernels under NVIDIA's compute-sanitizer, where it is installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from scripts.gpu.outcome import Outcome
from scripts.gpu.workbench import Workbench

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
KERNELS = (
    *("papers/softmax-0", "papers/layer_norm-0", "papers/tmm-0", "papers/group_norm-0"),
    *("papers/moments-0", "papers/lut1-0", "cases/test_softmax_axis_0", "cases/test_relu"),
)
FOUND = 86
LIMIT_S = 300
ROOT = Path(__file__).resolve().parents[2]


def find() -> str | None:
    """The program, on the path or in the usual place of the toolkit."""
    usual = "/usr/local/cuda/bin/compute-sanitizer"
    return shutil.which("compute-sanitizer") or (usual if Path(usual).exists() else None)


def run_tool(tool: str, bench: Workbench) -> Outcome:
    """Some kernels under one tool, in a process of their own."""
    program = find()
    if program is None:
        return {"status": "absent", "why": "compute-sanitizer is not installed"}
    names = _available()
    settings = bench.settings
    worker = [sys.executable, "-m", "scripts.gpu.worker", "--backend", settings.backend]
    worker += ["--device", str(settings.ordinal)]
    done = subprocess.run(
        [program, "--tool", tool, "--error-exitcode", str(FOUND), *worker, *names],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=LIMIT_S,
    )
    if done.returncode == 0:
        return {"status": "ok", "kernels": len(names)}
    lines = [line for line in done.stdout.splitlines() if line.startswith("=========")]
    return {"status": "wrong", "why": "\n".join(lines[:12]) or done.stderr[-500:]}


def _available() -> list[str]:
    from scripts.gpu.items import item_names

    there = {*item_names("cases"), *item_names("papers")}
    return [name for name in KERNELS if name in there]
