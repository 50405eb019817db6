"""The C table: where sizes come from, and expressions that never trap."""

from __future__ import annotations

import pytest

from tcfuse.ort.c_text import guarded
from tcfuse.ort.operators import Operator
from tcfuse.ort.table import table
from tcfuse.targets.base import Interface, KernelSource, Phase, Port
from tcfuse.targets.compilers import OTHER_LEVELS, X86_LEVELS
from tcfuse.targets.places import origins
from tcfuse.types import DType, Size, TensorType


def port(*shape: Size) -> Port:
    return Port("x", TensorType(DType.FLOAT32, shape))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (7, "7"),
        ("n0 * n1", "n0 * n1"),
        ("n0 / 4", "n0 / 4"),
        ("n0 / 0", "n0 / tcf_nonzero(0)"),
        ("n0 / n1", "n0 / tcf_nonzero(n1)"),
        ("(n0 + 1) / (n1 * (n2 - 1)) + 3", "(n0 + 1) / tcf_nonzero((n1 * (n2 - 1))) + 3"),
        ("n0 % tcf_max(n1, n2) / n3", "n0 % tcf_nonzero(tcf_max(n1, n2)) / tcf_nonzero(n3)"),
        ("n0 / (n1 / n2)", "n0 / tcf_nonzero((n1 / tcf_nonzero(n2)))"),
        ("(n0/n1)*n2", "(n0/tcf_nonzero(n1))*n2"),
        ("n0 / -n1", "n0 / tcf_nonzero(-n1)"),
    ],
)
def test_divisors_are_never_zero(expression: Size, expected: str) -> None:
    assert guarded(expression) == expected


def test_a_size_comes_from_the_first_dimension_that_is_it_alone() -> None:
    interface = Interface(
        (port("n0 + 1", 3), port("n1", "n0", "n1"), port("n0")),
        (port("n2"),),
        ("n0", "n1", "n2"),
        derived=(("n2", "n0 * n1"),),
    )
    assert origins(interface) == {"n1": 2, "n0": 3}


def test_a_size_that_nothing_determines_is_a_mistake() -> None:
    with pytest.raises(AssertionError, match="nothing says what size 'n1' is"):
        origins(Interface((port("n0"),), (), ("n0", "n1")))


def test_levels_stand_at_their_positions() -> None:
    interface = Interface((port("n0"),), (port("n0"),), ("n0",))
    kernel = Operator(KernelSource("k", "", interface, (Phase("p", "n0", "1"),)))
    assert "{{p_v2, p_v3, p_v4}}" in table([kernel], X86_LEVELS)
    assert "{{NULL, p_v3, NULL}}" in table([kernel], X86_LEVELS[1:2])
    assert "{{p_base, NULL, NULL}}" in table([kernel], OTHER_LEVELS)


def test_text(golden) -> None:
    interface = Interface(
        (port("n0", "n1", 3), port("n0 + 1")),
        (port("n2", "n0"), port()),
        ("n0", "n1", "n2"),
        derived=(("n2", "3 * n0 * n1"),),
        checks=(("n1 != 7", 'no "sevens"'),),
    )
    phases = (Phase("sum_0", "n2", "n0"), Phase("sum_1", "n0", "n2 / n1"))
    kernel = KernelSource("sum", "", interface, phases, "4 * n2", "64")
    golden(table([Operator(kernel)], X86_LEVELS), "c")
