"""Kernels that are right give the right values in every order of threads, with no findings."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.emulator.kernels import SYMBOLS, case, matmul

pytestmark = pytest.mark.compiler


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("symbol", SYMBOLS)
def test_right_kernels(kernels, symbol, seed):
    c = case(symbol)
    run = kernels.run(
        symbol,
        c.grid,
        c.block,
        c.shared_bytes,
        c.args,
        seed=seed,
        read_only=c.read_only,
        unwritten=c.unwritten,
    )
    assert run.finished
    assert [str(report) for report in run.reports] == []
    c.check()


def test_runs_are_deterministic(kernels):
    def once(seed: int) -> tuple[object, ...]:
        c = matmul(40, 24, 33)
        run = kernels.run("matmul", c.grid, c.block, 0, c.args, seed=seed)
        return run.sites, run.buffers, run.switches, run.barriers, c.args[2].tobytes()

    assert once(0) == once(0)
    assert once(2)[:2] == once(3)[:2] == once(0)[:2]  # counters do not depend on the order


def test_any_thread_may_launch(kernels):
    """Shared memory is another for each thread of the process; launches wait for each other."""

    def once(_: int) -> bool:
        c = matmul(33, 20, 40)
        run = kernels.run("matmul", c.grid, c.block, 0, c.args)
        c.check()
        return run.finished and not run.reports

    with ThreadPoolExecutor(3) as pool:
        assert all(pool.map(once, range(6)))


def test_arguments_keep_their_addresses_apart(kernels):
    """Arrays that are views of one array are memory of their own on the device."""
    x = np.arange(64, dtype=np.uint8)
    y = x[:]
    kernels.run("bytes_side_by_side", 1, 64, 0, [x[:32].copy(), y])
    assert y[:32].tolist() == list(range(1, 33))
