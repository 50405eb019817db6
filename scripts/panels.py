"""Small line plots beside each other, both axes logarithmic, as SVG."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

WIDTH, HEIGHT = 300, 200
LEFT, TOP, BOTTOM = 48, 26, 34
COLUMNS = 3
SLACK = 0.15  # of a power of ten that a point may lie outside of the axes
COLOURS = ("#888888", "#c0392b", "#e59866", "#1b6ca8", "#7fb3d5", "#2e8b57")

Line = Sequence[tuple[float, float]]
"""Points with positive coordinates, from left to right."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One plot: lines by their names, which mean the same in every panel.

    Attributes:
        dots: Names of those lines that are points which nothing joins.
    """

    title: str
    lines: Mapping[str, Line]
    dots: Collection[str] = ()


def drawn(panels: Sequence[Panel], x_label: str, y_label: str) -> str:
    """The panels with axes they share, and what their lines are below them."""
    points = [point for panel in panels for line in panel.lines.values() for point in line]
    axes = _Axes(
        *(floor(log10(min(point[k] for point in points)) + SLACK) for k in (0, 1)),
        *(ceil(log10(max(point[k] for point in points)) - SLACK) for k in (0, 1)),
    )
    names = list(dict.fromkeys(name for panel in panels for name in panel.lines))
    colours = dict(zip(names, COLOURS, strict=False))
    rows = -(-len(panels) // COLUMNS)
    width, height = COLUMNS * WIDTH, rows * HEIGHT + 30
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">',
        '<g font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for k, panel in enumerate(panels):
        x, y = k % COLUMNS * WIDTH, k // COLUMNS * HEIGHT
        parts += [f'<g transform="translate({x} {y})">', *axes.panel(panel, colours), "</g>"]
    for k, (name, colour) in enumerate(colours.items()):
        x = LEFT + k * (width - LEFT) / len(colours)
        parts.append(
            f'<text x="{x:.0f}" y="{height - 8}" fill="{colour}">&#9679; {name}</text>'
        )
    parts.append(f'<text x="{width - 4}" y="12" text-anchor="end">{y_label}, {x_label}</text>')
    return "\n".join([*parts, "</g>", "</svg>", ""])


@dataclass(frozen=True, slots=True)
class _Axes:
    """Powers of ten at the ends of both axes."""

    left: int
    low: int
    right: int
    high: int

    def x(self, value: float) -> float:
        share = (log10(value) - self.left) / max(self.right - self.left, 1)
        return LEFT + share * (WIDTH - LEFT - 12)

    def y(self, value: float) -> float:
        share = (log10(value) - self.low) / max(self.high - self.low, 1)
        return HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP)

    def panel(self, panel: Panel, colours: Mapping[str, str]) -> Iterator[str]:
        yield f'<text x="{LEFT}" y="{TOP - 10}" font-weight="bold">{panel.title}</text>'
        for power in range(self.low, self.high + 1):
            y = self.y(10.0**power)
            yield f'<path d="M{LEFT} {y:.1f}H{WIDTH - 12}" stroke="#ddd"/>'
            yield (
                f'<text x="{LEFT - 5}" y="{y + 4:.1f}" text-anchor="end">{_power(power)}</text>'
            )
        for power in range(self.left, self.right + 1):
            x = self.x(10.0**power)
            yield f'<path d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="#eee"/>'
            yield (
                f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 14}" text-anchor="middle">'
                f"{_power(power)}</text>"
            )
        for name, line in panel.lines.items():
            if name in panel.dots:
                yield from self._dots(line, colours[name])
                continue
            points = " ".join(f"{self.x(a):.1f},{self.y(b):.1f}" for a, b in line)
            yield (
                f'<polyline points="{points}" fill="none" stroke="{colours[name]}" '
                'stroke-width="1.5"/>'
            )

    def _dots(self, line: Line, colour: str) -> Iterator[str]:
        for a, b in line:
            x, y = self.x(a), self.y(b)
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2" fill="{colour}" opacity="0.6"/>'


def _power(power: int) -> str:
    return f"{10.0**power:g}" if -3 <= power <= 1 else f"1e{power}"
