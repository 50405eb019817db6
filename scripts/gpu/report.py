"""Results as one table: every number beside the limit it could reach, and how far it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import exp, log
from statistics import median
from typing import Any

from scripts.gpu.limits import copy_rate
from scripts.gpu.machine import describe

Items = Mapping[str, Mapping[str, Any]]
Modes = Mapping[str, Sequence[float]]
CHECKS = ("papers", "cases", "sanitizer")
HEADER = ("graph", "contender", "us", "us in a graph", "spread", "over tcfuse", "of its limit")


def report(results: Mapping[str, Any]) -> str:
    """Everything that was found, for people."""
    items: Items = results["items"]
    parts = [
        _machine(results["machine"]),
        _limits(items),
        _checks(items),
        _timed(items, "micro"),
        _timed(items, "models"),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _machine(machine: Mapping[str, Any]) -> str:
    lines = [describe(machine["facts"])] if "facts" in machine else []
    if machine.get("dry_run"):
        lines.append("DRY RUN: an emulator on the CPU; the times below mean nothing")
    lines += [f"missing: {line}" for line in machine.get("missing", ())]
    return "\n".join(lines)


def _limits(items: Items) -> str:
    rows = []
    for size, rate in _of(items, "limits/copy", "bytes_per_second").items():
        rows.append((f"copy of {int(size) / (1 << 20):g} MiB", f"{rate / 1e9:.0f} GB/s"))
    for dtype, rate in _of(items, "limits/products", "flops_per_second").items():
        rows.append((f"product in {dtype}", f"{rate / 1e12:.1f} Tflop/s"))
    return table(("limit, measured", "rate"), rows) if rows else ""


def _of(items: Items, item: str, key: str) -> Mapping[str, float]:
    found: Mapping[str, float] = items.get(item, {}).get(key, {})
    return found


def _checks(items: Items) -> str:
    """How many of each outcome, and everything that is wrong."""
    lines = []
    for part in CHECKS:
        mine = {n: o for n, o in items.items() if n.startswith(f"{part}/")}
        if not mine:
            continue
        counts = Counter(outcome["status"] for outcome in mine.values())
        lines.append(f"{part}: " + ", ".join(f"{n} {s}" for s, n in sorted(counts.items())))
        bad = {n: o for n, o in mine.items() if o["status"] in ("wrong", "failed")}
        lines += [
            f"  {name}: {outcome['status']}: {outcome['why']}" for name, outcome in bad.items()
        ]
    return "\n".join(lines)


def _timed(items: Items, part: str) -> str:
    """A line for each contender of each graph."""
    mine = {n: o for n, o in items.items() if n.startswith(f"{part}/")}
    if not mine:
        return ""
    rows = [
        row for name, outcome in sorted(mine.items()) for row in _rows(items, name, outcome)
    ]
    lines = [table(HEADER, rows, left=2)]
    for name, outcome in sorted(mine.items()):
        if outcome["status"] != "ok":
            lines.append(f"{name}: {outcome['status']}: {outcome.get('why', '')}")
        lines += [f"{name}: {who}: {note}" for who, note in outcome.get("notes", {}).items()]
    lines += _means(mine)
    return "\n".join(lines)


def _rows(items: Items, name: str, outcome: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    seconds = outcome.get("seconds", {})
    limit = limit_of(items, outcome)
    ours = seconds.get("tcfuse", seconds.get("tcfuse in ONNX Runtime", {}))
    order = sorted(seconds, key=lambda name: (not name.startswith("tcfuse"), name))
    for position, contender in enumerate(order):
        modes = seconds[contender]
        rounds = modes.get("graph") or modes["launched"]
        yield (
            name.partition("/")[2] if position == 0 else "",
            contender,
            _microseconds(modes.get("launched")),
            _microseconds(modes.get("graph")),
            f"{_spread(rounds):.0%}",
            f"{_ratio(modes, ours):.2f}" if ours else "-",
            f"{limit / median(rounds):.0%}" if limit else "-",
        )


def limit_of(items: Items, outcome: Mapping[str, Any]) -> float | None:
    """The least seconds that the measured limits allow; ``None`` where none was measured.

    Bytes at the rate of a copy of as many; operations at the rate of cuBLAS in float32.
    """
    seconds = []
    if rate := copy_rate(items.get("limits/copy", {}), outcome.get("bytes", 0)):
        seconds.append(outcome.get("bytes", 0) / rate)
    products = _of(items, "limits/products", "flops_per_second")
    if outcome.get("flops") and "float32" in products:
        seconds.append(outcome["flops"] / products["float32"])
    return max(seconds, default=0.0) or None


def _means(mine: Items) -> Iterator[str]:
    """Geometric means of the speedups over every contender, by kind of graph."""
    for kind in ("memory", "matmul"):
        ratios: dict[str, list[float]] = {}
        for outcome in mine.values():
            seconds = outcome.get("seconds", {})
            if outcome.get("kind") != kind or "tcfuse" not in seconds:
                continue
            for contender, modes in seconds.items():
                ratio = _ratio(modes, seconds["tcfuse"])
                ratios.setdefault(contender, []).append(ratio)
        for contender, found in ratios.items():
            if contender != "tcfuse":
                mean = exp(sum(map(log, found)) / len(found))
                graphs = f"{len(found)} {kind} graphs"
                yield f"{contender} takes {mean:.2f} times as long as tcfuse, {graphs}"


def _ratio(modes: Modes, ours: Modes) -> float:
    """The median over rounds of a time over ours: in CUDA graphs if both have that."""
    mode = "graph" if "graph" in modes and "graph" in ours else "launched"
    pairs = zip(modes[mode], ours[mode], strict=False)
    return median([theirs / mine for theirs, mine in pairs])


def _spread(rounds: Sequence[float]) -> float:
    ordered = sorted(rounds)
    quarter = len(ordered) // 4
    return (ordered[-1 - quarter] - ordered[quarter]) / median(ordered)


def _microseconds(rounds: Sequence[float] | None) -> str:
    return f"{median(rounds) * 1e6:.1f}" if rounds else "-"


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Aligned columns, the first ones to the left."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if k < left else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (header, *rows)
    )
