"""What a machine has for the check, and what it lacks."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import subprocess
from pathlib import Path
from typing import Any

from scripts.gpu.sanitizer import find

ROOT = Path(__file__).resolve().parents[2]
WANTED = {
    "nvidia-cuda-nvrtc": "compiles the kernels: pip install 'tcfuse[cuda]'",
    "torch": "eager, torch.compile, cuBLAS and cuDNN to compare with: pip install torch",
    "onnxruntime-gpu": "the CUDA provider to compare with: pip install 'tcfuse[gpu]'",
    "pycuda": "another way to the GPU (--backend pycuda): pip install 'tcfuse[pycuda]'",
}
SANITIZER = "compute-sanitizer"


def versions() -> dict[str, str | None]:
    """Version of everything that takes part; ``None`` for what is missing."""
    names = (*WANTED, "numpy", "onnx")
    found: dict[str, str | None] = {name: _version(name) for name in names}
    found[SANITIZER] = find()
    return found


def missing(found: dict[str, str | None]) -> list[str]:
    """A line for each thing that is missing, with what it would be for."""
    lines = [f"{n}: {what}" for n, what in WANTED.items() if found[n] is None]
    if found[SANITIZER] is None:
        lines.append(
            f"{SANITIZER}: races and bounds on the GPU; it comes with the CUDA toolkit"
        )
    return lines


def commit() -> str:
    """What is checked: the commit, and whether the files differ from it."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return "unknown"
    return done.stdout.strip() or "unknown"


def describe(facts: dict[str, Any]) -> str:
    """One line about a device."""
    gigabytes = facts["memory_bytes"] / (1 << 30)
    return (
        f"{facts['name']}, {facts['arch']}, {facts['multiprocessors']} multiprocessors, "
        f"{gigabytes:.0f} GiB, L2 {facts['l2_bytes'] / (1 << 20):.0f} MiB, "
        f"driver for CUDA {facts['driver']}"
    )


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
