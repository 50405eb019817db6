from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tcfuse.mapping_options import MappingOptions
from tests.poly.definitions import ALL, BROADCAST, COLUMN_SUM, ROW_SUM, SOFTMAX_OUTER
from tests.targets.kernels import functions_of, kernel_of

Golden = Callable[[object, str], None]
MASKED_SOFTMAX = """def softmax(float(n0, n1) X, bool(n1) P) -> (float(n0, n1) Y) {
  M(i) max=! P(j) ? X(i, j) : -inf() where i in 0:n0, j in 0:n1
  E(i, j) = exp((P(j) ? X(i, j) : -inf()) - M(i)) where i in 0:n0, j in 0:n1
  S(i) +=! E(i, j) where i in 0:n0, j in 0:n1
  Y(i, j) = E(i, j) / S(i) where i in 0:n0, j in 0:n1
}"""


def text_of(definition: str, **options: object) -> str:
    kernel = kernel_of(definition, MappingOptions(**options))  # type: ignore[arg-type]
    return re.sub(r"k_[0-9a-f]{8}", "k", functions_of(kernel.source))


def test_softmax_with_mask(golden: Golden) -> None:
    golden(text_of(MASKED_SOFTMAX, accumulators=2), "cpp")


def test_reduction_along_the_outer_axis(golden: Golden) -> None:
    golden(text_of(COLUMN_SUM), "cpp")


@pytest.mark.parametrize("unroll", [1, 2, 4])
def test_a_sum_has_as_many_accumulators_as_asked(unroll: int) -> None:
    text = text_of(ROW_SUM, accumulators=unroll)
    assert len(re.findall(r"auto acc\d+ =", text)) == unroll


def test_a_sum_whose_order_is_kept_has_none() -> None:
    assert "acc" not in text_of(ROW_SUM, numerics="strict").replace("Y_acc", "")


def test_phases_follow_the_parts_of_the_tree() -> None:
    source = kernel_of(BROADCAST).source
    assert [p.extent for p in source.phases] == ["1", "240"]  # 4096 elements a step of lanes
    assert [p.symbol for p in source.phases] == [f"{source.name}_{k}" for k in range(2)]
    assert source.shared_bytes == str((784 * 4 + 63) // 64 * 64)
    assert source.local_bytes == "0"


def test_nested_parallel_loops_are_one() -> None:
    source = kernel_of(ALL["rope"]).source
    (phase,) = source.phases
    assert phase.extent == "24"
    assert "rest % (6)" in source.text


def test_costs_grow_with_the_sizes() -> None:
    (phase,) = kernel_of(ALL["softmax"]).source.phases
    assert phase.extent == "n0"
    assert eval(phase.cost, {}, {"n1": 1000}) > 10 * eval(phase.cost, {}, {"n1": 50})


def test_the_last_group_of_lanes_is_partial() -> None:
    text = text_of(ROW_SUM)
    assert "const int64_t left = n1 - " in text
    assert "tcf::load_first<float" in text


def test_whole_groups_need_no_last_one() -> None:
    text = text_of("""def f(float(n0, 64) X) -> (float(n0, 64) Y) {
      Y(i, j) = X(i, j) + 1 where i in 0:n0, j in 0:64
    }""")
    assert "left" not in text


def test_every_extent_is_c() -> None:
    """The operator shell is C: it computes extents, costs and scratch itself."""
    transpose = """def f(float(n0, n1) X) -> (float(n1, n0) Y) {
      Y(i, j) = X(j, i) where i in 0:n1, j in 0:n0
    }"""
    for definition in (*ALL.values(), SOFTMAX_OUTER, transpose):
        source = kernel_of(definition).source
        texts = [t for p in source.phases for t in (p.extent, p.cost)]
        assert "tcf::" not in " ".join([*texts, source.shared_bytes, source.local_bytes])
