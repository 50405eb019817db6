"""The plot of docs/scale.svg, and the table it is drawn from."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from scripts import scale


def test_the_plot_has_a_point_a_run():
    runs = [scale.Run("one chain", n, n / 100, 200) for n in scale.SIZES]
    drawing = ElementTree.fromstring(scale.drawn(runs))
    circles = [e for e in drawing.iter() if e.tag.endswith("circle")]
    assert len(circles) == len(runs)
    assert len({c.get("cy") for c in circles}) == 1  # as long a node, everywhere


def test_the_recorded_runs_are_read_back():
    table = Path(scale.__file__).parents[1] / "docs" / "scale.csv"
    runs = scale.recorded(table)
    lines = [scale.HEADER, *map(str, runs.values())]
    assert "\n".join([*lines, ""]) == table.read_text(encoding="utf-8")
    assert max(run.processor_s for run in runs.values()) < 180
