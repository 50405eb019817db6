"""``tcfuse optimize``: a model in, a faster model and a table of what was done out."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcfuse.commands.progress import print_table, progress
from tcfuse.errors import InputError
from tcfuse.options import parse_shapes, parse_sizes
from tcfuse.ort.manifest import RegionReport, Report, portable_path
from tcfuse.planning import accuracy
from tcfuse.profile import phase
from tcfuse.store import write_file
from tcfuse.wisdom.shown import knobs_line

NO_GAIN = 4


@dataclass(frozen=True, slots=True)
class Order:
    """What the command line asks for, options of the optimizer aside."""

    model: Path
    output: Path | None
    require_gain: bool
    report_json: Path | None
    quiet: bool

    @property
    def target(self) -> Path:
        """Where the model goes."""
        return self.output or self.model.with_name(f"{self.model.stem}.tcfuse.onnx")


def run(
    order: Order, options: Mapping[str, Any], dims: list[str], input_shapes: list[str]
) -> int:
    """Optimize, save, print the table; the exit status."""
    with phase("start"):
        from tcfuse.pipeline import optimize

    chosen = {
        **options,
        "dim": parse_sizes("--dim", dims),
        "input_shapes": parse_shapes(input_shapes),
    }
    if order.target.suffix != ".onnx":
        raise InputError(f"{order.target}: the output must end in .onnx")
    if order.target.resolve() == order.model.resolve():
        raise InputError(
            f"{order.target}: the output would overwrite the input; use another -o"
        )
    with progress(order.quiet) as show:
        result = optimize(order.model, progress=show, **chosen)
        if order.require_gain and not gained(result.report):
            print("error: nothing was gained, so nothing was written", file=sys.stderr)
            return NO_GAIN
        show("writing")
        result.save(order.target)
    if order.report_json is not None:
        write_file(order.report_json, result.report.to_json().encode())
    if not order.quiet:
        print_report(result.report, order.target)
    return 0


def gained(report: Report) -> bool:
    """Whether something was fused and, where that was measured, made the model faster."""
    return bool(report.kept) and (report.speedup is None or report.speedup > 1.0)


def print_report(report: Report, target: Path) -> None:
    """The table of regions, equal ones together, and one line about the whole."""
    rows: dict[tuple[str, str, str], list[RegionReport]] = {}
    for region in report.regions:
        nodes = describe(region.nodes)
        outcome = outcome_of(region)
        rows.setdefault((region.name or "-", nodes, outcome), []).append(region)
    if rows:
        header: tuple[str, ...] = ("kernel", "times", "operators", "error", "predicted")
        header += ("speedup", "outcome")
        lines = [_row(key, regions) for key, regions in rows.items()]
        if any(region.tuned for region in report.regions):
            header = (*header[:-1], "knobs", header[-1])
            tuned = [tuned_of(regions[0]) for regions in rows.values()]
            lines = [
                (*line[:-1], knobs, line[-1]) for line, knobs in zip(lines, tuned, strict=True)
            ]
        print_table(header, lines)
    if (found := accuracy((r.predicted, r.measured) for r in distinct(report))) is not None:
        print(found)
    for note in report.notes:
        print(f"note: {note}")
    print(f"{target}: {summary(report)}")
    if report.block:
        print(
            f"{target}: for CPUs like this one, on which ONNX Runtime keeps channels in blocks "
            f"of {report.block}; {portable_path(target).name} is for any machine"
        )


def distinct(report: Report) -> list[RegionReport]:
    """One region for each kernel that was timed: they share a measurement."""
    timed = [region for region in report.regions if "speedup" in region.measured]
    return list({region.name: region for region in timed}.values())


def summary(report: Report) -> str:
    """What came of the whole model, in one phrase."""
    if not report.kept:
        return "nothing fused; the model is the original"
    n_nodes = sum(len(region.nodes) for region in report.kept)
    text = f"{len(report.kept)} kernels for {n_nodes} operators"
    if report.speedup is not None:
        text += f", {report.speedup:.2f} times as fast (spread {report.spread or 0.0:.0%})"
    return text


def outcome_of(region: RegionReport) -> str:
    """Whether a region was kept, and for what not."""
    if not region.kept:
        return region.reason
    without = [f"; not for {target}: {why}" for target, why in region.left_out.items()]
    return f"kept for {', '.join(region.targets)}" + "".join(without) if without else "kept"


def tuned_of(region: RegionReport) -> str:
    """The knobs of a kernel that wisdom is behind, and where they come from."""
    shown = []
    for target, about in region.tuned.items():
        prefix = f"{target}: " if len(region.tuned) > 1 else ""
        knobs = knobs_line(about["knobs"])
        shown.append(f"{prefix}{knobs} ({about['origin']})" if knobs else about["origin"])
    return "; ".join(shown)


def describe(nodes: tuple[str, ...], most: int = 6) -> str:
    """Operator names, repeated ones counted, long lists cut."""
    counts: dict[str, int] = {}
    for node in nodes:
        op_type = node.partition(" ")[0]
        counts[op_type] = counts.get(op_type, 0) + 1
    names = [f"{name}*{n}" if n > 1 else name for name, n in counts.items()]
    return " ".join(names[:most]) + (" ..." if len(names) > most else "")


def _row(key: tuple[str, str, str], regions: list[RegionReport]) -> tuple[str, ...]:
    name, nodes, outcome = key
    measured = regions[0].measured
    error, speedup = measured.get("error"), measured.get("speedup")
    expected = regions[0].predicted.get("speedup")
    return (
        name,
        str(len(regions)),
        nodes,
        "" if error is None else f"{error:.1e}",
        "" if expected is None else f"{expected:.2f}",
        "" if speedup is None else f"{speedup:.2f}",
        outcome,
    )
