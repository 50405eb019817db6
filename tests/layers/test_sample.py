"""The error of a layer against its definition, on values that are drawn for it."""

from __future__ import annotations

import numpy as np
import pytest

import tcfuse
from tcfuse.errors import UnsupportedError
from tcfuse.layers.layer import Layer
from tcfuse.layers.sample import error_of, largest_error
from tests.layers.definitions import TEXT


@pytest.fixture(scope="module")
def ops() -> tcfuse.Layers:
    return tcfuse.define(TEXT, sizes={"P": 4}, quiet=True)


@pytest.mark.compiler
def test_every_layer_is_near_its_definition(ops):
    limits = {"scaled": 4e-3, "flip": 0, "ramp": 0}  # the second output of one is a bfloat16
    for name in ops:
        error = largest_error(ops[name])
        assert error is not None, name
        assert error <= limits.get(name, 1e-6), name


@pytest.mark.compiler
def test_a_wrong_result_is_seen(ops, monkeypatch):
    right = Layer.__call__

    def wrong(self: Layer, *arguments: np.ndarray, **named: object) -> np.ndarray:
        result = right(self, *arguments, **named)
        result[..., -1] += 0.01
        return result

    monkeypatch.setattr(Layer, "__call__", wrong)
    error = largest_error(ops.softmax)
    assert error is not None
    assert error > 1e-3


@pytest.mark.compiler
def test_what_is_too_large_to_try_is_left():
    ops = tcfuse.define(
        "def f(float(N) X) -> (O) { O(i) = X(i) }", sizes={"N": 1 << 30}, quiet=True
    )
    assert largest_error(ops.f) is None


def test_what_cannot_be_compiled_is_an_error(monkeypatch):
    def refuse(*arguments: object) -> None:
        raise UnsupportedError("too hard")

    ops = tcfuse.define("def f(float(N) X) -> (O) { O(i) = X(i) }", quiet=True)
    monkeypatch.setattr("tcfuse.layers.compiling.compile_cached", refuse)
    with pytest.raises(UnsupportedError, match="f: too hard"):
        largest_error(ops.f)


def test_errors():
    one = np.array([1.0, 2.0])
    assert error_of(one, one) == 0
    assert error_of(one.astype(np.float32), np.array([1.0, 4.0])) == 0.5
    assert error_of(np.array([np.nan, np.inf]), np.array([np.nan, np.inf])) == 0
    assert error_of(np.array([np.nan]), np.array([1.0])) == np.inf
    assert error_of(np.array([np.inf]), np.array([1.0])) == np.inf
    assert error_of(one, np.array([1.0])) == np.inf
    assert error_of(np.array([0.25]), np.array([0.0])) == 0.25
    assert error_of(np.zeros(0), np.zeros(0)) == 0
