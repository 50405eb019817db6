"""What random options are tried on: a definition, its signature, and inputs it admits."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings

from tcfuse.interface import Interface
from tcfuse.tc.checked import CheckedDef
from tcfuse.tc.evaluate import evaluate
from tests.conformance.option_seeds import BUGS
from tests.op_library import test_papers
from tests.poly.definitions import ALL, checked_of
from tests.targets.kernels import Arrays, interface_of
from tests.targets.language import ready, sizes_of
from tests.targets.programs import MOST_POINTS, Program, arrays, points, programs
from tests.targets.test_cpu import CHOSEN, assert_equal

SIZES = (1, 2, 3, 7, 16, 17, 33, 70)


@dataclass(frozen=True)
class Trial:
    """One call: inputs, the sizes they have, and what is right."""

    inputs: Arrays
    sizes: Mapping[str, int]
    compare: Callable[[Arrays], None]


@dataclass(frozen=True)
class Subject:
    """A definition in the form that kernels are made of.

    Attributes:
        draw: A call, for sizes some of which are fixed; ``None`` when it would take too long.
        free: Size names that may be fixed to any number.
    """

    name: str
    checked: CheckedDef
    interface: Interface
    draw: Callable[[random.Random, Mapping[str, int]], Trial | None]
    free: tuple[str, ...] = ()


@cache
def subjects() -> dict[str, Subject]:
    """Every definition by name: of the tests, of the bugs of old, of the papers."""
    texts = {**ALL, **CHOSEN, **BUGS}
    found = {
        n: _plain(n, Program(text, ())) for n, text in texts.items() if n != "masked_gather"
    }
    found |= {f"paper_{name}": _paper(name) for name in test_papers.DEFINITIONS}
    return found


def random_subjects(count: int, number: int) -> list[Subject]:
    """Random definitions, the same for the same number."""
    if not count:
        return []
    drawn: list[Program] = []

    @seed(number)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(programs())
    def collect(program: Program) -> None:
        drawn.append(program)

    collect()
    return [_plain(f"random_{number}_{k}", p) for k, p in enumerate(drawn[:count])]


def _plain(name: str, program: Program) -> Subject:
    checked = checked_of(program.text)
    draw = partial(_draw_plain, program, checked)
    return Subject(name, checked, interface_of(checked), draw, checked.sizes)


def _draw_plain(
    program: Program, checked: CheckedDef, rng: random.Random, fixed: Mapping[str, int]
) -> Trial | None:
    sizes = {name: rng.choice(SIZES) for name in checked.sizes} | dict(fixed)
    if points(checked, sizes) > 40 * MOST_POINTS:
        return None
    inputs = arrays(program, checked, sizes, rng.randrange(1 << 30), wrong=False)
    if "I" in inputs:  # positions in the first dimension of X
        rows = max(inputs["X"].shape[0], 1)
        inputs["I"] = (np.arange(inputs["I"].size) % rows).reshape(inputs["I"].shape)
    right = evaluate(checked, inputs, sizes)
    return Trial(inputs, sizes, lambda found: assert_equal(checked, found, right))


def _paper(name: str) -> Subject:
    program = ready(str(test_papers.DEFINITIONS[name]), name)
    interface = program.form.interface
    draw = partial(_draw_paper, name, program.checked, interface)
    return Subject(f"paper_{name}", program.formed, interface, draw)


def _draw_paper(
    name: str,
    checked: CheckedDef,
    interface: Interface,
    rng: random.Random,
    fixed: Mapping[str, int],
) -> Trial:
    assert not fixed, "the sizes of a paper's kernel hang together"
    sizes = rng.choice(test_papers.sizes_of(name))
    inputs = test_papers.inputs_of(checked, sizes)
    right = evaluate(checked, inputs)
    return Trial(
        inputs,
        sizes_of(interface, inputs),
        lambda found: test_papers.assert_close(checked, found, right, sizes),
    )
