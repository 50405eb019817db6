"""Random programs of the whole language: the kernel computes what the evaluator does.

Those of a hundred texts that are well-formed; of two thousand with ``--all-cases``.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from tcfuse.errors import TcError, ToolchainError, UnsupportedError
from tcfuse.targets.toolchain import Toolchain
from tcfuse.tc.binding import number
from tcfuse.tc.checked import CheckedDef
from tcfuse.tc.evaluate import evaluate
from tcfuse.tc.parser import parse
from tcfuse.tc.sema import check
from tests.codegen.conftest import runnable
from tests.targets.language import Ready, RefusedError, build_all, ready, sizes_of
from tests.tc.grammar import definitions

pytestmark = pytest.mark.compiler

SIZES = ((4, 5), (5, 3), (1, 1), (0, 0), (9, 17), (2, 7))
BATCH = 200
LARGEST = 1e30
NEVER_RUN = "there are no sizes for which"


def texts(count: int) -> list[str]:
    """Different texts, the same in every run."""
    found: dict[str, None] = {}

    @seed(0)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(definitions())
    def collect(text: str) -> None:
        found[text] = None

    collect()
    return list(found)


def is_well_formed(text: str) -> bool:
    try:
        check(parse(text), affine=False)
    except TcError:
        return False
    return True


def inputs(n: int, m: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng((n, m))
    return {
        "A": rng.normal(size=(n, m)).astype(np.float32),
        "B": rng.normal(size=n).astype(np.float32),
        "I": rng.integers(0, max(n, 1), m).astype(np.int32),
        "S": rng.normal(size=()).astype(np.float32),
    }


def has_an_empty_domain(checked: CheckedDef, sizes: Mapping[str, int]) -> bool:
    ranges = (r for statement in checked.statements for r in statement.ranges)
    return any(number(r.low, sizes) >= number(r.high, sizes) for r in ranges)


def compiled(text: str, name: str) -> Ready | None:
    """The kernel; ``None`` for a program that no sizes suit, for the evaluator neither."""
    try:
        return ready(text, name)
    except UnsupportedError as error:
        reason = str(error)
    assert reason.startswith(NEVER_RUN), f"{reason}\n{text}"
    checked = check(parse(text), affine=False)
    for n, m in SIZES:
        if not has_an_empty_domain(checked, {"N": n, "M": m}):
            with pytest.raises(TcError):
                evaluate(checked, inputs(n, m))
    return None


def compare(text: str, program: Ready, kernel, n: int, m: int) -> bool:
    """Whether there was a result to compare; refusals must agree too."""
    given_arrays = inputs(n, m)
    expected, refusal, known = None, "", {}
    with suppress(TcError):
        expected = evaluate(program.checked, given_arrays)
    try:
        known = sizes_of(program.form.interface, given_arrays)
    except RefusedError as error:
        refusal = f"{error}\n{text}"
    if refusal:
        # Of what is never run the kernel may ask more than the evaluator.
        empty = has_an_empty_domain(program.checked, {"N": n, "M": m})
        assert expected is None or empty, refusal
        return False
    found, fault = kernel(given_arrays, known)
    assert (expected is None) == bool(fault), text
    if expected is None:
        return False
    if any(np.any(np.abs(exact) > LARGEST) for exact in expected.values()):
        return False  # out of the range of float, or soon to be
    for name in program.checked.outputs:
        exact = expected[name]
        written = ~np.isnan(exact)
        finite = exact[np.isfinite(exact)]
        largest = float(np.max(np.abs(finite), initial=1))
        values = np.asarray(found[name], np.float64).reshape(exact.shape)
        np.testing.assert_allclose(
            values[written], exact[written], rtol=2e-3, atol=2e-3 * largest, err_msg=text
        )
    return True


def test_kernels_compute_what_the_evaluator_does(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    try:
        Toolchain.default()
    except ToolchainError as error:
        pytest.skip(f"no compiler: {error}")
    count = 2000 if request.config.getoption("--all-cases") else 100
    drawn = [text for text in texts(count) if is_well_formed(text)]
    assert len(drawn) > count // 2
    compared = 0
    for start in range(0, len(drawn), BATCH):
        batch = drawn[start : start + BATCH]
        made = {text: compiled(text, f"k{k}") for k, text in enumerate(batch)}
        programs = {text: program for text, program in made.items() if program is not None}
        folder = tmp_path / str(start)
        folder.mkdir()
        kernels = build_all(list(programs.values()), runnable()[-1], folder)
        for (text, program), kernel in zip(programs.items(), kernels, strict=True):
            compared += sum(compare(text, program, kernel, n, m) for n, m in SIZES)
    assert compared > 2 * len(drawn)
