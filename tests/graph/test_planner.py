"""Plans by the integer program: priced as the cost model does, never worse than greedy."""

from __future__ import annotations

import itertools
import random

import networkx as nx
import onnx
import pytest

from models import bert, mixed
from tcfuse.errors import OptionError
from tcfuse.graph import fusion
from tcfuse.graph.constraints import constraints
from tcfuse.graph.cost import estimate
from tcfuse.graph.fusion import Field, greedy, group_of
from tcfuse.graph.load import load_model
from tcfuse.graph.machine import MACHINE
from tcfuse.graph.part import Part, bits, parts
from tcfuse.graph.planner import Board, Planner

HEAD = '<ir_version: 8, opset_import: ["" : 17]> g '
POINTWISE = """(float[4096, 64] x, float[64, 8] w) => (float[4096, 8] z) {
a = Tanh(x) b = Mul(a, x) c = Erf(b) d = Add(c, x) e = Exp(d) y = Mul(e, d) z = MatMul(y, w)
}"""
QUANTIZED = """(uint8[64, 512] x) => (uint8[64, 512] y)
<float s = {0.1}, uint8 p = {128}> {
a = DequantizeLinear(x, s, p) b = Sigmoid(a) c = Mul(a, b) d = QuantizeLinear(c, s, p)
e = DequantizeLinear(d, s, p) f = Tanh(e) g = Add(f, e) y = QuantizeLinear(g, s, p)
}"""
SOURCES = {
    "encoder": lambda: bert.build(2, 2, 64),
    "mixed": lambda: mixed.build(30, 4096),
    "pointwise": lambda: onnx.parser.parse_model(HEAD + POINTWISE),
    "quantized": lambda: onnx.parser.parse_model(HEAD + QUANTIZED),
}


def ground(name: str, conservative: bool = True) -> Field:
    model = load_model(SOURCES[name]())
    for number, node in enumerate(model.graph):
        node.name = node.name or f"{node.op_type}_{number}"
    return Field.of(
        model.graph,
        model.opset_imports,
        conservative=conservative,
        machine=MACHINE,
        sizes={},
    )


def board(name: str, conservative: bool = True, wishes=()) -> Board:
    field = ground(name, conservative)
    return Board.of(field, [group.nodes for group in greedy(field).groups], wishes)


@pytest.mark.parametrize("name", SOURCES)
def test_regions_are_priced_as_by_the_cost_model(name: str):
    made = board(name, conservative=False)
    chooser = Planner(made)
    compared = 0
    for part in made.parts:
        prices = chooser.prices(part)
        pool = chooser._pool(part, prices)
        for region, time in zip(pool, prices.kernels_us(pool), strict=True):
            cost = estimate(group_of(part.members(region), made.field.pruner.opsets))
            assert time == pytest.approx(cost.fused_us)
            compared += 1
    assert compared > 5


@pytest.mark.parametrize("name", SOURCES)
def test_what_onnx_runtime_takes_for_a_part_is_what_its_kernels_take(name: str):
    made = board(name)
    for part in made.parts:
        prices = Planner(made).prices(part)
        whole = prices.rest_us(0)
        assert whole == pytest.approx(sum(price for _, price in prices.native))
        assert prices.rest_us(part.everything) == 0
        covered = 0
        for sets, _ in prices.native:
            for nodes in sets:
                assert not covered & nodes
                covered |= nodes
        assert covered == part.everything


@pytest.mark.parametrize("name", SOURCES)
def test_the_program_is_never_worse_than_greedy_and_has_no_circle(name: str):
    made = board(name)
    chooser = Planner(made)
    covers = chooser.covers((), second=True)
    home = {}
    for number, (part, cover) in enumerate(zip(made.parts, covers, strict=True)):
        assert cover.proved
        assert cover.price <= chooser.greedy(part).price + 1e-6
        prices = chooser.prices(part)
        assert cover.price == pytest.approx(chooser._total(part, prices, cover.regions))
        if cover.second is not None:
            assert cover.second[1] >= cover.price - 1e-3 * cover.price
        for a, b in itertools.combinations(cover.regions, 2):
            assert not a & b
        home |= {n: (number, r) for r in cover.regions for n in part.members(r)}
    edges = ((home.get(a, a), home.get(b, b)) for a, b in made.field.dag.edges)
    assert nx.is_directed_acyclic_graph(nx.DiGraph((a, b) for a, b in edges if a != b))
    assert home or name == "quantized"


def test_equal_layers_are_solved_once():
    made = board("encoder")
    keys = [part.key for part in made.parts]
    assert len(set(keys)) < len(keys)
    chooser = Planner(made)
    covers = chooser.covers(())
    assert len(chooser._covers) == len(set(keys))
    found = {}
    for part, cover in zip(made.parts, covers, strict=True):
        assert found.setdefault(part.key, cover) is cover


def test_greedy_regions_across_maximal_ones_make_one_part():
    field = ground("pointwise")
    nodes = list(field.order)[:6]
    label = {node: node.op_type.encode() for node in field.order}
    (part,) = parts(field.order, [nodes[:3], nodes[3:]], [nodes[2:4]], label)
    assert list(part.nodes) == nodes
    assert part.greedy == (0b1100,)
    apart = parts(field.order, [nodes[:3], nodes[3:]], [nodes[1:3]], label)
    assert [len(part.nodes) for part in apart] == [3, 3]


def test_paths_through_other_nodes_count_in_joined_parts():
    field = ground("pointwise")
    a, b, c, *_ = field.order
    label = dict.fromkeys(field.order, b"")
    (part,) = parts(field.order, [[a], [c]], [[a, c]], label)
    assert part.edges == ((0, 1),)  # from a to c through b
    assert isinstance(part, Part)
    assert b not in part.nodes


def regions(chooser: Planner) -> list[list[str]]:
    covers = chooser.covers(chooser.wishes)
    return [
        [part.nodes[k].op_type for k in bits(region)]
        for part, cover in zip(chooser.board.parts, covers, strict=True)
        for region in cover.regions
    ]


def constrained(**asked) -> Planner:
    field = ground("pointwise")
    wishes = constraints([field.order], **asked)
    found = [group.nodes for group in greedy(field).groups]
    return Planner(Board.of(field, found, wishes), wishes)


def price(chooser: Planner, wishes) -> float:
    return sum(cover.price for cover in chooser.covers(wishes))


def test_constraints_are_kept_and_have_their_price():
    assert regions(constrained()) == [["Tanh", "Mul", "Erf", "Add", "Exp", "Mul"]]
    for asked, expected in (
        ({"leave": ["Erf"]}, [["Tanh", "Mul"], ["Add", "Exp", "Mul"]]),
        ({"apart": ["Tanh,Exp"]}, None),
        ({"max_nodes": 3}, [["Tanh", "Mul", "Erf"], ["Add", "Exp", "Mul"]]),
    ):
        chooser = constrained(**asked)
        found = regions(chooser)
        assert expected is None or found == expected
        assert not any("Tanh" in r and "Exp" in r for r in found)
        assert price(chooser, chooser.wishes) > price(chooser, ()) + 0.1


def test_each_of_several_constraints_has_its_own_price():
    chooser = constrained(leave=["Erf"], max_nodes=6)
    leave, most = chooser.wishes
    both = price(chooser, chooser.wishes)
    assert both == pytest.approx(price(chooser, [leave]))
    assert both > price(chooser, [most])


def test_what_belongs_together_is_in_one_region_even_where_that_loses():
    names = [node.name for node in ground("encoder").order if node.op_type == "Softmax"]
    assert names
    chooser = constrained(together=["Exp,Erf"], leave=["Add"])
    with pytest.raises(OptionError, match="together Exp,Erf"):
        chooser.covers(chooser.wishes)
    chooser = constrained(together=["Erf,Add"], max_nodes=2)
    assert ["Erf", "Add"] in regions(chooser)


def test_what_was_measured_counts_more_than_what_is_predicted():
    chooser = constrained()
    (part,) = (part for part in chooser.board.parts if len(part.nodes) > 3)
    (whole,) = part.greedy
    slow = Planner(chooser.board, gains={part.key: {whole: -100.0}})
    assert whole not in slow.covers(())[0].regions
    assert slow.greedy(part).price == pytest.approx(slow.prices(part).rest_us(0) + 100.0)
    refused = Planner(chooser.board, gains={part.key: {whole: None}})
    assert whole not in refused.covers(())[0].regions
    assert refused.greedy(part).regions == ()
    half = 0b111
    fast = Planner(chooser.board, gains={part.key: {half: 1e6}})
    assert half in fast.covers(())[0].regions


def test_without_time_the_greedy_regions_stay_and_it_is_said():
    chooser = constrained()
    for part, cover in zip(chooser.board.parts, chooser.covers((), seconds=-1.0), strict=True):
        assert cover.regions == part.greedy
        assert not cover.proved


@pytest.mark.parametrize("seed", range(20))
def test_pieces_and_convexity_are_those_of_the_graph(seed: int):
    rng = random.Random(seed)
    count = rng.randint(1, 25)
    edges = [e for e in itertools.combinations(range(count), 2) if rng.random() < 0.15]
    part = Part(tuple(range(count)), tuple(edges), (), "")
    graph = nx.DiGraph(edges)
    graph.add_nodes_from(range(count))
    for _ in range(20):
        some = rng.getrandbits(count)
        members = set(bits(some))
        pieces = nx.connected_components(graph.subgraph(members).to_undirected())
        assert {frozenset(bits(piece)) for piece in part.pieces(some)} == set(
            map(frozenset, pieces)
        )
        back = set().union(*(nx.descendants(graph, k) for k in members)) - members
        returns = any(nx.descendants(graph, k) & members for k in back)
        assert part.is_convex(some) is not returns


def test_alike_nodes_are_priced_once_and_regions_are_grown_once(monkeypatch):
    made = Board.of(field := ground("encoder"), [g.nodes for g in greedy(field).groups])
    monkeypatch.setattr(fusion, "grow", None)
    assert Board.of(field, [part.members(r) for part in made.parts for r in part.greedy])
    Planner(made).covers(())
    assert len(made.costs._known) < len(field.order) / 2
