"""Durations, and how they are used up."""

from __future__ import annotations

import pytest

from tcfuse.errors import OptionError
from tcfuse.tuning.budget import Clock, seconds_of, shown


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("5m", 300), ("1h", 3600), ("1h30m", 5400), ("0.5m", 30), ("20", 20), (7, 7)],
)
def test_durations(text: str | float, seconds: float):
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "5 minutes", "m", "-5", "0s", "5x", "1e3", "nan", "inf"])
def test_what_is_no_duration(text: str):
    with pytest.raises(OptionError, match="no duration"):
        seconds_of(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0s"), (59.4, "59s"), (59.7, "1m00s"), (75, "1m15s"), (5430, "1h30m")],
)
def test_durations_for_people(seconds: float, text: str):
    assert shown(seconds) == text


def test_a_clock_goes_on_where_an_earlier_one_was():
    now = iter([100.0, 103.0, 103.0, 190.0])
    clock = Clock(60.0, 50.0, lambda: next(now))
    assert clock.elapsed == 53
    assert clock.left == 7
    assert clock.left == 0
