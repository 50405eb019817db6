"""Whole models: as ONNX Runtime's CUDA provider runs them, before and after ``optimize``."""

from __future__ import annotations

import importlib
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from scripts.gpu.contenders import Enqueue, OnnxRuntime, measure, run_once
from scripts.gpu.outcome import Outcome
from scripts.gpu.workbench import Settings, Workbench
from tcfuse.debug import cache_dir
from tcfuse.store import key_of

ROOT = Path(__file__).resolve().parents[2]
OPTIMIZE = ("-m", "tcfuse", "optimize", "--target", "cuda")
OURS = "tcfuse in ONNX Runtime"
TOLERANCE = 1e-3  # of the largest value, against ONNX Runtime on the CPU
LIMIT_S = 400


class OptimizeError(Exception):
    """``tcfuse optimize`` failed; the message is its last line."""


def names(settings: Settings) -> list[str]:
    """The models in the folder that was named."""
    folder = settings.models
    return sorted(path.stem for path in folder.glob("*.onnx")) if folder != Path() else []


def optimized(name: str, model: onnx.ModelProto | Path, *flags: str) -> tuple[Path, Path]:
    """A model and its library as ``tcfuse optimize --target cuda`` writes them.

    Raises:
        OptimizeError: It fails, or fuses nothing.
    """
    if isinstance(model, Path):
        path = model
    else:
        path = Path(tempfile.mkdtemp(prefix="tcfuse-gpu-")) / f"{name}.onnx"
        onnx.save(model, str(path))
        flags = ("--no-gate", *flags)
    out = cache_dir() / "gpu-check" / key_of(path.read_bytes(), flags)[:16] / f"{name}.onnx"
    out.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, *OPTIMIZE, *flags, str(path), "-o", str(out)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=LIMIT_S
    )
    library = out.with_suffix(".so")
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
        raise OptimizeError(f"{' '.join(command[1:])}: {lines[-1]}")
    if not library.exists():
        raise OptimizeError("nothing was fused")
    return out, library


def run(name: str, bench: Workbench) -> Outcome:
    """One model: stock and optimized agree with the CPU, then both are timed in turn."""
    settings = bench.settings
    path = settings.models / f"{name}.onnx"
    runtime = OnnxRuntime(bench.device, settings.ordinal)
    inputs = _feeds(settings.shared, path)
    on_cpu = runtime.ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    expected = run_once(on_cpu, inputs)
    model, library = optimized(name, path)
    found: Outcome = {"status": "ok", "notes": {}, "errors": {}}
    launched: dict[str, Enqueue] = {}
    graphs: dict[str, Enqueue] = {}
    for label, file, registered in (
        ("ONNX Runtime", path, None),
        (OURS, model, str(library)),
    ):
        session = runtime.session(str(file), registered)
        launched[label], binding = runtime.bound(session, inputs, expected)
        launched[label]()
        bench.device.synchronize()
        found["errors"][label] = _error(binding.copy_outputs_to_cpu(), expected)
        try:
            graphs[label] = runtime.graph(str(file), registered, inputs, expected)
        except Exception as error:  # as when a node runs on the CPU
            text = " ".join(str(error).split())[:160]
            found["notes"][label] = f"no CUDA graph: {text}"
    if not found["errors"][OURS] <= TOLERANCE:
        why = f"error {found['errors'][OURS]:.2g} against the CPU"
        return found | {"status": "wrong", "why": why}
    times = measure(bench, launched, graphs if len(graphs) == 2 else {})
    found["seconds"] = {
        label: {mode: list(t.rounds) for mode, t in modes.items()}
        for label, modes in times.items()
    }
    return found


def _feeds(shared: Path, path: Path) -> dict[str, np.ndarray]:
    folder = str(shared.resolve() / "models")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    made: dict[str, np.ndarray] = importlib.import_module("feeds").feeds(path)
    return made


def _error(found: list[Any], expected: list[Any]) -> float:
    """The largest difference, relative to the largest value of its output."""
    worst = 0.0
    for ours, theirs in zip(found, expected, strict=True):
        a, b = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
        if a.size:
            scale = float(np.abs(b).max(where=np.isfinite(b), initial=0.0)) or 1.0
            apart = np.where(a == b, 0.0, np.abs(a - b))  # infinities may be equal
            worst = float(np.maximum(worst, apart.max() / scale))
    return worst
