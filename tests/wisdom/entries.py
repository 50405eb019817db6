"""Entries of wisdom for tests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tcfuse.wisdom.problem import Entry, Problem
from tcfuse.wisdom.verdict import Verdict

TEMPLATE = """def f(float(F0, F1) T0) -> (float(F0, F1) T1) {
  T1(i0, i1) = exp(T0(i0, i1)) where i0 in 0:F0, i1 in 0:F1
}
"""
VERSIONS = {"tcfuse": "0.1.0", "compiler": "zig 0.15.1"}


def ratio(value: float) -> dict[str, float]:
    """A measurement as records have it."""
    return {"value": value, "spread": 0.0, "before_us": 9.0, "after_us": 9.0 / value}


def verdict(value: float = 1.5, **changes: Any) -> Verdict:
    """A verdict about a model of two kernels."""
    record = {
        "kept": ["exp_1"],
        "dropped": {"log_2": "slower alone: 0.50 of the original's speed"},
        "alone": {"exp_1": ratio(value), "log_2": ratio(0.5)},
        "whole": ratio(value),
        "note": "",
    }
    names = ("exp_1", "log_2")
    made = Verdict("gate", "a digest", names, "a processor", VERSIONS, record)
    return replace(made, **changes)


def problem(*sizes: int, **changes: Any) -> Problem:
    """A problem of these sizes."""
    made = Problem(TEMPLATE, sizes or (64, 64), "cpu", "a processor", "default", 1)
    return replace(made, **changes)


def entry(*sizes: int, speedup: float = 1.5, unroll: int = 4, **changes: Any) -> Entry:
    """An entry for a problem of these sizes."""
    made = Entry(
        problem(*sizes),
        {"mapping": {"unroll": unroll}},
        speedup,
        10.0,
        predicted=False,
        versions=VERSIONS,
    )
    return replace(made, **changes)
