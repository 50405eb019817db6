"""The kernels of the papers: the evaluator against NumPy, kernels against the evaluator."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from types import SimpleNamespace

import numpy as np
import pytest

import tcfuse
from op_library import papers
from tcfuse.errors import ToolchainError
from tcfuse.targets.toolchain import Toolchain
from tcfuse.tc.binding import number
from tcfuse.tc.checked import CheckedDef
from tcfuse.tc.evaluate import evaluate
from tcfuse.tc.sema import check
from tests.codegen.conftest import runnable
from tests.op_library.paper_cases import DEFINITIONS, SIZES, inputs_of, sizes_of
from tests.op_library.paper_references import REFERENCES
from tests.targets.kernels import Compiled
from tests.targets.language import Ready, build_all, ready
from tests.targets.language import sizes_of as interface_sizes

CASES = [
    pytest.param(name, sizes, id=f"{name}-{'x'.join(map(str, sizes.values()))}")
    for name in DEFINITIONS
    for sizes in sizes_of(name)
]


def terms(checked: CheckedDef, sizes: Mapping[str, int]) -> int:
    """The most additions one element of an output takes part in."""
    total = 0
    for statement in checked.statements:
        ranges = {r.name: r for r in statement.ranges}
        total += prod(
            number(ranges[v].high, sizes) - number(ranges[v].low, sizes)
            for v in statement.reduction
        )
    return total


def assert_close(
    checked: CheckedDef,
    found: Mapping[str, np.ndarray],
    expected: Mapping[str, np.ndarray],
    sizes: Mapping[str, int],
) -> None:
    """Near by the rounding of each type and the length of the sums; integers are equal."""
    for name, right in expected.items():
        kind = checked.tensors[name].dtype
        if not kind.is_float:
            np.testing.assert_array_equal(found[name], right, err_msg=name)
            continue
        unit = float(np.finfo(kind.numpy).eps) * (16 + terms(checked, sizes))
        scale = 1 + np.abs(right).max(initial=0)
        np.testing.assert_allclose(found[name], right, rtol=0, atol=unit * scale, err_msg=name)


def test_every_definition_has_sizes_and_a_reference() -> None:
    assert DEFINITIONS.keys() == SIZES.keys() == REFERENCES.keys()


def test_every_file_says_what_it_is_and_where_it_comes_from() -> None:
    for name in papers.names():
        text = papers.text(name)
        assert text.startswith("# "), name
        assert "# Source: " in text, name
        assert "# Sizes" in text, name
        assert max(map(len, text.splitlines())) <= 96, name


def test_an_unknown_kernel_is_named() -> None:
    with pytest.raises(KeyError, match="no paper kernel 'tnn'; there are batch_norm, "):
        papers.text("tnn")


@pytest.mark.parametrize(("name", "sizes"), CASES)
def test_the_definition_says_what_the_paper_does(name: str, sizes: dict[str, int]) -> None:
    checked = check(DEFINITIONS[name], affine=False)
    inputs = inputs_of(checked, sizes)
    wide = {k: x.astype(np.float64) if x.dtype == np.float32 else x for k, x in inputs.items()}
    found = evaluate(checked, inputs)
    expected = REFERENCES[name](SimpleNamespace(**wide))
    for output, right in zip(checked.outputs, expected, strict=True):
        assert found[output].shape == np.shape(right)
        np.testing.assert_allclose(found[output], right, rtol=1e-9, atol=1e-9, err_msg=output)


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Ready, Compiled]]:
    """Every kernel for all sizes, for this processor's newest instructions."""
    try:
        Toolchain.default()
    except ToolchainError as error:
        pytest.skip(f"no compiler: {error}")
    programs = [ready(str(d), d.name) for d in DEFINITIONS.values()]
    row = build_all(programs, runnable()[-1], tmp_path_factory.mktemp("papers"))
    return dict(zip(DEFINITIONS, zip(programs, row, strict=True), strict=True))


@pytest.mark.compiler
@pytest.mark.parametrize(("name", "sizes"), CASES)
def test_the_kernel_computes_the_definition(
    kernels: Mapping[str, tuple[Ready, Compiled]], name: str, sizes: dict[str, int]
) -> None:
    program, compiled = kernels[name]
    inputs = inputs_of(program.checked, sizes)
    found, fault = compiled(inputs, interface_sizes(program.form.interface, inputs))
    assert fault == 0
    assert_close(program.checked, found, evaluate(program.checked, inputs), sizes)


@pytest.mark.compiler
@pytest.mark.parametrize("fixed", [False, True], ids=["symbolic", "fixed"])
@pytest.mark.parametrize("name", ["conv", "softmax_a", "lut2", "wavenet"])
def test_a_layer_computes_the_definition(name: str, fixed: bool) -> None:
    """One of each kind, as users call them, for all sizes and for these alone."""
    sizes = sizes_of(name)[1]
    definition = DEFINITIONS[name]
    checked = check(definition, affine=False)
    inputs = inputs_of(checked, sizes)
    layers = tcfuse.define(str(definition), sizes=sizes if fixed else None, quiet=True)
    found = layers[name](*inputs.values())
    outputs = found if isinstance(found, tuple) else (found,)
    named = dict(zip(checked.outputs, outputs, strict=True))
    assert_close(checked, named, evaluate(checked, inputs), sizes)
