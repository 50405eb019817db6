"""How ``tcfuse optimize`` scales: time and memory a node, for graphs of 100 to 20,000 nodes.

``python -m scripts.scale`` optimizes every model once, from an empty cache and with everything
on that is on by default, in a process of its own.  It puts the figures into docs/scale.csv, in
the place of older ones of the same model, and draws docs/scale.svg from it.  Processor time is
that of all threads and compilers together; the parts are those of ``--profile``.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from math import log10
from pathlib import Path

import onnx_ir as ir

from models import bert, chain, mixed

SIZES = (100, 500, 1000, 2000, 5000, 10_000, 20_000)
KINDS: dict[str, Callable[[int], ir.Model]] = {
    "encoder layers": lambda n: bert.build(max(1, n // 52), 2, 16),
    "mixed blocks": lambda n: mixed.build(n, 64),
    "no two alike": lambda n: mixed.build(n, 64, kinds=n),
    "one chain": lambda n: chain.build(n, 4096),
}
PARTS: dict[str, tuple[str, ...]] = {
    "load": ("start", "load"),
    "plan": ("plan",),
    "compose": ("cache", "compose"),
    "isl": ("isl process", "dependences", "schedule", "mapping", "proof", "code generation"),
    "compiler": ("C++ compiler",),
    "verification": ("verification",),
    "gate": ("gate",),
}
HEADER = ",".join(
    ("model", "nodes", "processor seconds", "peak MiB", "kernels", *PARTS, "rest")
)
COLOURS = ("#1b6ca8", "#c0392b", "#2e8b57", "#8e5aa8")
WIDTH, HEIGHT, LEFT, BOTTOM = 640, 300, 60, 40


@dataclass(frozen=True, slots=True)
class Run:
    """What one model took.

    Attributes:
        processor_s: Of all threads and processes together.
        peak_mib: Of the optimizing process.
        n_kernels: Different ones.
        parts: Of ``processor_s``, by the names of ``PARTS``; what is left is the rest.
    """

    kind: str
    n_nodes: int
    processor_s: float
    peak_mib: int
    n_kernels: int = 0
    parts: tuple[float, ...] = field(default=(0.0,) * len(PARTS))

    @property
    def ms_a_node(self) -> float:
        """Processor time a node."""
        return 1000 * self.processor_s / self.n_nodes

    @classmethod
    def read(cls, line: str) -> Run:
        """The run of a line of the table."""
        kind, n_nodes, processor_s, peak_mib, n_kernels, *parts, _ = line.split(",")
        numbers = int(n_nodes), float(processor_s), int(peak_mib), int(n_kernels)
        return cls(kind, *numbers, tuple(map(float, parts)))

    def __str__(self) -> str:
        shown = [round(seconds, 1) for seconds in self.parts]  # the rest is of what is shown
        rest = max(round(self.processor_s, 1) - sum(shown), 0.0)
        parts = ",".join(f"{seconds:.1f}" for seconds in (*shown, rest))
        numbers = f"{self.n_nodes},{self.processor_s:.1f},{self.peak_mib},{self.n_kernels}"
        return f"{self.kind},{numbers},{parts}"


def measured(kind: str, n_nodes: int) -> Run:
    """Optimize one model."""
    with tempfile.TemporaryDirectory(prefix="tcfuse-scale-") as name:
        source, folder = Path(name) / "model.onnx", Path(name)
        model = KINDS[kind](n_nodes)
        ir.save(model, source)
        command = [sys.executable, "-m", "tcfuse", "optimize", str(source), "-q", "--profile"]
        environment = {**os.environ, "TCFUSE_CACHE_DIR": str(folder / "cache")}
        told = folder / "profile.txt"
        with told.open("w", encoding="utf-8") as file:
            process = subprocess.Popen(command, env=environment, stderr=file)
            _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command)
        seconds, n_kernels = profiled(told.read_text(encoding="utf-8"))
        parts = tuple(sum(seconds.get(n, 0.0) for n in names) for names in PARTS.values())
        peak_mib = used.ru_maxrss >> 10
        return Run(kind, len(model.graph), _seconds(used), peak_mib, n_kernels, parts)


def profiled(text: str) -> tuple[Mapping[str, float], int]:
    """Seconds of processors by phase, and the number of kernels, of what is printed."""
    lines = text.splitlines()
    name_width = lines[0].index("wall s") - 2
    seconds: dict[str, float] = {}
    n_kernels = 0
    for line in lines[1:]:
        name, columns = line[:name_width].strip(), line[name_width:].split()
        if "different kernels" in line:
            n_kernels = int(line.split()[0])
        elif len(columns) >= 3:
            seconds[name] = float(columns[2])
    return seconds, n_kernels


def _seconds(used: resource.struct_rusage) -> float:
    return used.ru_utime + used.ru_stime


def drawn(runs: Sequence[Run]) -> str:
    """Processor time and memory over the number of nodes, as SVG."""
    height = 2 * (HEIGHT + 30)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}">',
        '<g font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        *_panel(runs, "processor ms a node", [r.ms_a_node for r in runs], 0, log=True),
        *_panel(runs, "peak MiB", [float(r.peak_mib) for r in runs], HEIGHT + 30),
    ]
    return "\n".join([*parts, "</g>", "</svg>", ""])


def _panel(
    runs: Sequence[Run], title: str, values: Sequence[float], top: int, *, log: bool = False
) -> list[str]:
    """One plot below ``top``, with a line for each kind of model."""
    first, last = log10(min(r.n_nodes for r in runs)), log10(max(r.n_nodes for r in runs))
    scale = log10 if log else float
    low = 10.0 ** int(log10(min(values))) if log else 0.0
    bottom, most = scale(low) if log else 0.0, scale(max(values) * 1.15)

    def x(n_nodes: int) -> float:
        return LEFT + (log10(n_nodes) - first) / max(last - first, 0.01) * (WIDTH - LEFT - 30)

    def y(value: float) -> float:
        share = (scale(value) - bottom) / (most - bottom)
        return top + (HEIGHT - BOTTOM) * (1 - share) + 10

    ticks = (
        [f * 10.0**k for k in range(-1, 6) for f in (1, 2, 5)]
        if log
        else [k * _step(max(values)) for k in range(7)]
    )
    parts = [
        f'<path d="M{LEFT} {y(tick):.1f}H{WIDTH - 30}" stroke="#ddd"/>'
        f'<text x="{LEFT - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>'
        for tick in ticks
        if low <= tick <= max(values) * 1.15
    ]
    parts += [
        f'<text x="{x(n):.1f}" y="{top + HEIGHT - 8}" text-anchor="middle">{n:,}</text>'
        for n in SIZES
        if first <= log10(n) + 0.01 and log10(n) <= last + 0.01
    ]
    parts.append(
        f'<text x="{(WIDTH + LEFT) / 2}" y="{top + HEIGHT + 10}" text-anchor="middle">nodes'
        f'</text><text x="16" y="{top + HEIGHT / 2}" text-anchor="middle" '
        f'transform="rotate(-90 16 {top + HEIGHT / 2})">{title}</text>'
    )
    present = dict.fromkeys(r.kind for r in runs)
    for number, (kind, colour) in enumerate(zip(present, COLOURS, strict=False)):
        own = [(r, v) for r, v in zip(runs, values, strict=True) if r.kind == kind]
        points = " ".join(f"{x(r.n_nodes):.1f},{y(v):.1f}" for r, v in own)
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
            f'<text x="{LEFT + 20 if not log else WIDTH - 40}" y="{top + 24 + 16 * number}" '
            f'text-anchor="{"end" if log else "start"}" fill="{colour}">{kind}</text>'
        )
        parts += [
            f'<circle cx="{x(r.n_nodes):.1f}" cy="{y(v):.1f}" r="3" fill="{colour}"/>'
            for r, v in own
        ]
    return parts


def _step(most: float) -> float:
    """A round number of which about six reach ``most``."""
    power = 10.0 ** int(log10(most / 6))
    return next(f * power for f in (1, 2, 5, 10, 20) if 6 * f * power >= most)


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
