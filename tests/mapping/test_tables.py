from __future__ import annotations

import pytest

from tcfuse.mapping.tables import with_tables
from tcfuse.tc.unparse import unparse_expr
from tests.poly.definitions import checked_of

COSTLY = "uint8(int32(min(max(roundeven(erf(float({x}) / 3 - 9 * {x}) / 0.1) + 9, 0), 255)))"


def statements(body: str, inputs: str = "uint8(n, 5) X") -> list[str]:
    """Each statement of a definition with tables."""
    found = with_tables(checked_of(f"def f({inputs}) -> (Y) {{ {body} }}"))
    return [
        f"{s.comprehension.tensor} = {unparse_expr(s.comprehension.value)}"
        for s in found.statements
    ]


def test_a_costly_function_of_one_byte_is_looked_up() -> None:
    table, read = statements(f"Y(i, j) = {COSTLY.format(x='X(i, j)')}")
    assert table.startswith("Y_table = uint8(int32(min(")
    assert "X(" not in table
    assert read == "Y = Y_table(int32(X(i, j)))"


def test_a_signed_byte_is_moved_to_the_first_entry() -> None:
    body = f"Y(i, j) = {COSTLY.format(x='X(i, j)')}"
    _, read = statements(body, "int8(n, 5) X")
    assert read == "Y = Y_table(int32(X(i, j)) + 128)"


def test_equal_functions_share_a_table() -> None:
    function = COSTLY.format(x="X(i, j)")
    table, read = statements(f"Y(i, j) = {function} * {function}")
    assert table.startswith("Y_table")
    assert read.count("Y_table") in (1, 2)


@pytest.mark.parametrize(
    "body",
    [
        "Y(i, j) = X(i, j) / 3",  # cheap
        f"Y(i, j) = {COSTLY.format(x='X(i, j)').replace('9 *', '9 * j *')}",  # an index in it
        "Y(i, j) = exp(exp(exp(float(X(i, j)) / Z(i)) / 3) / 4 + 5 * 6 - exp(Z(i)))",
        f"Y(i, j) = {COSTLY.format(x='X(i, j)')} where i in 0:9",  # for a few elements
    ],
)
def test_other_functions_are_computed(body: str) -> None:
    assert len(statements(body, "uint8(n, 5) X, float(n) Z")) == 1


def test_a_byte_is_looked_up_where_a_few_operations_make_another_number_of_it() -> None:
    function = f"float(int32({COSTLY.format(x='X(i, j)')}) - 9) * 0.5"
    table, read = statements(f"Y(i, j) = {function} + Z(i)", "uint8(n, 5) X, float(n) Z")
    assert table.startswith("Y_table = uint8(int32(min(")
    assert read == "Y = float(int32(Y_table(int32(X(i, j)))) - 9) * 0.5 + Z(i)"


def test_a_number_is_looked_up_where_it_takes_many_operations_more() -> None:
    byte = COSTLY.format(x="X(i, j)")
    number = f"float({byte}) / 3"
    for step in range(4):
        number = f"exp({number} * 0.3 - 0.{step})"
    function = f"{number} / 7 + {number} * 0.1 - 4"
    table, read = statements(f"Y(i, j) = {function} + Z(i)", "uint8(n, 5) X, float(n) Z")
    assert table == "Y_table = v1 / 7 + v1 * 0.1 - 4"
    assert read == "Y = Y_table(int32(X(i, j))) + Z(i)"


def test_one_division_to_a_byte_pays_for_a_table() -> None:
    other_scale = "uint8(int32(min(roundeven(float(X(i, j)) * 0.3 / 0.1) + 9, 255)))"
    _, read = statements(f"Y(i, j) = {other_scale}")
    assert read == "Y = Y_table(int32(X(i, j)))"
