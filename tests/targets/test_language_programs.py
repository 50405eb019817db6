"""Every legal program compiles, and its kernel computes what the evaluator does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from tcfuse.errors import ToolchainError
from tcfuse.targets.toolchain import Toolchain
from tcfuse.tc.evaluate import evaluate
from tests.codegen.conftest import runnable
from tests.targets.kernels import Compiled
from tests.targets.language import (
    Ready,
    Written,
    build_all,
    inputs_of,
    kernel_inputs,
    ready,
    sizes_of,
)
from tests.targets.language_cases import CORNERS, INFERENCE, LAYERS, QUIRKS, TYPES, UPDATES
from tests.targets.test_cpu import tolerance

PROGRAMS: dict[str, Written] = {
    **INFERENCE,
    **CORNERS,
    **LAYERS,
    **QUIRKS,
    **TYPES,
    **UPDATES,
}

compiler = pytest.mark.compiler


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, tuple[Ready, Compiled]]:
    """Every program by name."""
    try:
        Toolchain.default()
    except ToolchainError as error:
        pytest.skip(f"no compiler: {error}")
    programs = {name: ready(written.text, name) for name, written in PROGRAMS.items()}
    folder: Path = tmp_path_factory.mktemp("programs")
    built = build_all(list(programs.values()), runnable()[-1], folder)
    return dict(zip(programs, zip(programs.values(), built, strict=True), strict=True))


@compiler
@pytest.mark.parametrize("name", PROGRAMS)
def test_kernel_computes_what_the_evaluator_does(name, compiled):
    program, kernel = compiled[name]
    for position, sizes in enumerate(PROGRAMS[name].sizes):
        given = inputs_of(program.checked, sizes, PROGRAMS[name].below, position)
        known = sizes_of(program.form.interface, kernel_inputs(program, given))
        found, fault = kernel(kernel_inputs(program, given), known)
        assert fault == 0
        for output, right in evaluate(program.checked, given, sizes).items():
            assert found[output].shape == right.shape
            if right.dtype.kind == "f":
                scale = 1 + np.abs(right[np.isfinite(right)]).max(initial=0)
                error = tolerance(program.checked) * scale
                left = found[output].astype(np.float64)
                np.testing.assert_allclose(left, right, rtol=0, atol=error, err_msg=output)
            else:
                np.testing.assert_array_equal(found[output], right, err_msg=output)
