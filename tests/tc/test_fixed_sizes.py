"""Sizes that are numbers: in shapes and ranges, and checked in every call."""

from __future__ import annotations

import pytest

from tcfuse.errors import OptionError
from tcfuse.interface import Interface
from tcfuse.tc.fixed_sizes import with_fixed_interface, with_fixed_sizes
from tests.poly.definitions import checked_of

SHIFTED = """def f(float(N + M, 2*N) X) -> (float(M, N) Y) {
  Y(i, j) = X(i + N, 2*j) * N where i in 0:M, j in 0:N
}"""


def test_shapes_and_ranges_become_numbers():
    fixed = with_fixed_sizes(checked_of(SHIFTED), {"N": 8})
    assert fixed.tensors["X"].shape == ("M + 8", 16)
    assert fixed.tensors["Y"].shape == ("M", 8)
    assert [str(r.high) for r in fixed.statements[0].ranges] == [
        str(r.high)
        for r in checked_of(SHIFTED.replace("j in 0:N", "j in 0:8")).statements[0].ranges
    ]
    assert fixed.sizes == checked_of(SHIFTED).sizes  # the signature stays


def test_the_caller_is_told():
    interface = Interface((), (), ("N", "M"), checks=(("M > 0", "M is not positive"),))
    fixed = with_fixed_interface(interface, {"N": 8})
    assert fixed.checks == (
        ("M > 0", "M is not positive"),
        ("N == 8", "N is not 8, which this kernel was made for"),
    )
    assert fixed.facts == ("N = 8",)
    assert with_fixed_interface(interface, {}) == interface
    with pytest.raises(OptionError, match="no size 'K' to fix; sizes are N, M"):
        with_fixed_interface(interface, {"K": 1})
