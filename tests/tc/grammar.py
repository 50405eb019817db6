"""Random definitions: every kind of statement, subscript, clause and assignment.

Most are well-formed; what is not is refused for a reason of its own, a range that cannot be
inferred for example.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

PARAMS = "float(N, M) A, float(N) B, int32(M) I, float S"
RANKS = {"A": 2, "B": 1, "S": 0}
ASSIGNMENTS = ("+=!", "*=!", "min=!", "max=!")
UPDATES = ("+=", "min=", "max=")
FUNCTIONS = ("sin", "cos", "fabs", "exp")


@st.composite
def subscripts(draw: st.DrawFn, variables: Sequence[str]) -> str:
    """A subscript over some of ``variables``, a plain one more often than not."""
    if not variables:
        return draw(st.sampled_from(["0", "1"]))
    v = draw(st.sampled_from(variables))
    shift = draw(st.integers(1, 3))
    other = draw(st.sampled_from(variables))
    forms = [v, v, v, v, f"{v} + {shift}", f"{v} - {shift}", f"2*{v}", f"2*{v} + 1"]
    forms += [f"{shift} - {v}", f"{v} / 2", "0", f"max(min({v}, N - 1), 0) % 2"]
    forms += [f"{v} + {other}"] if other != v else []
    return draw(st.sampled_from(forms))


@st.composite
def reads(draw: st.DrawFn, tensors: dict[str, int], variables: Sequence[str]) -> str:
    """A read of some tensor, perhaps with a guard."""
    name = draw(st.sampled_from(sorted(tensors)))
    found = [draw(subscripts(variables)) for _ in range(tensors[name])]
    text = f"{name}({', '.join(found)})"
    if variables and draw(st.integers(0, 5)) == 0:
        v = draw(st.sampled_from(variables))
        # Nothing is known of what is behind a guard but that it is not read.
        return f"({v} < 0 ? {text} : 0.5)"
    return text


@st.composite
def values(
    draw: st.DrawFn, tensors: dict[str, int], variables: Sequence[str], depth: int
) -> str:
    """An expression of floats."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        plain = ["0.5", "2", "-1.25", *(f"{v} * 0.25" for v in variables)]
        if draw(st.integers(0, 3)) == 0:
            return draw(st.sampled_from(plain))
        return draw(reads(tensors, variables))
    inner = values(tensors, variables, depth - 1)
    a, b = draw(inner), draw(inner)
    f = draw(st.sampled_from(FUNCTIONS))
    forms = [
        f"{a} + {b}",
        f"({a}) * ({b})",
        f"{a} - ({b})",
        f"max({a}, {b})",
        f"fmin({a}, {b})",
    ]
    forms += [
        f"{f}(0.125 * ({a}))",
        f"({a} < {b} ? {b} - ({a}) : 0)",
        f"({a}) / (2 + fabs({b}))",
    ]
    return draw(st.sampled_from(forms))


@st.composite
def statements(draw: st.DrawFn, tensors: dict[str, int], written: dict[str, int]) -> str:
    """A statement; what it writes is added to both."""
    again = sorted(written)
    if again and draw(st.integers(0, 2)) == 0:
        name = draw(st.sampled_from(again))
    else:
        name = f"T{len(written)}"
        written[name] = draw(st.integers(0, 2))
    indices = ["i", "j"][: written[name]]
    variables = [*indices, *["k", "l"][: draw(st.integers(0, 2)) if draw(st.booleans()) else 0]]
    is_update = name in tensors and draw(st.booleans())
    known = {t: r for t, r in tensors.items() if t != name or is_update}
    if is_update:
        assign = draw(st.sampled_from(UPDATES))
    elif len(variables) > len(indices) or draw(st.integers(0, 4)) == 0:
        assign = draw(st.sampled_from(ASSIGNMENTS))
    else:
        assign = "="
    clauses: list[str] = []
    value = draw(values(known, variables, draw(st.integers(0, 2))))
    if draw(st.integers(0, 4)) == 0:
        clauses.append(f"t = {draw(values(known, variables, 1))}")
        value = f"{value} + t"
    covered: list[str] = []
    for v in variables:
        kind = draw(st.integers(0, 3))
        if kind == 0:
            high = draw(st.sampled_from(["2", "N", "M", "N - 1", "min(N, M)", "(N + 1) / 2"]))
            clauses.append(f"{v} in {draw(st.sampled_from(['0', '0', '1']))}:{high}")
        elif kind == 1:
            clauses.append(f"exists B({v})")
        else:
            covered.append(f"A({v}, 0)" if draw(st.booleans()) else f"B({v})")
    if covered:
        value = " + ".join([value, *covered])
    tensors[name] = written[name]
    where = f" where {', '.join(draw(st.permutations(clauses)))}" if clauses else ""
    return f"{name}({', '.join(indices)}) {assign} {value}{where}"


@st.composite
def definitions(draw: st.DrawFn) -> str:
    """The text of a definition over ``PARAMS``, all of whose tensors are returned."""
    tensors, written = dict(RANKS), dict[str, int]()
    body = [draw(statements(tensors, written)) for _ in range(draw(st.integers(1, 4)))]
    returns = ", ".join(sorted(written))
    lines = "\n  ".join(body)
    return f"def f({PARAMS}) -> ({returns}) {{\n  {lines}\n}}\n"
