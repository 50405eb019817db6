import time

import networkx as nx
import onnx_ir as ir
from hypothesis import given, settings
from hypothesis import strategies as st

from tcfuse.graph import regions
from tcfuse.graph.legality import ALLOWED, Verdict, may_fuse
from tcfuse.graph.regions import grow, node_graph


def build(inputs):
    """Node ``k`` reads the nodes ``inputs[k]``."""
    nodes = []
    for k, sources in enumerate(inputs):
        read = [nodes[s].outputs[0] for s in sources]
        nodes.append(ir.Node("", "Op", read, name=f"n{k}", num_outputs=1))
    return nodes


def names(groups):
    return [[node.name for node in group] for group in groups]


def quotient(dag, groups):
    label = {node: k for k, group in enumerate(groups) for node in group}
    graph = nx.DiGraph()
    graph.add_nodes_from(label.get(node, node) for node in dag)
    graph.add_edges_from(
        (label.get(a, a), label.get(b, b))
        for a, b in dag.edges
        if label.get(a, a) != label.get(b, b)
    )
    return graph


@st.composite
def graphs(draw):
    n = draw(st.integers(1, 24))
    inputs = [
        draw(st.lists(st.integers(0, k - 1), max_size=3, unique=True)) if k else []
        for k in range(n)
    ]
    member = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    return inputs, member


@settings(deadline=None, max_examples=300)
@given(graphs())
def test_regions_are_acyclic_together_connected_and_maximal(drawn):
    inputs, flags = drawn
    nodes = build(inputs)
    members = {node for node, flag in zip(nodes, flags, strict=True) if flag}
    dag = node_graph(nodes)
    groups = grow(dag, members, lambda _: ALLOWED)
    assert sorted(n.name for g in groups for n in g) == sorted(n.name for n in members)
    whole = quotient(dag, groups)
    assert nx.is_directed_acyclic_graph(whole)
    for group in groups:
        assert nx.is_weakly_connected(dag.subgraph(group))
    for a, b in whole.edges:
        if isinstance(a, int) and isinstance(b, int):
            merged = [g for k, g in enumerate(groups) if k not in (a, b)]
            merged.append(groups[a] + groups[b])
            assert not nx.is_directed_acyclic_graph(quotient(dag, merged))


def test_two_legal_merges_that_close_a_cycle_are_not_both_made():
    # a0 -> b1 and b0 -> a1 join a = {a0, a1} with b = {b0, b1} in both directions.
    nodes = build([[], [], [0], [1], [0, 3], [1, 2]])
    dag = node_graph(nodes)
    barred = {nodes[2], nodes[3]}
    groups = grow(dag, set(nodes) - barred, lambda _: ALLOWED)
    assert nx.is_directed_acyclic_graph(quotient(dag, groups))
    assert len(groups) == 3


def test_a_path_through_a_foreign_node_separates():
    nodes = build([[], [0], [0, 1]])
    groups = grow(node_graph(nodes), {nodes[0], nodes[2]}, lambda _: ALLOWED)
    assert names(groups) == [["n0"], ["n2"]]


def test_a_refused_edge_does_not_stop_another():
    nodes = build([[], [], [0, 1]])

    def rule(edge):
        return Verdict("no") if edge.producer is nodes[0] else ALLOWED

    groups = grow(node_graph(nodes), set(nodes), rule)
    assert names(groups) == [["n0"], ["n1", "n2"]]


def test_a_window_ends_a_region(monkeypatch):
    monkeypatch.setattr(regions, "WINDOW", 4)
    nodes = build([[k - 1] if k else [] for k in range(6)])
    groups = grow(node_graph(nodes), set(nodes), lambda _: ALLOWED)
    assert [len(g) for g in groups] == [4, 2]


def test_a_node_depends_on_what_its_body_reads():
    (outer,) = build([[]])
    inner = ir.Node("", "Neg", [outer.outputs[0]], num_outputs=1)
    body = ir.Graph([], inner.outputs, nodes=[inner])
    branch = ir.Node("", "If", [], [ir.AttrGraph("then_branch", body)], num_outputs=1)
    assert list(node_graph([outer, branch]).edges) == [(outer, branch)]


def test_nodes_out_of_order_are_sorted_and_others_keep_theirs():
    nodes = build([[], [0], [0]])
    order = regions.topological(node_graph([nodes[2], nodes[0], nodes[1]]))
    assert [n.name for n in order] == ["n0", "n2", "n1"]
    assert regions.topological(node_graph(nodes)) == nodes


def test_twenty_thousand_nodes_take_seconds():
    inputs = [
        {k - 1, max(k - 50, 0), k % 7 if k > 7 else 0} if k else set() for k in range(20000)
    ]
    nodes = build([sorted(i) for i in inputs])
    members = {node for k, node in enumerate(nodes) if k % 11}
    begin = time.process_time()
    grow(node_graph(nodes), members, may_fuse)
    assert time.process_time() - begin < 20
