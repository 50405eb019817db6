"""What the gate works on, and what it decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from tcfuse.ort.timing import Ratio
from tcfuse.targets.base import Interface

Build: TypeAlias = Callable[[frozenset[str]], ir.Model]
Shapes: TypeAlias = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class GateResult:
    """What was kept and what it brings.

    Attributes:
        kept: Names of the kernels that stay.
        dropped: Reason for each kernel that goes.
        alone: Each kernel's own time against its original's.
        whole: The whole model; ``None`` when it could not be run.
        note: What else a user should know.
    """

    kept: frozenset[str]
    dropped: Mapping[str, str] = field(default_factory=dict)
    alone: Mapping[str, Ratio] = field(default_factory=dict)
    whole: Ratio | None = None
    note: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class First:
    """What the first runs of a model showed.

    Attributes:
        inputs: What the original runs on.
        seen: The values that kernels read, by name.

    Units:
        ``opening`` and ``call_seconds``: seconds to open a session of the original, and to run
        it once.
    """

    inputs: Mapping[str, np.ndarray]
    seen: Mapping[str, np.ndarray]
    opening: float
    call_seconds: float


@dataclass(frozen=True, slots=True)
class Stage:
    """What the gate works on.

    Attributes:
        original: The model before.
        baseline: What runs without us: the file it came from, where there is one.
        build: The model with the kernels of those names.
        library: Holds all kernels.
        kernels: One fused node for each kernel, with its interface.
        fused: The model with all kernels.
        guesses: Input shapes to try in turn.
        seconds: About how long measuring may take.
    """

    original: ir.Model
    baseline: ir.Model | Path
    build: Build
    library: Path
    fused: ir.Model
    kernels: Mapping[str, tuple[ir.Node, Interface]]
    guesses: tuple[Shapes, ...]
    seconds: float = 20.0
