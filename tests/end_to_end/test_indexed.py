"""Operators that work with positions, fused with what makes and what reads these."""

from __future__ import annotations

import re

import pytest

from tests.conformance import compiled, emulated
from tests.end_to_end.graphs import Graph, graph, wrong

pytestmark = [pytest.mark.compiler, pytest.mark.ort]

GRAPHS = {
    "a loss of a softmax": "g (float[N,5,3] x, int64[N,3] t, float[5] w) => (float y)"
    " { l = LogSoftmax<axis=1>(x) y = NegativeLogLikelihoodLoss(l, t, w) }",
    "a loss without what is ignored": "g (float[N,5] x, int64[N] t) => (float y, float[N,5] l)"
    " { z = Tanh(x) y, l = SoftmaxCrossEntropyLoss<ignore_index=1>(z, t) }",
    "read where the largest is": "g (float[N,5] x, float[N,5] v) => (float[N,1] y)"
    " { z = Neg(x) k = ArgMax<axis=1>(z) e = Exp(v) y = GatherElements<axis=1>(e, k) }",
    "positions of a mask": "g (int64[N,M] m) => (int64[N,M] y) <int32 a = {1}, int64 o = {1}>"
    " { s = CumSum(m, a) d = Sub(s, o) y = Mul(d, m) }",
    "a causal mask": "g (float[N,M,M] x, bool[M,M] m, float big) => (float[N,M,M] y)"
    " { t = Trilu<upper=0>(m) w = Where(t, x, big) y = Softmax(w) }",
    "a diagonal given when it runs": "g (float[4,5] x, int64 k) => (float[4,5] y)"
    " { e = Exp(x) y = Trilu(e, k) }",
    "rows of a one-hot matrix": "g (int64[N] t, float[N,6] x) => (float[N] y)"
    " <int64 d = {6}, float[2] v = {0, 1}, int64[1] a = {1}>"
    " { h = OneHot(t, d, v) p = Mul(h, x) y = ReduceSum<keepdims=0>(p, a) }",
    "scattered and added": "g (float[4,3] x, int64[2,1] k, float[2,3] u) => (float[4,3] y)"
    ' { e = Exp(u) s = ScatterND<reduction = "add">(x, k, e) y = Relu(s) }',
    "scattered and replaced": "g (float[4,3] x, int64[1,3] k, float[1,3] u) => (float[4,3] y)"
    " { e = Exp(u) s = ScatterElements(x, k, e) y = Relu(s) }",
    "the best of a softmax": "g (float[N,7] x) => (float[N,3] y, int64[N,3] i)"
    " <int64[1] k = {3}> { p = Softmax(x) v, i = TopK(p, k) y = Exp(v) }",
    "sequences backwards": "g (float[3,4,2] x, int64[4] n) => (float[3,4,2] y)"
    " { e = Exp(x) r = ReverseSequence(e, n) y = Sub(r, e) }",
    "tuples of indices": "g (float[3,4,2] x, int64[5,2] k) => (float[5,2] y)"
    " { e = Exp(x) r = GatherND(e, k) y = Sqrt(r) }",
    "a channel's own mean": "g (float[N,3,4] x, float[3] a, float[3] b, float[3] c,"
    " float[3] d) => (float[N,3,4] y, float[3] m)"
    " { e = Exp(x) z, m, v = BatchNormalization<training_mode=1>(e, a, b, c, d) y = Relu(z) }",
    "a mask of what is kept": "g (float[N,4] x) => (float[N,4] y)"
    " { e = Exp(x) d, m = Dropout(e) y = Where(m, d, x) }",
    "a one among zeros": "g (float[N,M] x) => (float[N,M] y) { h = Hardmax(x) y = Mul(h, x) }",
    "a spectrum's power": "g (float[N,16,1] x) => (float[N,9] y) <int64[1] a = {2}>"
    " { w = Neg(x) f = DFT<onesided=1>(w) s = Mul(f, f) y = ReduceSum<keepdims=0>(s, a) }",
}
NOTHING = {
    "extrema of no rows": "g (float[0,3] x) => (int64[0,1] y)"
    " { e = Exp(x) y = ArgMax<axis=1>(e) }",
    "elements at no places": "g (float[2,3] x, int64[0,3] k) => (float[0,3] y)"
    " { e = Exp(x) y = GatherElements(e, k) }",
    "sums of nothing": "g (float[2,0] x) => (float[2,0] y) <int64 a = {1}>"
    " { e = Exp(x) y = CumSum(e, a) }",
    "no updates": "g (float[2,3] x, int64[0,3] k, float[0,3] u) => (float[2,3] y)"
    " { e = Exp(x) y = ScatterElements(e, k, u) }",
    "a triangle of nothing": "g (float[0,3] x) => (float[0,3] y) { e = Exp(x) y = Trilu(e) }",
    "no labels": "g (int64[0] t) => (float[0,6] y) <int64 d = {6}, float[2] v = {0, 1}>"
    " { h = OneHot(t, d, v) y = Exp(h) }",
    "a loss without labels": "g (float[0,5] x, int64[0] t) => (float[0] y)"
    ' { e = Exp(x) y = NegativeLogLikelihoodLoss<reduction = "none">(e, t) }',
}


def graphs() -> list[Graph]:
    named = [graph(name, text, N=3, M=5) for name, text in GRAPHS.items()]
    fixed = {n: re.sub(r"\bM\b", "4", re.sub(r"\bN\b", "17", t)) for n, t in GRAPHS.items()}
    return named + [graph(f"{n}, fixed", t) for n, t in fixed.items() if t != GRAPHS[n]]


def test_positions_in_kernels():
    assert wrong(graphs(), compiled.run_cases) == {}


def test_positions_in_kernels_for_gpus():
    assert wrong(graphs()[::4], emulated.run_cases) == {}


def test_positions_in_nothing():
    assert wrong((graph(n, t) for n, t in NOTHING.items()), compiled.run_cases) == {}


def test_threads_that_shared_a_loop_all_updated_one_element():
    text = "g (float[N,C,D] x, int64[N,D] t) => (float y) { y = SoftmaxCrossEntropyLoss(x, t) }"
    assert wrong([graph("a loss", text, N=3, C=5, D=2)], emulated.run_cases) == {}
