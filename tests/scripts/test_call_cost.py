"""What a call of a fused node costs, and the script that tells."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import call_cost

LENGTH = 60
MOST_US = 0.5  # more than ONNX Runtime's own; 0.03 on a quiet machine


@pytest.mark.compiler
@pytest.mark.ort
def test_a_call_of_a_fused_node_costs_little_more_than_one_of_a_native_node(
    tmp_path: Path,
) -> None:
    pytest.importorskip("onnxruntime")
    call_cost.build(tmp_path, LENGTH)
    found = call_cost.measure(tmp_path, LENGTH)
    assert found["us"].keys() == {kind.name for kind in call_cost.KINDS}
    more = {kind: us["fused"] - us["native"] for kind, us in found["us"].items()}
    assert max(more.values()) < MOST_US, more
    assert len(list(call_cost.lines(found))) == 2 + len(more)
