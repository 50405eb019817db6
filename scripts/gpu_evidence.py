"""What can be said of kernels for GPUs without one: values, traffic, conflicts, resources.

``python scripts/gpu_evidence.py [--only NAME] [--shared DIR] [--no-build] [--markdown FILE]``

Every kernel of the papers, at a size that takes a moment, runs in the emulator beside
the float64 evaluator; with ``--shared`` so do memory-bound models of ``DIR/bench``.

* ``sectors``: the worst access of global memory, in sectors over those its addresses need.
* ``shared``: the worst access of shared memory, in wavefronts over the ideal.
* ``moved``: sectors each launch reads or writes, each once, over those of inputs and outputs.
* ``asked``: the same of every request, as if there were no cache.
* ``regs``, ``spills``, ``occupancy``: the worst launch on sm_80 and sm_90, from NVRTC.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts.paper_kernels.case import Step  # noqa: E402
from scripts.paper_kernels.cases import cases  # noqa: E402
from scripts.paper_kernels.kernels import checked_of, operations, shape_of  # noqa: E402
from tcfuse.commands.progress import print_table, progress  # noqa: E402
from tcfuse.cuda_options import CudaOptions  # noqa: E402
from tcfuse.debug import cache_dir  # noqa: E402
from tcfuse.emulator import emulate  # noqa: E402
from tcfuse.emulator.emulate import Emulated  # noqa: E402
from tcfuse.options import MappingOptions  # noqa: E402
from tcfuse.targets.base import CudaSource  # noqa: E402
from tcfuse.targets.cuda import compile_kernel  # noqa: E402
from tcfuse.targets.launch_report import launch_records  # noqa: E402
from tcfuse.targets.nvrtc import compile_cuda  # noqa: E402
from tcfuse.targets.object_cache import ObjectCache  # noqa: E402
from tcfuse.tc.checked import CheckedDef  # noqa: E402
from tcfuse.tc.evaluate import evaluate  # noqa: E402
from tcfuse.tc.kernel_form import kernel_form  # noqa: E402
from tcfuse.tc.sema import check  # noqa: E402

ARCHS = ("sm_80", "sm_90")
MOST_WORK = 20_000_000  # operations that are emulated and evaluated in a moment
SHARED_LIMIT = 99 << 10  # bytes; of the smallest of the usual GPUs
HEADER = (
    "kernel",
    "launches",
    "findings",
    "error",
    "sectors",
    "shared",
    "moved",
    "asked",
    "regs",
    "spills",
    "occupancy",
)


@dataclass(frozen=True)
class Subject:
    """A kernel with inputs, and the definition that says what it should give."""

    name: str
    checked: CheckedDef
    source: CudaSource
    inputs: dict[str, np.ndarray]


@dataclass(frozen=True)
class Evidence:
    """What was seen of a kernel; factors are of the worst access, ``None``: there is none."""

    name: str
    launches: int
    findings: int
    error: float
    sectors: float | None
    shared: float | None
    moved: float
    asked: float
    registers: int | None = None
    spills: int | None = None
    occupancy: float | None = None

    @property
    def row(self) -> tuple[str, ...]:
        """The line of the table."""
        return (
            self.name,
            str(self.launches),
            str(self.findings),
            f"{self.error:.1e}",
            *(_factor(f) for f in (self.sectors, self.shared, self.moved, self.asked)),
            "-" if self.registers is None else str(self.registers),
            "-" if self.spills is None else str(self.spills),
            "-" if self.occupancy is None else f"{self.occupancy:.0%}",
        )


def _factor(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


# ---------------------------------------------------------------------- kernels


def papers(only: str) -> Iterator[Subject]:
    """The kernels of the papers."""
    seen = set()
    for quick in (False, True):  # at the papers' sizes where they are not too large
        for case in cases(quick=quick):
            for step in case.steps:
                if step.definition in seen or only not in step.definition:
                    continue
                if quick or work(step) <= MOST_WORK:
                    seen.add(step.definition)
                    yield paper(step, case.positions)


def work(step: Step) -> int:
    """Operations of a kernel."""
    return sum(operations(s, step.sizes) for s in checked_of(step).statements)


def paper(step: Step, positions: Any) -> Subject:
    """One kernel at the sizes of a step."""
    written = checked_of(step)
    form = kernel_form(written)
    ready = check(form.definition, sizes=form.interface.sizes)
    known = {n: v for n, v in step.sizes.items() if n in form.interface.sizes}
    options = (MappingOptions(), CudaOptions(), known)
    source = compile_kernel(ready, form.interface, step.definition, *options).source
    draw = np.random.default_rng(0)
    inputs = {}
    for name in written.inputs:
        dtype, shape = written.tensors[name].dtype, shape_of(written, name, step)
        if dtype.is_float:
            inputs[name] = draw.standard_normal(shape).astype(dtype.numpy)
        else:
            inputs[name] = draw.integers(0, positions.get(name, 2), shape).astype(dtype.numpy)
    return Subject(step.definition, written, source, inputs)


def micro(only: str, folder: Path) -> Iterator[Subject]:
    """The memory-bound micro models, each of them one kernel."""
    import onnx

    from tcfuse.graph.boundary import group_of
    from tcfuse.graph.load import load_model
    from tcfuse.tc.compose import compose

    sys.dont_write_bytecode = True  # leave that folder as it is
    sys.path.insert(0, str(folder / "bench"))
    models = importlib.import_module("micro_models")
    for name in models.BENCHES:
        made = models.make(name)
        if only not in name or made.kind != "memory":
            continue
        model = load_model(onnx.load_from_string(models.to_onnx(name, made)))
        arrays = {**made.inputs, **made.weights}
        group = group_of(tuple(model.graph), model.opset_imports)
        composed = compose(group, model.opset_imports)
        checked = check(composed.definition, sizes=composed.interface.sizes)
        options = (MappingOptions(), CudaOptions())
        source = compile_kernel(checked, composed.interface, name, *options).source
        inputs = {}
        for port, value in zip(composed.interface.inputs, composed.inputs, strict=True):
            held = value.const_value
            inputs[port.name] = arrays[value.name] if held is None else held.numpy()
        yield Subject(f"micro {name}", checked, source, inputs)


# ---------------------------------------------------------------------- what is seen of them


def evidence(subject: Subject, *, build: bool) -> Evidence:
    """Run a kernel in the emulator, and compile it."""
    ports = subject.source.interface.inputs
    given = [np.asarray(subject.inputs[port.name]) for port in ports]
    made = emulate(subject.source, given, shared_limit=SHARED_LIMIT)
    compulsory = max(made.compulsory_bytes, 1)
    seen = Evidence(
        subject.name,
        len(subject.source.launches),
        len(made.reports) + made.fault,
        error_of(subject, made),
        worst(made, "global"),
        worst(made, "shared"),
        made.moved_bytes / compulsory,
        made.requested_bytes / compulsory,
    )
    if not build:
        return seen
    cache = ObjectCache(cache_dir())
    images = compile_cuda(subject.source, ARCHS, cache=cache)
    records = launch_records(subject.source, images.resources)
    return Evidence(
        **{
            **asdict(seen),
            "registers": max(r["registers"] for r in records),
            "spills": max(r["spill_stores"] + r["spill_loads"] for r in records),
            "occupancy": min(r["share"] for r in records),
        }
    )


def worst(made: Emulated, space: str) -> float | None:
    """The largest factor of an access of that space."""
    sites = [s for run in made.runs for s in run.sites if s.space == space]
    return max((s.factor for s in sites), default=None)


def error_of(subject: Subject, made: Emulated) -> float:
    """The largest difference from float64, relative to the largest element of an output."""
    found = 0.0
    exact = evaluate(subject.checked, {n: viewed(subject, n) for n in subject.inputs})
    for port, got in zip(subject.source.interface.outputs, made.outputs, strict=True):
        want = np.asarray(exact[port.name], np.float64).reshape(got.shape)
        scale = max(float(np.abs(want).max(initial=0)), 1e-30)
        difference = np.abs(got.astype(np.float64) - want).max(initial=0)
        found = max(found, float(difference) / scale)
    return found


def viewed(subject: Subject, name: str) -> np.ndarray:
    """An input in the shape that the definition sees; those of models are views."""
    shape = subject.checked.tensors[name].shape
    known = [size for size in shape if isinstance(size, int)]
    array = subject.inputs[name]
    return array.reshape(known) if len(known) == len(shape) else array


def page(rows: Sequence[Evidence]) -> str:
    """The table as a page of the documentation."""
    legend = __doc__[__doc__.index("Every kernel") :]
    lines = [HEADER, tuple("-" for _ in HEADER), *(row.row for row in rows)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    command = "python scripts/gpu_evidence.py --shared DIR --markdown docs/gpu-evidence.md"
    return (
        f"# Kernels for GPUs, seen without one\n\nMade by `{command}`.\n\n{legend}\n{table}\n"
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; the exit status says whether the emulator found anything."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="kernels whose name contains this text")
    parser.add_argument("--shared", type=Path, help="the folder that has bench/")
    parser.add_argument("--no-build", action="store_true", help="do without NVRTC")
    parser.add_argument("--markdown", type=Path, help="write the table there")
    parser.add_argument("--json", type=Path, help="write the figures there")
    arguments = parser.parse_args(argv)
    rows: list[Evidence] = []
    with progress() as show:
        subjects = papers(arguments.only)
        extra = micro(arguments.only, arguments.shared) if arguments.shared else ()
        for some in (subjects, extra):
            for subject in some:
                show(subject.name)
                rows.append(evidence(subject, build=not arguments.no_build))
    print_table(HEADER, (row.row for row in rows))
    if arguments.markdown:
        arguments.markdown.write_text(page(rows), encoding="utf-8")
    if arguments.json:
        text = json.dumps([asdict(row) for row in rows], indent=2)
        arguments.json.write_text(text + "\n", encoding="utf-8")
    return int(any(row.findings for row in rows))


if __name__ == "__main__":
    sys.exit(main())
