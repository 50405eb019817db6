"""Constraints: nodes by name, operator and pattern; what they allow; what is refused."""

from __future__ import annotations

import onnx
import onnx_ir as ir
import pytest

from tcfuse.errors import OptionError
from tcfuse.graph.constraints import constraints

BODY = "a = Tanh(x) b = Mul(a, x) c = Mul(b, a) y = Add(c, x)"


@pytest.fixture
def nodes() -> list[ir.Node]:
    head = '<ir_version: 8, opset_import: ["" : 17]> g (float[8] x) => (float[8] y)'
    model = ir.from_proto(onnx.parser.parse_model(f"{head} {{{BODY}}}"))
    for number, node in enumerate(model.graph):
        node.name = f"{node.op_type}_{number}"
    return list(model.graph)


def test_names_operators_and_patterns_name_nodes(nodes):
    for text, expected in (("Mul_1", [1]), ("Mul", [1, 2]), ("*_3", [3]), ("[MT]*", [0, 1, 2])):
        (found,) = constraints([nodes], leave=[text])
        assert found.nodes == {nodes[k] for k in expected}, text


def test_what_is_left_is_in_no_region(nodes):
    (wish,) = constraints([nodes], leave=["Mul"])
    assert wish.allows([nodes[0], nodes[3]])
    assert not wish.allows(nodes[:2])


def test_what_is_apart_is_not_in_one_region(nodes):
    (wish,) = constraints([nodes], apart=["Tanh, Add"])
    assert wish.allows(nodes[:3])
    assert wish.allows(nodes[1:])
    assert not wish.allows(nodes)


def test_what_is_together_is_in_a_region_whole_or_not_at_all(nodes):
    (wish,) = constraints([nodes], together=["Tanh,Mul_1"])
    assert wish.required == set(nodes[:2])
    assert wish.allows(nodes[:2])
    assert wish.allows(nodes[2:])
    assert not wish.allows(nodes[1:])


def test_regions_have_a_largest_size(nodes):
    (wish,) = constraints([nodes], max_nodes=2)
    assert wish.text == "max-nodes 2"
    assert wish.allows(nodes[:2])
    assert not wish.allows(nodes[:3])


@pytest.mark.parametrize(
    ("wishes", "said"),
    [
        ({"leave": ["Foo"]}, "'Foo'"),
        ({"apart": ["Mul,Foo*"]}, r"'Foo\*'"),
        ({"apart": ["Mul"]}, "two names"),
        ({"together": ["Mul,Add"]}, "names 2 nodes"),
    ],
)
def test_slips_are_refused(nodes, wishes, said):
    with pytest.raises(OptionError, match=said):
        constraints([nodes], **wishes)


def test_nodes_of_two_graphs_are_not_together(nodes):
    with pytest.raises(OptionError, match="not in one graph"):
        constraints([nodes[:2], nodes[2:]], together=["Tanh,Add"])
