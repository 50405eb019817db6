"""The checker against the definition of a race, on random programs.

A program is data: what each thread does at each step.  Happens-before is worked out from the
definition, pair by pair; the checker, which keeps a few accesses for each place, must find a
race in exactly the programs that have one, in any order of threads.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pytest

pytestmark = pytest.mark.compiler

TEXT = r"""
extern "C" __global__ void play(const int* script, const unsigned* masks, int steps,
                                int* global) {
  __shared__ int shared[2];
  if (threadIdx.x < 2) shared[threadIdx.x] = 0;
  __syncthreads();
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) * steps;
  int sum = 0;
  for (int k = 0; k < steps; k++) {
    const int what = script[row + k] & 15, where = script[row + k] >> 4;
    int* const place = where < 2 ? shared + where : global + (where - 2);
    if (what == 1) sum += *(volatile int*)place;
    if (what == 2) *(volatile int*)place = k;
    if (what == 3) atomicAdd(place, 1);
    if (what == 4) __syncwarp(masks[row + k]);
    if (what == 5) __syncthreads();
  }
}
"""
NOTHING, READ, WRITE, ATOMIC, WARP, BLOCK = range(6)
BLOCKS, THREADS, STEPS, PLACES = 2, 40, 7, 4


@dataclass(frozen=True)
class Game:
    """What is done: arrays of (block, thread, step)."""

    what: np.ndarray
    where: np.ndarray
    masks: np.ndarray


def game(seed: int) -> Game:
    """A random program in which few threads touch memory, and barriers are met by all."""
    rng = np.random.default_rng(seed)
    shape = (BLOCKS, THREADS, STEPS)
    what, where = np.zeros(shape, np.int32), rng.integers(0, PLACES, shape)
    masks = np.zeros(shape, np.uint32)
    busy = rng.random(shape) < rng.choice([0.01, 0.03, 0.1])
    kinds = [READ, READ, WRITE, ATOMIC] if rng.random() < 0.7 else [ATOMIC]
    what[busy] = rng.choice(kinds, busy.sum())
    if rng.random() < 0.5:
        where = where % 2  # shared memory alone: blocks do not meet
    for block, step in itertools.product(range(BLOCKS), range(STEPS)):
        chosen = rng.random()
        if chosen < 0.25:
            what[block, :, step] = BLOCK
        elif chosen < 0.6:
            _meet(rng, what[block, :, step], masks[block, :, step])
    return Game(what, where, masks)


def _meet(rng: np.random.Generator, what: np.ndarray, masks: np.ndarray) -> None:
    """Some groups of lanes of each warp wait for themselves."""
    for first in range(0, THREADS, 32):
        lanes = np.arange(first, min(first + 32, THREADS))
        group = rng.integers(0, rng.integers(1, 4), lanes.size)
        for number in set(group):
            if rng.random() < 0.8:
                members = lanes[group == number]
                what[members] = WARP
                masks[members] = np.bitwise_or.reduce(
                    np.uint32(1) << (members % 32).astype(np.uint32)
                )


def has_race(g: Game) -> bool:
    """Whether two accesses of one place, not both reads or atomics, have no order."""
    accesses = [
        (b, t, k)
        for b, t, k in itertools.product(range(BLOCKS), range(THREADS), range(STEPS))
        if g.what[b, t, k] in (READ, WRITE, ATOMIC)
    ]
    for (b, t, k), (c, u, m) in itertools.combinations(accesses, 2):
        place, other = g.where[b, t, k], g.where[c, u, m]
        kinds = {int(g.what[b, t, k]), int(g.what[c, u, m])}
        if place != other or kinds in ({READ}, {ATOMIC}) or (b, t) == (c, u):
            continue
        if b != c:
            if place >= 2:
                return True
        elif not (_reaches(g, b, t, k, u, m) or _reaches(g, b, u, m, t, k)):
            return True
    return False


def _reaches(g: Game, block: int, t: int, k: int, u: int, m: int) -> bool:
    """Whether what thread ``t`` did at step ``k`` is before step ``m`` of thread ``u``."""
    knows = {t}
    for step in range(k + 1, m):
        here = g.what[block, :, step]
        if (here == BLOCK).all():
            return True
        for first in range(0, THREADS, 32):
            lanes = range(first, min(first + 32, THREADS))
            groups = {int(g.masks[block, x, step]) for x in lanes if here[x] == WARP}
            for mask in groups:
                members = {first + lane for lane in range(32) if mask >> lane & 1}
                if members & knows:
                    knows |= members
    return u in knows


@pytest.mark.parametrize("seed", range(4))
def test_a_race_is_found_where_there_is_one(compile_cuda, seed):
    program = compile_cuda(TEXT, ("play",))
    races = 0
    for number in range(100):
        g = game(1000 * seed + number)
        script = (g.what + 16 * g.where).astype(np.int32)
        memory = np.zeros(PLACES, np.int32)
        args = [script, g.masks, STEPS, memory]
        run = program.run("play", BLOCKS, THREADS, 0, args, seed=number, read_only=(0, 1))
        assert run.finished, [str(r) for r in run.reports]
        assert all(r.kind.is_race for r in run.reports)
        want = has_race(g)
        assert bool(run.reports) == want, (number, [str(r) for r in run.reports])
        races += want
    assert 20 < races < 80  # both are tried
