"""Loops that may follow sums of iterators, and loops that may run backwards.

A statement that reads its own earlier results is a nest that only skewing makes tilable.  The
language copies what a statement reads of its own tensor first, so such nests come from the
polyhedral model, not from a definition.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tcfuse.errors import ToolchainError
from tcfuse.mapping.nests import schedule_nests
from tcfuse.mapping_options import MappingOptions
from tcfuse.poly.dependences import Dependences
from tcfuse.poly.proof import prove
from tcfuse.poly.rows import follows_sums, is_backward, runs_backwards
from tcfuse.poly.scop import Scop
from tcfuse.poly.tree import Band, Domain, Sequence, below
from tcfuse.targets.toolchain import Toolchain
from tests.codegen.conftest import runnable
from tests.conformance.option_seeds import BUGS
from tests.poly.definitions import model
from tests.targets.kernels import build, checked_of, kernel_of

HEAT = """def heat(float(n1 + 2) X) -> (float(n0, n1 + 2) Y) {
  Y(t, i) = X(i) where t in 0:n0, i in 0:n1 + 2
  Y(t, i) = (Y(t - 1, i - 1) + Y(t - 1, i) + Y(t - 1, i + 1)) * 0.25
    where t in 1:n0, i in 1:n1 + 1
}"""
SWEEP = """def sweep(float(n0, n1) X) -> (float(n0, n1) Y) {
  Y(i, j) = X(i, j) where i in 0:n0, j in 0:n1
  Y(i, j) = Y(i - 1, j) * 0.5 + Y(i, j - 1) * 0.25 where i in 1:n0, j in 1:n1
}"""
COLUMNS = """def columns(float(n0, n1) X) -> (float(n0, n1) Y) {
  Y(t, i) = X(t, i) where t in 0:n0, i in 0:n1
  Y(t, i) = Y(t - 1, i) * 0.5 + X(t, i) where t in 1:n0, i in 0:n1
}"""
TURNED = BUGS["turned"]


def scheduled(text: str, **options: object) -> tuple[Scop, Dependences, Domain]:
    scop, dependences = model(text)
    tree = schedule_nests(scop, dependences, MappingOptions(**options)).tree  # type: ignore[arg-type]
    prove(scop, dependences, tree)
    return scop, dependences, tree


def last_nest(tree: Domain) -> list[Band]:
    """The bands of the last part."""
    last = tree.child.filters[-1].child if isinstance(tree.child, Sequence) else tree.child
    return [n for n in below(last) if isinstance(n, Band)]


def test_skewing_makes_a_recurrence_tilable() -> None:
    straight = last_nest(scheduled(HEAT)[2])
    assert [b.depth for b in straight] == [1, 1]
    assert [b.coincident for b in straight] == [(False,), (True,)]
    (skewed,) = last_nest(scheduled(HEAT, skewing=True)[2])
    assert skewed.depth == 2
    assert skewed.permutable
    assert follows_sums(skewed)
    assert not runs_backwards(skewed)


def test_a_skewed_band_is_tiled_in_both_dimensions() -> None:
    _, _, tree = scheduled(HEAT, skewing=True, tile=(4, 8), inner_skewing=True)
    tiles, points = last_nest(tree)
    assert (tiles.depth, points.depth) == (2, 2)
    scop, dependences = model(HEAT)
    plain = schedule_nests(scop, dependences, MappingOptions(tile=(4, 8)))
    assert [b.depth for b in last_nest(plain.tree)] == [1, 1, 1]


@pytest.mark.parametrize(("text", "depths"), [(SWEEP, [2]), (COLUMNS, [1, 1])])
def test_without_skewing_each_loop_follows_one_iterator(text: str, depths: list[int]) -> None:
    for options in ({}, {"tile": (3, 5)}, {"skewing": False, "fusion": "max"}):
        tree = scheduled(text, **options)[2]
        assert not follows_sums(tree)
    assert [b.depth for b in last_nest(scheduled(text)[2])] == depths


def test_what_carries_nothing_is_outside_what_does() -> None:
    outer, inner = last_nest(scheduled(COLUMNS)[2])
    assert (outer.coincident, inner.coincident) == ((True,), (False,))


@pytest.mark.parametrize("fusion", ["preserve", "max", "min"])
def test_no_loop_runs_backwards_unless_it_may(fusion: str) -> None:
    assert not runs_backwards(scheduled(TURNED, fusion=fusion)[2])
    free = scheduled(TURNED, fusion=fusion, positive=False)[2]
    assert runs_backwards(free) == (fusion == "max")


def test_signs_are_read_off_a_band() -> None:
    (band,) = last_nest(scheduled(SWEEP)[2])
    turned = Band(band.schedule.neg(), True, band.coincident, band.child)
    assert [is_backward(turned, k) for k in (0, 1)] == [True, True]
    assert runs_backwards(turned)
    assert not is_backward(band, 0)


def heat(x: np.ndarray, steps: int) -> np.ndarray:
    rows = np.tile(x.astype(np.float64), (steps, 1))
    for t in range(1, steps):
        left, middle, right = rows[t - 1, :-2], rows[t - 1, 1:-1], rows[t - 1, 2:]
        rows[t, 1:-1] = (left + middle + right) * 0.25
    return rows


@pytest.mark.compiler
def test_skewed_and_tiled_kernels_are_right(tmp_path: Path) -> None:
    try:
        Toolchain.default()
    except ToolchainError as error:
        pytest.skip(f"no compiler: {error}")
    choices = [
        MappingOptions(),
        MappingOptions(skewing=True),
        MappingOptions(skewing=True, tile=(4, 8), inner_skewing=True, separate_tiles=True),
        MappingOptions(skewing=True, tile=(3, 5), inner_skewing=True, unroll=16),
        MappingOptions(skewing=True, tile=(2, 7), inner_fusion="max"),
        MappingOptions(skewing=True, positive=False, tile=(5,)),
    ]
    checked = checked_of(HEAT)
    kernels = [kernel_of(checked, options, f"k{k}") for k, options in enumerate(choices)]
    x = np.random.default_rng(0).standard_normal(25).astype(np.float32)
    (row,) = build([checked] * len(choices), kernels, [runnable()[-1]], tmp_path)
    for compiled, options in zip(row, choices, strict=True):
        for steps in (1, 2, 9):
            found, fault = compiled({"X": x}, {"n0": steps, "n1": 23})
            assert fault == 0
            np.testing.assert_allclose(
                found["Y"], heat(x, steps), rtol=1e-5, err_msg=str(options)
            )
