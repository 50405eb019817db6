"""The corner cases of the 2019 language, one line each: a value, or the code of an error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest

from tcfuse.errors import TcError
from tcfuse.tc.evaluate import evaluate
from tcfuse.tc.parser import parse
from tcfuse.tc.sema import check

A = np.array([1.5, -2.0, 0.0, 4.0], np.float32)
B = np.array([3.0, -2.0, 1.0, 0.5], np.float32)
I = np.array([7, -7, 3, 0], np.int32)  # noqa: E741
TRUE = np.array([True, True, False, False])
OTHER = np.array([True, False, True, False])


@dataclass(frozen=True)
class Case:
    """One definition.

    Attributes:
        text: From the parameters on.
        outcome: The value of the first output, or the code of the error.
        inputs: What it is called with.
    """

    text: str
    outcome: object
    inputs: Mapping[str, np.ndarray] = field(default_factory=dict)


AB = {"A": A, "B": B}
COMPARISONS = {"<": A < B, "<=": A <= B, ">": A > B, ">=": A >= B, "==": A == B, "!=": A != B}

CASES = {
    "E1 syntax": Case("{}", "TC02"),
    "E2 copy": Case("(float(N) A) -> (O) { O(i) = A(i) }", A, {"A": A}),
    "E4 assignment without dimensions": Case(
        "(float A, float B) -> (O) { O = A + B }",
        np.float64(5),
        {"A": np.float32(2), "B": np.float32(3)},
    ),
    "E6 broadcast": Case(
        "(float A) -> (O) { O(i) = A where i in 0:3 }", np.full(3, 2.0), {"A": np.float32(2)}
    ),
    "E7 number of inputs": Case(
        "(float(N) A, float(N) B) -> (O) { O(i) = A(i) }", "TC32", {"A": A}
    ),
    "E8 element type": Case("(int32(N) A) -> (O) { O(i) = A(i) }", "TC33", {"A": A}),
    "E9 number of dimensions": Case(
        "(float(N, M) A) -> (O) { O(i) = A(i, 0) }", "TC34", {"A": A}
    ),
    "E10 broadcast along another": Case(
        "(float(N) A) -> (O) { O(i, j) = A(j) where i in 0:2 }", np.stack([A, A]), {"A": A}
    ),
    "E11 float subscript": Case("(float(N) A) -> (O) { O(i) = A(A(i)) }", "TC09", {"A": A}),
    "E12 tensor at the start of a range": Case(
        "(float(N) A, int32(N) I) -> (O) { O(i) = A(i) where i in I(0):N }", "TC11"
    ),
    "E13 tensor at the end of a range": Case(
        "(float(N) A, int32 I) -> (O) { O(i) = A(i) where i in 0:I() }", "TC11"
    ),
    **{
        f"E15 comparison {operator}": Case(
            f"(float(N) A, float(N) B) -> (O) {{ O(i) = A(i) {operator} B(i) }}", expected, AB
        )
        for operator, expected in COMPARISONS.items()
    },
    "E16 or, and, not": Case(
        "(bool(N) A, bool(N) B) -> (O) { O(i) = A(i) && !B(i) || !(A(i) || B(i)) }",
        (TRUE & ~OTHER) | ~(TRUE | OTHER),
        {"A": TRUE, "B": OTHER},
    ),
    "E17 exists": Case(
        "(float(N) A) -> (O) { O(i) = 2.5 where exists A(i) }", np.full(4, 2.5), {"A": A}
    ),
    "E18 let": Case(
        "(float(N) A) -> (O) { O(i) = t * t where t = A(i) + 1 }",
        (A.astype(np.float64) + 1) ** 2,
        {"A": A},
    ),
    "E19 range of a let": Case(
        "(float(N) A) -> (O) { O(i) = A(i) + t where t = 2, t in 0:3 }", "TC24"
    ),
    # The original has no temporaries.
    "E20 temporary": Case(
        "(float(N) A) -> (O) { T(i) = A(i) * 2 O(i) = T(i) + 1 }", A * 2 + 1, {"A": A}
    ),
    "E21 minimum": Case(
        "(float(N) A, float(N) B) -> (O) { O(i) = min(A(i), B(i)) }", np.minimum(A, B), AB
    ),
    "E22 maximum in a minimum": Case(
        "(float(N) A, float(N) B) -> (O) { O(i) = min(max(A(i), B(i)), 1) }",
        np.minimum(np.maximum(A, B), 1),
        AB,
    ),
    "E23 minimum as a subscript": Case(
        "(float(N) A) -> (O) { O(i) = A(max(min(i - 1, N - 1), 0)) where i in 0:N + 2 }",
        A[[0, 0, 1, 2, 3, 3]],
        {"A": A},
    ),
    "E24 line ends anywhere": Case(
        "(\nfloat\n(\nN)\nA)\n->\n(\nO)\n{\nO\n(i)\n+=!\nA\n(\ni\n)\n\n}\n", A, {"A": A}
    ),
    "E25 wrong number of dimensions of an output": Case(
        "(float(N) A) -> (float(N, N) O) { O(i) = A(i) }", "TC18"
    ),
    "E26 modulo": Case(
        "(int32(N) I) -> (O) { O(i) = I(i) % 4 + i % 3 }", I % 4 + np.arange(4) % 3, {"I": I}
    ),
}

# Disabled in the original, whose kernels could not do it.
DISABLED = {
    "a definition named main": Case("(float(N) A) -> (O) { O(i) = A(i) }", A, {"A": A}),
    "a definition without inputs": Case(
        "() -> (O) { O(i) = 3 * i where i in 0:4 }", np.array([0, 3, 6, 9]), {}
    ),
    "a range of N * N": Case(
        "(float(N) A) -> (O) { O(i) = A(i / N) where i in 0:N * N }", np.repeat(A, 4), {"A": A}
    ),
}


def test_every_case_of_the_original_is_here() -> None:
    # E15 is six comparators; E3, E5 and E14 are not among them.
    assert len({name.split()[0] for name in CASES}) == 23
    assert (len(CASES), len(DISABLED)) == (28, 3)


@pytest.mark.parametrize("name", [*CASES, *DISABLED])
def test_case(name: str) -> None:
    case = CASES.get(name) or DISABLED[name]
    text = f"def {'main' if 'main' in name else 'f'}{case.text}"
    if isinstance(case.outcome, str):
        with pytest.raises(TcError) as error:
            evaluate(parse(text), case.inputs)
        assert error.value.code == case.outcome
        return
    found = evaluate(parse(text), case.inputs)
    np.testing.assert_allclose(found["O"], case.outcome, rtol=1e-15)


# What the original promises and does not do: statements run in the order they are written in.

X = np.random.default_rng(3).normal(size=(3, 5))
SOFTMAX = np.exp(X - X.max(1, keepdims=True))
SOFTMAX /= SOFTMAX.sum(1, keepdims=True)
SOFTMAXES = {
    "A": """(float(N, D) I) -> (O, tmp) {
      tmp(n) max=! I(n, d)
      O(n, d) = exp(I(n, d) - tmp(n))
      tmp(n) +=! O(n, d)
      O(n, d) = O(n, d) / tmp(n)
    }""",
    "B": """(float(N, D) I) -> (O, tmp, tmp1) {
      tmp(n) max=! I(n, d)
      O(n, d) = exp(I(n, d) - tmp(n))
      tmp1(n) +=! O(n, d)
      O(n, d) = O(n, d) / tmp1(n)
    }""",
    "C": """(float(N, D) I) -> (O, expsum, maxVal) {
      maxVal(n) max=! I(n, d)
      expsum(n) +=! exp(I(n, d) - maxVal(n))
      O(n, d) = exp(I(n, d) - maxVal(n)) / expsum(n)
    }""",
    "D": """(float(N, D) I) -> (O, maxVal, expDistance, expSum) {
      maxVal(n) max=! I(n, d)
      expDistance(n, d) = exp(I(n, d) - maxVal(n))
      expSum(n) +=! expDistance(n, d)
      O(n, d) = expDistance(n, d) / expSum(n)
    }""",
}


@pytest.mark.parametrize("name", SOFTMAXES)
def test_softmax(name: str) -> None:
    definition = parse(f"def softmax{SOFTMAXES[name]}")
    np.testing.assert_allclose(evaluate(definition, {"I": X})["O"], SOFTMAX, rtol=1e-12)


def test_a_later_update_is_not_seen_before() -> None:
    text = "def f(float(N) X) -> (A, B) { A(i) = X(i) B(i) = A(i) * 2 A(i) = A(i) + 1 }"
    found = evaluate(parse(text), {"X": A})
    np.testing.assert_array_equal(found["B"], A * 2)
    np.testing.assert_array_equal(found["A"], A + 1)


def test_two_tensors_may_use_each_other() -> None:
    text = """
    def f(float(N) X) -> (A, B) {
      A(i) = X(i)
      B(i) = A(i) * 2
      A(i) = A(i) + B(i)
      B(i) = B(i) - A(i)
    }
    """
    found = evaluate(parse(text), {"X": A})
    np.testing.assert_array_equal(found["A"], 3 * A)
    np.testing.assert_array_equal(found["B"], -A)


@pytest.mark.parametrize(("operator", "start"), [("+=!", 0), ("*=!", 1), ("max=!", -np.inf)])
def test_every_reset_resets(operator: str, start: float) -> None:
    """In the original only the first statement of a tensor does."""
    text = f"def f(float(N) X, float(N) Z) -> (O) {{ O(i) = X(i) O(i) {operator} Z(i) }}"
    combine = {"+=!": np.add, "*=!": np.multiply, "max=!": np.maximum}[operator]
    found = evaluate(parse(text), {"X": A + 100, "Z": B})["O"]
    np.testing.assert_array_equal(found, combine(start, B))


def test_an_update_of_a_part_does_not_shrink_the_tensor() -> None:
    text = """
    def f(float(N) X) -> (O) {
      O(i) = X(i)
      O(i) = O(i - 1) + O(i + 1)
    }
    """
    checked = check(parse(text))
    assert checked.tensors["O"].shape == ("N",)
    found = evaluate(checked, {"X": A})["O"]
    np.testing.assert_array_equal(found, [A[0], A[0] + A[2], A[1] + A[3], A[3]])


def test_a_ternary_guards_its_reads() -> None:
    value = "(i > 0 ? X(i - 1) : 0) + (i < N - 1 ? X(i + 1) : 0)"
    text = f"def f(float(N) X) -> (float(N) O) {{ O(i) = {value} }}"
    padded = np.pad(A, 1)
    np.testing.assert_array_equal(
        evaluate(parse(text), {"X": A})["O"], padded[:-2] + padded[2:]
    )


def test_a_ternary_guards_a_read_in_an_inferred_range() -> None:
    text = "def f(float(N) X) -> (O) { O(i) = X(i) + (i >= 2 ? X(i - 2) : 0) }"
    expected = A + np.concatenate([[0, 0], A[:-2]])
    np.testing.assert_array_equal(evaluate(parse(text), {"X": A})["O"], expected)
