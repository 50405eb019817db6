"""Every diagnostic: what people read, with its place and a way out."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tcfuse.errors import IllegalTransformError, Span, TcError
from tcfuse.poly import isl
from tcfuse.poly.transforms import tile
from tcfuse.poly.tree import Band, Leaf
from tcfuse.tc.binding import bind_sizes, check_dense, check_output, find_definition
from tcfuse.tc.canonical import canonical
from tcfuse.tc.diagnostics import DIAGNOSTICS, reference
from tcfuse.tc.evaluate import evaluate
from tcfuse.tc.examine import examine
from tcfuse.tc.kernel_form import kernel_form
from tcfuse.tc.limits import MOST_STATEMENTS
from tcfuse.tc.parser import parse, parse_file
from tcfuse.tc.sema import check

PAGE = Path(__file__).resolve().parents[2] / "docs" / "diagnostics.md"


def wrap(
    body: str, returns: str = "Y", params: str = "float(N) X, int32(N) I, bool(N) B"
) -> str:
    return f"def f({params}) -> ({returns}) {{\n  {body}\n}}"


# What tcfuse check says; a second case of one code has a word behind it.
TEXTS = {
    "TC01": wrap("Y(i) = X(i) @ 2"),
    "TC02": "def f{}",
    "TC02 bracket": wrap("Y(i) = X[i]"),
    "TC02 end": "def f(float(N) X) -> (Y) {\n  Y(i) = X(i)\n",
    "TC03": wrap("Y(i) X(i)"),
    "TC04": "def f(real(N) X) -> (Y) {\n  Y(i) = X(i)\n}",
    "TC05": "def f(float(N, 1.5) X) -> (Y) {\n  Y(i) = X(i, 0)\n}",
    "TC05 product": "def f(float(N, N*K) X) -> (Y) {\n  Y(i) = X(i, 0)\n}",
    "TC07": wrap("Y(i) = X(i) + B(i)"),
    "TC08": wrap("Y(i) = t(i) where t = X(i)"),
    "TC09": wrap("Y(i) = X(X(i))"),
    "TC09 bound": wrap("Y(i) = X(i) where i in 0:2.5"),
    "TC10": wrap("Y(i) = X(i) && B(i) ? 1 : 0"),
    "TC10 condition": wrap("Y(i) = I(i) ? X(i) : 0"),
    "TC11": wrap("Y(i) = X(i) where i in 0:I(0)"),
    "TC11 index": wrap("Y(i) +=! X(j) where i in 0:N, j in 0:i"),
    "TC12": wrap("Y(i) = atan2(X(i))"),
    "TC13": wrap("Y(i) = X(i, i)"),
    "TC14": wrap("Y(i) = X(i) * X"),
    "TC16": wrap("X(i) = X(i) + 1", "X2"),
    "TC17": wrap("Y(i) = X(i) *\n    2.5", "int32(N) Y"),
    "TC18": wrap("Y(i, j) = X(i) + X(j)", "float(N) Y"),
    "TC19": wrap("Y(i) += X(i)"),
    "TC19 read": wrap("Y(i) = Y(i) + X(i)", "float(N) Y"),
    "TC19 temporary": wrap("T(i) max= X(i)\n  Y(i) = T(i)"),
    "TC20": wrap("Y(i) = X(i) * X(j)"),
    "TC20 size": "def f(float(Rows) X) -> (Y) {\n  Y(i) = X(i) / Row\n}",
    "TC21": wrap("T(i) = X(i)\n  Y(i) = X(i)"),
    "TC22": "def round(float(N) X) -> (Y) {\n  Y(i) = X(i)\n}",
    "TC23": wrap("Y(i) = X(i)", params="float(N) X, float(N) X"),
    "TC23 definition": "def f() -> () {}\ndef f() -> () {}",
    "TC24": wrap("Y(i) = expp(X(i))"),
    "TC24 let": wrap("Y(i) = t where t = X(i), t in 0:3"),
    "TC24 result": wrap("Z(i) = X(i)", "Y, Z"),
    "TC26": wrap("Y(i) = X(i) where i in 8:4"),
    "TC26 warning": wrap("Y(i) = X(i) where i in 4:4"),
    "TC26 inferred": "def f(float(3) A, float(9) B) -> (Y) {\n  Y(i) = A(i) + B(i - 5)\n}",
    "TC27": wrap("Y(i, j) = X(i + j)"),
    "TC28": wrap("Y(i, m) = X(i)"),
    "TC29": wrap("Y(i) +=! X(i) * k"),
    "TC30": wrap("Y(i) = X(i) + X(3)"),
    "TC30 never": wrap("Y(i) = X(i - 1) where i in 0:N"),
    "TC31": wrap("Y +=! B(i)"),
    "TC38 warning": wrap("Y(i) = X(0) where i in 0:N1"),
    "TC43": wrap("Y(i) = X(i)\n  Y(i) +=! Y(j)"),
    "TC45": wrap("Y(i) = X(i) where i in 0:N\n  Y(i) = X(i - N) where i in N:2*N"),
    "TC46": wrap("Y(i) = I(i) % 0"),
}

X = np.ones((2, 3), np.float32)
MATRIX = parse("def f(float(2, N) X, float(N) W) -> (Y) { Y(i) +=! X(i, j) * W(j) }", "f.tc")


def call(**inputs: np.ndarray) -> Callable[[], object]:
    return lambda: bind_sizes(check(MATRIX), inputs, {}, exact=True)


def many_statements() -> object:
    body = "Y(i) = X(i) " * (MOST_STATEMENTS + 1)
    text = f"def f(float(N) X) -> (Y) {{ {body} }}"
    return kernel_form(check(parse(text, "f.tc"), affine=False))


def tile_what_is_not_permutable() -> object:
    schedule = isl.MultiUnionPwAff("[{ A[i] -> [(i)] }]")
    return tile(Band(schedule, False, (False,), Leaf()), (32,))


# What is said later: by a call, a build or a transformation.
CALLS: dict[str, Callable[[], object]] = {
    "TC30 call": lambda: evaluate(
        parse(TEXTS["TC30"]), {"X": X[0], "I": np.ones(3, np.int32), "B": np.ones(3, bool)}
    ),
    "TC32": call(X=X),
    "TC33": call(X=X, W=np.ones(3)),
    "TC34": call(X=X, W=X),
    "TC35": lambda: check_dense("Y", X.T),
    "TC36": call(X=X, W=np.ones(4, np.float32)),
    "TC37": call(X=X.T, W=np.ones(3, np.float32)),
    "TC38": lambda: evaluate(
        parse("def f(float(N) X) -> (Y) { Y(i) = X(0) where i in 0:P }"), {"X": X[0]}
    ),
    "TC39": lambda: find_definition(parse_file("def softmax() -> () {}"), "softmaks"),
    "TC40": lambda: check_output("Y", X, check(MATRIX).tensors["X"].dtype, (2, 4)),
    "TC41": many_statements,
    "TC42": tile_what_is_not_permutable,
    "TC44": lambda: check(parse(wrap("Y(i) = X(0) where i in 0:N * N"), "f.tc")),
    "TC46 size": lambda: evaluate(
        parse("def f(float(N, M) X) -> (Y) { Y(i) = X(0, 0) where i in 0:8 / M }", "f.tc"),
        {"X": np.ones((1, 0))},
    ),
    "TC47": lambda: evaluate(
        parse("def f(float(N) X, int32(K) I) -> (Y) { Y(i) = X(I(i)) }", "f.tc"),
        {"X": np.ones(3), "I": np.array([0, 3], np.int32)},
    ),
}

# What the 2019 language refuses, or cannot do, and this one takes.
ALLOWED: dict[str, Callable[[], object]] = {
    "TC06": lambda: check(
        parse(
            "def f(float16(N) X, half(N) Z, bfloat16(N) B) -> (Y) { Y(i) = X(i) * B(i) * Z(i) }"
        )
    ),
    "TC15": lambda: check(parse(wrap("Y(i) = B(i) ? -X(i) : abs(float(I(i) % 3)) <=> g(X)"))),
    "TC25": lambda: canonical(parse(wrap("Y(i) = X(i)"))),
}
LATER_THAN_ERRORS = ("note", "warning")


def code_of(case: str) -> str:
    return case.partition(" ")[0]


def test_every_diagnostic_has_a_case() -> None:
    cases = {code_of(case) for case in (*TEXTS, *CALLS, *ALLOWED)}
    assert cases == DIAGNOSTICS.keys()
    assert list(DIAGNOSTICS) == [f"TC{k:02}" for k in range(1, len(DIAGNOSTICS) + 1)]
    assert {code for code, row in DIAGNOSTICS.items() if row.severity == "never"} == set(
        ALLOWED
    )


@pytest.mark.parametrize("case", TEXTS)
def test_checked(case: str, golden) -> None:
    findings = [
        f for f in examine(TEXTS[case], "f.tc") if f.severity != "note" or "TC30" in case
    ]
    assert [f.code for f in findings] == [code_of(case)]
    (finding,) = findings
    assert finding.span is not None
    if finding.severity == "error" and finding.code != "TC02":
        assert finding.hint
    if len(case) == 4:
        assert finding.severity == DIAGNOSTICS[case].severity
    golden(finding, "txt")


@pytest.mark.parametrize("case", CALLS)
def test_called(case: str, golden) -> None:
    with pytest.raises((TcError, IllegalTransformError)) as error:
        CALLS[case]()
    assert error.value.code == code_of(case)
    golden(error.value, "txt")


@pytest.mark.parametrize("code", ALLOWED)
def test_allowed(code: str) -> None:
    assert ALLOWED[code]() is not None


def test_the_page_lists_them_all(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-golden"):
        PAGE.write_text(reference(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == reference()


def test_a_span_of_several_lines_is_underlined_on_each(golden) -> None:
    text = "one two\n  three\n\n\tfour   \nfive"
    golden(Span(text, 4, text.index("five") + 2, "f.tc").excerpt(), "txt")


def test_the_middle_of_a_long_span_is_left_out(golden) -> None:
    text = "\n".join(f"line {k}" for k in range(1, 13))
    golden(Span(text, 2, len(text), "f.tc").excerpt(), "txt")


def test_a_span_at_the_end_of_the_text_is_one_caret() -> None:
    assert Span("ab\n", 3, 3).excerpt() == " 2 |\n   | ^"


def test_marks_stand_below_tabs() -> None:
    assert Span("\tab cd", 4, 6).excerpt().splitlines()[1] == "   | \t   ^~"


def test_positions_count_from_one_and_end_behind() -> None:
    span = Span("ab\ncd ef", 6, 8)
    assert (span.line, span.column, span.end_line, span.end_column) == (2, 4, 2, 6)


def test_every_error_of_the_language_has_a_code() -> None:
    for path in sorted((PAGE.parents[1] / "tcfuse").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "TcError":
                given = [keyword for keyword in node.keywords if keyword.arg == "code"]
                assert given, f"{path.name}:{node.lineno}"
                if isinstance(given[0].value, ast.Constant):
                    assert given[0].value.value in DIAGNOSTICS
