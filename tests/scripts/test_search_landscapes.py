"""Landscapes that stand for kernels, on which the tuner's searches are compared."""

from __future__ import annotations

from random import Random

import pytest

from scripts.search_landscapes import Landscape, found, main, subject
from tcfuse.tuning.space import Space

SPACE = Space.of(subject())


@pytest.mark.parametrize("seed", range(5))
def test_a_landscape_is_about_some_knobs_and_the_default_is_one(seed: int) -> None:
    landscape = Landscape.drawn(SPACE, Random(seed))
    assert landscape.speedup(SPACE.default) == pytest.approx(1)
    assert 4 <= len(landscape.alone) <= 9
    random = Random(seed)
    drawn = [SPACE.draw(random) for _ in range(200)]
    kernels = {landscape.kernel(genome): landscape.speedup(genome) for genome in drawn}
    assert len(kernels) < len(drawn)  # some are alike
    assert all(landscape.speedup(g) == kernels[landscape.kernel(g)] for g in drawn)


def test_a_search_that_goes_on_is_not_worse() -> None:
    landscape = Landscape.drawn(SPACE, Random(3))
    assert found("genetic", landscape, 0, 16) == found("genetic", landscape, 0, 16)
    assert found("genetic", landscape, 0, 96) >= found("genetic", landscape, 0, 16)


def test_the_table_has_a_row_for_each_search(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--landscapes", "2", "--evaluations", "20", "--only", "random"]) == 0
    header, row = capsys.readouterr().out.splitlines()
    assert header.split()[0] == "search"
    assert row.split()[0] == "random"
    assert all(0.5 < float(value) < 3 for value in row.split()[1:])
