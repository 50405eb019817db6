"""Definitions that the tests of layers share, so that each is compiled once."""

from __future__ import annotations

TEXT = """
def softmax(float(N, D) I) -> (O) {
  M(n) max=! I(n, d)
  E(n, d) = exp(I(n, d) - M(n))
  S(n) +=! E(n, d)
  O(n, d) = E(n, d) / S(n)
}
def add(float(N) A, float(N) B) -> (C) { C(i) = A(i) + B(i) }
def convolve(float(N) X, float(K) w) -> (Y) { Y(i) +=! X(i + k) * w(k) }
def scaled(float16(N) X, bfloat16 s) -> (float16(N) Y, bfloat16 T) {
  Y(i) = float16(X(i) * s)
  t() +=! X(i)
  T() = bfloat16(t())
}
def take(double(N, D) T, int32(B) I) -> (double(B, D) O) { O(b, d) = T(I(b), d) }
def flip(bool(N, M) P) -> (bool(M, N) Q) { Q(i, j) = !P(j, i) }
def accumulate(float(N, M) X) -> (float(M) T) { T(j) += X(i, j) }
def ramp() -> (int32(3, P) O) { O(i, j) = i * P + j where i in 0:3, j in 0:P }
"""
