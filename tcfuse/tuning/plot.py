"""How searches converged, as SVG: the best so far over time, a line for each kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from math import ceil, floor, log10

WIDTH, ROW, LEFT, RIGHT, TOP, BOTTOM = 720, 320, 56, 220, 16, 36
COLOURS = ("#1b6ca8", "#c0392b", "#2e8b57", "#8e5aa8", "#e59866", "#16a085", "#7f8c8d")
MOST = 12  # lines with a name beside them

Line = Sequence[tuple[float, float]]
"""Steps: from each point on the second number holds."""


def convergence(lines: Sequence[tuple[str, Line]]) -> str:
    """A plot of the best so far, as times the default's speed, over seconds of the search.

    Args:
        lines: Each kernel's name and the steps of its search.
    """
    seconds = max((x for _, line in lines for x, _ in line), default=1.0) or 1.0
    best = max((y for _, line in lines for _, y in line), default=1.0)
    axes = _Axes(seconds, max(best, 1.05))
    height = max(ROW, TOP + 16 * (min(len(lines), MOST) + 1) + BOTTOM)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}">',
        '<g font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        *axes.grid(),
    ]
    for number, (name, line) in enumerate(lines):
        colour = COLOURS[number % len(COLOURS)]
        parts.append(
            f'<path d="{axes.path(line)}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
        )
        if number < MOST:
            y = TOP + 12 + 16 * number
            parts.append(
                f'<text x="{WIDTH - RIGHT + 14}" y="{y}" fill="{colour}">'
                f"{escape(_short(name))}</text>"
            )
    return "\n".join([*parts, "</g>", "</svg>", ""])


class _Axes:
    """Seconds to the right, times the default's speed upwards."""

    def __init__(self, seconds: float, best: float) -> None:
        self.seconds, self.best = seconds, best

    def x(self, seconds: float) -> float:
        return LEFT + seconds / self.seconds * (WIDTH - LEFT - RIGHT)

    def y(self, gain: float) -> float:
        share = (gain - 1) / (self.best - 1)
        return ROW - BOTTOM - share * (ROW - BOTTOM - TOP)

    def grid(self) -> Iterator[str]:
        for gain in _ticks(1.0, self.best):
            y = self.y(gain)
            yield f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>'
            yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{gain:g}</text>'
        for seconds in _ticks(0.0, self.seconds):
            x, y = self.x(seconds), ROW - BOTTOM
            yield f'<path d="M{x:.1f} {TOP}V{y}" stroke="#eee"/>'
            yield f'<text x="{x:.1f}" y="{y + 16}" text-anchor="middle">{seconds:g}</text>'
        middle = (LEFT + WIDTH - RIGHT) / 2
        yield f'<text x="{middle}" y="{ROW - 4}" text-anchor="middle">seconds</text>'
        yield (
            f'<text x="14" y="{ROW / 2}" text-anchor="middle" '
            f'transform="rotate(-90 14 {ROW / 2})">times the default\'s speed</text>'
        )

    def path(self, line: Line) -> str:
        x, y = line[0]
        steps = [f"M{self.x(x):.1f} {self.y(y):.1f}"]
        steps += [f"H{self.x(x):.1f}V{self.y(y):.1f}" for x, y in line[1:]]
        return "".join(steps)


def _ticks(low: float, high: float) -> Iterator[float]:
    """Round numbers between two, about five of them."""
    power = 10.0 ** floor(log10((high - low) / 5))
    step = next(f * power for f in (1, 2, 5, 10) if (high - low) / (f * power) <= 6)
    for k in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1):
        yield round(k * step, 10)


def _short(name: str, most: int = 30) -> str:
    return name if len(name) <= most else f"{name[: most - 11]}…{name[-10:]}"
