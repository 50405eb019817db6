"""Integer inputs hold what their definition can do something with."""

from __future__ import annotations

import pytest

from tcfuse.ort.roles import Role
from tcfuse.tc.kernel_form import kernel_form
from tcfuse.tc.parser import parse
from tcfuse.tc.sema import check
from tcfuse.tuning.cases import make_cases
from tcfuse.tuning.messages import Setup
from tcfuse.tuning.roles import roles_of

LOOKUP = "def f(float(E, D) T, int32(B) I) -> (float(B, D) O) { O(b, d) = T(I(b), d) }"
THROUGH = (
    "def f(float(E, D) T, int64(B) I) -> (float(B, D) O) {"
    " J(b) = int32(I(b)) + 0 where b in 0:B"
    " O(b, d) = T(J(b), d) }"
)
DIVIDES = "def f(int32(N) A, int32(N) B) -> (int32(N) O) { O(i) = A(i) / B(i) }"
PLAIN = "def f(int32(N) A, float(N) B) -> (float(N) O) { O(i) = float(A(i)) * B(i) }"


def form(text):
    made = kernel_form(check(parse(text), affine=False))
    return check(made.definition, sizes=made.interface.sizes), made.interface


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (LOOKUP, {1: Role(0, "E")}),
        (THROUGH, {1: Role(0, "E")}),
        (DIVIDES, {1: Role(1, 8, nonzero=True)}),
        (PLAIN, {}),
    ],
)
def test_roles(text, expected):
    assert roles_of(*form(text)) == expected


def test_positions_are_inside_the_table():
    checked, interface = form(LOOKUP)
    setup = Setup(str(checked.definition), interface, {"E": 7, "D": 4, "B": 5000}, 1)
    _, cases = make_cases(setup)
    index = cases[0].feed.arrays[1]
    assert (index.min(), index.max()) == (0, 6)
