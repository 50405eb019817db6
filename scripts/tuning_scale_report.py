"""The figures of ``scripts.tuning_scale`` as a table and as a plot."""

from __future__ import annotations

import math
from collections.abc import Sequence

from scripts.tuning_simulation import Scaled

WORKERS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
COLOURS = ("#1b6ca8", "#c0392b", "#2e8b57", "#8e5aa8", "#555")
WIDTH, HEIGHT, LEFT, BOTTOM = 640, 320, 70, 40


def drawn(found: Sequence[Scaled]) -> str:
    """Candidates a minute over the number of workers, as SVG."""
    rates = [one.rate for one in found]
    first, last = math.log10(WORKERS[0]), math.log10(WORKERS[-1])
    low, high = math.log10(min(rates)), math.log10(max(rates) * 1.3)

    def x(n_workers: int) -> float:
        return LEFT + (math.log10(n_workers) - first) / (last - first) * (WIDTH - LEFT - 30)

    def y(rate: float) -> float:
        return 10 + (HEIGHT - BOTTOM - 10) * (1 - (math.log10(rate) - low) / (high - low))

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT + 20}">',
        '<g font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT + 20}" fill="white"/>',
    ]
    ticks = [f * 10.0**k for k in range(7) for f in (1, 2, 5)]
    parts += [
        f'<path d="M{LEFT} {y(tick):.1f}H{WIDTH - 30}" stroke="#ddd"/>'
        f'<text x="{LEFT - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:,.0f}</text>'
        for tick in ticks
        if low <= math.log10(tick) <= high
    ]
    parts += [
        f'<text x="{x(n):.1f}" y="{HEIGHT - 12}" text-anchor="middle">{n}</text>'
        for n in WORKERS
    ]
    parts.append(
        f'<text x="{(WIDTH + LEFT) / 2}" y="{HEIGHT + 8}" text-anchor="middle">workers</text>'
        f'<text x="16" y="{HEIGHT / 2}" text-anchor="middle" transform="rotate(-90 16 '
        f'{HEIGHT / 2})">candidates a minute</text>'
    )
    kinds = dict.fromkeys(one.population for one in found)
    for number, (population, colour) in enumerate(zip(kinds, COLOURS, strict=False)):
        own = [one for one in found if one.population == population]
        points = " ".join(f"{x(one.n_workers):.1f},{y(one.rate):.1f}" for one in own)
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
            f'<text x="{LEFT + 20}" y="{30 + 16 * number}" fill="{colour}">{_name(population)}'
            "</text>"
        )
    return "\n".join([*parts, "</g>", "</svg>", ""])


def _name(population: int) -> str:
    return f"population {population}" if population else "no generations"


def table(found: Sequence[Scaled]) -> str:
    """The figures as Markdown."""
    lines = ["| population | workers | candidates a minute | of n times one | limit |"]
    lines.append("|---|---|---|---|---|")
    for one in found:
        alone = next(o.rate for o in found if o.population == one.population)
        share = one.rate / (alone * one.n_workers)
        lost = one.shares.get(one.limit, 0.0)
        limit = f"{one.limit} {lost:.0%}" if lost else one.limit
        cells = (
            _name(one.population),
            one.n_workers,
            f"{one.rate:,.0f}",
            f"{share:.0%}",
            limit,
        )
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)
