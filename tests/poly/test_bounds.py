from __future__ import annotations

import pytest

from tcfuse.poly.bounds import guard_keeps_inside
from tcfuse.poly.guards import guards
from tcfuse.poly.scop import accesses
from tests.poly.definitions import model


def kept_inside(value: str, where: str = "") -> bool:
    """Whether the guard of the read of X in ``O(i) = value`` keeps it inside."""
    clauses = f"where i in 0:N{where}"
    text = f"def f(float(N) X, bool(N) M) -> (float(N) O) {{ O(i) = {value} {clauses} }}"
    scop, _ = model(text)
    (statement,) = scop.statements
    written = statement.comprehension
    guard_of = guards((written.value, *(let.value for let in written.lets)))
    (read,) = (access for access in accesses(statement) if access.tensor == "X")
    return guard_keeps_inside(scop, statement, read, 0, guard_of[id(read)])


@pytest.mark.parametrize(
    "value",
    [
        "i >= 1 ? X(i - 1) : 0",
        "i < 1 ? 0 : X(i - 1)",
        "!(i < 1) ? X(i - 1) : 0",
        "i - 2 >= 0 && M(i) ? X(i - 2) : 0",
        "i < 2 || M(i) ? 0 : X(i - 2)",
        "M(i) ? (i == N - 1 ? 0 : X(i + 1)) : 1",
        "i != 0 ? X(i - 1) : 0",
        "i % 2 == 1 ? X(i - 1) : 0",
        "2*i < N ? X(2*i) : 0",
        "N > 3 ? X(3) : 0",
    ],
)
def test_an_affine_guard_keeps_its_read_inside(value: str) -> None:
    assert kept_inside(value)


def test_a_guard_that_is_a_let_keeps_its_read_inside() -> None:
    assert kept_inside("t ? X(i - 1) : 0", ", t = i > 0")


@pytest.mark.parametrize(
    "value",
    [
        "i >= 0 ? X(i - 1) : 0",
        "i >= 1 ? 0 : X(i - 1)",
        "i >= 1 || M(i) ? X(i - 1) : 0",
        "i < 1 && M(i) ? 0 : X(i - 1)",
        "M(i) ? X(i - 1) : 0",
        "M(i) == (i > 0) ? X(i - 1) : 0",
        "N > 3 ? X(4) : 0",
    ],
)
def test_a_guard_that_holds_outside_does_not(value: str) -> None:
    assert not kept_inside(value)
