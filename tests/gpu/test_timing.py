"""Rounds of contenders, with clocks that are made up."""

from __future__ import annotations

import pytest

from tcfuse.gpu.timing import Times, interleave


def test_contenders_take_turns_forwards_and_backwards() -> None:
    order: list[str] = []

    def block(name: str, seconds: float):
        def run(calls: int) -> float:
            if calls > 1:
                order.append(name)
            return calls * seconds

        return run

    found = interleave({"a": block("a", 1e-4), "b": block("b", 2e-4)}, 4, 1e-3)
    assert order == ["a", "b", "b", "a", "a", "b", "b", "a"]
    assert found["a"].median == pytest.approx(1e-4)
    assert found["b"].rounds == pytest.approx((2e-4,) * 4)


def test_blocks_are_as_long_as_asked_for() -> None:
    counts: list[int] = []

    def block(calls: int) -> float:
        counts.append(calls)
        return calls * 1e-4

    interleave({"a": block}, 3, 5e-3)
    assert max(counts) in (49, 50)


def test_spread_is_that_of_the_middle_half() -> None:
    times = Times((1.0, 2.0, 2.0, 2.0, 9.0))
    assert (times.median, times.spread) == (2.0, 0.0)
    assert Times((1.0, 1.0, 2.0, 3.0, 3.0)).spread == pytest.approx(1.0)
