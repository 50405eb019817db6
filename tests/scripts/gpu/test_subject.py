"""What counts as right."""

from __future__ import annotations

import numpy as np
import pytest

from scripts.gpu.subject import Subject, judge
from tcfuse.tc.kernel_form import kernel_form
from tcfuse.tc.parser import parse
from tcfuse.tc.sema import check

X = np.linspace(-1, 2, 30, dtype=np.float32).reshape(5, 6)


def subject_of(text: str, *inputs: np.ndarray) -> Subject:
    form = kernel_form(check(parse(text), affine=False))
    ready = check(form.definition, sizes=form.interface.sizes)
    return Subject("k", ready, form.interface, inputs)


SUM = subject_of("def k(float(N, M) X) -> (Y) { Y(n) +=! X(n, m) }", X)
EXACT = X.astype(np.float64).sum(1)


def test_rounding_is_no_mistake() -> None:
    found = judge(SUM, [EXACT.astype(np.float32)])
    assert found["status"] == "ok"
    assert found["error"] < 1e-7


@pytest.mark.parametrize("change", [1e-4, -1e-4, np.nan, np.inf])
def test_more_is(change: float) -> None:
    outputs = EXACT.astype(np.float32)
    outputs[3] += change
    found = judge(SUM, [outputs])
    assert found["status"] == "wrong"
    assert found["why"].startswith("Y: ")


def test_what_cancels_is_held_against_what_it_was_made_of() -> None:
    text = "def k(float(N) X) -> (Y) { Y(n) = X(n) * X(n) - X(n) * X(n) }"
    subject = subject_of(text, X[0])
    assert judge(subject, [np.full(6, 1e-7, np.float32)])["status"] == "ok"
    assert judge(subject, [np.full(6, 1e-5, np.float32)])["status"] == "wrong"


def test_integers_are_exact() -> None:
    numbers = np.arange(6, dtype=np.int32)
    subject = subject_of("def k(int32(N) X) -> (Y) { Y(n) = X(n) + 1 }", numbers)
    assert judge(subject, [numbers + 1])["status"] == "ok"
    assert judge(subject, [numbers])["status"] == "wrong"
