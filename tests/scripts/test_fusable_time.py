from __future__ import annotations

from pathlib import Path

import onnx_ir as ir
import pytest

from models.draft import Draft
from scripts.fusable_time import HEADER, Correspondence, main, profile

pytestmark = [pytest.mark.compiler, pytest.mark.ort]


def gated(folder: Path) -> Path:
    """A product with ``x * sigmoid(x)``, which ONNX Runtime merges, and a Tanh behind."""
    g = Draft("gated")
    x = g.op("MatMul", g.input("x", [64, 64]), g.weight(64, 64))
    silu = g.op("Mul", x, g.op("Sigmoid", x))
    g.output(g.op("Tanh", g.op("Exp", silu)), "y", [64, 64])
    ir.save(g.model(), folder / "gated.onnx")
    return folder / "gated.onnx"


def test_what_onnx_runtime_merges_stands_for_the_original_nodes(tmp_path: Path) -> None:
    path = gated(tmp_path)
    found = profile(path, None, 1)
    correspondence = Correspondence(ir.load(path).graph, found.optimized.graph)
    names = {op: set(correspondence.of(name, op)) for name, op in found.times}
    assert names == {
        "MatMul": {"MatMul_0"},
        "QuickGelu": {"Sigmoid_1", "Mul_2"},
        "Exp": {"Exp_3"},
        "Tanh": {"Tanh_4"},
    }


def test_all_the_fusable_time_of_a_fused_model_is_inside(tmp_path: Path, capsys) -> None:
    arguments = [str(gated(tmp_path)), "--way", "no-gate", "--runs", "3", "--rounds", "3"]
    assert main([*arguments, "--outside", "2"]) == 0
    row = capsys.readouterr().out.splitlines()[2]
    cells = dict(zip(HEADER, (cell.strip() for cell in row.split("|")[1:-1]), strict=True))
    assert (cells["kernels"], cells["inside"], cells["left"]) == ("1", "100%", "0%")


def test_a_model_that_is_not_there_is_told_in_one_line(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["no/such.onnx"])
    assert ended.value.code == 2
    assert capsys.readouterr().err.endswith("error: no such model: no/such.onnx\n")
