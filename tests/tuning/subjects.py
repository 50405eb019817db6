"""Kernels that tests tune, and landscapes that stand for their measurements."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping

from tcfuse.interface import Interface
from tcfuse.tc.kernel_form import kernel_form
from tcfuse.tc.parser import parse
from tcfuse.tc.sema import check
from tcfuse.tc.unparse import unparse
from tcfuse.tuning.candidate import Candidate, Outcome, Subject
from tcfuse.tuning.protocols import Sampler

PRODUCT = "def product(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
SCALE = "def scale(float(N) X) -> (Y) { Y(i) = 2 * X(i) }"

Landscape = Callable[[Candidate], float]


def subject(
    text: str = PRODUCT, sizes: Mapping[str, int] | None = None, target: str = "cpu"
) -> Subject:
    """A definition at some sizes."""
    form = kernel_form(check(parse(text), affine=False))
    interface: Interface = form.interface
    values = {"M": 64, "K": 96, "N": 128} if sizes is None else sizes
    return Subject("it", unparse(form.definition), interface, values, target)


def hilly(candidate: Candidate) -> float:
    """A speedup with knobs that only help together, cliffs, and many that do nothing."""
    knobs = candidate.mapping
    tile = (*knobs.tile, 0, 0, 0)[:3]
    gain = {1: 0.0, 2: 0.02, 4: 0.05, 8: 0.04, 16: -0.02, 64: -0.3}.get(knobs.unroll, 0.0)
    gain += {0: 0.0, 1: -0.4, 2: -0.1, 4: 0.03, 6: 0.02, 8: -0.05}.get(knobs.block, 0.0)
    gain += 0.04 if knobs.fix_sizes == "after" else 0.0
    gain -= 0.5 if knobs.fusion == "min" else 0.0
    if any(tile):
        near = sum(abs(math.log2(s or 4096) - b) for s, b in zip(tile, (4, 12, 5), strict=True))
        gain += 0.2 * math.exp(-near / 4) - 0.08
        gain += 0.12 if knobs.separate_tiles and knobs.unroll > 1 else 0.0
    return math.exp(gain)


def kernel_of(candidate: Candidate) -> str:
    """What ``hilly`` looks at: candidates that are equal in that are one kernel."""
    k = candidate.mapping
    tiled = any(k.tile)
    separate = tiled and k.separate_tiles
    return str((k.unroll, k.block, k.fix_sizes == "after", k.fusion == "min", k.tile, separate))


def search(
    sampler: Sampler,
    landscape: Landscape,
    evaluations: int,
    *,
    noise: float = 0.02,
    seed: int = 0,
) -> list[tuple[Candidate, float]]:
    """What a search tried, with what it was told."""
    clock = random.Random(seed)
    told: list[tuple[Candidate, float]] = []
    while len(told) < evaluations and not sampler.converged:
        asked = list(sampler.ask())[: evaluations - len(told)]
        found = [(c, landscape(c) * math.exp(clock.gauss(0, noise))) for c in asked]
        sampler.tell([(c, outcome(speed, kernel_of(c))) for c, speed in found])
        told += found
    return told


def outcome(speedup: float, source: str = "") -> Outcome:
    """What came of a candidate; 0: it was refused."""
    if not speedup:
        return Outcome("refused")
    return Outcome("ok", 100 / speedup, speedup, source=source)
