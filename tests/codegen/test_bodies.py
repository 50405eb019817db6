"""How many registers a value of each lane takes."""

import re

import pytest

from tcfuse.mapping_options import MappingOptions
from tests.poly.definitions import COLUMN_SUM
from tests.targets.kernels import functions_of, kernel_of


def registers(body: str, size: int = 4096) -> list[int]:
    text = f"""def f(float(8, {size}) X, float(8, {size}) Z) -> (float(8, {size}) Y) {{
      Y(i, j) = {body} where i in 0:8, j in 0:{size}
    }}"""
    found = re.findall(r"lanes_for\(([^)]*)\)", functions_of(kernel_of(text).source))
    return [int(f.split(", ")[2]) if f.count(",") == 2 else 1 for f in found]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("X(i, j) + Z(i, j)", 1),
        ("tanh(X(i, j)) * 0.5", 8),  # one function: what is waited for is all the same
        ("roundeven(sigmoid(X(i, j)))", 8),
        ("tanh(X(i, j)) * sigmoid(Z(i, j))", 4),  # two take twice the registers
        ("tanh(X(i, j)) / Z(i, j)", 4),
    ],
)
def test_registers_of_pointwise_bodies(body: str, expected: int) -> None:
    assert registers(body) == [expected]


def test_a_rest_that_would_run_twice_is_small() -> None:
    """784 is 6 groups of 128 and 16 more, for which a whole group would run."""
    assert registers("tanh(X(i, j))", 784) == [4]


def test_work_that_all_lanes_share_takes_no_registers() -> None:
    """The index of a gathered row is computed once, however long it is."""
    index = "I(i, k) < 0 ? I(i, k) + 100000 : (I(i, k) > 100000 ? I(i, k) - 100000 : I(i, k))"
    text = f"""def f(float(100000, 64) X, int64(128, 50) I) -> (float(128, 64) Y) {{
      Y(i, j) +=! X({index}, j) where i in 0:128, j in 0:64, k in 0:50
    }}"""
    assert "lanes_for(4, 64, 4)" in functions_of(kernel_of(text).source)


def test_registers_asked_for_fit_the_parts_of_a_loop_around_others() -> None:
    """Parts are 64 lanes long, which eight registers of 16 would not divide."""
    text = COLUMN_SUM.replace("n0", "24").replace("n1", "512")
    source = kernel_of(text, MappingOptions(registers=8)).source
    assert "lanes_for(4, 512, 4)" in functions_of(source)
