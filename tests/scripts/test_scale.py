"""The plots of docs/scale.svg, and the table they are drawn from."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from scripts import scale
from tcfuse.profile import COMPILER, ISL, Profile, Spent, Tally


def test_each_plot_has_a_point_a_run():
    runs = [scale.Run("one chain", n, n / 100, 200) for n in scale.SIZES]
    drawing = ElementTree.fromstring(scale.drawn(runs))
    circles = [e for e in drawing.iter() if e.tag.endswith("circle")]
    assert len(circles) == 2 * len(runs)
    heights = [circle.get("cy") for circle in circles]
    assert len(set(heights[: len(runs)])) == 1  # as long a node, everywhere
    assert len(set(heights[len(runs) :])) == 1  # and as much memory


def test_a_line_is_read_back():
    run = scale.Run("one chain", 100, 9.5, 180, 3, (1.0, 0.5, 0.1, 0.4, 2.0, 1.5, 3.0))
    assert str(run) == "one chain,100,9.5,180,3,1.0,0.5,0.1,0.4,2.0,1.5,3.0,1.0"
    assert scale.Run.read(str(run)) == run


def test_a_line_does_not_change_when_it_is_read_and_written():
    run = scale.Run("one chain", 100, 9.54, 180, 3, (1.04, 0.54, 0.14, 0.44, 2.04, 1.54, 3.04))
    assert str(scale.Run.read(str(run))) == str(run)


def test_what_the_command_prints_is_understood():
    spent = {"load": Spent(0.25, 0.5), ISL: Spent(0.75, 0.25), COMPILER: Spent(1.0, 1.5)}
    found = Profile(spent, {ISL: Tally(2, 1)}, n_kernels=2)
    seconds, n_kernels = scale.profiled(str(found))
    assert seconds == {"load": 0.5, ISL: 0.25, COMPILER: 1.5, "total": 2.25}
    assert n_kernels == 2


def test_the_recorded_runs_are_read_back():
    table = Path(scale.__file__).parents[1] / "docs" / "scale.csv"
    runs = scale.recorded(table)
    lines = [scale.HEADER, *map(str, runs.values())]
    assert "\n".join([*lines, ""]) == table.read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", ["encoder layers", "one chain"])
def test_a_node_costs_no_more_in_a_large_graph(kind: str):
    table = Path(scale.__file__).parents[1] / "docs" / "scale.csv"
    runs = {n: run for (name, n), run in scale.recorded(table).items() if name == kind}
    largest = max(runs)
    assert largest > 19_000
    middle = min(runs, key=lambda n: abs(n - 5000))
    assert runs[largest].ms_a_node < 1.6 * runs[middle].ms_a_node
    assert runs[largest].peak_mib < 1.6 * runs[middle].peak_mib * largest / middle
