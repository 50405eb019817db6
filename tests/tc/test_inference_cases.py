"""The range inference tests of the 2019 language, each with its outcome.

There a warning is an error.  Here what cannot be proved is a precondition that is checked at
run time, so some of its errors are preconditions; the table says which.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest

from tcfuse.errors import TcError
from tcfuse.tc.binding import number
from tcfuse.tc.checked import CheckedDef
from tcfuse.tc.evaluate import evaluate
from tcfuse.tc.parser import parse, parse_expr
from tcfuse.tc.sema import check
from tcfuse.tc.unparse import unparse_expr
from tests.tc.loops import run

RANDOM = np.random.default_rng(7)


@dataclass(frozen=True)
class Case:
    """A definition and what inference makes of it.

    Attributes:
        shapes: For each output the lowest subscripts and the extents: ``"0 1; N M"``.
        sums: Ranges of reduction variables that have no explicit one.
        requires: The preconditions.
        error: The code of the error, when there is one.
        sizes: Numbers to run it with.
    """

    params: str
    body: str
    shapes: Mapping[str, str] = field(default_factory=dict)
    sums: Mapping[str, str] = field(default_factory=dict)
    requires: tuple[str, ...] = ()
    error: str = ""
    sizes: Mapping[str, int] = field(default_factory=dict)


CONVOLUTION = "float(N, C, H, W) I, float(M, C, KH, KW) W1"
SUMS = {"c": "0:C", "kh": "0:KH", "kw": "0:KW"}
FILTER = {"N": 2, "C": 2, "H": 5, "W": 6, "M": 2, "KH": 2, "KW": 3}
CUBES = "float(A0, A1, A2) A, float(B0, B1, B2) B, float(C0, C1, C2) C"
CUBE_SIZES = {"A0": 3, "A1": 4, "A2": 2, "B0": 2, "B1": 5, "B2": 3, "C0": 3, "C1": 2, "C2": 4}

CASES = {
    "Copy1D": Case("float(N) I", "O(i) = I(i)", {"O": "0; N"}, sizes={"N": 4}),
    "Copy2D": Case(
        "float(N, M) I", "O(i, j) = I(i, j)", {"O": "0, 0; N, M"}, sizes={"N": 4, "M": 3}
    ),
    "Transpose2D": Case(
        "float(N, M) I", "O(i, j) = I(j, i)", {"O": "0, 0; M, N"}, sizes={"N": 4, "M": 3}
    ),
    "Transpose4D": Case(
        "float(A, B, C, D) I",
        "O(i, j, k, l) = I(l, k, i, j)",
        {"O": "0, 0, 0, 0; C, D, B, A"},
        sizes={"A": 2, "B": 3, "C": 4, "D": 1},
    ),
    "Transpose5D": Case(
        "float(A, B, C, D) I", "O(i, j, k, l, m) = I(l, k, j, i)", error="TC28"
    ),
    "Scale1D": Case(
        "float(N) I", "O(i) = I(123*i)", {"O": "0; (N + 122) / 123"}, sizes={"N": 247}
    ),
    "Shift1D": Case("float(N) I", "O(i) = I(i - 1)", {"O": "1; N"}, sizes={"N": 5}),
    "Shift1D2": Case("float(N) I", "O(i) = I(i + 5)", {"O": "-5; N"}, sizes={"N": 5}),
    "Conv": Case(
        f"{CONVOLUTION}, float(M) B",
        "tmp(n, m, h, w) +=! I(n, c, h + kh, w + kw) * W1(m, c, kh, kw) "
        "O(n, m, h, w) = tmp(n, m, h, w) + B(m)",
        dict.fromkeys(("tmp", "O"), "0, 0, 0, 0; N, M, H - KH + 1, W - KW + 1"),
        SUMS,
        ("KH <= H + 1", "KW <= W + 1"),
        sizes=FILTER,
    ),
    "ConvGrad": Case(
        f"{CONVOLUTION}, float(N, M, OH, OW) d_O",
        "d_I(n, c, h, w) +=! d_O(n, m, h - kh, w - kw) * W1(m, c, kh, kw) "
        "d_W1(m, c, kh, kw) +=! d_O(n, m, h - kh, w - kw) * I(n, c, h, w) "
        "d_B(m) +=! d_O(n, m, h, w)",
        {
            "d_I": "0, 0, KH - 1, KW - 1; N, C, OH - KH + 1, OW - KW + 1",
            "d_W1": "0, 0, H - OH, W - OW; M, C, OH - H + 1, OW - W + 1",
            "d_B": "0; M",
        },
        {
            "d_I.m": "0:M",
            "d_I.kh": "0:KH",
            "d_I.kw": "0:KW",
            "d_W1.n": "0:N",
            "d_W1.h": "0:H",
            "d_W1.w": "0:W",
            "d_B.n": "0:N",
            "d_B.h": "0:OH",
            "d_B.w": "0:OW",
        },
        ("KH <= OH + 1", "KW <= OW + 1", "H <= OH + 1", "W <= OW + 1"),
        sizes={**FILTER, "OH": 6, "OW": 6},
    ),
    "PaddedConv": Case(
        CONVOLUTION,
        "pad(n, c, h, w) = I(n, c, h - 2 - 3, w - 3 - 4) "
        "tmp(n, m, h, w) +=! pad(n, c, 2*h + kh, 3*w + kw) * W1(m, c, kh, kw)",
        {
            "pad": "0, 0, 5, 7; N, C, H, W",
            "tmp": "0, 0, 3, 3; N, M, (H - KH + 1) / 2, (W - KW + 1) / 3",
        },
        SUMS,
        ("0 <= (H - KH + 1) / 2", "0 <= (W - KW + 1) / 3"),
        sizes=FILTER,
    ),
    "WeirdConv": Case(
        CONVOLUTION,
        "O(n, m, h, w) +=! I(n, c, 2*h + 3*w + kh, 2*w + kw) * W1(m, c, kh, kw)",
        {"O": "0, 0, 0, 0; N, M, (H - KH - ((W - KW) / 2) * 3) / 2 + 1, (W - KW) / 2 + 1"},
        SUMS,
        ("0 <= (H - KH - 3 * ((W - KW) / 2)) / 2 + 1", "0 <= (W - KW) / 2 + 1"),
        sizes={**FILTER, "H": 9},
    ),
    "TCA": Case(
        "float(I0, I1, I2) I",
        "O(i, j, k) = I(j, i + j, k)",
        {"O": "0, 0, 0; I1 - I0 + 1, I0, I2"},
        requires=("I0 <= I1 + 1",),
        sizes={"I0": 2, "I1": 5, "I2": 3},
    ),
    "TCB": Case("float(I0, I1, I2) I", "O(i, j) = I(i + j, i + j, i + j)", error="TC27"),
    # From here to TCE the original wants proofs that nobody can give.
    "TCC": Case(
        "float(I0, I1, I2) I",
        "O(i, j) = I(i, i + j, j)",
        {"O": "0, 0; I0, I2"},
        requires=("I0 + I2 <= I1 + 1",),
        sizes={"I0": 2, "I1": 5, "I2": 3},
    ),
    "TCD": Case(
        "float(I0, I1, I2, I3, I4) I",
        "O(i, j, k) = I(i, j, i, k, 2*i + j)",
        {"O": "0, 0, 0; min(I0, I2), I1, I3"},
        requires=("I1 + 2 * min(I0, I2) <= I4 + 2",),
        sizes={"I0": 2, "I1": 4, "I2": 3, "I3": 2, "I4": 7},
    ),
    "TCE": Case(
        "float(I0, I1, I2, I3, I4) I",
        "O(i, j) = I(j, j + 1, i, i + 3, 2*i + j)",
        {"O": "0, 0; min(I2, I3 - 3), min(I0, I1 - 1)"},
        requires=(
            "min(I0, I1 - 1) + 2 * min(I2, I3 - 3) <= I4 + 2",
            "0 <= min(I2, I3 - 3)",
            "0 <= min(I0, I1 - 1)",
        ),
        sizes={"I0": 3, "I1": 3, "I2": 2, "I3": 6, "I4": 9},
    ),
    "TCF": Case(
        CUBES,
        "O1(i, j, k) = A(i, j, k) "
        "O2(i, j, k) +=! O1(r, i, j) * B(i, j, k) O3(i, j, k) +=! O2(s, i, j) * C(i, j, k)",
        {
            "O1": "0, 0, 0; A0, A1, A2",
            "O2": "0, 0, 0; min(B0, A1), min(B1, A2), B2",
            "O3": "0, 0, 0; min(C0, min(B1, A2)), min(C1, B2), C2",
        },
        {"r": "0:A0", "s": "0:min(B0, A1)"},
        sizes=CUBE_SIZES,
    ),
    "TCG": Case(
        CUBES,
        "O1(i, j, k) = A(i, j, k) "
        "O2(i, j, k) +=! O1(r, i, j) * B(i, j, k) O3(i, j, k) +=! B(s, i, j) * C(i, j, k)",
        {
            "O1": "0, 0, 0; A0, A1, A2",
            "O2": "0, 0, 0; min(B0, A1), min(B1, A2), B2",
            "O3": "0, 0, 0; min(C0, B1), min(C1, B2), C2",
        },
        {"r": "0:A0", "s": "0:B0"},
        sizes=CUBE_SIZES,
    ),
    "PartialCopy": Case(
        "float(N, M) I",
        "O(i, j) = I(i, j) where i in 3:N - 1",
        {"O": "3, 0; N - 4, M"},
        requires=("4 <= N",),
        sizes={"N": 7, "M": 2},
    ),
    "AmbiguousRotate": Case("float(N, M) I", "O(i, j) = I(10 + i - j, i + j)", error="TC27"),
    "UnambiguousRotate": Case(
        "float(N, M) I",
        "O(i, j) = I(10 + i - j, i + j) where i in 0:10",
        {"O": "0, 20 - min(N, 20); 10, min(M - 10, 10) + min(N, 20) - 19"},
        requires=("max(20 - N, 0) <= min(11, M - 9)",),
        sizes={"N": 17, "M": 18},
    ),
    # The original cannot check this at run time.
    "RuntimeCheckOnDerivedSize": Case(
        "float(N, NM, M) I",
        "O(i, j) = I(i, i + j, j)",
        {"O": "0, 0; N, M"},
        requires=("M + N <= NM + 1",),
        sizes={"N": 3, "NM": 7, "M": 4},
    ),
    "NoCheckOnLiteralSizes": Case(
        "float(10, 19, 10) I", "O(i, j) = I(i, i + j, j)", {"O": "0, 0; 10, 10"}
    ),
    "PartialAssignWithoutRanges": Case("float(N) I", "O(i, j) = 3", error="TC28"),
    "PartialAssign": Case(
        "float(N) I",
        "O(i, j) = 3 where i in 4:8, j in 3:20",
        {"O": "4, 3; 4, 17"},
        sizes={"N": 1},
    ),
    # The original infers an extent of -4.
    "EmptySetWhere": Case("float(N) I", "O(i) = I(i) where i in 8:4", error="TC26"),
    "IllegalIndirectWhere": Case(
        "float(N) I, int32(M) J", "O(i) = I(i) where i in J(0):N", error="TC11"
    ),
    "IllegalIndirectWhereAtTheEnd": Case(
        "float(N) I, int32(M) J", "O(i) = I(i) where i in 0:J(0)", error="TC11"
    ),
    # The worked cases of the documentation; it prints 9 - N for 11 - N.
    "DocsReversed": Case("float(N) B", "O(i) = B(10 - i)", {"O": "11 - N; N"}, sizes={"N": 6}),
    "DocsStrided": Case("float(N) B", "O(i) = B(2*i)", {"O": "0; (N + 1) / 2"}, sizes={"N": 7}),
    "DocsPairs": Case(
        "float(N) B", "O(i) = B(2*i) + B(2*i + 1)", {"O": "0; N / 2"}, sizes={"N": 7}
    ),
    "DocsPairsAsASum": Case(
        "float(N) B", "O(i) +=! B(2*i + k) where k in 0:2", {"O": "0; N / 2"}, sizes={"N": 7}
    ),
    "DocsScaledByData": Case("float(N) B, int32(M) S", "O(i) = B(S(0) * i)", error="TC28"),
    "DocsFill": Case("float(N) B", "O(i) = 3 where exists B(i)", {"O": "0; N"}, sizes={"N": 3}),
    "DocsLeftover": Case(
        "float(N) B, float(M) C, float(K) D",
        "A(i) +=! B(i) * C(i + j) * D(j)",
        {"A": "0; N"},
        {"j": "0:K"},
        ("K + N <= M + 1",),
        sizes={"N": 3, "M": 7, "K": 4},
    ),
}
ACCEPTED = [name for name, case in CASES.items() if not case.error]


def parsed(case: Case) -> CheckedDef:
    returns = ", ".join(case.shapes) or "O"
    return check(parse(f"def f({case.params}) -> ({returns}) {{ {case.body} }}"), affine=False)


def numbers(texts: str, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The values of expressions between commas that stand outside brackets."""
    depth, parts = 0, [""]
    for character in texts:
        depth += (character == "(") - (character == ")")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return tuple(number(parse_expr(part), sizes) for part in parts)


def bounds(case: Case, sizes: Mapping[str, int]) -> dict[str, tuple[tuple[int, int], ...]]:
    """Lowest subscript and extent of each dimension of each output, as the table has them."""
    found = {}
    for name, shape in case.shapes.items():
        lows, extents = shape.split(";")
        found[name] = tuple(zip(numbers(lows, sizes), numbers(extents, sizes), strict=True))
    return found


def test_every_case_of_the_original_is_here() -> None:
    documented = [name for name in CASES if name.startswith("Docs")]
    assert (len(CASES) - len(documented), len(documented)) == (29, 7)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.error])
def test_error(name: str) -> None:
    with pytest.raises(TcError) as error:
        parsed(CASES[name])
    assert error.value.code == CASES[name].error
    assert error.value.span is not None


@pytest.mark.parametrize("name", ACCEPTED)
def test_inferred(name: str) -> None:
    """Equal for many sizes, so that the way a formula is written does not matter."""
    case = CASES[name]
    checked = parsed(case)
    assert tuple(map(unparse_expr, checked.preconditions)) == case.requires
    compared = 0
    zeros = parse_expr("0")
    for steps in RANDOM.integers(0, 3, (40, len(checked.sizes))):
        sizes = {n: case.sizes[n] + int(s) for n, s in zip(checked.sizes, steps, strict=True)}
        if not all(number(c, sizes) for c in checked.preconditions):
            continue
        compared += 1
        for tensor, expected in bounds(case, sizes).items():
            shape = checked.tensors[tensor].shape
            extents = [number(parse_expr(str(size)), sizes) for size in shape]
            lows = [
                number(low, sizes) for low in checked.origins.get(tensor, (zeros,) * len(shape))
            ]
            assert list(zip(lows, extents, strict=True)) == list(expected), sizes
    assert compared


@pytest.mark.parametrize("name", ACCEPTED)
def test_observed(name: str) -> None:
    """The evaluator's shapes and values are those of loops over the ranges in the table."""
    case = CASES[name]
    checked = parsed(case)
    sizes = dict(case.sizes)
    arrays = {}
    for tensor in checked.inputs:
        kind = checked.tensors[tensor]
        shape = [number(parse_expr(str(size)), sizes) for size in kind.shape]
        arrays[tensor] = RANDOM.normal(size=shape).astype(kind.dtype.numpy)
    found = evaluate(checked, arrays, sizes)
    placed = bounds(case, sizes)
    sums = {
        v: tuple(number(parse_expr(end), sizes) for end in text.split(":"))
        for v, text in case.sums.items()
    }
    expected = run(checked.definition, arrays, sizes, placed, sums)
    for tensor in checked.outputs:
        assert found[tensor].shape == tuple(extent for _, extent in placed[tensor])
        np.testing.assert_allclose(found[tensor], expected[tensor], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in ACCEPTED if CASES[name].requires])
def test_a_broken_precondition_is_an_error(name: str) -> None:
    case = CASES[name]
    checked = parsed(case)
    for sizes in (dict.fromkeys(checked.sizes, n) for n in (2, 3, 9)):
        for grown, small in itertools.permutations(checked.sizes, 2):
            tried = {**sizes, grown: 12, small: 1}
            if all(number(c, tried) for c in checked.preconditions):
                continue
            shapes = {t: checked.tensors[t].shape for t in checked.inputs}
            arrays = {t: np.ones([tried[str(n)] for n in s]) for t, s in shapes.items()}
            with pytest.raises(TcError, match="the sizes do not satisfy") as error:
                evaluate(checked, arrays, tried)
            assert error.value.code == "TC30"
            return
    pytest.fail("no sizes break it")
