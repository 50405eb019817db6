"""Definitions for random options, and the option sets that once broke Tensor Comprehensions.

The seeds follow the original's tests of fixed bugs: a tensor contraction under nine option
sets, group convolution, C3, a transposed product, tightening, a filter of several pieces, a
layer norm in two groups, a minimum in an upper bound, nested expressions in a convolution, the
reductions of a group norm, and a Kronecker product.  Their block and grid sizes are lanes and
threads here.
"""

from __future__ import annotations

from dataclasses import dataclass

from tcfuse.mapping_options import MappingOptions

TENSORDOT = """def tensordot(float(n0, 6, 5, 4, 7) A, float(n0, 5, 2, 4, 7) B)
    -> (float(n0, 6, 2, 4, 7) O) {
  O(n, a, c, h, w) +=! A(n, a, b, h, w) * B(n, b, c, h, w)
    where n in 0:n0, a in 0:6, c in 0:2, h in 0:4, w in 0:7, b in 0:5
}"""
GROUP_CONVOLUTION = """def gconv(
    float(2, 3, 4, n0 + 2, 9) X, float(3, 5, 4, 3, 3) W, float(3, 5) B)
    -> (float(2, 3, 5, n0, 7) O) {
  O(n, g, f, h, w) +=! X(n, g, c, h + r, w + s) * W(g, f, c, r, s)
    where n in 0:2, g in 0:3, f in 0:5, h in 0:n0, w in 0:7, c in 0:4, r in 0:3, s in 0:3
  O(n, g, f, h, w) = O(n, g, f, h, w) + B(g, f)
    where n in 0:2, g in 0:3, f in 0:5, h in 0:n0, w in 0:7
}"""
C3 = """def c3(float(n0, n1) X, float(n2, n1) W) -> (float(n0, n2) C) {
  C(b, y) +=! X(b, x) * W(y, x) where b in 0:n0, y in 0:n2, x in 0:n1
}"""
PRODUCT = """def mm(float(n0, n1) A, float(n1, n2) B) -> (float(n0, n2) C) {
  C(i, j) +=! A(i, k) * B(k, j) where i in 0:n0, j in 0:n2, k in 0:n1
}"""
TIGHTENING = """def sums(float(n0, 2304) X) -> (float(n0) S, float(n0) Q) {
  S(n) +=! X(n, k) where n in 0:n0, k in 0:2304
  Q(n) +=! X(n, k) * X(n, k) where n in 0:n0, k in 0:2304
}"""
PIECES = """def pieces(float(n0, 12) X) -> (float(n0, 24) Y) {
  Y(i, j) = X(i, j) where i in 0:n0, j in 0:5
  Y(i, j) = X(i, j - 5) * 2 where i in 0:n0, j in 5:17
  Y(i, j) = X(i, j - 17) + Y(i, j - 12) where i in 0:n0, j in 17:24
}"""
TWO_GROUPS = """def norm(float(n0, n1, n2) X)
    -> (float(n0, n1) M, float(n0, n1) V, float(n0, n1, n2) O) {
  M(t, b) +=! X(t, b, c) where t in 0:n0, b in 0:n1, c in 0:n2
  M(t, b) = M(t, b) / (n2 + 1) where t in 0:n0, b in 0:n1
  V(t, b) +=! X(t, b, c) * X(t, b, c) where t in 0:n0, b in 0:n1, c in 0:n2
  V(t, b) = V(t, b) / (n2 + 1) - M(t, b) * M(t, b) where t in 0:n0, b in 0:n1
  O(t, b, c) = (X(t, b, c) - M(t, b)) / sqrt(abs(V(t, b)) + 1)
    where t in 0:n0, b in 0:n1, c in 0:n2
}"""
MINIMUM = """def window(float(n0) X) -> (float(n0 + 3) Y) {
  Y(i) +=! max(i - 4, 0) <= j && j < min(i, n0) ? X(j) : 0.0
    where i in 0:n0 + 3, j in 0:n0
}"""
NESTED = """def conv(float(2, 3, 9, n0 + 2) X, float(4, 3, 3, 3) W, float(4) B)
    -> (float(2, 4, 7, n0) T, float(2, 4, 7, n0) O) {
  T(n, f, h, w) +=! X(n, c, h + r, w + s) * W(f, c, r, s)
    where n in 0:2, f in 0:4, h in 0:7, w in 0:n0, c in 0:3, r in 0:3, s in 0:3
  O(n, f, h, w) = max(((T(n, f, h, w) + B(f)) * 0.5 - B(f) * 0.25) / (abs(B(f)) + 1), 0)
    where n in 0:2, f in 0:4, h in 0:7, w in 0:n0
}"""
GROUP_NORM = """def gn(float(n0, 4, 3, 5, 6) X, float(4, 3) G, float(4, 3) B)
    -> (float(n0, 4, 3, 5, 6) O) {
  S(n, g) +=! X(n, g, d, h, w) where n in 0:n0, g in 0:4, d in 0:3, h in 0:5, w in 0:6
  Q(n, g) +=! X(n, g, d, h, w) * X(n, g, d, h, w)
    where n in 0:n0, g in 0:4, d in 0:3, h in 0:5, w in 0:6
  O(n, g, d, h, w) = G(g, d) * (X(n, g, d, h, w) - S(n, g) / 90)
      / sqrt(abs(Q(n, g) / 90 - S(n, g) / 90 * S(n, g) / 90) + 1) + B(g, d)
    where n in 0:n0, g in 0:4, d in 0:3, h in 0:5, w in 0:6
}"""
KRONECKER = """def kronecker(float(4, n0) A, float(5, n1) B, float(n2, n0, n1) X)
    -> (float(n2, n0, 5) T, float(n2, 4, 5) Y) {
  T(m, n, e) +=! X(m, n, o) * B(e, o) where m in 0:n2, n in 0:n0, e in 0:5, o in 0:n1
  Y(m, d, e) +=! A(d, n) * T(m, n, e) where m in 0:n2, d in 0:4, e in 0:5, n in 0:n0
}"""
CHAIN = """def chain(float(n0, n1) A) -> (float(n0, n1) F) {
  B(i, j) = A(i, j) * 2 where i in 0:n0, j in 0:n1
  C(i) +=! B(i, j) where i in 0:n0, j in 0:n1
  D(j) max=! B(i, j) where i in 0:n0, j in 0:n1
  E(i, j) = B(i, j) + C(i) * 0.125 where i in 0:n0, j in 0:n1
  F(i, j) = E(i, j) - D(j) where i in 0:n0, j in 0:n1
}"""
STENCILS = """def stencils(float(n0 + 4, n1 + 4) X) -> (float(n0, n1) Z) {
  Y(i, j) = X(i, j + 1) + X(i + 1, j) + X(i + 2, j + 1) + X(i + 1, j + 2)
    where i in 0:n0 + 2, j in 0:n1 + 2
  Z(i, j) = Y(i, j + 1) + Y(i + 1, j) + Y(i + 2, j + 1) + Y(i + 1, j + 2)
    where i in 0:n0, j in 0:n1
}"""
TURNED = """def turned(float(n0, n1) X) -> (float(n0, n1) Y) {
  T(a, i) = X(a, i) * 2 where a in 0:n0, i in 0:n1
  Y(a, i) = T(a, n1 - 1 - i) + 1 where a in 0:n0, i in 0:n1
}"""

BUGS = {
    "tensordot": TENSORDOT,
    "gconv": GROUP_CONVOLUTION,
    "c3": C3,
    "product": PRODUCT,
    "tightening": TIGHTENING,
    "pieces": PIECES,
    "two_groups": TWO_GROUPS,
    "minimum": MINIMUM,
    "nested": NESTED,
    "group_norm": GROUP_NORM,
    "kronecker": KRONECKER,
    "chain": CHAIN,
    "stencils": STENCILS,
    "turned": TURNED,
}


@dataclass(frozen=True)
class Seed:
    """A definition of ``BUGS`` with options that were trouble once."""

    name: str
    options: MappingOptions


SEEDS = (
    # a tensor contraction: nine option sets, with unrolled reductions and empty leaves
    Seed("tensordot", MappingOptions()),
    Seed("tensordot", MappingOptions(tile=(32, 32, 32))),
    Seed("tensordot", MappingOptions(tile=(4, 36, 3), unroll=128, fusion="max")),
    Seed("tensordot", MappingOptions(tile=(1, 3, 7, 18), unroll=16, inner_fusion="min")),
    Seed("tensordot", MappingOptions(tile=(16, 32), unroll=64, fix_sizes="before")),
    Seed("tensordot", MappingOptions(tile=(28, 8, 8), unroll=1, fusion="min", private_depth=3)),
    Seed("tensordot", MappingOptions(tile=(8, 1, 1, 1), unroll=8, separate_tiles=True)),
    Seed("tensordot", MappingOptions(tile=(0, 2, 1, 3), unroll=32, inner_fusion="max")),
    Seed("tensordot", MappingOptions(tile=(3, 3, 1, 2, 5), unroll=256, shared_depth=2)),
    Seed("gconv", MappingOptions(tile=(1, 1), inner_fusion="max")),
    Seed("gconv", MappingOptions(tile=(1, 1, 7, 7), unroll=16, fusion="max")),
    Seed("c3", MappingOptions(tile=(8, 32), unroll=32, fusion="max")),
    Seed("c3", MappingOptions(tile=(1, 64, 4), unroll=4, inner_fusion="min")),
    Seed("product", MappingOptions(tile=(32, 32, 32), unroll=64)),
    Seed("product", MappingOptions(tile=(4, 32, 2), unroll=2, separate_tiles=True)),
    Seed("tightening", MappingOptions(tile=(9,), unroll=4, fusion="max", private_depth=2)),
    Seed("pieces", MappingOptions(tile=(4, 4), fusion="max", inner_fusion="min")),
    Seed("two_groups", MappingOptions(tile=(2, 2), fusion="max")),
    Seed("two_groups", MappingOptions(tile=(2, 2), fusion="min", inner_fusion="max")),
    Seed("minimum", MappingOptions(tile=(5,), unroll=8)),
    Seed("nested", MappingOptions(tile=(4, 8, 8, 8), unroll=16)),
    Seed("group_norm", MappingOptions(tile=(4, 16), fusion="max", unroll=256)),
    Seed("kronecker", MappingOptions(tile=(1, 16, 16), unroll=128)),
    Seed("kronecker", MappingOptions(tile=(32, 2), fusion="max", inner_fusion="preserve")),
    Seed("turned", MappingOptions(positive=False)),
    Seed("turned", MappingOptions(positive=False, tile=(3, 5), inner_positive=False)),
    # lanes and rows along other loops, and more vectors side by side than a register block has
    Seed("gconv", MappingOptions(lane_choice=2, vectors=4, fusion="max")),
    Seed("product", MappingOptions(vectors=3, block=4)),
    Seed("two_groups", MappingOptions(lane_choice=1, vectors=4)),
)
