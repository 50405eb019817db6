"""Calls of layers whose sizes are computed, solved for, or checked."""

import numpy as np
import pytest

import tcfuse
from tcfuse.errors import TcError

pytestmark = pytest.mark.compiler

LAYERS = """
def shortest(float(A) X, float(B) Y) -> (O) { O(i) = X(i) + Y(i) }

def odd(float(2*N + 1) X) -> (float(N) O) { O(i) = X(2*i + 1) }

def correlate(float(N) B, float(M) C, float(K) D) -> (A) { A(i) +=! B(i) * C(i + j) * D(j) }

def cubic(float(N) X) -> (float(N) O) {
  t(i, j, k) = X(i) * X(j) + X(k) where i in 0:N, j in 0:N, k in 0:N
  u(i) +=! t(j, k, i) where i in 0:N, j in 0:N, k in 0:N
  O(i) +=! t(i, j, k) * u(k) where i in 0:N, j in 0:N, k in 0:N
}
"""


@pytest.fixture(scope="module")
def layers():
    return tcfuse.define(LAYERS, quiet=True)


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def test_a_computed_extent(layers):
    np.testing.assert_array_equal(layers.shortest(ones(3), ones(5)), 2 * ones(3))
    np.testing.assert_array_equal(layers.shortest(ones(4), ones(0)), ones(0))


def test_a_size_that_is_solved_for(layers):
    np.testing.assert_array_equal(layers.odd(np.arange(7, dtype=np.float32)), [1, 3, 5])


def test_a_dimension_that_no_size_solves_is_refused(layers):
    with pytest.raises(TcError, match=r"2\*N \+ 1"):
        layers.odd(ones(6))


def test_a_read_outside_is_refused_in_words_that_name_it(layers):
    message = r"C\(i \+ j\) leaves dimension 0 of C unless K \+ N <= M \+ 1"
    with pytest.raises(TcError, match=message):
        layers.correlate(ones(3), ones(4), ones(3))


def test_temporaries_beyond_all_memory_are_refused(layers):
    with pytest.raises(TcError, match="take more memory than there is"):
        layers.cubic(ones(3_000_000))
