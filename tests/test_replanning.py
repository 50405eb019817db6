"""Plans of the integer program in a whole run: right, kept, remembered, under constraints."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from tcfuse import replanning
from tcfuse.errors import OptionError
from tcfuse.options import OptimizeOptions
from tcfuse.ort.arrays import run
from tcfuse.ort.comparing import Gain
from tcfuse.ort.inference import open_session
from tcfuse.pipeline import explain, optimize

pytestmark = [pytest.mark.compiler, pytest.mark.ort]

TEXT = """<ir_version: 8, opset_import: ["" : 17]>
g (float[512, 64] x) => (float[512, 64] y) {
a = Tanh(x) b = Mul(a, x) c = Erf(b) d = Add(c, x) e = Exp(d) y = Mul(e, d)
}"""


def model() -> ir.Model:
    made = ir.from_proto(onnx.parser.parse_model(TEXT))
    for number, node in enumerate(made.graph):
        node.name = f"{node.op_type}_{number}"
    return made


def kernels(report) -> list[list[str]]:
    return [[label.split()[0] for label in region.nodes] for region in report.regions]


def assert_same(result) -> None:
    inputs = {"x": np.random.default_rng(0).standard_normal((512, 64)).astype("f")}
    (expected,) = run(open_session(model()), inputs)
    (found,) = run(open_session(result.model, result.library), inputs)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_constraints_are_kept_and_priced_in_the_report():
    given = {"apart": ["Tanh,Exp"], "max_nodes": 4, "target": "cpu"}
    result = optimize(model(), gate=False, **given)
    regions = kernels(result.report)
    assert all(len(region) <= 4 for region in regions)
    assert not any({"Tanh", "Exp"} <= set(region) for region in regions)
    told = " ".join(result.report.notes)
    assert "apart Tanh,Exp costs" in told
    assert "max-nodes 4 costs" in told
    assert_same(result)
    assert all(len(region) <= 4 for region in kernels(explain(model(), **given)))


def test_explain_tells_the_second_best_plan():
    notes = explain(model(), planner="program", target="cpu").notes
    assert any(note.startswith("second best plan: ") for note in notes)


def test_a_faster_plan_is_kept_and_remembered(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(replanning, "compared", lambda forms, _: [Gain(2.0, 0.0)])
    monkeypatch.setattr(replanning, "LEAST_US", -1e9)
    monkeypatch.setattr(replanning, "LEAST_SHARE", 0.0)

    def learn(self, plans, tried, judgement):  # the greedy region was seen to lose
        for part in self.parts():
            self.gains[part.key] = dict.fromkeys(part.greedy)

    monkeypatch.setattr(replanning.Replanner, "learn", learn)
    given = {"planner": "program", "target": "cpu", "layout": "portable"}
    first = optimize(model(), **given)
    assert any("2.000 times as fast" in note for note in first.report.notes)
    assert len(kernels(first.report)) == 2
    assert_same(first)
    monkeypatch.setattr(replanning.Replanner, "of", None)  # nothing is solved again
    again = optimize(model(), **given)
    assert kernels(again.report) == kernels(first.report)
    assert again.library is not None
    assert again.library.read_bytes() == first.library.read_bytes()


def test_greedy_keeps_no_constraints():
    with pytest.raises(OptionError, match="not by 'greedy'"):
        OptimizeOptions.of(planner="greedy", leave=["Add"])
    with pytest.raises(OptionError, match="planner"):
        OptimizeOptions.of(planner="best")
    assert not OptimizeOptions.of().solves
    assert OptimizeOptions.of(max_nodes=3).solves
