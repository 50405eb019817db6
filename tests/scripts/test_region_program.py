"""The table of plans: the program's is never worse than the greedy one."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import onnx
import pytest

from scripts import region_program

BODY = """
a = Tanh(x) b = Mul(a, x) c = Erf(b) d = Add(c, x) e = Sigmoid(d) y = Mul(e, d) z = MatMul(y, w)
"""


@pytest.mark.parametrize("rows", ["1024", "N"])
def test_the_program_is_never_worse_than_the_greedy_planner(tmp_path: Path, capsys, rows: str):
    head = '<ir_version: 8, opset_import: ["" : 17]> g '
    ends = f"(float[{rows}, 64] x, float[64, 8] w) => (float[{rows}, 8] z)"
    onnx.save(onnx.parser.parse_model(f"{head}{ends} {{{BODY}}}"), tmp_path / "m.onnx")
    found = region_program.outcome(tmp_path / "m.onnx")
    native, planned, best, second = found.prices
    assert best <= second + 1e-9
    assert planned < native
    assert found.n_choices > 10
    assert all(a <= b + 1e-9 for a, b in pairwise((best, planned, native)))
    assert region_program.main([str(tmp_path / "m.onnx"), "--regions"]) == 0
    assert f"{native:.1f}" in capsys.readouterr().out
