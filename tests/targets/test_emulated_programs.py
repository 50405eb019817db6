"""Programs of the language as CUDA in the emulator compute what the evaluator does.

A part of them; ``--all-cases`` runs every one.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tcfuse.tc.evaluate import evaluate
from tests.conformance.random_programs import Summary, for_emulator, random_programs, run
from tests.targets.emulated import EmulatedKernel, cuda_source, emulated
from tests.targets.language import Ready, Written, inputs_of, kernel_inputs, ready, sizes_of
from tests.targets.test_cpu import tolerance
from tests.targets.test_language_programs import PROGRAMS

pytestmark = pytest.mark.compiler

EVERY = 5  # the sample is every fifth program


def built(programs: dict[str, Written]) -> dict[str, tuple[Ready, EmulatedKernel]]:
    """Every program, compiled together."""
    made = {name: ready(written.text) for name, written in programs.items()}
    sources = [cuda_source(one, f"k{k}") for k, one in enumerate(made.values())]
    kernels = emulated(sources)
    return dict(zip(made, zip(made.values(), kernels, strict=True), strict=True))


@pytest.mark.timeout(1800)
def test_programs_of_the_language(request: pytest.FixtureRequest) -> None:
    every = 1 if request.config.getoption("--all-cases") else EVERY
    chosen = dict(list(PROGRAMS.items())[::every])
    for name, (program, kernel) in built(chosen).items():
        for position, sizes in enumerate(chosen[name].sizes):
            given = inputs_of(program.checked, sizes, chosen[name].below, position)
            agree(name, program, kernel, given, sizes)


@pytest.mark.timeout(600)
def test_random_programs(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    count = 200 if request.config.getoption("--all-cases") else 10
    summary = Summary()
    run(random_programs(count, 77), for_emulator, tmp_path, summary)
    assert not summary.wrong, "\n".join(summary.wrong)
    assert summary.equal >= count


def agree(
    name: str,
    program: Ready,
    kernel: EmulatedKernel,
    given: dict[str, np.ndarray],
    sizes: dict[str, int],
) -> None:
    inputs = kernel_inputs(program, given)
    found, fault = kernel(inputs, sizes_of(program.form.interface, inputs))
    assert fault == 0, name
    for output, right in evaluate(program.checked, given, sizes).items():
        assert found[output].shape == right.shape
        left = found[output]
        if right.dtype.kind == "f":
            scale = 1 + np.abs(right[np.isfinite(right)]).max(initial=0)
            error = tolerance(program.checked) * scale
            left = left.astype(np.float64)
            np.testing.assert_allclose(left, right, rtol=0, atol=error, err_msg=name)
        else:
            np.testing.assert_array_equal(left, right, err_msg=name)
