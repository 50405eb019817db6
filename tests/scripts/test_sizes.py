"""The plot of docs/sizes.svg, the table it is drawn from, and how it is measured."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from scripts import sizes
from scripts.panels import Panel, drawn

TABLE = Path(sizes.__file__).parents[1] / "docs" / "sizes.csv"
MOST_RISE = 3  # of the time an element, from one size to the next; leaving the L3 costs 2.7


def test_lines_of_one_name_have_one_colour() -> None:
    line = [(10.0, 1.0), (1000.0, 0.1)]
    panels = [Panel("one", {"a": line, "b": line}), Panel("other", {"b": line})]
    found = ElementTree.fromstring(drawn(panels, "x", "y"))
    lines = [e for e in found.iter() if e.tag.endswith("polyline")]
    assert [e.get("stroke") for e in lines][1:] == [lines[1].get("stroke")] * 2
    assert len({e.get("stroke") for e in lines}) == 2
    assert len({e.get("points") for e in lines}) == 1


def test_axes_are_logarithmic() -> None:
    line = [(10.0**k, 10.0**-k) for k in range(4)]
    found = ElementTree.fromstring(drawn([Panel("one", {"a": line})], "x", "y"))
    (polyline,) = (e for e in found.iter() if e.tag.endswith("polyline"))
    points = np.array([p.split(",") for p in str(polyline.get("points")).split()], float)
    assert np.ptp(np.diff(points, axis=0), axis=0).max() < 0.2  # rounded to 0.1


def test_the_recorded_runs_are_read_back() -> None:
    runs = sizes.recorded(TABLE)
    lines = [sizes.HEADER, *map(str, runs.values()), ""]
    assert "\n".join(lines) == TABLE.read_text(encoding="utf-8")
    assert {run.kind for run in runs.values()} == sizes.KINDS.keys()
    text = drawn(sizes.panels(list(runs.values())), "elements", "ns an element")
    assert text == TABLE.with_suffix(".svg").read_text(encoding="utf-8")


def test_the_recorded_runs_have_no_cliff() -> None:
    lines: dict[tuple[str, int], list[float]] = {}
    for run in sizes.recorded(TABLE).values():
        lines.setdefault((run.kind, run.threads), []).append(run.fused_us / run.elements)
        assert run.fused_us < run.native_us, str(run)
    for line, found in lines.items():
        rises = [b / a for a, b in pairwise(found)]
        assert max(rises) < MOST_RISE, (line, rises)


@pytest.mark.compiler
@pytest.mark.ort
@pytest.mark.parametrize("kind", ["transpose", "sum of all"])
def test_a_kind_is_measured(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxruntime")
    monkeypatch.setattr(sizes, "SECONDS", 0.001)
    run = sizes.measured(kind, 1000, 1)
    assert (run.kind, run.threads) == (kind, 1)
    assert 900 < run.elements < 1100
    assert run.bytes == run.elements * (4 if kind == "sum of all" else 8)
    assert min(run.copy_us, run.native_us, run.fused_us) > 0
    assert sizes.Run.read(str(run)).elements == run.elements
    assert kind in sizes.row(run)
