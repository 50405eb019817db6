"""The integer linear program over regions: it covers every node once, at the least price."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import onnx
import onnx_ir as ir
import pytest

from scripts import region_program
from scripts.region_program import Choices, best, second_best

BODY = """
a = Tanh(x) b = Mul(a, x) c = Erf(b) d = Add(c, x) e = Sigmoid(d) y = Mul(e, d) z = MatMul(y, w)
"""


def chain(length: int) -> list[ir.Node]:
    """Nodes each of which reads what the one before it makes."""
    x = ir.val("x", ir.DataType.FLOAT, [1])
    nodes = [ir.node("Neg", [x])]
    for _ in range(length - 1):
        nodes.append(ir.node("Neg", [nodes[-1].outputs[0]]))
    return nodes


def set_of(*nodes: ir.Node) -> frozenset[ir.Node]:
    return frozenset(nodes)


def test_the_cheapest_cover_is_found_and_then_the_next():
    a, b, c = chain(3)
    native = {set_of(node): 3.0 for node in (a, b, c)}
    found = Choices({set_of(a, b): 4.0, set_of(b, c): 3.0, set_of(a, b, c): 8.0}, native)
    assert best(found) == ({set_of(b, c)}, 6.0)
    assert best(found, ()) == (set(), 9.0)
    assert best(found, [set_of(a, b)]) == ({set_of(a, b)}, 7.0)
    assert second_best(found, {set_of(b, c)}) == ({set_of(a, b)}, 7.0)


def test_a_kernel_of_several_nodes_is_taken_whole_or_not_at_all():
    a, b = chain(2)
    native = {set_of(a): 3.0, set_of(b): 3.0, set_of(a, b): 3.5}
    assert best(Choices({set_of(a): 1.0}, native)) == (set(), 3.5)
    assert best(Choices({set_of(a): 0.25}, native)) == ({set_of(a)}, 3.25)


def test_regions_that_wait_for_each_other_are_not_both_taken():
    a, b, c, d = chain(4)
    native = {set_of(node): 3.0 for node in (a, b, c, d)}
    found = Choices({set_of(a, c): 1.0, set_of(b, d): 1.0}, native)
    assert list(found.clashes()) == [(set_of(a, c), set_of(b, d))]
    assert best(found)[1] == 7.0


def test_nothing_to_choose_costs_nothing():
    assert best(Choices({}, {})) == (set(), 0.0)


@pytest.mark.parametrize("rows", ["1024", "N"])
def test_the_program_is_never_worse_than_the_planner(tmp_path: Path, capsys, rows: str):
    head = '<ir_version: 8, opset_import: ["" : 17]> g '
    ends = f"(float[{rows}, 64] x, float[64, 8] w) => (float[{rows}, 8] z)"
    onnx.save(onnx.parser.parse_model(f"{head}{ends} {{{BODY}}}"), tmp_path / "m.onnx")
    found = region_program.outcome(tmp_path / "m.onnx")
    native, planned, chosen, second = found.prices
    assert chosen <= planned + 1e-9
    assert chosen <= second + 1e-9
    assert planned < native
    assert region_program.main([str(tmp_path / "m.onnx"), "--regions"]) == 0
    assert f"{native:.1f}" in capsys.readouterr().out
    assert all(a <= b + 1e-9 for a, b in pairwise((chosen, planned, native)))
