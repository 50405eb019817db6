"""Reductions in two stages: when, into what, and that the result is the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcfuse.errors import ToolchainError
from tcfuse.mapping.splitting import split_reductions
from tcfuse.targets.compilers import Level
from tcfuse.targets.toolchain import Toolchain
from tcfuse.tc.checked import CheckedDef
from tcfuse.tc.evaluate import evaluate
from tcfuse.tc.unparse import unparse_statement
from tests.codegen.conftest import runnable
from tests.poly.definitions import checked_of
from tests.targets.kernels import build, kernel_of
from tests.targets.test_cpu import assert_equal

TOTAL = "def f(float(K) X) -> (float Y) { Y +=! X(k) * X(k) }"
LARGE = {
    "total": "def f(float(1 << 20) X) -> (float Y) { Y max=! X(k) }",
    "unknown": TOTAL,
    "rows": "def f(float(3, 100003) X) -> (float16(3) Y) { Y(i) +=! X(i, k) }",
    "columns": "def f(float(70001, 64) X) -> (float(64) Y) { Y(j) +=! X(i, j) }",
    "batch": "def f(float(N, 64, 56, 56) X) -> (float(64) Y) { Y(c) +=! X(n, c, h, w) }",
    "channels": """def f(float(32, 64, 56, 56) X) -> (float(64) M, float(64) V) {
      M(c) +=! X(n, c, h, w)
      V(c) +=! t * t where t = X(n, c, h, w) - M(c) / 100352.0
    }""",
    "two_unknown": "def f(float(N, M) X) -> (float Y) { Y min=! X(n, m) }",
    "product": """def f(float(64, 9000) A, float(9000, 64) B) -> (float(64, 64) Y) {
      Y(i, j) +=! A(i, k) * B(k, j)
    }""",
    "part_of_a_range": """def f(float(90000) X) -> (float Y) {
      Y +=! X(k - 3) where k in 3:80000
    }""",
}


def text(checked: CheckedDef) -> str:
    """Every statement, then the types of what is written."""
    lines = [unparse_statement(s.comprehension) for s in checked.statements]
    given = set(checked.inputs)
    lines += [f"{kind} {name}" for name, kind in checked.tensors.items() if name not in given]
    return "\n".join(lines)


@pytest.mark.parametrize("name", LARGE)
def test_what_a_long_reduction_becomes(
    name: str, golden: Callable[[object, str], None]
) -> None:
    checked = checked_of(LARGE[name].replace("1 << 20", "1048576"))
    golden(text(split_reductions(checked)), "tc")


@pytest.mark.parametrize(
    "definition",
    [
        "def f(float(4096, 4096) X) -> (float(4096) Y) { Y(i) +=! X(i, k) }",  # many results
        "def f(float(8, 4096) X) -> (float(8) Y) { Y(i) +=! X(i, k) }",  # short
        "def f(float(N, 65536) X) -> (float(N) Y) { Y(i) +=! X(i, k) }",  # perhaps many results
        "def f(float(8, K) X) -> (float(8) Y) { Y(i) +=! X(i, k) }",  # perhaps short
        "def f(float(200, 64) X) -> (float(64) Y) { Y(j) +=! X(i, j) }",
        "def f(float(0) X) -> (float Y) { Y +=! X(k) }",
        "def f(float(H, W) X) -> (float Y) { Y +=! X(h, 0) where h in 0:H-W }",
        "def f(float(99999) X) -> (float(99999) Y) { Y(i) = X(i) }",
        """def f(float(1024, 1024) A, float(1024, 1024) B) -> (float(1024, 1024) Y) {
          Y(i, j) +=! A(i, k) * B(k, j)
        }""",
    ],
)
def test_what_pays_for_no_second_stage_stays(definition: str) -> None:
    checked = checked_of(definition)
    assert split_reductions(checked) is checked


def test_one_part_is_no_split() -> None:
    checked = checked_of(TOTAL)
    assert split_reductions(checked, parts=1) is checked


@pytest.mark.parametrize(
    ("operator", "dtype", "splits"),
    [
        ("+", "float", False),
        ("*", "double", False),
        ("max", "float", True),
        ("+", "int32", True),
    ],
)
def test_the_order_of_sums_of_floats_is_kept_when_asked_to(
    operator: str, dtype: str, splits: bool
) -> None:
    checked = checked_of(f"def f({dtype}(K) X) -> ({dtype} Y) {{ Y {operator}=! X(k) }}")
    assert (split_reductions(checked, reassociate=False) is not checked) == splits


def test_what_depends_on_its_own_sum_stays() -> None:
    checked = checked_of("def f(float(K) X) -> (float Y) { Y = 1 Y += X(k) * Y }")
    assert split_reductions(checked) is checked


# ------------------------------------------------------------------ the same results

SHAPES = (0, 1, 2, 3, 7, 16, 31, 64)
OPERATORS = {
    "float": ("+", "*", "min", "max"),
    "int32": ("+", "*", "min", "max"),
    "bool": ("min", "max"),
}


@st.composite
def reductions(draw: st.DrawFn) -> tuple[CheckedDef, dict[str, int]]:
    """A reduction of a tensor of rank three, and its sizes, some of them symbolic."""
    dtype = draw(st.sampled_from(list(OPERATORS)))
    operator = draw(st.sampled_from(OPERATORS[dtype]))
    sizes = {name: draw(st.sampled_from(SHAPES)) for name in "ijk"}
    order = draw(st.permutations("ijk"))
    results = draw(st.sets(st.sampled_from("ijk"), max_size=2))
    indices = draw(st.permutations(sorted(results)))
    fixed = draw(st.sets(st.sampled_from("ijk")))
    named = {n: str(sizes[n]) if n in fixed else n.upper() for n in "ijk"}
    where = {n: f"{n} in 0:{named[n]}" for n in "ijk"}
    target = f"Y({', '.join(indices)})" if indices else "Y"
    shape = f"({', '.join(named[n] for n in indices)})" if indices else ""
    value = f"X({', '.join(order)})"
    body = f"{target} {operator}=! {value} where {', '.join(where.values())}"
    reduced = next(n for n in "ijk" if n not in results)
    if sizes[reduced] > 3 and draw(st.booleans()):  # the first two values apart
        low = body.replace(where[reduced], f"{reduced} in 0:2")
        rest = body.replace(where[reduced], f"{reduced} in 2:{sizes[reduced]}")
        body = f"{low}\n{rest.replace('=!', '=')}"
        named[reduced] = str(sizes[reduced])
    given = f"{dtype}({', '.join(named[n] for n in order)}) X"
    text = f"def f({given}) -> ({dtype}{shape} Y) {{\n{body}\n}}"
    return checked_of(text), {n.upper(): sizes[n] for n in "ijk"}


def elements(checked: CheckedDef, sizes: dict[str, int], seed: int) -> dict[str, np.ndarray]:
    """A value for ``X``."""
    kind = checked.tensors["X"]
    shape = tuple(s if isinstance(s, int) else sizes[s] for s in kind.shape)
    rng = np.random.default_rng(seed)
    if kind.dtype.is_float:
        return {"X": rng.uniform(0.9, 1.1, shape).astype(kind.dtype.numpy)}
    return {
        "X": rng.integers(0, 2 if kind.dtype.tc == "bool" else 9, shape).astype(
            kind.dtype.numpy
        )
    }


@settings(max_examples=80, deadline=None)
@given(made=reductions(), parts=st.sampled_from((0, 2, 3, 5, 16)), seed=st.integers(0, 9))
def test_the_result_is_the_same(
    made: tuple[CheckedDef, dict[str, int]], parts: int, seed: int
) -> None:
    checked, sizes = made
    inputs = elements(checked, sizes, seed)
    split = split_reductions(checked, parts=parts)
    known = {name: sizes[name] for name in checked.sizes}
    expected, found = (evaluate(d, inputs, known)["Y"] for d in (checked, split))
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("length", [0, 1, 4095, 4096, 4099, 3 * 4096, 20011, 300 * 4096 + 5])
def test_the_result_is_the_same_for_every_length(length: int) -> None:
    checked = checked_of(TOTAL)
    inputs = {"X": np.sin(np.arange(length, dtype=np.float32))}
    expected, found = (evaluate(d, inputs)["Y"] for d in (checked, split_reductions(checked)))
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.compiler
def test_kernels_of_both_stages_are_right(tmp_path: Path, levels: list[Level]) -> None:
    definitions = [
        (checked_of(TOTAL), 0, [{"K": k} for k in (0, 5, 4096, 9001)]),
        (
            checked_of("def f(float(N, M) X) -> (float Y) { Y max=! X(n, m) }"),
            0,
            [{"N": 4100, "M": 3}, {"N": 3, "M": 0}, {"N": 0, "M": 4}],
        ),
        (
            checked_of("def f(float(N, 3, 300) X) -> (float(3) Y) { Y(c) +=! X(n, c, h) }"),
            4,
            [{"N": n} for n in (0, 1, 7, 40)],
        ),
        (
            checked_of("def f(float16(3, 101) X) -> (float16(3) Y) { Y(i) +=! X(i, k) }"),
            7,
            [{}],
        ),
        (checked_of("def f(int8(101, 3) X) -> (int8(3) Y) { Y(j) +=! X(i, j) }"), 7, [{}]),
        (checked_of("def f(bool(101) X) -> (bool Y) { Y min=! X(i) }"), 7, [{}]),
        (
            checked_of("""def f(float(40, 70) X) -> (float Y, float(40, 70) Z) {
          Y +=! X(i, j)
          Z(i, j) = X(i, j) / Y
        }"""),
            8,
            [{}],
        ),
    ]
    splits = [split_reductions(checked, parts=parts) for checked, parts, _ in definitions]
    assert all(s is not d[0] for s, d in zip(splits, definitions, strict=True))
    kernels = [kernel_of(split) for split in splits]
    for built in build(splits, kernels, levels, tmp_path):
        for kernel, (checked, _, trials) in zip(built, definitions, strict=True):
            for sizes in trials:
                inputs = elements(checked, sizes, seed=1)
                found, fault = kernel(inputs, sizes)
                assert not fault
                assert_equal(checked, found, evaluate(checked, inputs, sizes))


@pytest.fixture
def levels() -> list[Level]:
    """The newest instructions of this processor."""
    try:
        Toolchain.default()
    except ToolchainError as error:
        pytest.skip(f"no compiler: {error}")
    return runnable()[-1:]
