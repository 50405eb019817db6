"""``OUT.tcfuse.json``: what was done to a model, region by region, and how it was measured."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tcfuse.errors import InputError

FORMAT = 1
PACKAGES = (
    *("tcfuse", "onnx", "onnx-ir", "onnxruntime", "islpy", "numpy", "ziglang"),
    "nvidia-cuda-nvrtc",
)


@dataclass(frozen=True, slots=True)
class RegionReport:
    """One region of the model.

    Attributes:
        name: The kernel; empty when there is none.
        nodes: The original operators, as ``OpType`` or ``OpType name``.
        kept: Whether the kernel is in the model.
        reason: Why not; empty when it is.
        tc: Its Tensor Comprehension.
        proof: What was proved about it.
        interface: Its signature (``ort.record``).
        targets: Machines that it runs on.
        left_out: Why it does not run on another one that was asked for.
        cuda: Its code for GPUs: ``images``, what each of its ``launches`` takes
            (``targets.launch_report``), ``warnings``.
        measured: Errors against float64 and times, by name.
        predicted: The times that were expected before anything was compiled.
        tuned: For each target whose kernel wisdom is behind: the ``knobs`` that are not the
            defaults, and their ``origin``.
    """

    name: str
    nodes: tuple[str, ...]
    kept: bool
    reason: str = ""
    tc: str = ""
    proof: str = ""
    interface: dict[str, Any] | None = None
    targets: tuple[str, ...] = ()
    left_out: dict[str, str] = field(default_factory=dict)
    cuda: dict[str, Any] | None = None
    measured: dict[str, float] = field(default_factory=dict)
    predicted: dict[str, float] = field(default_factory=dict)
    tuned: dict[str, dict[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Report:
    """What happened to one model.

    Attributes:
        source: File the model came from; empty when it came from memory.
        options: Every option, by name.
        regions: Regions that were tried, in the model's order.
        rejections: Each node left alone, with its reason.
        speedup: Whole model, original time over new time; ``None`` when not measured.
        spread: Interquartile range of that ratio, relative.
        notes: What else a user should know.
        versions: Of tcfuse and what it used.
        sha256: Of each written file, by role.
        block: Channels in a block of the layout that the model is in, which then runs only
            where ONNX Runtime has the same, and in a version that has the same operators as
            the one in ``versions``; 0 for the portable form.
    """

    source: str
    options: dict[str, Any]
    regions: tuple[RegionReport, ...] = ()
    rejections: tuple[tuple[str, str], ...] = ()
    speedup: float | None = None
    spread: float | None = None
    notes: tuple[str, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)
    sha256: dict[str, str] = field(default_factory=dict)
    block: int = 0

    @property
    def kept(self) -> tuple[RegionReport, ...]:
        """Regions that became kernels."""
        return tuple(region for region in self.regions if region.kept)

    def to_json(self) -> str:
        """The manifest's text."""
        return (
            json.dumps({"format": FORMAT, **asdict(self)}, indent=1, ensure_ascii=False) + "\n"
        )

    @classmethod
    def from_json(cls, text: str) -> Report:
        """The report a manifest holds.

        Raises:
            InputError: It is damaged or of another format.
        """
        try:
            record = json.loads(text)
            if record.pop("format") != FORMAT:
                raise InputError("the manifest has another format; optimize the model again")
            regions = tuple(_region(region) for region in record.pop("regions"))
            rejections = tuple((node, reason) for node, reason in record.pop("rejections"))
            notes = tuple(record.pop("notes"))
            return cls(regions=regions, rejections=rejections, notes=notes, **record)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"the manifest cannot be read: {error}") from None


def _region(record: dict[str, Any]) -> RegionReport:
    """One region; JSON has lists for tuples."""
    nodes, targets = tuple(record["nodes"]), tuple(record["targets"])
    return RegionReport(**{**record, "nodes": nodes, "targets": targets})


def manifest_path(model: Path) -> Path:
    """Where the manifest of a model lies: ``OUT.tcfuse.json`` beside ``OUT.onnx``."""
    return model.with_name(
        model.name.removesuffix(".onnx").removesuffix(".tcfuse") + ".tcfuse.json"
    )


def portable_path(model: Path) -> Path:
    """Where the portable form of a model in a blocked layout lies: ``OUT.portable.onnx``."""
    return model.with_name(f"{model.stem}.portable.onnx")


def library_path(model: Path) -> Path:
    """Where the library of a model lies: ``OUT.so`` beside ``OUT.onnx``."""
    return model.with_suffix(".so")


def read_manifest(model: Path) -> Report:
    """The manifest of an optimized model.

    Raises:
        InputError: There is none, or it is damaged.
    """
    path = manifest_path(model)
    if not model.is_file():
        raise InputError(f"{model}: no such file")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InputError(
            f"{model}: no manifest {path.name} beside it; make one with "
            f"'tcfuse optimize MODEL -o {model.name}'"
        ) from None
    return Report.from_json(text)


def versions() -> dict[str, str]:
    """Versions of tcfuse, Python and every package it uses."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def sha256(paths: Sequence[tuple[str, Path]]) -> dict[str, str]:
    """Digest of each file that exists, by role."""
    found: dict[str, str] = {}
    for role, path in paths:
        if path.is_file():
            with path.open("rb") as file:
                found[role] = hashlib.file_digest(file, "sha256").hexdigest()
    return found
