"""Writes next to a tensor are seen, and told in words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcfuse.tuning.guarded import GUARD, PAGE, Guarded, described


@given(st.integers(0, 3 * PAGE), st.booleans())
def test_all_bytes_are_usable_and_one_side_is_flush(n_bytes, at_end):
    area = Guarded.of("output Y", n_bytes, at_end=at_end)
    area.data[:] = 7
    assert area.intact
    assert (area.data == 7).all()
    first = area.data.ctypes.data
    edge = first + n_bytes if at_end else first
    assert edge % PAGE == 0
    assert area.begin + GUARD <= first <= first + n_bytes <= area.end - GUARD


@pytest.mark.parametrize("at_end", [True, False])
def test_a_write_into_the_slack_is_noticed(at_end):
    area = Guarded.of("output Y", 100, at_end=at_end)
    area.slack[-1 if at_end else 0] ^= 1
    assert not area.intact


def test_addresses_are_told_in_words():
    area, other = (Guarded.of(name, 8, at_end=True) for name in ("input 0", "output Y"))
    first = area.data.ctypes.data
    told = [
        described([other, area], first + offset, is_write=offset > 8)
        for offset in (3, 8, 20, -4)
    ]
    assert told == [
        "reads byte 3 of input 0, which is an input",
        "reads out of bounds: just past the end of input 0",
        "writes out of bounds: 12 bytes past the end of input 0",
        "reads out of bounds: 4 bytes before input 0",
    ]
    assert "no tensor's" in described([area, other], 64, is_write=True)
