"""How kernels' time grows with their tensors: ns an element, from a thousand to 100 million.

``python -m scripts.sizes [--kinds NAME ...] [--sizes N ...] [--threads 1 2]``

Each kind is one small model whose sizes are not known when it is optimized.  It runs in ONNX
Runtime with the kernels and without, beside NumPy's copy of as many bytes.  The figures go into
docs/sizes.csv, in the place of older ones of the same kind, size and threads, and
docs/sizes.svg is drawn from it.  ``--prepare`` only optimizes, so that a run that measures does
nothing else; ``--draw`` only draws.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log2
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import onnx_ir as ir

from models.draft import Draft
from scripts.panels import Panel, drawn
from tcfuse.debug import cache_dir

SIZES = tuple(round(10 ** (k / 2)) for k in range(6, 17))
SECONDS = 0.05  # of calls of one contender in a round
ROUNDS = 3
HEADER = "kind,threads,elements,bytes,copy us,onnxruntime us,tcfuse us"


@dataclass(frozen=True, slots=True)
class Kind:
    """A family of models.

    Attributes:
        build: The model.
        shape: Of the input ``x`` of about so many elements.
        writes: Whether there is an output for every element, and not just one for all.
    """

    build: Callable[[], ir.Model]
    shape: Callable[[int], tuple[int, ...]]
    writes: bool = True


def _rows(columns: int) -> Callable[[int], tuple[int, ...]]:
    return lambda n: (max(1, round(n / columns)), columns)


def _square(n: int) -> tuple[int, ...]:
    """Sides that vectors fill, near each other."""
    side = max(16, round(n**0.5) // 16 * 16)
    return max(16, round(n / side / 16) * 16), side


def _powers_of_two(n: int) -> tuple[int, ...]:
    power = round(log2(n))
    return 1 << power // 2, 1 << -(-power // 2)


def _pointwise() -> ir.Model:
    g = Draft("pointwise")
    x = g.input("x", ["N"])
    gate = g.op("Clip", g.op("Add", x, g.constant(3)), g.constant(0), g.constant(6))
    g.output(g.op("Div", g.op("Mul", x, gate), g.constant(6)), "y", ["N"])
    return g.model()


def _functions() -> ir.Model:
    g = Draft("functions")
    x = g.input("x", ["N"])
    g.output(g.op("Mul", g.op("Tanh", x), g.op("Sigmoid", x)), "y", ["N"])
    return g.model()


def _softmax() -> ir.Model:
    g = Draft("softmax")
    x = g.input("x", ["N", 256])
    g.output(g.op("Softmax", g.op("Mul", x, g.constant(0.125)), axis=-1), "y", ["N", 256])
    return g.model()


def _layer_norm() -> ir.Model:
    g = Draft("layer_norm")
    x = g.input("x", ["N", 768])
    scale, bias = g.weight(768), g.weight(768)
    y = g.op("LayerNormalization", g.op("Add", x, bias), scale, bias, axis=-1)
    g.output(y, "y", ["N", 768])
    return g.model()


def _transpose() -> ir.Model:
    g = Draft("transpose")
    x = g.input("x", ["N", "M"])
    y = g.op("Transpose", g.op("Mul", x, g.constant(2)), perm=[1, 0])
    g.output(g.op("Add", y, g.constant(1)), "y", ["M", "N"])
    return g.model()


def _sum() -> ir.Model:
    g = Draft("sum")
    x = g.input("x", ["N"])
    y = g.op("ReduceSum", g.op("Mul", x, x), g.constant([0], np.int64), keepdims=0)
    g.output(y, "y", [])
    return g.model()


def _broadcast() -> ir.Model:
    g = Draft("broadcast")
    x = g.input("x", ["N", 512])
    y = g.op("Relu", g.op("Add", g.op("Mul", x, g.weight(512)), g.weight(512)))
    g.output(y, "y", ["N", 512])
    return g.model()


KINDS: Mapping[str, Kind] = {
    "pointwise": Kind(_pointwise, lambda n: (n,)),
    "functions": Kind(_functions, lambda n: (n,)),
    "softmax of rows": Kind(_softmax, _rows(256)),
    "layer norm": Kind(_layer_norm, _rows(768)),
    "transpose": Kind(_transpose, _square),
    "transpose of 2^k": Kind(_transpose, _powers_of_two),
    "broadcast": Kind(_broadcast, _rows(512)),
    "sum of all": Kind(_sum, lambda n: (n,), writes=False),
}


@dataclass(frozen=True, slots=True)
class Run:
    """Microseconds a call with tensors of one size.

    Attributes:
        bytes: Of the input, and of the output where it is as large.
        copy_us: Of NumPy, on one thread.
    """

    kind: str
    threads: int
    elements: int
    bytes: int
    copy_us: float
    native_us: float
    fused_us: float

    @classmethod
    def read(cls, line: str) -> Run:
        """The run of a line of the table."""
        kind, *numbers = line.split(",")
        counts, times = map(int, numbers[:3]), map(float, numbers[3:])
        return cls(kind, *counts, *times)  # type: ignore[arg-type]

    def __str__(self) -> str:
        times = ",".join(f"{us:.4g}" for us in (self.copy_us, self.native_us, self.fused_us))
        return f"{self.kind},{self.threads},{self.elements},{self.bytes},{times}"


def prepared(name: str) -> tuple[Path, Path]:
    """A kind's model and its optimized form; made again when the kernels may differ."""
    from tcfuse.pipeline import optimize
    from tcfuse.store import key_of, tool_digest

    folder = cache_dir() / "sizes"
    source = folder / f"{key_of(name, tool_digest())[:16]}.onnx"
    target = source.with_suffix(".fused.onnx")
    if not target.exists():
        folder.mkdir(parents=True, exist_ok=True)
        ir.save(KINDS[name].build(), source)
        result = optimize(source, gate=False)
        assert result.library is not None, f"{name}: nothing was fused"
        result.save(target)
    return source, target


def measured(name: str, elements: int, threads: int) -> Run:
    """Time all contenders in turn, after they have run once."""
    kind, paths = KINDS[name], prepared(name)
    x = np.random.default_rng(0).standard_normal(kind.shape(elements), np.float32)
    n_bytes = x.nbytes * (2 if kind.writes else 1)
    source = np.ones(n_bytes // 8, np.float32)
    target = source.copy()
    calls: dict[str, Callable[[], Any]] = {"copy": lambda: np.copyto(target, source)}
    for form, path in zip(("native", "fused"), paths, strict=True):
        calls[form] = _bound(path, x, threads)
    samples: dict[str, list[float]] = {form: [] for form in calls}
    for _ in range(ROUNDS):
        for form, call in calls.items():
            samples[form].append(_microseconds(call))
    best = {form: min(found) for form, found in samples.items()}
    return Run(name, threads, x.size, n_bytes, best["copy"], best["native"], best["fused"])


def _bound(path: Path, x: np.ndarray, threads: int) -> Callable[[], Any]:
    """A call of the model with its tensors bound once."""
    from tcfuse.ort.inference import runtime
    from tcfuse.ort.session import session
    from tcfuse.ort.timing import bind

    options = runtime().SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    # Or idle threads of one contender would spin while another one runs.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    return bind(session(path, sess_options=options), {"x": x})


def _microseconds(call: Callable[[], Any]) -> float:
    """The median of the calls in a while; of each, when they are long enough to be timed."""
    call()
    samples: list[float] = []
    end = time.perf_counter() + SECONDS
    while not samples or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        samples.append(time.perf_counter() - start)
    return median(samples) * 1e6


def panels(runs: Sequence[Run]) -> list[Panel]:
    """Nanoseconds an element over elements, a panel a kind."""
    found = []
    for kind in dict.fromkeys(run.kind for run in runs):
        lines: dict[str, list[tuple[float, float]]] = {}
        for run in sorted((r for r in runs if r.kind == kind), key=lambda r: r.elements):
            several = "" if run.threads == 1 else f", {run.threads} threads"
            figures = {
                f"ONNX Runtime{several}": run.native_us,
                f"tcfuse{several}": run.fused_us,
            }
            if run.threads == 1:
                figures = {"copy": run.copy_us, **figures}
            for label, us in figures.items():
                lines.setdefault(label, []).append((run.elements, us * 1e3 / run.elements))
        order = sorted(lines, key=lambda label: (label != "copy", label))
        found.append(Panel(kind, {label: lines[label] for label in order}))
    return found


def recorded(path: Path) -> dict[tuple[str, int, int], Run]:
    """The runs of a table, by kind, threads and elements."""
    lines = path.read_text(encoding="utf-8").splitlines()[1:] if path.exists() else []
    runs = map(Run.read, lines)
    return {(run.kind, run.threads, run.elements): run for run in runs}


def row(run: Run) -> str:
    """What is printed while measuring."""
    gb_s = [run.bytes / us / 1e3 for us in (run.copy_us, run.native_us, run.fused_us)]
    speedup, ns = run.native_us / run.fused_us, run.fused_us * 1e3 / run.elements
    return (
        f"{run.kind:16} {run.threads} {run.elements:>11,} {ns:8.3f} ns an element, GB/s: copy"
        f"{gb_s[0]:6.1f}, stock{gb_s[1]:6.1f}, tcfuse{gb_s[2]:6.1f}; {speedup:5.2f} times stock"
    )


def main() -> None:
    """Measure, record and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--table", type=Path, default=Path("docs/sizes.csv"))
    parser.add_argument("--prepare", action="store_true", help="optimize the models, no more")
    parser.add_argument("--draw", action="store_true", help="draw what is recorded, no more")
    arguments = parser.parse_args()
    if arguments.prepare:
        for name in arguments.kinds:
            prepared(name)
        return
    if not arguments.draw:
        runs = recorded(arguments.table)
        for name in arguments.kinds:
            for threads in arguments.threads:
                for size in arguments.sizes:
                    run = measured(name, size, threads)
                    print(row(run), flush=True)
                    runs[run.kind, run.threads, run.elements] = run
        ordered = sorted(
            runs.values(), key=lambda r: (list(KINDS).index(r.kind), r.threads, r.elements)
        )
        text = "\n".join([HEADER, *map(str, ordered), ""])
        arguments.table.write_text(text, encoding="utf-8")
    found = list(recorded(arguments.table).values())
    text = drawn(panels(found), "elements", "ns an element")
    arguments.table.with_suffix(".svg").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
