from __future__ import annotations

from collections.abc import Callable

import pytest

from tcfuse.mapping.nests import schedule_nests
from tcfuse.mapping.tiles import tile_outermost
from tcfuse.mapping_options import MappingOptions
from tcfuse.poly import isl
from tcfuse.poly.clusters import find_clusters
from tcfuse.poly.dependences import Dependences
from tcfuse.poly.proof import prove
from tcfuse.poly.scheduling import Scheduled, Strategy, compute_schedule, reschedule_tiles
from tcfuse.poly.scop import Scop
from tcfuse.poly.tree import Band, Domain, Filter, Sequence, below
from tcfuse.poly.tree_isl import to_yaml
from tests.poly.definitions import (
    ALL,
    BROADCAST,
    LAYER_NORM,
    POOL,
    SOFTMAX,
    checked_of,
    model,
    stable,
)

Golden = Callable[[object, str], None]
NAMES = ["softmax", "softmax_outer", "layer_norm", "rope", "broadcast", "pool"]


def scheduled(text: str, fusion: str = "preserve") -> tuple[Scop, Dependences, Scheduled]:
    scop, dependences = model(text)
    return scop, dependences, compute_schedule(scop, dependences, fusion=fusion)


@pytest.mark.parametrize("name", NAMES)
def test_tree(name: str, golden: Golden) -> None:
    _, _, found = scheduled(ALL[name])
    assert found.note is None
    golden(stable(to_yaml(found.tree)), "tree")


@pytest.mark.parametrize("fusion", ["preserve", "max", "min"])
@pytest.mark.parametrize("name", sorted(ALL))
def test_every_strategy_keeps_the_dependences(name: str, fusion: str) -> None:
    scop, dependences, found = scheduled(ALL[name], fusion)
    prove(scop, dependences, found.tree)


def nests(tree: Domain) -> int:
    """Parts of the outermost sequence."""
    return len(tree.child.filters) if isinstance(tree.child, Sequence) else 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (SOFTMAX, {"preserve": 1, "max": 1, "min": 4}),
        (LAYER_NORM, {"preserve": 1, "max": 1, "min": 5}),
        (BROADCAST, {"preserve": 2, "min": 2}),  # the factor is not computed for every row
        (POOL, {"preserve": 1, "max": 1, "min": 3}),
    ],
    ids=["softmax", "layer_norm", "broadcast", "pool"],
)
def test_how_much_is_fused(text: str, expected: dict[str, int]) -> None:
    assert {f: nests(scheduled(text, f)[2].tree) for f in expected} == expected


REUSED = """def f(float(n0, n1) X) -> (float(n0, n1) Y) {
  T(i) max=! X(i, j) where i in 0:n0, j in 0:n1
  E(i, j) = exp(X(i, j) - T(i)) where i in 0:n0, j in 0:n1
  T(i) +=! E(i, j) where i in 0:n0, j in 0:n1
  Y(i, j) = E(i, j) / T(i) where i in 0:n0, j in 0:n1
}"""


@pytest.mark.parametrize("fusion", ["preserve", "max", "min"])
def test_a_tensor_is_reset_only_after_its_last_use(fusion: str) -> None:
    """Both identities of ``T`` were stored first."""
    scop, dependences, found = scheduled(REUSED, fusion)
    prove(scop, dependences, found.tree)


def test_constant_sizes_stay_cheap() -> None:
    scop, dependences = model(LAYER_NORM)
    with isl.limited(scop.context, 2_000_000):  # a twentieth of a second; it was minutes once
        found = compute_schedule(scop, dependences)
    assert found.note is None
    outer = next(n for n in below(found.tree) if isinstance(n, Band))
    assert outer.coincident == (True,)


@pytest.mark.parametrize("limit", [1, 1000])
def test_the_limit_falls_back_to_textual_order(limit: int) -> None:
    scop, dependences = model(SOFTMAX)
    found = compute_schedule(scop, dependences, limit=limit)
    assert found.note == (
        f"isl needed more than {limit} operations; some statements run in textual order"
    )
    nodes = [n.statements for n in below(found.tree) if isinstance(n, Filter)]
    apart = [names for names in nodes if len({n.partition("_")[0] for n in names}) == 1]
    assert {"S0", "S1", "S2", "S3"} <= {names[-1] for names in apart}
    prove(scop, dependences, found.tree)
    again = compute_schedule(scop, dependences)  # the context is good for more
    assert again.note is None


def test_the_limit_ends_with_its_block() -> None:
    context = isl.new_context()
    domain = "{ S[i, j, k] : 0 <= i, j, k < 100 }"
    with pytest.raises(isl.OperationLimit), isl.limited(context, 10):
        isl.Set.read_from_str(context, domain).lexmin().is_equal(
            isl.Set.read_from_str(context, domain)
        )
    assert not isl.Set.read_from_str(context, domain).is_empty()


def test_the_smaller_of_two_limits_holds() -> None:
    context = isl.new_context()
    domain = "{ S[i, j, k] : 0 <= i, j, k < 100 and (i + j) mod 3 = 1 }"
    with (
        pytest.raises(isl.OperationLimit),
        isl.limited(context, 10),
        isl.limited(context, 10**9),
    ):
        isl.Set.read_from_str(context, domain).lexmin()
    with isl.limited(context, 10**9):
        with pytest.raises(isl.OperationLimit), isl.limited(context, 10):
            isl.Set.read_from_str(context, domain).lexmin()
        assert context.get_max_operations() == 10**9
    assert context.get_max_operations() == 0


def test_the_limit_inside_a_parser() -> None:
    context = isl.new_context()
    text = "{ [i, j] : 0 <= i, j < 3 and i + 2j < 7 and exists (e : i = 2e + j) }"
    with pytest.raises(isl.OperationLimit, match="syntax error"), isl.limited(context, 5):
        isl.Set.read_from_str(context, text)


def test_other_errors_pass_through() -> None:
    context = isl.new_context()
    with pytest.raises(Exception, match="syntax") as raised, isl.limited(context, 10**6):
        isl.Set.read_from_str(context, "{ S[i : }")
    assert not isinstance(raised.value, isl.OperationLimit)


def test_unfused_statements_have_a_nest_each() -> None:
    scop, dependences, found = scheduled(SOFTMAX, "min")
    assert isinstance(found.tree.child, Sequence)
    assert [f.statements for f in found.tree.child.filters] == [
        ("S0_init", "S0"),
        ("S1",),
        ("S2_init", "S2"),
        ("S3",),
    ]
    prove(scop, dependences, found.tree)


def test_scalars_alone() -> None:
    text = """def f(float X) -> (float Y) {
      T() = X() + 1
      Y() = T() * T()
    }"""
    scop, dependences, found = scheduled(text)
    assert not any(isinstance(n, Band) for n in below(found.tree))
    assert prove(scop, dependences, found.tree).dependences == 1


ALL_OF_IT = "where i in 0:n0, j in 0:n1"
MANY = "\n".join(
    [
        "def f(float(n0, n1) X) -> (float(n0, n1) Y) {",
        *(
            f"  T{k}(i, j) = {f'T{k - 1}' if k else 'X'}(i, j) * 2 {ALL_OF_IT}\n"
            f"  S{k}(i) +=! T{k}(i, j) {ALL_OF_IT}\n"
            f"  R{k}(j) max=! T{k}(i, j) {ALL_OF_IT}"
            for k in range(12)
        ),
        f"  Y(i, j) = T11(i, j) + S3(i) - R4(j) + S11(i) * R11(j) {ALL_OF_IT}\n}}",
    ]
)


@pytest.mark.parametrize("limit", [1, 300, 5_000, 100_000])
def test_many_statements_survive_any_limit(limit: int) -> None:
    """Clustering, scheduling and scheduling inside tiles may each be stopped."""
    scop, dependences = model(MANY)
    options = MappingOptions(tile=(8, 8), inner_fusion="max", isl_operations=limit)
    found = schedule_nests(scop, dependences, options)
    prove(scop, dependences, found.tree)
    if limit < 100_000:
        assert found.note is not None
        assert f"isl needed more than {limit} operations" in found.note


@pytest.mark.parametrize(("limit", "stage"), [(1, "whole"), (1, "tiles")])
def test_each_stage_says_that_it_was_stopped(limit: int, stage: str) -> None:
    scop, dependences = model(SOFTMAX)
    if stage == "whole":
        note = compute_schedule(scop, dependences, limit=limit).note
    else:
        tree = tile_outermost(compute_schedule(scop, dependences).tree, (4,)).tree
        rules = Strategy("max", limit=limit)
        again = reschedule_tiles(scop, dependences, tree, rules)
        prove(scop, dependences, again.tree)
        note = again.note
    assert note == "isl needed more than 1 operations; some statements run in textual order"


FOUR = """def four(float(8, 8, 5) X, float(8, 8, 5, 96) B)
    -> (float(8, 8, 5) Y, float(8, 8, 5, 96) Z) {
  Y(a, b, c) = X(a, b, c) * 2 where a in 0:8, b in 0:8, c in 0:5
  Z(a, b, c, d) = B(a, b, c, d) + Y(a, b, c) where a in 0:8, b in 0:8, c in 0:5, d in 0:96
}"""
THREE = """def three(float(64, 5) X, float(64, 5, 96) B)
    -> (float(64, 5) Y, float(64, 5, 96) Z) {
  Y(a, b) = X(a, b) * 2 where a in 0:64, b in 0:5
  Z(a, b, c) = B(a, b, c) + Y(a, b) where a in 0:64, b in 0:5, c in 0:96
}"""


def test_three_parallel_loops_are_as_good_as_four() -> None:
    """Four loops lose one to a neighbour of three, but three lose none to one of two."""
    assert nests(scheduled(FOUR)[2].tree) == 1
    assert nests(scheduled(THREE)[2].tree) == 2
    assert nests(scheduled(THREE, "max")[2].tree) == 1


def test_sums_that_one_statement_combines_share_its_loops():
    text = """
def f(float(M, K) A, float(K, N) B, float(K, N) D) -> (float(M, N) C) {
  S(m, n) +=! A(m, k) * B(k, n)
  T(m, n) +=! A(m, k) * D(k, n)
  C(m, n) = S(m, n) * T(m, n)
}
"""
    scop, dependences = model(checked_of(text))
    (cluster,) = find_clusters(scop, dependences, "preserve").found
    assert cluster.depth == 2
