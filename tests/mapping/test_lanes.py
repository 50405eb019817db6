from __future__ import annotations

import pytest

from tcfuse.mapping.accumulators import with_accumulators
from tcfuse.mapping.lanes import choose_lanes, mark_parallel
from tcfuse.mapping.order import order_members
from tcfuse.poly.proof import prove
from tcfuse.poly.scheduling import compute_schedule
from tcfuse.poly.tree import Mark, Sequence, Tree
from tests.mapping.mapped import lanes, mapped, parallel
from tests.poly.definitions import (
    ALL,
    BROADCAST,
    COLUMN_SUM,
    GATHER,
    LAYER_NORM,
    PAD,
    POOL,
    ROPE,
    ROW_SUM,
    SOFTMAX,
    SOFTMAX_OUTER,
    checked_of,
    model,
)

OUTER = dict.fromkeys(("S0_init", "S0", "S1", "S2_init", "S2", "S3"), "k")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (SOFTMAX, dict.fromkeys(("S0", "S1", "S2", "S3"), "j")),
        (SOFTMAX_OUTER, OUTER),
        (LAYER_NORM, dict.fromkeys(("S0", "S2", "S4"), "j")),
        (ROPE, {"S0": "k", "S1": "k"}),
        (BROADCAST, {"S0": "j", "S1": "j"}),
        (POOL, {"S0": "j", "S1": "j"}),
        (GATHER, {"S0": "j"}),  # a row a time, not an element of each row
        (PAD, {"S0": "j"}),
        (COLUMN_SUM, dict.fromkeys(("S0_init", "S0", "S1"), "j")),
        (ROW_SUM, {"S0": "j"}),
    ],
    ids=[*ALL],
)
def test_lanes_run_along(text: str, expected: dict[str, str]) -> None:
    _, _, tree = mapped(text)
    assert lanes(tree) == expected


@pytest.mark.parametrize("text", [SOFTMAX, SOFTMAX_OUTER, LAYER_NORM, ROPE, COLUMN_SUM])
def test_other_loops_by_rank_are_as_legal(text: str) -> None:
    """The second best are others; a rank that no loop has is that of the last."""
    scop, dependences = model(with_accumulators(checked_of(text)))
    tree = order_members(scop, compute_schedule(scop, dependences).tree)
    found = [choose_lanes(scop, dependences, tree, rank=rank) for rank in (0, 1, 63, 64)]
    assert lanes(found[0]) != lanes(found[1])
    assert lanes(found[2]) == lanes(found[3])
    for mapped_tree in found:
        done = mark_parallel(mapped_tree)
        prove(scop, dependences, done)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (SOFTMAX, dict.fromkeys(OUTER, "i")),
        (SOFTMAX_OUTER, dict.fromkeys(OUTER, "i")),
        (ROPE, {"S0": "ij", "S1": "ij"}),
        (BROADCAST, {"S0": "j", "S1": "i"}),
        (COLUMN_SUM, dict.fromkeys(("S0_init", "S0", "S1"), "j")),
    ],
    ids=["softmax", "softmax_outer", "rope", "broadcast", "column_sum"],
)
def test_threads_share(text: str, expected: dict[str, str]) -> None:
    _, _, tree = mapped(text)
    assert parallel(tree) == expected


@pytest.mark.parametrize("text", [ROW_SUM, SOFTMAX, LAYER_NORM, POOL])
def test_a_reduction_whose_order_is_kept_has_no_lanes_along_it(text: str) -> None:
    scop, dependences, tree = mapped(text, reassociate=False)
    found = lanes(tree)
    for statement in scop.statements:
        if statement.is_update:
            assert found.get(statement.name) not in statement.reduction
    prove(scop, dependences, tree)


def test_a_short_contiguous_axis_is_still_better_than_a_strided_one() -> None:
    _, _, tree = mapped("""def f(float(512, 4) X) -> (float(512, 4) Y) {
      Y(i, j) = exp(X(i, j)) where i in 0:512, j in 0:4
    }""")
    assert lanes(tree) == {"S0": "j"}


def test_a_transpose_takes_lanes_along_one_of_the_two() -> None:
    scop, dependences, tree = mapped("""def f(float(n0, n1) X) -> (float(n1, n0) Y) {
      Y(i, j) = tanh(X(j, i)) where i in 0:n1, j in 0:n0
    }""")
    assert lanes(tree)["S0"] in ("i", "j")
    prove(scop, dependences, tree)


def test_one_sum_whose_order_is_kept_has_no_lanes_at_all() -> None:
    scop, dependences, tree = mapped(
        """def f(float(9) X) -> (float Y) {
      Y() +=! X(i) where i in 0:9
    }""",
        reassociate=False,
    )
    assert lanes(tree) == {}
    prove(scop, dependences, tree)


@pytest.mark.parametrize("name", sorted(ALL))
@pytest.mark.parametrize("fusion", ["preserve", "max", "min"])
def test_a_path_has_one_lanes_loop_at_most(name: str, fusion: str) -> None:
    def visit(node: Tree, found: int) -> None:
        if isinstance(node, Mark) and node.name == "lanes":
            found += 1
        assert found <= 1
        children = (
            node.filters if isinstance(node, Sequence) else [getattr(node, "child", None)]
        )
        for child in children:
            if child is not None:
                visit(child, found)

    scop, dependences, tree = mapped(ALL[name], fusion=fusion)
    visit(tree, 0)
    prove(scop, dependences, tree)


def test_what_each_lane_keeps_for_itself_is_no_strided_access() -> None:
    _, _, tree = mapped("""def f(float(196, 672) X) -> (Y, S) {
        T(i, j) = exp(X(j, i)) where i in 0:672, j in 0:196
        Y(i, j) = T(j, i) where i in 0:196, j in 0:672
        S(i) +=! T(i, j) where i in 0:672, j in 0:196
    }""")
    assert lanes(tree) == {"S0": "i", "S1": "j", "S2_init": "i", "S2": "i", "S3": "i"}


@pytest.mark.parametrize("channels", [8, 16])
def test_a_value_read_twice_is_loaded_once(channels: int) -> None:
    _, _, tree = mapped(f"""def f(float(n, 16) X) -> (float({channels}, n) Y) {{
        Y(c, i) = X(i, c) * min(max(X(i, c) + 3, 0), 6) / 6 where c in 0:{channels}, i in 0:n
    }}""")
    assert lanes(tree) == {"S0": "i"}


SHUFFLE = """def f(float(4, 34, 784) X) -> (float(9, 784, 16) Y) {
  Y(i, j, k) = X(k % 4, (16 * i + k) / 4, j) where i in 0:8, j in 0:784, k in 0:16
  Y(i, j, k) = X(k % 4, (k + 128) / 4, j) where i in 8:9, j in 0:784, k in 0:8
  Y(i, j, k) = 0.0 where i in 8:9, j in 0:784, k in 8:16
}"""


def test_lanes_read_in_order_what_squares_store() -> None:
    """A gather of 16 channels takes longer than 16 rows of pixels, turned."""
    _, _, tree = mapped(SHUFFLE)
    assert lanes(tree) == dict.fromkeys(("S0", "S1", "S2"), "j")


def test_what_the_lanes_read_again_is_stored_in_no_squares() -> None:
    text = SHUFFLE.replace(
        "(float(9, 784, 16) Y)", "(float(9, 784, 16) Y, float(9, 784, 16) Z)"
    )
    text = text.replace(
        "\n}", "\n  Z(i, j, k) = Y(i, j, k) where i in 0:9, j in 0:784, k in 0:16\n}"
    )
    _, _, tree = mapped(text, fusion="max")
    assert lanes(tree)["S0"] == "k"
