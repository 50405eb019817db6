"""The definitions that the tests of scheduling, mapping and code generation share."""

from __future__ import annotations

import re

from tcfuse.poly.dependences import Dependences, compute_dependences
from tcfuse.poly.scop import Scop, extract_scop
from tcfuse.tc.checked import CheckedDef
from tcfuse.tc.parser import parse
from tcfuse.tc.sema import check

SOFTMAX = """def softmax(float(n0, n1) X, float(n1) B) -> (float(n0, n1) Y) {
  M(i) max=! X(i, j) * 0.125 + B(j) where i in 0:n0, j in 0:n1
  E(i, j) = exp(X(i, j) * 0.125 + B(j) - M(i)) where i in 0:n0, j in 0:n1
  S(i) +=! E(i, j) where i in 0:n0, j in 0:n1
  Y(i, j) = E(i, j) / S(i) where i in 0:n0, j in 0:n1
}"""
SOFTMAX_OUTER = """def softmax(float(8, 64, 100) X) -> (float(8, 64, 100) Y) {
  M(i, k) max=! X(i, j, k) where i in 0:8, k in 0:100, j in 0:64
  E(i, j, k) = exp(X(i, j, k) - M(i, k)) where i in 0:8, j in 0:64, k in 0:100
  S(i, k) +=! E(i, j, k) where i in 0:8, k in 0:100, j in 0:64
  Y(i, j, k) = E(i, j, k) / S(i, k) where i in 0:8, j in 0:64, k in 0:100
}"""
LAYER_NORM = """def norm(float(512, 768) X, float(768) G, float(768) B) -> (float(512, 768) Y) {
  S(i) +=! X(i, j) where i in 0:512, j in 0:768
  M(i) = S(i) / 768 where i in 0:512
  V(i) +=! t * t where i in 0:512, j in 0:768, t = X(i, j) - M(i)
  D(i) = sqrt(V(i) / 768 + 1e-05) where i in 0:512
  Y(i, j) = (X(i, j) - M(i)) / D(i) * G(j) + B(j) where i in 0:512, j in 0:768
}"""
ROPE = """def rope(float(4, 6, 8) X, float(6, 8) C, float(6, 8) S) -> (float(4, 6, 8) Y) {
  Y(i, j, k) = X(i, j, k) * C(j, k) + -X(i, j, k + 4) * S(j, k)
    where i in 0:4, j in 0:6, k in 0:4
  Y(i, j, k) = X(i, j, k) * C(j, k) + X(i, j, k - 4) * S(j, k)
    where i in 0:4, j in 0:6, k in 4:8
}"""
BROADCAST = """def scale(float(240, 784) X, float(784) W) -> (float(240, 784) Y) {
  E(j) = exp(W(j)) where j in 0:784
  Y(i, j) = X(i, j) * E(j) where i in 0:240, j in 0:784
}"""
POOL = """def pool(float(n0, 49) X) -> (float(n0, 49) R, float(n0) Y) {
  R(i, j) = max(X(i, j), 0) where i in 0:n0, j in 0:49
  S(i) +=! R(i, j) where i in 0:n0, j in 0:49
  Y(i) = S(i) / 49.0 where i in 0:n0
}"""
GATHER = """def gather(float(n0, 64) X, int64(n1) I) -> (float(n1, 64) Y) {
  Y(i, j) = X(I(i), j) + 1 where i in 0:n1, j in 0:64
}"""
PAD = """def pad(float(n0, 9) X) -> (float(n0, 12) Y) {
  Y(i, j) = j >= 2 && j - 2 < 9 ? X(i, j - 2) : 0.0 where i in 0:n0, j in 0:12
}"""
COLUMN_SUM = """def sums(float(n0, n1) X) -> (float(n1) Y) {
  Y(j) +=! X(i, j) where j in 0:n1, i in 0:n0
}"""
ROW_SUM = """def sums(float(n0, n1) X) -> (float(n0) Y) {
  Y(i) +=! X(i, j) where i in 0:n0, j in 0:n1
}"""

ALL = {
    "softmax": SOFTMAX,
    "softmax_outer": SOFTMAX_OUTER,
    "layer_norm": LAYER_NORM,
    "rope": ROPE,
    "broadcast": BROADCAST,
    "pool": POOL,
    "gather": GATHER,
    "pad": PAD,
    "column_sum": COLUMN_SUM,
    "row_sum": ROW_SUM,
}


def checked_of(text: str) -> CheckedDef:
    """What a definition's text means."""
    return check(parse(text))


def model(definition: str | CheckedDef) -> tuple[Scop, Dependences]:
    """The polyhedral model of a definition, with its dependences."""
    checked = checked_of(definition) if isinstance(definition, str) else definition
    scop = extract_scop(checked)
    return scop, compute_dependences(scop)


def readable(union: object) -> str:
    """A printed union with one piece a line; isl's own order depends on its hashes."""
    return _each_union(str(union), "\n  ")


def stable(text: str) -> str:
    """A printed tree with the pieces of every union in alphabetical order."""
    return _each_union(text, "; ")


def _each_union(text: str, separator: str) -> str:
    def ordered(match: re.Match[str]) -> str:
        return "{ " + separator.join(sorted(match[1].split("; "))) + " }"

    return re.sub(r"\{ ([^{}]*) \}", ordered, text)
