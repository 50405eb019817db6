"""Some pairs of a definition and options; ``tests.conformance.random_options`` runs more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcfuse.errors import ToolchainError
from tcfuse.mapping_options import MappingOptions
from tcfuse.targets.toolchain import Toolchain
from tests.codegen.conftest import runnable
from tests.conformance.option_pairs import Pair, random_pairs, with_cuda_options
from tests.conformance.option_seeds import SEEDS
from tests.conformance.option_ways import ForEmulator, ForLevel
from tests.conformance.random_options import run
from tests.conformance.subjects import subjects
from tests.poly.definitions import ROW_SUM
from tests.targets.kernels import kernel_of


@pytest.mark.compiler
def test_options_never_change_a_result(tmp_path: Path) -> None:
    try:
        Toolchain.default()
    except ToolchainError as error:
        pytest.skip(f"no compiler: {error}")
    pairs = list(random_pairs(len(SEEDS) + 22, seed=20))
    chosen = [*pairs[: len(SEEDS) : 3], *pairs[len(SEEDS) :]]
    outcome = run(chosen, ForLevel(runnable()[-1], tmp_path), seed=3)
    assert not outcome.refused
    assert not outcome.wrong
    assert outcome.right == len(chosen)


@pytest.mark.compiler
def test_a_wrong_kernel_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison itself: the kernel of another definition."""
    pair = Pair(subjects()["row_sum"], MappingOptions())
    other = kernel_of(ROW_SUM.replace("X(i, j)", "X(i, j) * 1.5"))
    monkeypatch.setattr(ForLevel, "compile", lambda *_: other)
    outcome = run([pair], ForLevel(runnable()[-1], tmp_path), seed=3)
    assert outcome.right == 0
    assert "Not equal to tolerance" in outcome.wrong[0]


@pytest.mark.compiler
def test_options_of_kernels_for_gpus_never_change_a_result() -> None:
    pairs = with_cuda_options(random_pairs(len(SEEDS) + 9, seed=5), seed=5)
    chosen = [*pairs[: len(SEEDS) : 15], *pairs[len(SEEDS) :]]
    outcome = run(chosen, ForEmulator(), seed=3)
    assert not outcome.refused
    assert not outcome.wrong
    assert outcome.right == len(chosen)


def test_pairs_are_drawn_alike_every_time() -> None:
    assert [str(p) for p in random_pairs(60, 4)] == [str(p) for p in random_pairs(60, 4)]
