"""The command: ``scripts/bench_papers.py`` starts it with one thread for every library."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnxruntime

from scripts.paper_kernels import report
from scripts.paper_kernels.case import Case
from scripts.paper_kernels.cases import cases
from scripts.paper_kernels.cold import Cold, compile_cold
from scripts.paper_kernels.machine import measure_peak, processor
from scripts.paper_kernels.measure import Row, WrongResultError, measure
from tcfuse.errors import TcfuseError


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="bench_papers.py", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes and few rounds")
    parser.add_argument(
        "--only", action="append", metavar="NAME", help="one kernel; repeatable"
    )
    parser.add_argument("--list", action="store_true", help="name the kernels and stop")
    parser.add_argument("--rounds", type=int, help="turns of the contenders (11; quick: 3)")
    parser.add_argument("--symbolic", action="store_true", help="one kernel for all sizes")
    parser.add_argument("--no-compile-time", action="store_true", help="do not compile anew")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything there")
    parser.add_argument(
        "--markdown",
        type=Path,
        metavar="FILE",
        help="write the table there, between the marks of a document",
    )
    return parser.parse_args()


def chosen(options: argparse.Namespace) -> list[Case]:
    """The cases asked for."""
    found = list(cases(quick=options.quick))
    names = list(dict.fromkeys(case.name for case in found))
    for name in options.only or ():
        if name not in names:
            sys.exit(f"no kernel {name!r}; there are {', '.join(names)}")
    return [case for case in found if not options.only or case.name in options.only]


def load() -> str:
    """The load of the machine."""
    return ", ".join(f"{value:.2f}" for value in os.getloadavg())


def cold_of(case: Case, options: argparse.Namespace) -> Cold | None:
    """The time to compile a case's kernels, the slowest of them."""
    if options.no_compile_time:
        return None
    found = [compile_cold(step, symbolic=options.symbolic) for step in case.steps]
    return max(found, key=lambda cold: cold.wall)


def described(options: argparse.Namespace) -> str:
    """Where and how the figures are measured."""
    kernels = "kernels for all sizes" if options.symbolic else "a kernel for each size"
    versions = f"NumPy {np.__version__}, ONNX Runtime {onnxruntime.__version__}"
    return f"{processor()}, one thread; {versions}; {kernels}; load {load()}"


def measured(options: argparse.Namespace) -> Iterator[tuple[Row, Cold | None] | None]:
    """Each case's figures, or ``None`` after a complaint."""
    rounds = options.rounds or (3 if options.quick else 11)
    wanted = chosen(options)
    with tempfile.TemporaryDirectory(prefix="paper-kernels-") as folder:
        peak = measure_peak(Path(folder))
        for number, case in enumerate(wanted, 1):
            progress = f"[{number}/{len(wanted)}] {case.name} {case.label}"
            print(progress, file=sys.stderr, flush=True)
            try:
                row = measure(case, peak, rounds=rounds, symbolic=options.symbolic)
                yield row, cold_of(case, options)
            except (WrongResultError, TcfuseError, RuntimeError, MemoryError) as error:
                print(f"{progress}: {error}", file=sys.stderr)
                yield None


def main() -> int:
    """Exit status: 0 done, 1 a contender was wrong or did not compile."""
    options = arguments()
    wanted = chosen(options)
    if options.list:
        print("\n".join(dict.fromkeys(case.name for case in wanted)))
        return 0
    head = described(options)
    print(head)
    results = list(measured(options))
    rows = [result for result in results if result is not None]
    lines = [report.cells(*row) for row in rows]
    print(report.aligned(lines))
    for note in dict.fromkeys(f"{c.name} {c.label}: {c.note}" for c in wanted if c.note):
        print(note)
    print(f"load {load()}")
    if options.json:
        records = [report.record(*row) for row in rows]
        options.json.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
    if options.markdown:
        report.into_document(options.markdown, report.markdown(head, lines))
    return int(len(rows) < len(results))


if __name__ == "__main__":
    sys.exit(main())
