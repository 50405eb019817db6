"""Entries of wisdom for tests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tcfuse.wisdom.problem import Entry, Problem

TEMPLATE = """def f(float(F0, F1) T0) -> (float(F0, F1) T1) {
  T1(i0, i1) = exp(T0(i0, i1)) where i0 in 0:F0, i1 in 0:F1
}
"""
VERSIONS = {"tcfuse": "0.1.0", "compiler": "zig 0.15.1"}


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
