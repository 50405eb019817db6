"""Compiled kernels against the evaluator, for random definitions and options."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tcfuse.errors import TcError, ToolchainError, UnsupportedError
from tcfuse.knob import knobs_of
from tcfuse.mapping_options import MappingOptions
from tcfuse.targets.compilers import Level
from tcfuse.targets.cpu import compile_kernel
from tcfuse.targets.toolchain import Toolchain
from tcfuse.tc.checked import CheckedDef
from tcfuse.tc.evaluate import evaluate
from tcfuse.types import DType
from tests.codegen.conftest import runnable
from tests.poly.definitions import ALL, SOFTMAX
from tests.targets.kernels import (
    Arrays,
    Compiled,
    build,
    checked_of,
    functions_of,
    interface_of,
    kernel_of,
)
from tests.targets.programs import (
    MOST_POINTS,
    SYMBOL_SIZES,
    Program,
    arrays,
    points,
    programs,
    random_elements,
)

compiler = pytest.mark.compiler
BATCH = 8  # definitions in one translation unit
OPTIONS = st.builds(
    MappingOptions,
    **{name: st.sampled_from(known.choices) for name, known in knobs_of(MappingOptions)},
)


@pytest.fixture(scope="session")
def two_levels() -> list[Level]:
    """The oldest and the newest instructions of this processor."""
    try:
        Toolchain.default()
    except ToolchainError as error:
        pytest.skip(f"no compiler: {error}")
    found = runnable()
    return found if len(found) == 1 else [found[0], found[-1]]


def tolerance(checked: CheckedDef) -> float:
    """The error allowed, relative to the largest element: the widest rounding on the way."""
    dtypes = {kind.dtype for kind in checked.tensors.values()}
    if DType.BFLOAT16 in dtypes:
        return 4e-2
    return 6e-3 if DType.FLOAT16 in dtypes else 2e-5


def assert_equal(
    checked: CheckedDef, found: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray]
) -> None:
    """Integers and booleans are equal; floats are near, NaNs where they belong."""
    for name, right in expected.items():
        if not checked.tensors[name].dtype.is_float:
            np.testing.assert_array_equal(found[name], right, err_msg=name)
            continue
        with np.errstate(over="ignore"):  # the evaluator's float64 holds more than 16 bits do
            infinite = np.isinf(right.astype(found[name].dtype))
        right = np.where(infinite, np.copysign(np.inf, right), right)
        finite = np.abs(right[np.isfinite(right)])
        scale = 1 + finite.max(initial=0)
        np.testing.assert_allclose(
            found[name].astype(np.float64),
            right,
            rtol=0,
            atol=tolerance(checked) * scale,
            err_msg=name,
        )


# ---------------------------------------------------------------------- random definitions


def try_out(compiled: Compiled, program: Program, trials: random.Random) -> None:
    """Run a kernel on inputs of several sizes, and once with positions that are wrong."""
    checked = compiled.checked
    for trial in range(4):
        wrong = trial == 3
        sizes = {name: trials.choice(SYMBOL_SIZES) for name in checked.sizes}
        if points(checked, sizes) > MOST_POINTS or (wrong and not program.gathers):
            continue
        inputs = arrays(program, checked, sizes, trials.randrange(1 << 30), wrong=wrong)
        expected = value_of(checked, inputs, sizes)
        found, fault = compiled(inputs, sizes, chunks=trials.choice((1, 2, 5)))
        if expected is None:
            assert wrong, "the evaluator refuses the inputs"
            assert fault == 1, "a wrong position goes unnoticed"
        else:  # a wrong position may be one that nothing reads
            assert fault == 0, "a fault in valid inputs"
            assert_equal(checked, found, expected)


def value_of(checked: CheckedDef, inputs: Arrays, sizes: Mapping[str, int]) -> Arrays | None:
    """What the evaluator makes of the inputs; ``None`` when it refuses a position."""
    try:
        return evaluate(checked, inputs, sizes)
    except TcError:
        return None


@compiler
@settings(
    deadline=None,
    max_examples=5,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],  # a failing batch says which definition it was
    suppress_health_check=list(HealthCheck),
)
@given(
    st.lists(st.tuples(programs(), OPTIONS), min_size=BATCH, max_size=BATCH),
    st.integers(0, 1 << 30),
)
def test_random_definitions(
    two_levels: Sequence[Level],
    tmp_path_factory: pytest.TempPathFactory,
    batch: list[tuple[Program, MappingOptions]],
    seed: int,
) -> None:
    definitions = [checked_of(program.text) for program, _ in batch]
    kernels = [
        kernel_of(checked, options, f"k{position}")
        for position, (checked, (_, options)) in enumerate(zip(definitions, batch, strict=True))
    ]
    folder = tmp_path_factory.mktemp("random")
    for row in build(definitions, kernels, two_levels, folder):
        trials = random.Random(seed)
        for compiled, (program, options) in zip(row, batch, strict=True):
            try:
                try_out(compiled, program, trials)
            except AssertionError as error:
                text = functions_of(compiled.kernel.source)
                error.add_note(f"{options}\n{program.text}\n{compiled.kernel.mapped}\n{text}")
                raise


# ---------------------------------------------------------------------- chosen definitions

NAN_MAX = """def f(float(n0, 20) X) -> (float(n0) A, float(n0) B, float(n0) C) {
  A(i) max=! X(i, j) where i in 0:n0, j in 0:20
  B(i) min=! X(i, j) where i in 0:n0, j in 0:20
  C(i) = max(X(i, 0), 0) + min(X(i, 1), 0) where i in 0:n0
}"""
EMPTY = """def f(float(n0) X, int8(n0) K, bool(n0) P)
    -> (float S, float M, int8 L, int8 N, bool A, bool E) {
  S() +=! X(i) where i in 0:n0
  M() max=! X(i) where i in 0:n0
  L() min=! K(i) where i in 0:n0
  N() *=! K(i) where i in 0:n0
  A() min=! P(i) where i in 0:n0
  E() max=! P(i) where i in 0:n0
}"""
ONE_ROW = """def f(float(1, n0) X) -> (float(1) Y, float(1, n0) Z) {
  Y(i) +=! X(i, j) where i in 0:1, j in 0:n0
  Z(i, j) = X(i, j) / (1 + abs(Y(i))) where i in 0:1, j in 0:n0
}"""
TRANSPOSE = """def f(float(n0, n1) X) -> (float(n1, n0) Y) {
  Y(i, j) = tanh(X(j, i)) where i in 0:n1, j in 0:n0
}"""
HALVES = """def f(double X) -> (float16 Y, bfloat16 Z) {
  Y() = float16(tanh(X()))
  Z() = bfloat16(tanh(X()))
}"""
JOINED_ROWS = """def f(float(1, 16) X, float(3, 16) Z, float(16, 4) B)
    -> (float(4, 16) J, float(4, 16) Y) {
  J(i, j) = X(i, j) where i in 0:1, j in 0:16
  J(i, j) = Z(i - 1, j) where i in 1:4, j in 0:16
  M(i) max=! J(i, j) + B(j, i) where i in 0:4, j in 0:16
  E(i, j) = exp(J(i, j) + B(j, i) - M(i)) where i in 0:4, j in 0:16
  S(i) +=! E(i, j) where i in 0:4, j in 0:16
  Y(i, j) = E(i, j) / S(i) where i in 0:4, j in 0:16
}"""
TRIANGLE = """def f(float(n0, n0) X) -> (float(n0, n0) Y) {
  Y(i, j) = j <= i ? X(i, j) : -inf() where i in 0:n0, j in 0:n0
}"""
MASKED_GATHER = """def f(float(7) X, int64(n0) I, bool(n0) P) -> (float(n0) Y) {
  Y(i) = P(i) ? X(I(i)) : -1.0 where i in 0:n0
}"""
SCALED = """def f(float(n0, n1) X) -> (float(n0, n1) Y) {
  Y(i, j) = X(i, j) * n1 + i * 2 - j where i in 0:n0, j in 0:n1
}"""
SPLIT_HEADS = """def f(float(n0, 24) X) -> (float(4, n0, 6) Y) {
  Y(h, i, j) = X(i, 6*h + j) where h in 0:4, i in 0:n0, j in 0:6
}"""
MERGED = """def f(float(n0, 4, 6) X) -> (float(n0, 24) Y) {
  Y(i, l) = X(i, l / 6, l % 6) where i in 0:n0, l in 0:24
}"""
WRAPPING = """def f(int8(n0) X, uint8(n0) Z) -> (int8(n0) Y, uint8(n0) W, int32(n0) V) {
  Y(i) = X(i) * X(i) + 100 where i in 0:n0
  W(i) = Z(i) - 200 where i in 0:n0
  V(i) = int32(X(i)) * 1000003 * 1000003 where i in 0:n0
}"""
LARGE_PLAIN = """def f(float(n0) X) -> (float(n0) Y) { Y(i) = X(i) + 1 where i in 0:n0 }"""
MANY_OUTPUTS = """def f(float(n0, n1) X)
    -> (float(n0) A, float(n1) B, float(n0, n1) C, float D) {
  A(i) +=! X(i, j) where i in 0:n0, j in 0:n1
  B(j) max=! X(i, j) where i in 0:n0, j in 0:n1
  C(i, j) = X(i, j) * A(i) - B(j) where i in 0:n0, j in 0:n1
  D() +=! C(i, j) * 0.001 where i in 0:n0, j in 0:n1
}"""
CONVOLUTION = """def f(float(2, 3, n0 + 2) X, float(4, 3, 3) W) -> (float(2, 4, n0) Y) {
  Y(n, m, i) +=! X(n, c, i + r) * W(m, c, r)
    where n in 0:2, m in 0:4, i in 0:n0, c in 0:3, r in 0:3
}"""
SHORT_LAST_STEP = """def k(float(4099) X, float(9, 72) Z) -> (Y, S, P) {
  Y(i) = X(i) + 1 where i in 0:4099
  S(j) +=! Z(i, j) where i in 0:9, j in 0:72
  P +=! S(j)
}"""
TABLE = """def k(uint8(n0, 40, 9) X, float A) -> (Y, Z) {
  Y(i, j, k) = uint8(int32(min(max(roundeven(erf(v * v / 3) / 0.1) + 9, 0), 255))) where
    i in 0:n0, j in 0:40, k in 0:9, v = (int32(X(i, j, k)) - 128) * A / 0.7
  Z(i, j, k) = sigmoid(tanh(float(X(i, j, k)) * A / 40) / 3 * A / 9) / 7 * A + X(0, 0, 0) where
    i in 0:n0, j in 0:40, k in 0:9
}"""
SIGNED_TABLE = """def k(int8(70, 65) X, float(65) B) -> (Y) {
  Y(i, j) = exp(v * v / -900 * 0.5 + v / 80 - v * v / 9000) / 3 + B(j) where
    i in 0:70, j in 0:65, v = float(X(i, j)) / 2
}"""
CHOSEN = {
    **ALL,
    "nan_max": NAN_MAX,
    "empty": EMPTY,
    "one_row": ONE_ROW,
    "transpose": TRANSPOSE,
    "triangle": TRIANGLE,
    "scaled": SCALED,
    "split_heads": SPLIT_HEADS,
    "merged": MERGED,
    "wrapping": WRAPPING,
    "large_plain": LARGE_PLAIN,
    "short_last_step": SHORT_LAST_STEP,
    "table": TABLE,
    "signed_table": SIGNED_TABLE,
    "many_outputs": MANY_OUTPUTS,
    "convolution": CONVOLUTION,
    "masked_gather": MASKED_GATHER,
}


@pytest.fixture(scope="session")
def chosen(
    two_levels: Sequence[Level], tmp_path_factory: pytest.TempPathFactory
) -> list[dict[str, Compiled]]:
    """Every definition of ``CHOSEN``, compiled for each level."""
    definitions = [checked_of(text) for text in CHOSEN.values()]
    kernels = [kernel_of(d, hint=name) for d, name in zip(definitions, CHOSEN, strict=True)]
    rows = build(definitions, kernels, two_levels, tmp_path_factory.mktemp("chosen"))
    return [dict(zip(CHOSEN, row, strict=True)) for row in rows]


def sizes_of(checked: CheckedDef, value: int) -> dict[str, int]:
    return {name: value + 2 * position for position, name in enumerate(checked.sizes)}


def inputs_of(checked: CheckedDef, sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    inputs = arrays(Program("", ()), checked, sizes, 7, wrong=False)
    for name in checked.inputs:
        if name == "I":  # positions, in every definition
            inputs[name] = np.arange(inputs[name].size) % max(sizes["n0"], 1)
    return inputs


@compiler
@pytest.mark.parametrize("size", [0, 1, 3, 7, 17, 33])
@pytest.mark.parametrize("name", [n for n in CHOSEN if n != "masked_gather"])
def test_chosen_definitions(chosen: list[dict[str, Compiled]], name: str, size: int) -> None:
    checked = chosen[0][name].checked
    if not checked.sizes and size:
        pytest.skip("all sizes are constant")
    sizes = sizes_of(checked, size)
    inputs = inputs_of(checked, sizes)
    if name == "gather" and size == 0:
        inputs["I"] = inputs["I"][:0]
        sizes["n1"] = 0
    expected = evaluate(checked, inputs, sizes)
    for level in chosen:
        found, fault = level[name](inputs, sizes)
        assert fault == 0
        assert_equal(checked, found, expected)


@compiler
def test_nan_wins_in_minima_and_maxima(chosen: list[dict[str, Compiled]]) -> None:
    x = random_elements(DType.FLOAT32, (23, 20), np.random.default_rng(0))
    for row, column in enumerate([*range(20), 0, 1, 19]):
        x[row, column] = np.nan
    x[3] = np.inf
    x[4] = -np.inf
    for level in chosen:
        checked = level["nan_max"].checked
        found, _ = level["nan_max"]({"X": x})
        assert_equal(checked, found, evaluate(checked, {"X": x}))
        assert np.isnan(found["A"][[0, 1, 2, *range(5, 23)]]).all()


@compiler
@pytest.mark.parametrize("length", [0, 1, 5])
def test_identities(chosen: list[dict[str, Compiled]], length: int) -> None:
    checked = chosen[0]["empty"].checked
    inputs = inputs_of(checked, {"n0": length})
    for level in chosen:
        found, _ = level["empty"](inputs)
        assert_equal(checked, found, evaluate(checked, inputs))
        if length == 0:
            assert (found["M"], found["L"], found["N"]) == (-np.inf, 127, 1)
            assert (bool(found["A"]), bool(found["E"])) == (True, False)


@compiler
@pytest.mark.parametrize("position", [0, 8, 15, 16, 22])
@pytest.mark.parametrize("wrong", [-1, 7, 1 << 40, -(1 << 63)])
def test_a_wrong_position_is_reported(
    chosen: list[dict[str, Compiled]], position: int, wrong: int
) -> None:
    x = np.zeros((7, 64), np.float32)
    indices = np.arange(23) % 7
    assert chosen[0]["gather"]({"X": x, "I": indices})[1] == 0
    indices[position] = wrong
    for level in chosen:
        assert level["gather"]({"X": x, "I": indices})[1] == 1


@compiler
def test_positions_nobody_asks_for_may_be_wrong(chosen: list[dict[str, Compiled]]) -> None:
    x = np.arange(7, dtype=np.float32)
    indices = np.arange(23) % 7
    asked = np.arange(23) % 3 != 0
    indices[~asked] = 1 << 40
    for level in chosen:
        gather = level["masked_gather"]
        found, fault = gather({"X": x, "I": indices, "P": asked})
        assert fault == 0
        np.testing.assert_array_equal(found["Y"], np.where(asked, (np.arange(23) % 7), -1))
        assert gather({"X": x, "I": indices, "P": ~asked})[1] == 1


@compiler
def test_many_steps_of_parallel_lanes(chosen: list[dict[str, Compiled]]) -> None:
    x = np.arange(3 * 4096 + 5, dtype=np.float32)
    for level in chosen:
        for chunks in (1, 4):
            found, _ = level["large_plain"]({"X": x}, chunks=chunks)
            np.testing.assert_array_equal(found["Y"], x + 1)


@compiler
def test_a_last_step_shorter_than_the_lanes_is_run(chosen: list[dict[str, Compiled]]) -> None:
    checked = chosen[0]["short_last_step"].checked
    inputs = inputs_of(checked, {})
    expected = evaluate(checked, inputs)
    for level in chosen:
        for chunks in (1, 2, 3):
            found, _ = level["short_last_step"](inputs, chunks=chunks)
            assert_equal(checked, found, expected)


@compiler
def test_a_wrong_kernel_is_noticed(
    chosen: list[dict[str, Compiled]],
) -> None:
    """The comparison itself: a kernel against another definition's value."""
    compiled = chosen[0]["scaled"]
    inputs = inputs_of(compiled.checked, {"n0": 4, "n1": 5})
    found, _ = compiled(inputs)
    wrong = {"Y": evaluate(compiled.checked, inputs)["Y"] + 0.01}
    with pytest.raises(AssertionError, match="Not equal"):
        assert_equal(compiled.checked, found, wrong)


@compiler
@pytest.mark.parametrize("numerics", ["default", "strict"])
@pytest.mark.parametrize("fusion", ["preserve", "max"])
@pytest.mark.parametrize("text", [HALVES, JOINED_ROWS], ids=["halves", "joined_rows"])
def test_alone(
    two_levels: Sequence[Level], tmp_path: Path, text: str, fusion: str, numerics: str
) -> None:
    """Definitions that once did not compile, or were wrong."""
    checked = checked_of(text)
    kernel = kernel_of(checked, MappingOptions(fusion=fusion, numerics=numerics))
    inputs = inputs_of(checked, {})
    for (compiled,) in build([checked], [kernel], two_levels, tmp_path):
        found, fault = compiled(inputs)
        assert fault == 0
        assert_equal(checked, found, evaluate(checked, inputs))


# ---------------------------------------------------------------------- without a compiler


def test_names_follow_everything_that_changes_the_text() -> None:
    name = kernel_of(SOFTMAX, hint="a b").source.name
    assert name.startswith("a_b_")
    assert kernel_of(SOFTMAX, hint="a b").source.name == name
    assert kernel_of(SOFTMAX, MappingOptions(accumulators=1), hint="a b").source.name != name
    assert kernel_of(ALL["pool"], hint="a b").source.name != name


def test_equal_definitions_give_equal_text() -> None:
    assert kernel_of(SOFTMAX).source == kernel_of(SOFTMAX).source


def test_a_kernel_says_how_it_was_scheduled() -> None:
    assert kernel_of(SOFTMAX, MappingOptions(isl_operations=100)).proof.notes == (
        "isl needed more than 100 operations; some statements run in textual order",
    )


def test_fixed_sizes_that_are_not_used_are_noted() -> None:
    checked = checked_of(SOFTMAX)
    for when, notes in (("never", ("fixed sizes ignored: fix_sizes is never",)), ("after", ())):
        kernel = compile_kernel(
            checked, interface_of(checked), "k", MappingOptions(fix_sizes=when), {"n0": 8}
        )
        assert kernel.proof.notes == notes
        assert bool(kernel.source.interface.checks) == (when != "never")


def test_what_cannot_be_proved_is_refused() -> None:
    text = "def f(float(8) X) -> (float(8) Y) { Y(i) = X(i) where i in 0:4 }"
    with pytest.raises(UnsupportedError, match="not every element of Y is written"):
        kernel_of(text)


def test_the_definition_travels_with_the_kernel() -> None:
    source = kernel_of(SOFTMAX).source
    assert source.tc.startswith("def softmax(")
    assert source.text.startswith("// def softmax(")


def test_a_text_that_no_compiler_takes_is_refused(monkeypatch):
    monkeypatch.setattr("tcfuse.targets.cpu.MOST_TEXT", 1000)
    with pytest.raises(UnsupportedError, match="too much for a compiler"):
        kernel_of(SCALED)
