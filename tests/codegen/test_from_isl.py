from __future__ import annotations

from tcfuse.codegen.from_isl import nests
from tcfuse.codegen.kernel_ast import Block, Guard, Instance, Loop
from tests.mapping.mapped import mapped
from tests.poly.definitions import BROADCAST, POOL, ROPE, SOFTMAX_OUTER


def written(block: Block, depth: int = 0) -> list[str]:
    """A block as indented lines."""
    lines: list[str] = []
    for node in block:
        match node:
            case Loop():
                marks = " lanes" * node.lanes + " parallel" * node.parallel
                lines.append(f"{'  ' * depth}{node.iterator} in {node.low}:{node.high}{marks}")
                lines += written(node.body, depth + 1)
            case Guard():
                lines.append(f"{'  ' * depth}if {node.condition}")
                lines += written(node.then, depth + 1)
                if node.otherwise:
                    lines += [f"{'  ' * depth}else", *written(node.otherwise, depth + 1)]
            case Instance():
                position = ", ".join(map(str, node.position))
                lines.append(f"{'  ' * depth}{node.statement}({position})")
    return lines


def of(text: str) -> list[list[str]]:
    scop, _, tree = mapped(text)
    return [written(block) for block in nests(scop, tree)]


def test_loops_and_marks() -> None:
    (nest,) = of(POOL)
    assert nest == [
        "c0 in 0:n0 parallel",
        "  S1_init(c0)",
        "  c1 in 0:49 lanes",
        "    S0(c0, c1)",
        "    S1(c0, c1)",
        "  S2(c0)",
    ]


def test_parts_of_a_sequence_are_nests() -> None:
    assert of(BROADCAST) == [
        ["c0 in 0:784 lanes parallel", "  S0(c0)"],
        ["c0 in 0:240 parallel", "  c1 in 0:784 lanes", "    S1(c0, c1)"],
    ]


def test_pieces_get_loops_of_their_own() -> None:
    (nest,) = of(ROPE)
    assert nest == [
        "c0 in 0:4 parallel",
        "  c1 in 0:6 parallel",
        "    c2 in 0:4 lanes",
        "      S0(c0, c1, c2)",
        "    c2 in 4:8 lanes",
        "      S1(c0, c1, c2)",
    ]


def test_statements_see_their_own_order_of_iterators() -> None:
    (nest,) = of(SOFTMAX_OUTER)
    text = [line.strip() for line in nest]
    assert "S0(c0, c1, c2)" in text  # i, k, j
    assert "S1(c0, c2, c1)" in text  # i, j, k


def test_a_loop_of_one_iteration_is_its_body() -> None:
    """And what is inside does not become parallel in its place."""
    found = of("""def f(float(1, 9) X) -> (float(1) Y) {
      Y(i) +=! X(i, j) where i in 0:1, j in 0:9
    }""")
    assert found == [["S0_init(0)"], ["c0 in 0:9 lanes", "  S0(0, c0)"], ["S1(0)"]]


def test_bounds_may_be_sums_of_sizes() -> None:
    (nest,) = of("""def f(float(n0) X, float(n1) Z) -> (float(n0 + n1) Y) {
      Y(i) = X(i) where i in 0:n0
      Y(i) = Z(i - n0) where i in n0:n0 + n1
    }""")
    text = "\n".join(nest)
    assert "0:n0" in text
    assert "n0:n0 + n1" in text
