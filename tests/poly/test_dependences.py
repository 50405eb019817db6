from __future__ import annotations

from tcfuse.poly import isl
from tcfuse.poly.dependences import Dependences
from tests.poly.definitions import GATHER, ROPE, ROW_SUM, SOFTMAX, model


def same(found: isl.UnionMap, expected: str) -> bool:
    return bool(found.is_equal(isl.union_map(found.get_ctx(), expected)))


def of(text: str) -> Dependences:
    return model(text)[1]


def test_a_value_flows_to_its_readers() -> None:
    found = of("""def f(float(8) X) -> (float(8) Y) {
      T(i) = X(i) + 1 where i in 0:8
      Y(i) = T(i) + T(7 - i) where i in 0:8
    }""")
    assert same(
        found.flow,
        "{ S0[i] -> S1[i] : 0 <= i < 8; S0[i] -> S1[7 - i] : 0 <= i < 8 }",
    )
    assert found.false.is_empty()
    assert found.reduction.is_empty()


def test_updates_of_one_element_are_kept_apart() -> None:
    found = of(ROW_SUM)
    head = "[n0, n1] -> "
    assert same(
        found.reduction,
        head + "{ S0[i, j] -> S0[i, k] : 0 <= i < n0 and 0 <= j < k < n1 }",
    )
    within = head + "{ S0_init[i] -> S0[i, j] : 0 <= i < n0 and 0 <= j < n1 }"
    assert same(found.flow, within)
    assert same(found.false, within)  # the first update overwrites the identity
    assert same(found.ordered, within)
    assert not found.all.is_equal(found.ordered)


def test_a_later_write_waits_for_readers_and_writers() -> None:
    found = of("""def f(float(8) X) -> (float(8) Y, float(8) Z) {
      Y(i) = X(i) where i in 0:8
      Z(i) = Y(i) where i in 0:8
      Y(i) = X(i) + 1 where i in 0:4
    }""")
    assert same(found.flow, "{ S0[i] -> S1[i] : 0 <= i < 8 }")
    assert same(
        found.false,
        "{ S1[i] -> S2[i] : 0 <= i < 4; S0[i] -> S2[i] : 0 <= i < 4 }",
    )


def test_an_update_reads_what_was_there() -> None:
    found = of("""def f(float(8) X) -> (float(8) Y) {
      Y(i) = 1.0 where i in 0:8
      Y(i) += X(i) where i in 0:8
    }""")
    assert same(found.flow, "{ S0[i] -> S1[i] : 0 <= i < 8 }")
    assert found.reduction.is_empty()  # one update an element


def test_pieces_of_one_tensor_are_independent() -> None:
    assert of(ROPE).all.is_empty()


def test_positions_that_depend_on_data_may_be_any() -> None:
    found = of("""def f(float(8) X, int64(3) I) -> (float(3) Y) {
      T(i) = X(i) + 1 where i in 0:8
      Y(i) = T(I(i)) where i in 0:3
    }""")
    assert same(found.flow, "{ S0[i] -> S1[j] : 0 <= i < 8 and 0 <= j < 3 }")
    assert of(GATHER).all.is_empty()


def test_softmax_has_no_dependence_between_rows() -> None:
    found = of(SOFTMAX).all
    rows = isl.union_map(
        found.get_ctx(),
        "{ S0_init[i] -> [i]; S0[i, j] -> [i]; S1[i, j] -> [i]; S2_init[i] -> [i]; "
        "S2[i, j] -> [i]; S3[i, j] -> [i] }",
    )
    steps = found.apply_domain(rows).apply_range(rows)
    assert same(steps, "[n0, n1] -> { [i] -> [i] : 0 <= i < n0 and n1 > 0 }")


def test_text_names_the_kinds() -> None:
    assert [line.partition(":")[0] for line in str(of(ROPE)).splitlines()] == [
        "flow",
        "false",
        "reduction",
    ]
