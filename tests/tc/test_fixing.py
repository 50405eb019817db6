"""Definitions with numbers in place of sizes."""

from __future__ import annotations

import numpy as np
import pytest

from tcfuse.errors import OptionError, TcError
from tcfuse.tc.evaluate import evaluate
from tcfuse.tc.fixing import check_with_sizes, with_sizes
from tcfuse.tc.parser import parse, parse_file

TEXT = """
def f(float(2*N + M, M) X, bool(N) P) -> (float(N) Y) {
  Y(i) +=! P(i) ? -X(2*i, t) * fmax(float(N), X(i, j)) + k : N / 2.0
    where j in 0:M, i in 0:N, t = (M - 1) % M, k = N * 1.0, exists P(i)
}
"""


def test_numbers_stand_everywhere():
    definition = with_sizes(parse(TEXT), {"N": 3, "M": 2})
    text = str(definition)
    assert "float(8, 2) X, bool(3) P" in text
    assert not {"N", "M"} & set(text.replace("(", " ").replace(")", " ").split())
    assert parse(text) == definition


def test_one_of_two_sizes():
    definition = with_sizes(parse(TEXT), {"N": 3})
    assert "float(M + 6, M) X" in str(definition)


def test_the_meaning_stays():
    rng = np.random.default_rng(0)
    arrays = {"X": rng.standard_normal((8, 2)), "P": np.array([True, False, True])}
    (fixed,) = check_with_sizes(parse_file(TEXT), {"N": 3, "M": 2})
    assert fixed.sizes == ()
    np.testing.assert_array_equal(
        evaluate(fixed, arrays)["Y"], evaluate(parse(TEXT), arrays)["Y"]
    )


def test_no_size_leaves_the_definition():
    definition = parse(TEXT)
    assert with_sizes(definition, {}) is definition


def test_a_size_of_one_definition_of_a_file():
    text = "def g(float(K) X) -> (O) { O(i) = X(i) }"
    first, second = check_with_sizes(parse_file(f"{TEXT}\n{text}"), {"K": 5})
    assert first.sizes == ("N", "M")
    assert second.tensors["O"].shape == (5,)


def test_what_is_refused():
    with pytest.raises(OptionError, match="no size 'Q'; sizes are N, M"):
        check_with_sizes(parse_file(TEXT), {"Q": 1})
    with pytest.raises(OptionError, match="size N is -1"):
        check_with_sizes(parse_file(TEXT), {"N": -1})
    text = "def g(float(K - 5) X) -> (O) { O(i) = X(i) }"
    with pytest.raises(TcError, match="negative"):
        check_with_sizes(parse_file(text), {"K": 2})
