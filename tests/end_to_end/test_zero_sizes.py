"""Dimensions without elements, in the model or only when it runs."""

from __future__ import annotations

import pytest

from tcfuse.pipeline import optimize
from tests.conformance import compiled, emulated
from tests.end_to_end.graphs import Graph, graph, wrong

pytestmark = [pytest.mark.compiler, pytest.mark.ort]

REDUCTIONS = (
    *("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1"),
    *("ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"),
)
OVER_NOTHING = {
    f"{op_type} of {kind}": f"g ({kind}[2,0,3] x) => ({kind}[2,1,3] y)"
    f" <int64[1] a = {{1}}> {{ y = {op_type}(x, a) }}"
    for op_type in REDUCTIONS
    for kind in ("float", "int32")
}
OF_NOTHING = {
    "softmax": "g (float[2,0] x) => (float[2,0] y) { y = Softmax(x) }",
    "softmax of no rows": "g (float[0,3] x) => (float[0,3] y) { y = Softmax(x) }",
    "normalization": "g (float[2,0,4] x, float[4] s) => (float[2,0,4] y)"
    " { y = LayerNormalization(x, s) }",
    "instances": "g (float[2,3,0] x, float[3] s, float[3] b) => (float[2,3,0] y)"
    " { y = InstanceNormalization(x, s, b) }",
    "concatenation": "g (float[2,0] x, float[2,3] z) => (float[2,3] y)"
    " { w = Concat<axis=1>(x, z) y = Relu(w) }",
    "concatenation of nothing": "g (float[2,0] x, float[2,0] z) => (float[2,0] y)"
    " { w = Concat<axis=1>(x, z) y = Relu(w) }",
    "transpose": "g (float[2,0,3] x) => (float[3,0,2] y) { w = Exp(x) y = Transpose(w) }",
    "reshape": "g (float[2,0,3] x) => (float[0,7] y) <int64[2] s = {0, 7}>"
    " { w = Exp(x) y = Reshape<allowzero=1>(w, s) }",
    "expand": "g (float[1,3] x) => (float[0,3] y) <int64[2] s = {0, 3}>"
    " { w = Exp(x) y = Expand(w, s) }",
    "broadcast": "g (float[2,0] x, float[2,1] z) => (float[2,0] y) { y = Add(x, z) }",
    "padding": "g (float[0,3] x) => (float[2,3] y) <int64[4] p = {1, 0, 1, 0}>"
    " { w = Exp(x) y = Pad(w, p) }",
    "repeated never": "g (float[2,3] x) => (float[0,3] y) <int64[2] r = {0, 1}>"
    " { w = Exp(x) y = Tile(w, r) }",
    "gathered by nothing": "g (float[4,3] x, int64[0] k) => (float[0,3] y)"
    " { w = Exp(x) y = Gather(w, k) }",
    "cut beyond the end": "g (float[2,3] x) => (float[2,0] y)"
    " <int64[1] s = {7}, int64[1] e = {9}, int64[1] a = {1}>"
    " { w = Exp(x) y = Slice(w, s, e, a) }",
    "one output of two": "g (float[0,3] x) => (float[1,3] y, float[0,3] z)"
    " <int64[1] a = {0}> { z = Exp(x) y = ReduceSum(z, a) }",
}


def graphs() -> list[Graph]:
    return [graph(name, text) for name, text in {**OVER_NOTHING, **OF_NOTHING}.items()]


def test_nothing_is_computed_as_onnxruntime_does():
    assert wrong(graphs(), compiled.run_cases) == {}


def test_nothing_is_computed_on_a_gpu_too():
    assert wrong(graphs(), emulated.run_cases) == {}


def test_a_size_that_is_zero_only_when_the_model_runs():
    named = [
        graph(name, text.replace("0", "N"), N=0)
        for name, text in OF_NOTHING.items()
        if "<" not in text
    ]
    assert len(named) > 5
    assert wrong(named, compiled.run_cases) == {}


def test_kernels_of_nothing_are_verified():
    model = graph("two outputs", OF_NOTHING["one output of two"]).model
    regions = optimize(model, gate=False).report.regions
    assert [(region.kept, region.reason) for region in regions] == [(True, "")]
