"""How ``tcfuse optimize`` scales: time and memory a node, for graphs of 500 to 20,000 nodes.

``python -m scripts.scale`` optimizes every model once, from an empty cache and with everything
on that is on by default, in a process of its own.  It puts the figures into docs/scale.csv, in
the place of older ones of the same model, and draws docs/scale.svg from it.  Processor time is
that of all threads and compilers together.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from math import log10
from pathlib import Path

import onnx_ir as ir

from models import bert, chain, mixed

SIZES = (500, 1000, 2000, 5000, 10_000, 20_000)
KINDS: dict[str, Callable[[int], ir.Model]] = {
    "encoder layers": lambda n: bert.build(n // 52, 2, 16),
    "mixed blocks": lambda n: mixed.build(n, 64),
    "one chain": lambda n: chain.build(n, 4096),
}
HEADER = "model,nodes,processor seconds,peak MiB"
COLOURS = ("#1b6ca8", "#c0392b", "#2e8b57")


@dataclass(frozen=True, slots=True)
class Run:
    """What one model took.

    Attributes:
        processor_s: Of all threads and processes together.
        peak_mib: Of the optimizing process.
    """

    kind: str
    n_nodes: int
    processor_s: float
    peak_mib: int

    @property
    def ms_a_node(self) -> float:
        """Processor time a node."""
        return 1000 * self.processor_s / self.n_nodes

    @classmethod
    def read(cls, line: str) -> Run:
        """The run of a line of the table."""
        kind, n_nodes, processor_s, peak_mib = line.split(",")
        return cls(kind, int(n_nodes), float(processor_s), int(peak_mib))

    def __str__(self) -> str:
        return f"{self.kind},{self.n_nodes},{self.processor_s:.1f},{self.peak_mib}"


def measured(kind: str, n_nodes: int) -> Run:
    """Optimize one model."""
    with tempfile.TemporaryDirectory(prefix="tcfuse-scale-") as name:
        source, folder = Path(name) / "model.onnx", Path(name)
        model = KINDS[kind](n_nodes)
        ir.save(model, source)
        command = [sys.executable, "-m", "tcfuse", "optimize", str(source), "-q"]
        environment = {**os.environ, "TCFUSE_CACHE_DIR": str(folder / "cache")}
        process = subprocess.Popen(command, env=environment)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command)
        return Run(kind, len(model.graph), _seconds(used), used.ru_maxrss >> 10)


def _seconds(used: resource.struct_rusage) -> float:
    return used.ru_utime + used.ru_stime


def drawn(runs: Sequence[Run]) -> str:
    """Processor time a node over the number of nodes, as SVG."""
    width, height, left, bottom = 640, 320, 60, 40
    first, last = log10(min(r.n_nodes for r in runs)), log10(max(r.n_nodes for r in runs))
    most = max(r.ms_a_node for r in runs) * 1.15

    def x(n_nodes: int) -> float:
        return left + (log10(n_nodes) - first) / (last - first) * (width - left - 30)

    def y(milliseconds: float) -> float:
        return (height - bottom) * (1 - milliseconds / most) + 10

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height + 20}">',
        '<g font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height + 20}" fill="white"/>',
    ]
    for tick in range(0, int(most) + 1, max(1, round(most / 6))):
        parts.append(
            f'<path d="M{left} {y(tick):.1f}H{width - 30}" stroke="#ddd"/>'
            f'<text x="{left - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick}</text>'
        )
    for n_nodes in SIZES:
        if first <= log10(n_nodes) <= last + 0.01:
            parts.append(
                f'<text x="{x(n_nodes):.1f}" y="{height - 8}" text-anchor="middle">'
                f"{n_nodes:,}</text>"
            )
    parts.append(
        f'<text x="{(width + left) / 2}" y="{height + 10}" text-anchor="middle">nodes</text>'
        f'<text x="16" y="{height / 2}" text-anchor="middle" '
        f'transform="rotate(-90 16 {height / 2})">processor ms a node</text>'
    )
    present = dict.fromkeys(r.kind for r in runs)
    for number, (kind, colour) in enumerate(zip(present, COLOURS, strict=False)):
        own = [r for r in runs if r.kind == kind]
        points = " ".join(f"{x(r.n_nodes):.1f},{y(r.ms_a_node):.1f}" for r in own)
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
            f'<text x="{width - 40}" y="{24 + 16 * number}" text-anchor="end" '
            f'fill="{colour}">{kind}</text>'
        )
        parts += [
            f'<circle cx="{x(r.n_nodes):.1f}" cy="{y(r.ms_a_node):.1f}" r="3" fill="{colour}"/>'
            for r in own
        ]
    return "\n".join([*parts, "</g>", "</svg>", ""])


def recorded(path: Path) -> dict[tuple[str, int], Run]:
    """The runs of a table, by model and size."""
    lines = path.read_text(encoding="utf-8").splitlines()[1:] if path.exists() else []
    return {(run.kind, run.n_nodes): run for run in map(Run.read, lines)}


def main() -> None:
    """Measure, record and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--table", type=Path, default=Path("docs/scale.csv"))
    arguments = parser.parse_args()
    for kind in arguments.kinds:
        for size in arguments.sizes:
            run = measured(kind, size)
            print(run, flush=True)
            runs = recorded(arguments.table)
            runs[run.kind, run.n_nodes] = run
            lines = [HEADER, *map(str, sorted(runs.values(), key=astuple))]
            arguments.table.write_text("\n".join([*lines, ""]), encoding="utf-8")
    runs = recorded(arguments.table)
    arguments.table.with_suffix(".svg").write_text(drawn(list(runs.values())), "utf-8")


if __name__ == "__main__":
    main()
