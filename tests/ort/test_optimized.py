"""The graph with blocked tensors that ONNX Runtime makes is the same in every run."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from tcfuse.ort.optimized import _import_what_is_used, _order, blocked_graph, native_block


def network() -> ir.Model:
    """Branches of convolutions, whose tensors are blocked and changed back."""
    rng = np.random.default_rng(0)
    x = ir.val("x", ir.DataType.FLOAT, [1, 16, 8, 8])
    nodes, filters, ends = [], [], []
    for k in range(4):
        weights = ir.Tensor(rng.standard_normal((16, 16, 3, 3)).astype(np.float32))
        filters.append(ir.val(f"w{k}", const_value=weights))
        nodes.append(ir.node("Conv", [x, filters[-1]], {"pads": [1, 1, 1, 1]}, name=f"c{k}"))
        nodes.append(ir.node("HardSwish", nodes[-1].outputs, name=f"h{k}"))
        ends += nodes[-1].outputs
    nodes.append(ir.node("Concat", ends, {"axis": 1}, name="joined"))
    (value,) = nodes[-1].outputs
    value.name, value.dtype, value.shape = "y", ir.DataType.FLOAT, ir.Shape([1, 64, 8, 8])
    graph = ir.Graph(
        [x], [value], nodes=nodes, initializers=filters, opset_imports={"": 17}, name="g"
    )
    return ir.Model(graph, ir_version=8)


def text(node: str, reads: str, writes: str) -> onnx.NodeProto:
    return onnx.NodeProto(op_type="Relu", name=node, input=reads.split(), output=[writes])


@pytest.mark.ort
def test_equal_models_have_equal_blocked_graphs() -> None:
    if not native_block():
        pytest.skip("nothing is blocked on this machine")
    first, *others = (blocked_graph(network()) for _ in range(4))
    assert first is not None
    seen = {value.name for value in (*first.graph.input, *first.graph.initializer)}
    for node in first.graph.node:
        assert seen.issuperset(filter(None, node.input))
        seen |= set(node.output)
    names = [node.name for node in first.graph.node]
    assert len(set(names)) == len(names)
    for other in others:
        assert other is not None
        assert other.SerializeToString(deterministic=True) == first.SerializeToString(
            deterministic=True
        )


def test_domains_that_no_operator_is_of_are_not_imported() -> None:
    """A process that has loaded a library of kernels imports its domain into every graph."""
    inner = onnx.NodeProto(op_type="Gelu", domain="com.microsoft")
    loop = onnx.NodeProto(op_type="If")
    loop.attribute.append(
        onnx.AttributeProto(name="then_branch", g=onnx.GraphProto(node=[inner]), type=5)
    )
    domains = ["tcfuse", "com.microsoft", "ai.onnx.ml", ""]
    model = onnx.ModelProto(
        graph=onnx.GraphProto(node=[loop]),
        opset_import=[onnx.OperatorSetIdProto(domain=d, version=1) for d in domains],
    )
    _import_what_is_used(model)
    assert [opset.domain for opset in model.opset_import] == ["", "com.microsoft"]


def test_neither_order_nor_numbers_of_nodes_matter() -> None:
    """One of several equal names is without a number, and which one is chance."""
    graphs = []
    for order, named in (
        ((0, 1, 2, 3), ("Reorder_token_7", "Reorder")),
        ((1, 2, 0, 3), ("Reorder", "Reorder_token_12")),
    ):
        nodes = [
            text("a", "x", "a"),
            text(named[0], "x", "b"),
            text(named[1], "b", "c"),
            text("d_token_5", "a c", "d"),
        ]
        graph = onnx.GraphProto(node=[nodes[k] for k in order])
        _order(graph)
        graphs.append(graph)
    assert [node.output[0] for node in graphs[0].node] == ["a", "b", "c", "d"]
    assert [node.name for node in graphs[0].node] == ["a", "Reorder_n1", "Reorder_n2", "d"]
    assert graphs[0] == graphs[1]


def test_a_node_whose_body_reads_a_value_comes_after_it() -> None:
    body = onnx.GraphProto(node=[text("inner", "late", "z")], name="body")
    loop = onnx.NodeProto(op_type="If", name="loop", input=["x"], output=["a"])
    loop.attribute.append(onnx.AttributeProto(name="then_branch", g=body, type=5))
    graph = onnx.GraphProto(node=[text("late", "x", "late"), loop])
    _order(graph)
    assert [node.name for node in graph.node] == ["late", "loop"]
