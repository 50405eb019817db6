"""The table of what tuning gains: its flags, its means, its lines."""

import argparse
import math
from pathlib import Path

import pytest

from scripts.tuning_table import Row, append, part_of, rows_of, summary

ROW = Row("a", 10.0, 1.2, 1.1, 0.01, 9, 0, 8, 1, "unroll=4", "default", 60.0, 0.5)
LOSS = Row("micro b", 10.0, 0.9, 1.0, 0.01, 9, 0, 8, 1, "unroll=4", "default", 60.0, 0.5)


@pytest.mark.parametrize("text", ["3", "a/b", "2/2", "1/", "/2", "-1/2"])
def test_a_part_that_is_none_is_refused(text: str):
    with pytest.raises(argparse.ArgumentTypeError, match="is not K/N"):
        part_of(text)


def test_rows_are_read_as_they_were_written(tmp_path: Path):
    for row in (ROW, LOSS):
        append(tmp_path / "table.csv", row)
    assert rows_of(tmp_path / "table.csv") == [ROW, LOSS]
    assert part_of("1/2") == (1, 2)


def test_means_are_geometric_and_losses_beyond_noise_are_named():
    whole, papers, micro = summary([ROW, LOSS])
    assert f"tuned/default {math.sqrt(1.2 * 0.9):.3f}" in whole
    assert "noise: micro b" in whole
    assert "noise: none" in papers
    assert "micro: 1 kernels" in micro


def test_the_recorded_table_has_every_kernel_once():
    rows = rows_of(Path(__file__).parents[2] / "docs" / "tuning.csv")
    assert len({row.kernel for row in rows}) == len(rows) == 50
