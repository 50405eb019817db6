from __future__ import annotations

import json
from pathlib import Path

import pytest

from scripts.gpu_evidence import HEADER, main

pytestmark = pytest.mark.compiler


def test_a_layer_norm_moves_what_it_must(tmp_path: Path, capsys) -> None:
    figures, page = tmp_path / "rows.json", tmp_path / "page.md"
    arguments = ["--only", "layer_norm", "--no-build", "--json", str(figures)]
    assert main([*arguments, "--markdown", str(page)]) == 0
    (row,) = json.loads(figures.read_text(encoding="utf-8"))
    assert row["findings"] == 0
    assert row["error"] < 1e-6
    assert row["sectors"] <= 1.05
    assert row["moved"] <= 1.1
    assert HEADER[0] in capsys.readouterr().out
    assert "| layer_norm |" in page.read_text(encoding="utf-8")


@pytest.mark.cuda_build
def test_a_row_sum_spills_nothing(tmp_path: Path) -> None:
    figures = tmp_path / "rows.json"
    assert main(["--only", "row_sum", "--json", str(figures)]) == 0
    for row in json.loads(figures.read_text(encoding="utf-8")):
        assert row["spills"] == 0
        assert 0 < row["registers"] <= 64
