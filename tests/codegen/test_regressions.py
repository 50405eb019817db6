"""Small graphs that once gave wrong kernels or none, each named for its symptom."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import onnx_ir as ir
import pytest
from onnx import parser

from tcfuse.ort.arrays import run
from tcfuse.ort.inference import open_session
from tests.conformance.compiled import run_cases

pytestmark = [pytest.mark.compiler, pytest.mark.ort]


def check(text: str, *feeds: list[np.ndarray]) -> None:
    """One kernel of the whole graph gives what ONNX Runtime gives, for each list of inputs."""
    model = parser.parse_model(f'<ir_version: 9, opset_import: ["" : 20]>\n{text}')
    names = [value.name for value in model.graph.input]
    stock = open_session(ir.from_proto(model), optimized=False)
    runs = [(feed, run(stock, dict(zip(names, feed, strict=True)))) for feed in feeds]
    outcome = run_cases([SimpleNamespace(name="graph", model=model, data_sets=runs)])
    assert not outcome.failed, outcome.failed
    assert outcome.equal == ["graph"], outcome.refused


def values(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(dtype)


def test_first_lane_does_not_choose_the_part_of_a_concat_for_all_lanes():
    check(
        """graph (float[2] x, float s) => (a, b, c, d) <int64[1] zero = {0}> {
          a = Mul(x, s)
          c = Concat<axis = 0>(x, x)
          b = Softmax<axis = 0>(c)
          d = ReduceMean(c, zero)
        }""",
        [values(2), values()],
    )


def test_input_that_only_the_original_operators_read_stays_an_input():
    check(
        """graph (float[N, 3] x, double[M] like, float[3] w) => (a, b) <float zero = {0}> {
          ones = Pow(x, zero)
          a = Add(ones, w)
          b = CastLike(x, like)
        }""",
        [values(4, 3), values(5, dtype=np.float64), values(3)],
    )


def test_mean_of_a_dimension_that_turns_out_empty_is_zero():
    check(
        """graph (float[N, 3] x) => (y) <int64[1] axis = {0}> {
          m = ReduceMean<keepdims = 0>(x, axis)
          y = Neg(m)
        }""",
        [values(4, 3)],
        [values(0, 3)],
    )


def test_gelu_by_tanh_vanishes_far_below_zero():
    check(
        """graph (float[9] x) => (y, z) {
          y = Gelu<approximate = "tanh">(x)
          z = Tanh(x)
        }""",
        [np.array([-9.1, -10, -100, -1e4, -1e30, 9.1, 30, np.inf, -np.inf], np.float32)],
    )


def test_transpose_in_registers_does_not_use_an_index_before_it_is_computed():
    check(
        """graph (float[1, M, 1, N, 3, 2, 1] x, float[N, 3, 2, 1] y) => (o)
        <int64[7] repeats = {1, 1, 1, 1, 2, 1, 1}> {
          a = Min(x, y, x)
          b = Tile(a, repeats)
          o = Softsign(b)
        }""",
        [values(1, 20, 1, 3, 3, 2, 1), values(3, 3, 2, 1)],
        [values(1, 5, 1, 17, 3, 2, 1), values(17, 3, 2, 1)],
    )
