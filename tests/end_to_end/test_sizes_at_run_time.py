"""Sizes that are known when a model runs: they must agree, or end a region."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

from tcfuse.ort.inference import open_session, ort_errors
from tcfuse.pipeline import explain, optimize

pytestmark = [pytest.mark.compiler, pytest.mark.ort]


def parsed(text: str) -> onnx.ModelProto:
    return parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]>\n{text}')


def test_sizes_of_one_name_that_differ_are_an_error_that_says_where(tmp_path: Path):
    model = parsed("""g (float[N, 4] x, float[N, 4] z) => (float[N, 4] y) {
      a = Mul(x, z) y = Exp(a) }""")
    fused = optimize(model, gate=False).save(tmp_path / "out.onnx")
    session = open_session(fused, fused.with_suffix(".so"))
    given = {"x": np.ones((3, 4), np.float32), "z": np.ones((5, 4), np.float32)}
    message = r"input 1, dimension 0 is 5; .* equals dimension 0 of input 0, which is 3"
    with pytest.raises(ort_errors(), match=message):
        session.run(None, given)


@pytest.mark.parametrize(
    ("cut", "reason"),
    [
        ("b = Slice(a, zero, n, zero)", "input 2 (n) of Slice is not a constant"),
        (
            "t = Concat<axis = 0>(n, four) b = Expand(a, t)",
            "input 1 (t) of Expand is not a constant",
        ),
        (
            "t = Concat<axis = 0>(zero, zero, n, zero) b = Pad(a, t)",
            "input 1 (t) of Pad is not a constant",
        ),
    ],
)
def test_a_shape_that_is_computed_ends_a_region_and_is_the_reason(cut: str, reason: str):
    model = parsed(f"""g (float[N, 4] x, int64[1] n) => (float[M, 4] y)
      <int64[1] zero = {{0}}, int64[1] four = {{4}}> {{
      a = Sin(x) {cut} c = Exp(b) y = Mul(c, c) }}""")
    report = explain(model, gate=False)
    assert reason in [why for _, why in report.rejections]
    assert [region.nodes for region in report.regions] == [("Sin",), ("Exp", "Mul")]
