"""The same layer at other sizes has the same template; another layer never has."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from tcfuse.tc.ast import Binary, Cast, Const, Def, Expr
from tcfuse.tc.canonical import canonical
from tcfuse.tc.parser import parse
from tcfuse.tc.rebuild import rebuild_statement
from tcfuse.tc.sema import check
from tcfuse.wisdom.template import template_of

EXTENTS = st.integers(2, 9)

LAYERS = {
    "softmax": """def softmax(float({a}, {b}) X) -> (float({a}, {b}) Y) {{
      M(i) max=! X(i, j)
      E(i, j) = exp(X(i, j) - M(i))
      S(i) +=! E(i, j)
      Y(i, j) = E(i, j) / S(i)
    }}""",
    "mean": """def mean(float({a}, {b}, {c}) X) -> (float({a}) Y) {{
      S(i) +=! X(i, j, k) where i in 0:{a}, j in 0:{b}, k in 0:{c}
      Y(i) = S(i) / {bc} where i in 0:{a}
    }}""",
    "heads": """def heads(float({a}, {bc}) X) -> (float({b}, {a}, {c}) Y) {{
      Y(h, i, k) = X(i, h * {c} + k) * 0.125 where h in 0:{b}, i in 0:{a}, k in 0:{c}
    }}""",
    "merged": """def merged(float({b}, {a}, {c}) X) -> (float({a}, {bc}) Y) {{
      Y(i, j) = X(j / {c}, i, j % {c}) where i in 0:{a}, j in 0:{bc}
    }}""",
    "joined": """def joined(float({a}) X, float({b}) Z) -> (float({ab}) Y) {{
      Y(i) = X(i) where i in 0:{a}
      Y(i) = Z(i - {a}) where i in {a}:{ab}
    }}""",
    "halves": """def halves(float({bb}) X) -> (float({b}) Y) {{
      Y(i) = tanh(X(i)) * sigmoid(X(i + {b})) where i in 0:{b}
    }}""",
    "windows": """def windows(float({a}, {sb}) X, float({s}) W) -> (float({a}, {b}) Y) {{
      Y(i, j) +=! X(i, j + r) * W(r) where i in 0:{a}, j in 0:{b}, r in 0:{s}
    }}""",
    "symbolic": """def symbolic(float(N, {b}) X, float({b}) W) -> (float(N, {b}) Y) {{
      Y(i, j) = X(i, j) * W(j) + 3.0
    }}""",
}


def layer(name: str, a: int, b: int, c: int) -> str:
    """The text of a layer at those extents."""
    values = {"a": a, "b": b, "c": c, "bc": b * c, "ab": a + b, "bb": 2 * b}
    return LAYERS[name].format(**values, s=3, sb=b + 2)


def split(text: str) -> tuple[str, tuple[int | str, ...]]:
    return template_of(check(parse(text)))


@settings(deadline=None)
@given(name=st.sampled_from(sorted(LAYERS)), a=EXTENTS, b=EXTENTS, c=EXTENTS)
def test_other_sizes_have_the_same_template(name: str, a: int, b: int, c: int) -> None:
    # Sizes that are all different are the general case: no two may be one by chance.
    assert split(layer(name, a, b, c))[0] == split(layer(name, 31, 47, 53))[0]


@settings(deadline=None)
@given(name=st.sampled_from(sorted(LAYERS)), a=EXTENTS, b=EXTENTS, c=EXTENTS)
def test_the_values_in_their_places_are_the_definition(
    name: str, a: int, b: int, c: int
) -> None:
    checked = check(parse(layer(name, a, b, c)))
    template, values = template_of(checked)
    assert _folded(_filled(template, values)) == _folded(canonical(checked))


def test_layers_never_share_a_template() -> None:
    assert len({split(layer(name, 4, 8, 16))[0] for name in LAYERS}) == len(LAYERS)


def test_constants_stay() -> None:
    text = LAYERS["symbolic"].format(b=3)  # the 3.0 that is added is no extent
    assert "+ 3.0" in split(text)[0]
    other = text.replace("3.0", "4.0")
    assert split(text)[0] != split(other)[0]


def test_fixed_and_named_sizes_are_told_apart() -> None:
    named = split(LAYERS["symbolic"].format(b=3))
    fixed = split(LAYERS["symbolic"].format(b=3).replace("N", "8"))
    assert named[0] != fixed[0]
    assert (named[1], fixed[1]) == (("N", 3), (8, 3))


def test_an_extent_of_one_is_structure() -> None:
    assert split(layer("heads", 1, 8, 16))[0] != split(layer("heads", 2, 8, 16))[0]


def test_names_that_look_like_ours_are_another_thing() -> None:
    text = "def f(float({}, 8) X) -> (float({}, 8) Y) {{ Y(i, j) = -X(i, j) }}"
    plain = split(text.format("N", "N"))
    assert split(text.format("fixed_dim_X_1", "fixed_dim_X_1"))[0] == plain[0]


def _filled(template: str, values: tuple[int | str, ...]) -> str:
    """A template with numbers for the names of fixed extents."""

    def value(match: re.Match[str]) -> str:
        return str(values[int(match[1])])

    return re.sub(r"\bF(\d+)\b", value, template)


def _folded(text: str) -> Def:
    """A definition whose constant operations are done and whose names are numbered anew."""

    def rule(node: Expr) -> Expr:
        match node:
            case Cast(_, Const(value)):
                return Const(float(value))
            case Binary("*", Const(left), Const(right)):
                return Const(left * right)
            case Binary("/", Const(float(left)), Const(right)):
                return Const(left / right)
            case _:
                return node

    definition = parse(text)
    body = tuple(rebuild_statement(s, rule) for s in definition.body)
    made = Def("f", definition.params, definition.returns, body)
    return parse(canonical(made))
