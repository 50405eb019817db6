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
from tcfuse.tc.ast import Def
from tcfuse.tc.binding import number, size_value
from tcfuse.tc.checked import CheckedDef
from tcfuse.tc.evaluate import evaluate
from tcfuse.tc.parser import parse_file
from tcfuse.tc.sema import check
from tcfuse.types import DType
from tests.codegen.conftest import runnable
from tests.op_library.paper_references import REFERENCES
from tests.targets.kernels import Compiled
from tests.targets.language import Ready, build_all, ready
from tests.targets.language import sizes_of as interface_sizes

DEFINITIONS: dict[str, Def] = {
    d.name: d for name in papers.names() for d in parse_file(papers.text(name), name)
}
# Three sets of sizes: even, odd, and with ones.
SIZES: dict[str, str] = {
    "tmm": "M N K: 16 32 8, 13 7 29, 1 5 1",
    "tbmm": "B N M K: 5 26 72 26, 3 7 11 5, 1 1 3 2",
    "c3": "B WX WY: 8 40 24, 5 33 7, 1 3 1",
    "mlp1": "B M N: 8 64 16, 3 37 11, 1 1 2",
    "fcrelu": "B N M: 8 16 64, 3 11 37, 1 2 1",
    "mlp3": "B N O P Q: 8 128 64 32 2, 5 13 7 3 1, 1 1 1 1 1",
    "tensordot": "N C1 C2 C3 H W: 2 6 8 2 14 14, 3 5 7 3 5 3, 1 2 1 1 1 4",
    "kronecker3": "M N0 N1 N2 D0 D1 D2: 4 8 8 8 4 4 4, 3 5 7 3 2 3 5, 1 2 1 1 1 3 1",
    "conv": "N C H W F KH KW: 2 4 14 14 4 3 3, 1 3 9 7 5 3 2, 1 1 3 4 2 3 1",
    "gconv": "N G C H W F KH KW: 2 4 4 10 10 4 3 3, 1 3 2 7 9 5 3 2, 1 1 1 3 3 1 3 3",
    "strided_conv": "N C H W F KH KW: 2 4 6 6 4 3 3, 1 3 5 4 5 4 3, 1 1 1 2 2 2 5",
    "conv_gradients": "N C H W F KH KW: 2 4 8 8 4 3 3, 2 3 9 7 5 3 2, 1 1 3 4 2 3 1",
    "masked_conv": "B C T F K: 2 4 32 8 4, 3 2 17 5 3, 1 1 5 1 1",
    "mobilenet": "N C H W F: 2 8 8 8 16, 1 5 7 9 3, 1 1 1 2 1",
    "max_pool": "N C H W: 2 3 8 8, 1 5 3 7, 1 1 1 1",
    "average_pool": "N C H W: 2 3 8 8, 1 5 3 7, 1 1 1 1",
    "wavenet": "B RES REC DIL SKIP DILATION: 1 8 64 8 16 2, 2 5 37 7 3 11, 1 1 4 2 3 6",
    "row_sum": "N K: 8 128, 7 37, 1 1",
    "row_mean": "N K: 8 128, 7 37, 1 1",
    "row_squares": "N K: 8 128, 7 37, 1 1",
    "row_variance": "N K: 8 128, 7 37, 1 1",
    "row_sums": "N K: 8 128, 7 37, 1 1",
    "row_moments": "N K: 8 128, 7 37, 1 1",
    "group_norm": "N G D H W: 2 4 4 6 6, 1 3 5 7 3, 1 1 2 1 3",
    "group_norm_moments": "N K: 8 144, 3 105, 1 6",
    "group_norm_apply": "N G D H W: 2 4 4 6 6, 1 3 5 7 3, 1 1 2 1 3",
    "layer_norm": "T B C: 7 32 64, 3 5 17, 1 1 2",
    "batch_norm": "N C H W: 4 8 6 6, 3 5 7 3, 1 1 1 2",
    "softmax_a": "N D: 8 64, 5 17, 1 1",
    "softmax_b": "N D: 8 64, 5 17, 1 1",
    "softmax_c": "N D: 8 64, 5 17, 1 1",
    "softmax_d": "N D: 8 64, 5 17, 1 1",
    "product": "N K: 8 64, 5 17, 1 1",
    "cosine_similarity": "M N D: 8 16 32, 5 7 17, 1 2 1",
    "masked_cosine": "B T D: 4 16 32, 3 7 17, 1 1 1",
    "min_distance": "NA NB D: 8 32 4, 5 17 3, 1 1 1",
    "triple_hadamard": "B D: 8 100, 5 17, 1 1",
    "concat": "M N K: 4 8 16, 3 5 7, 1 2 1",
    "lut1": "E D B L: 100 64 8 50, 17 5 3 7, 1 1 1 2",
    "lut2": "E1 D B L1 E2 L2: 100 64 8 50 60 20, 17 5 3 7 11 4, 1 1 1 2 1 1",
}
SIZES |= {
    "kronecker3_step1": "M N0 N1 N2 D2: 4 8 8 8 4, 3 5 7 3 5, 1 2 1 1 1",
    "kronecker3_step2": "M N0 N1 D2 D1: 4 8 8 4 4, 3 5 7 5 3, 1 2 1 1 3",
    "kronecker3_step3": "M N0 D1 D2 D0: 4 8 4 4 4, 3 5 3 5 2, 1 2 3 1 1",
}
POSITIONS = {"Index": "E", "Index1": "E1", "Index2": "E2", "Length": "T"}


def sizes_of(name: str) -> list[dict[str, int]]:
    names, _, rows = SIZES[name].partition(":")
    values = (map(int, row.split()) for row in rows.split(","))
    return [dict(zip(names.split(), row, strict=True)) for row in values]


CASES = [
    pytest.param(name, sizes, id=f"{name}-{'x'.join(map(str, sizes.values()))}")
    for name in DEFINITIONS
    for sizes in sizes_of(name)
]


def inputs_of(checked: CheckedDef, sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Inputs that the definition admits: positions inside, variances positive."""
    rng = np.random.default_rng(0)
    found: dict[str, np.ndarray] = {}
    for name in checked.inputs:
        kind = checked.tensors[name]
        shape = tuple(size_value(size, sizes) for size in kind.shape)
        if name in POSITIONS:
            lowest = int(name == "Length")
            values = rng.integers(lowest, sizes[POSITIONS[name]] + lowest, shape)
        elif kind.dtype is DType.BOOL:
            values = rng.random(shape) < 0.7
        elif "Variance" in name or name in ("Momentum", "Eps"):
            values = rng.uniform(0.1, 0.9, shape)
        else:
            values = rng.standard_normal(shape)
        found[name] = np.asarray(values).astype(kind.dtype.numpy)
    return found


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
