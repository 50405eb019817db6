"""Some random programs; ``tests.conformance.random_programs`` runs more."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcfuse.errors import ToolchainError
from tcfuse.targets.toolchain import Toolchain
from tcfuse.tc.evaluate import evaluate
from tests.codegen.conftest import runnable
from tests.conformance import random_programs as module
from tests.conformance.program_grammar import Dim, Program, random_program
from tests.conformance.random_programs import (
    Summary,
    check_text,
    for_level,
    random_programs,
    run,
)

SMALL = Program(
    "def f(float(N) A, float(M) B) -> (O) { O(i) +=! A(2*i) * B(j) }",
    {},
    {"O": (Dim("0", "(N + 1) / 2"),)},
)


def outcome(programs: list[Program], folder: Path) -> Summary:
    try:
        Toolchain.default()
    except ToolchainError as error:
        pytest.skip(f"no compiler: {error}")
    summary = Summary()
    run(programs, for_level(runnable()[-1]), folder, summary)
    return summary


@settings(deadline=None)
@given(st.integers(0, 1 << 60))
def test_the_text_of_a_program_means_itself(number: int) -> None:
    check_text(random_program(random.Random(number)).text)


@pytest.mark.compiler
@pytest.mark.parametrize("seed", range(4))
def test_kernels_have_the_sizes_and_values_of_the_evaluator(tmp_path: Path, seed: int) -> None:
    found = outcome(random_programs(25, seed, statements=3), tmp_path)
    assert not found.wrong
    assert sum(found.refused.values()) <= 2
    assert found.equal >= 70


@pytest.mark.compiler
def test_a_wrong_value_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def shifted(*arguments):
        return {name: array + 0.001 for name, array in evaluate(*arguments).items()}

    monkeypatch.setattr(module, "evaluate", shifted)
    (wrong,) = outcome([SMALL], tmp_path).wrong
    assert "Not equal to tolerance" in wrong


@pytest.mark.compiler
def test_a_size_that_was_not_inferred_is_noticed(tmp_path: Path) -> None:
    other = replace(SMALL, dims={"O": (Dim("0", "N / 2"),)})
    assert not outcome([SMALL], tmp_path).wrong
    (wrong,) = outcome([other], tmp_path).wrong
    assert "O is (" in wrong


@pytest.mark.compiler
def test_a_refusal_has_its_reason(tmp_path: Path) -> None:
    text = "def f(float(N) A, float(M) B) -> (O) { O(i) +=! A(i) where j in 3:1 }"
    found = outcome([replace(SMALL, text=text)], tmp_path)
    assert found.refused == {"TC26 the range of _ ends before it starts": 1}


def test_programs_are_drawn_alike_every_time() -> None:
    assert random_programs(60, seed=4) == random_programs(60, seed=4)
