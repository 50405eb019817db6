"""The table and the plots of predictions, from manifests."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from scripts import cost_model
from tcfuse.ort.manifest import RegionReport, Report


def region(name: str, guess: float, seen: float) -> RegionReport:
    predicted, measured = (
        {"before_us": 10 * speedup, "after_us": 10.0, "speedup": speedup}
        for speedup in (guess, seen)
    )
    kept, reason = (True, "") if seen > 1 else (False, "slower alone")
    return RegionReport(
        name, ("Add a", "Tanh b"), kept, reason, measured=measured, predicted=predicted
    )


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    regions = [region("a", 2, 3), region("b", 2, 0.5), region("c", 1.5, 2)]
    report = Report("m.onnx", {}, (*regions, regions[0], RegionReport("", ("Conv",), False)))
    path = tmp_path / "m.tcfuse.json"
    path.write_text(report.to_json())
    return path


def test_each_kernel_that_was_timed_has_a_row_and_a_dot(manifest, capsys):
    target = manifest.with_suffix(".svg")
    assert cost_model.main([str(manifest), "--draw", str(target)]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = [line for line in lines if line.startswith("m  ")]
    assert len(rows) == 3
    assert rows[0].split()[3:5] == ["20.0", "30.0"]
    assert rows[1].endswith("slower alone")
    assert "3 kernels were timed, 1 of them in vain" in lines
    drawing = ElementTree.parse(target).getroot()
    circles = [element for element in drawing.iter() if element.tag.endswith("circle")]
    assert len(circles) == 3 * len(cost_model.QUANTITIES)


def test_a_manifest_without_timed_kernels_is_told_of(tmp_path):
    path = tmp_path / "m.tcfuse.json"
    path.write_text(Report("m.onnx", {}).to_json())
    with pytest.raises(SystemExit):
        cost_model.main([str(path)])
