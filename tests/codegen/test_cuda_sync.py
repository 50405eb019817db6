"""The barriers in the text of kernels: with them no threads race, without any one they do."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from tcfuse.emulator import Emulated, Program, emulate
from tcfuse.errors import ToolchainError
from tcfuse.targets.base import CudaSource
from tests.codegen.test_cuda_waits import ROWS
from tests.targets.cuda_kernels import cuda_kernel_of

pytestmark = pytest.mark.compiler

SYNC = "team.sync();"
SHARING = ("reversed", "two_rows", "first")
BLOCK, WARP, PART = 64, 32, 8  # threads of a team


def source_of(name: str, team: int) -> CudaSource:
    """A kernel whose rows are in shared memory."""
    text = ROWS[name].replace("N", "4").replace("K", "512")
    return cuda_kernel_of(text, team=team).source


def without_one(source: CudaSource) -> list[tuple[str, str]]:
    """The text without each of its barriers, and what its names have in front."""
    found = []
    for number, place in enumerate(re.finditer(re.escape(SYNC), source.text)):
        text = source.text[: place.start()] + source.text[place.end() :]
        mark = f"without_{number}_"
        found.append((text.replace(source.name, mark + source.name), mark))
    return found


@pytest.fixture(scope="module")
def program(private_cache: object) -> Program:
    """Every kernel, and those of blocks without one of their barriers."""
    texts, symbols = [], []
    for name in SHARING:
        for team in (BLOCK, WARP, PART):
            source = source_of(name, team)
            for text, mark in [
                (source.text, ""),
                *(without_one(source) if team == BLOCK else ()),
            ]:
                texts.append(text)
                symbols += [mark + launch.symbol for launch in source.launches]
    try:
        return Program.build(texts, symbols, trace=True)
    except ToolchainError as error:
        if error.output:
            raise
        pytest.skip(str(error))


def run(source: CudaSource, program: Program, mark: str = "") -> Emulated:
    """The kernel in the emulator, in so few blocks that each team runs several turns."""
    phases = tuple(
        replace(
            phase,
            launches=tuple(
                replace(launch, symbol=mark + launch.symbol, grid="1")
                for launch in phase.launches
            ),
        )
        for phase in source.phases
    )
    x = np.random.default_rng(0).uniform(-1, 1, (4, 512)).astype(np.float32)
    return emulate(replace(source, phases=phases), [x], program=program)


@pytest.mark.parametrize("team", [BLOCK, WARP, PART])
@pytest.mark.parametrize("name", SHARING)
def test_threads_of_a_team_do_not_race(name: str, team: int, program: Program) -> None:
    assert not run(source_of(name, team), program).reports


@pytest.mark.parametrize("name", SHARING)
def test_every_barrier_of_a_block_is_needed(name: str, program: Program) -> None:
    source = source_of(name, BLOCK)
    marks = [mark for _, mark in without_one(source)]
    assert marks
    for mark in marks:
        assert any(report.kind.is_race for report in run(source, program, mark).reports), mark
