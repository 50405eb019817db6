"""The blocked layout: what is known of it, and graphs that keep more in it compute the same."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

from tcfuse.graph.blocked import NCHWC, block_of, shown
from tcfuse.graph.load import load_model
from tcfuse.graph.relayout import relayout
from tcfuse.graph.shapes import dims
from tcfuse.ort.arrays import run
from tcfuse.ort.inference import open_session
from tcfuse.ort.optimized import blocked_graph, may_be_blocked, native_block
from tests.random_convnets import Net

pytestmark = [
    pytest.mark.ort,
    pytest.mark.skipif(not native_block(), reason="ONNX Runtime blocks nothing here"),
]

BLOCK = native_block()


def loaded(model: ir.Model) -> ir.Model:
    """What ONNX Runtime makes of ``model``, loaded."""
    graph = blocked_graph(model)
    assert graph is not None
    return load_model(graph)


def counts(model: ir.Model) -> Counter[str]:
    return Counter(node.op_type for node in model.graph)


def between(*steps: str, channels: int = 2 * BLOCK) -> ir.Model:
    """Two convolutions with those steps of a ``Net`` between them."""
    net = Net(0)
    net.convolve(channels)
    for step in steps:
        getattr(net, step)()
    net.convolve(BLOCK)
    net.draft.output(net.value, "y", [2, BLOCK, None, None])
    return net.draft.model()


def assert_same(model: ir.Model, relaid: ir.Model) -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 9, 9)).astype("f")
    (expected,) = run(open_session(model), {"x": x})
    (found,) = run(open_session(relaid), {"x": x})
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("seed", range(40))
def test_random_networks_compute_the_same(seed: int):
    model = Net(seed).model()
    relaid = loaded(model)
    before = counts(relaid)
    relayout(relaid)
    after = counts(relaid)
    assert after["ReorderInput"] <= before["ReorderInput"] + before["Mul"]
    assert_same(model, relaid)


@pytest.mark.parametrize("channels", [BLOCK, BLOCK + BLOCK // 2, 2 * BLOCK])
@pytest.mark.parametrize("steps", [("gate",), ("pad",), ("gate", "pad", "gate")])
def test_changes_of_layout_between_convolutions_go_away(steps: tuple[str, ...], channels: int):
    model = between(*steps, channels=channels)
    relaid = loaded(model)
    assert counts(relaid)["ReorderInput"]
    relayout(relaid)
    assert not counts(relaid)["ReorderInput"]
    assert_same(model, relaid)


def test_channels_that_fill_a_block_never_become_infinite():
    net = Net(0)
    net.convolve(BLOCK + BLOCK // 2)
    value = net.draft.op("Add", net.draft.op("Exp", net.value), net.draft.constant(1.0))
    net.value = net.draft.op("Div", net.draft.constant(1.0), net.draft.op("Log", value))
    net.convolve(BLOCK)
    net.draft.output(net.value, "y", [2, BLOCK, None, None])
    model = net.draft.model()
    relaid = loaded(model)
    before = counts(relaid)
    relayout(relaid)
    assert counts(relaid) == before
    assert_same(model, relaid)


def test_a_huge_constant_keeps_to_plain_channels():
    net = Net(0)
    net.convolve(BLOCK + BLOCK // 2)
    low = net.draft.op("Sub", net.value, net.draft.constant(1e30))
    net.value = net.draft.op("Max", low, net.draft.constant(-1.0))
    net.convolve(BLOCK)
    net.draft.output(net.value, "y", [2, BLOCK, None, None])
    relaid = loaded(net.draft.model())
    before = counts(relaid)
    relayout(relaid)
    assert before["ReorderInput"] == counts(relaid)["ReorderInput"]


def test_blocked_values_are_seen_as_they_lie_in_memory():
    model = loaded(between("gate"))
    relayout(model)
    scaled = next(node for node in model.graph if node.op_type == "Mul")
    reshape = scaled.outputs[0].uses()[0][0]
    assert block_of(reshape.outputs[0]) == BLOCK
    assert dims(scaled.outputs[0]) == (2, 2, 9, 9, BLOCK)
    convolution = next(n for n in model.graph if n.domain == NCHWC and n.op_type == "Conv")
    assert block_of(convolution.outputs[0]) == BLOCK
    assert block_of(model.graph.outputs[0]) == 0


def test_a_change_of_layout_is_shown_as_a_transpose():
    model = loaded(between("pointwise"))
    reorder = next(n for n in model.graph if n.op_type == "ReorderOutput")
    (x,), (y,) = shown(reorder)
    assert (x, y) == ((2, 2, 9, 9, BLOCK), (2, 2, BLOCK, 9, 9))


def test_a_model_without_convolutions_has_no_blocked_graph():
    net = Net(0)
    net.draft.output(net.draft.op("Exp", net.value), "y", [2, 3, 9, 9])
    model = net.draft.model()
    assert not may_be_blocked(model)
    assert blocked_graph(model) is None


def test_shapes_are_those_that_onnx_runtime_finds(tmp_path: Path):
    model = loaded(Net(3).model())
    relayout(model)
    names = [v.name for n in model.graph for v in n.outputs if dims(v) and len(dims(v)) == 4]
    copy = model.clone()
    values = {v.name: v for n in copy.graph for v in n.outputs}
    copy.graph.outputs[:] = [values[name] for name in names]
    x = np.zeros((2, 3, 9, 9), np.float32)
    for name, array in zip(names, run(open_session(copy), {"x": x}), strict=True):
        assert array.shape == dims(values[name]), name
