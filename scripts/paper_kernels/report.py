"""Rows as an aligned table, as Markdown and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scripts.paper_kernels.cold import Cold
from scripts.paper_kernels.measure import Row

HEAD = (
    "kernel",
    "sizes",
    "bound",
    "MB",
    "Mflop",
    "tcfuse us",
    "x NumPy",
    "x ORT",
    "limit",
    "error",
    "compile s",
    "cpu s",
)
TEXT_COLUMNS = 3
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"


def cells(row: Row, cold: Cold | None) -> tuple[str, ...]:
    """One line of the table."""
    return (
        row.case.name,
        row.case.label,
        row.bound,
        f"{row.n_bytes / 1e6:.3g}",
        f"{row.flops / 1e6:.3g}",
        f"{row.ort.after_us:.1f}",
        f"{row.numpy.value:.2f} ±{row.numpy.spread * 100:.0f} %",
        f"{row.ort.value:.2f} ±{row.ort.spread * 100:.0f} %",
        f"{row.fraction * 100:.0f} %",
        f"{row.error:.0e}",
        "" if cold is None else f"{cold.wall:.2f}",
        "" if cold is None else f"{cold.processor:.2f}",
    )


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Columns under their heads, numbers to the right."""
    table = [HEAD, *lines]
    widths = [max(len(line[k]) for line in table) for k in range(len(HEAD))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if k < TEXT_COLUMNS else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in table
    )


def markdown(head: str, lines: Sequence[Sequence[str]]) -> str:
    """The same for a document, below a sentence about the machine."""
    rule = ["---"] * TEXT_COLUMNS + ["---:"] * (len(HEAD) - TEXT_COLUMNS)
    table = "\n".join(f"| {' | '.join(line)} |" for line in (HEAD, rule, *lines))
    return f"{head}\n\n{table}\n"


def into_document(path: Path, text: str) -> None:
    """Write ``text`` between the marks of a document, or as a file of its own."""
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    before, begin, rest = old.partition(BEGIN)
    _, end, after = rest.partition(END)
    whole = f"{before}{begin}\n{text}{end}{after}" if begin and end else text
    path.write_text(whole, encoding="utf-8")


def record(row: Row, cold: Cold | None) -> dict[str, Any]:
    """Everything that was measured of a row."""
    return {
        "kernel": row.case.name,
        "sizes": [dict(step.sizes) for step in row.case.steps],
        "note": row.case.note,
        "bound": row.bound,
        "bytes": row.n_bytes,
        "flops": row.flops,
        "tcfuse_us": row.ort.after_us,
        "numpy_us": row.numpy.before_us,
        "ort_us": row.ort.before_us,
        "copy_us": row.copy_us,
        "peak_flops": row.peak,
        "times_numpy": row.numpy.value,
        "times_numpy_spread": row.numpy.spread,
        "times_ort": row.ort.value,
        "times_ort_spread": row.ort.spread,
        "numpy_form": row.numpy_form,
        "ort_form": row.ort_form,
        "limit_fraction": row.fraction,
        "error": row.error,
        "compile_wall_s": None if cold is None else cold.wall,
        "compile_cpu_s": None if cold is None else cold.processor,
    }
