from __future__ import annotations

from tcfuse.mapping.accumulators import with_accumulators
from tcfuse.mapping.plan import plan_kernel
from tcfuse.mapping.storage import Memory
from tcfuse.mapping_options import MappingOptions
from tcfuse.poly.scop import extract_scop
from tcfuse.tc.checked import CheckedDef
from tcfuse.tc.unparse import unparse_expr
from tcfuse.types import DType, TensorType
from tests.poly.definitions import ROW_SUM, SOFTMAX, checked_of


def prepared(text: str) -> CheckedDef:
    return with_accumulators(checked_of(text))


def lines(checked: CheckedDef) -> list[str]:
    """Each statement's target, operator and value."""
    found = []
    for item in checked.statements:
        c = item.comprehension
        found.append(
            f"{c.tensor}({', '.join(c.indices)}) {c.assign.value} {unparse_expr(c.value)}"
        )
    return found


def test_a_returned_sum_goes_through_a_temporary() -> None:
    found = prepared(ROW_SUM)
    assert lines(found) == ["Y_acc(i) +=! X(i, j)", "Y(i) = Y_acc(i)"]
    assert found.tensors["Y_acc"] == found.tensors["Y"]
    assert found.temporaries == ("Y_acc",)
    assert [s.name for s in extract_scop(found).statements] == ["S0_init", "S0", "S1"]


def test_without_reductions_into_results_nothing_changes() -> None:
    checked = checked_of(SOFTMAX)
    assert with_accumulators(checked) is checked


def test_a_sum_that_stays_inside_is_a_float_already() -> None:
    checked = checked_of("""def f(float16(n0, 8) X) -> (float16(n0, 8) Y) {
      S(i) +=! X(i, j) where i in 0:n0, j in 0:8
      Y(i, j) = X(i, j) / S(i) where i in 0:n0, j in 0:8
    }""")
    assert checked.tensors["S"] == TensorType(DType.FLOAT32, ("n0",))
    assert with_accumulators(checked) is checked


def test_a_returned_sum_of_halves_is_rounded_once() -> None:
    found = prepared("""def f(float16(n0, 8) X) -> (float16(n0) Y, float(n0) Z) {
      Y(i) +=! X(i, j) where i in 0:n0, j in 0:8
      Z(i) = 2 * Y(i) where i in 0:n0
    }""")
    assert lines(found) == [
        "Y_acc(i) +=! X(i, j)",
        "Y(i) = Y_acc(i)",
        "Z(i) = 2 * float16(Y_acc(i))",
    ]
    assert found.tensors["Y_acc"].dtype is DType.FLOAT32


def test_the_copy_comes_after_the_last_update() -> None:
    found = prepared("""def f(float(n0, 8) X) -> (float(n0) Y) {
      Y(i) = 1.0 where i in 0:n0
      Y(i) += X(i, j) where i in 0:n0, j in 0:4
      Y(i) += X(i, j) where i in 0:n0, j in 4:8
    }""")
    assert [line.partition(" ")[0] for line in lines(found)] == ["Y_acc(i)"] * 3 + ["Y(i)"]


def test_integers_accumulate_in_their_own_type() -> None:
    found = prepared("""def f(int8(n0, 8) X) -> (int8(n0) Y) {
      Y(i) +=! X(i, j) where i in 0:n0, j in 0:8
    }""")
    assert found.tensors["Y_acc"].dtype is DType.INT8


def test_the_temporary_has_a_name_of_its_own() -> None:
    checked = prepared("def f(float(n0, 8) Y_acc) -> (Y) { Y(i) +=! Y_acc(i, j) }")
    assert checked.statements[0].comprehension.tensor == "Y_acc_"


def test_a_sum_that_another_nest_reads_is_kept_whole_but_summed_in_a_register():
    checked = checked_of(
        """
def f(float(N, K) X, float(N, K) Z) -> (float(K) Y) {
  T(i) +=! X(i, j) * Z(i, j)
  Y(k) +=! T(i) * X(i, k)
}
"""
    )
    plan = plan_kernel(checked, (), MappingOptions())
    assert plan.buffers["T"].memory is Memory.SHARED
    assert plan.buffers["T_acc"].memory is Memory.REGISTER
