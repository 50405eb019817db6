"""Rows that several loops read: which are copied, and where the copies are kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tcfuse.errors import ToolchainError
from tcfuse.mapping.plan import Plan, plan_kernel
from tcfuse.mapping.row_copies import plan_with_rows, with_row_copies
from tcfuse.mapping.storage import Memory
from tcfuse.mapping_options import MappingOptions
from tcfuse.targets.toolchain import Toolchain
from tcfuse.tc.checked import CheckedDef
from tcfuse.tc.evaluate import evaluate
from tcfuse.tc.unparse import unparse_statement
from tests.codegen.conftest import runnable
from tests.poly.definitions import LAYER_NORM, SOFTMAX, SOFTMAX_OUTER, checked_of
from tests.targets.kernels import build, kernel_of
from tests.targets.test_cpu import assert_equal


def planned(checked: CheckedDef) -> Plan:
    return plan_kernel(checked, (), MappingOptions())


def lines(checked: CheckedDef) -> list[str]:
    return [unparse_statement(s.comprehension) for s in checked.statements]


def test_a_row_is_read_once() -> None:
    copies = with_row_copies(checked_of(LAYER_NORM))
    assert copies.sources == {"X_row": "X"}
    assert lines(copies.checked) == [
        "X_row(i, j) = X(i, j) where i in 0:512, j in 0:768",
        "S(i) +=! X_row(i, j) where i in 0:512, j in 0:768",
        "M(i) = S(i) / 768 where i in 0:512",
        "V(i) +=! t * t where i in 0:512, j in 0:768, t = X_row(i, j) - M(i)",
        "D(i) = sqrt(V(i) / 768 + 1e-05) where i in 0:512",
        "Y(i, j) = (X_row(i, j) - M(i)) / D(i) * G(j) + B(j) where i in 0:512, j in 0:768",
    ]


@pytest.mark.parametrize(
    "definition",
    [
        # one reader
        "def f(float(N, K) X) -> (Y) { Y(i) +=! X(i, k) }",
        # nobody reduces
        "def f(float(N, K) X) -> (Y, Z) { Y(i, k) = X(i, k) Z(i, k) = 2 * X(i, k) }",
        # the whole tensor is the row
        "def f(float(N, K) X) -> (Y, Z) { Y +=! X(i, k) Z(i, k) = X(i, k) * Y }",
        # rows of the one are columns of the other
        "def f(float(N, N) X) -> (Y, Z) { Y(i) +=! X(i, k) Z(k) +=! X(i, k) }",
        # other elements
        """def f(float(N, K) X) -> (Y, Z) {
          Y(i) +=! X(i, k) where i in 0:N, k in 1:K
          Z(i, k) = X(i, k) * Y(i) where i in 0:N, k in 0:K
        }""",
        """def f(float(N, K) X) -> (Y, Z) {
          Y(i) +=! X(i, k) where i in 0:N, k in 0:K - 1
          Z(i, k) = X(i, k + 1) * Y(i) where i in 0:N, k in 0:K - 1
        }""",
    ],
)
def test_what_is_not_read_again_as_a_row_is_not_copied(definition: str) -> None:
    checked = checked_of(definition)
    assert with_row_copies(checked).checked is checked


@pytest.mark.parametrize("definition", [LAYER_NORM, SOFTMAX])
def test_a_copy_is_kept_as_a_row(definition: str) -> None:
    buffer = plan_with_rows(checked_of(definition), planned).buffers["X_row"]
    assert buffer.memory is Memory.ROW
    assert not buffer.lanes


def test_a_copy_that_would_be_a_tensor_is_taken_back() -> None:
    checked = checked_of("""def f(float(N, K) X, float(K, N) Z) -> (float(N) Y, float(N, K) W) {
      Y(i) +=! X(i, k) * Z(k, i)
      T(k) +=! Z(k, i) * Y(i)
      W(i, k) = X(i, k) * T(k)
    }""")
    assert with_row_copies(checked).sources == {"X_row": "X"}
    assert "X_row" not in plan_with_rows(checked, planned).buffers


@pytest.mark.parametrize(("length", "copied"), [(40_000, True), (50_000, False)])
def test_rows_that_no_block_can_hold_are_read_again(length: int, copied: bool) -> None:
    plan = plan_with_rows(checked_of(LAYER_NORM.replace("768", str(length))), planned)
    assert ("X_row" in plan.buffers) == copied


def test_rows_across_lanes_are_read_again() -> None:
    checked = checked_of(SOFTMAX_OUTER)
    assert with_row_copies(checked).sources == {"X_row": "X"}
    assert "X_row" not in plan_with_rows(checked, planned).buffers


@pytest.mark.compiler
def test_kernels_with_copies_are_right(tmp_path: Path) -> None:
    try:
        Toolchain.default()
    except ToolchainError as error:
        pytest.skip(f"no compiler: {error}")
    definitions = [
        checked_of(text.replace("512", "5").replace("768", "37"))
        for text in (
            LAYER_NORM,
            LAYER_NORM.replace("float(5", "float16(5"),
            "def f(float(N, K) X) -> (Y) { M(i) max=! X(i, k) Y(i, k) = X(i, k) - M(i) }",
        )
    ]
    copied = [with_row_copies(checked).checked for checked in definitions]
    assert all("X_row" in checked.tensors for checked in copied)
    kernels = [kernel_of(checked) for checked in copied]
    rng = np.random.default_rng(0)
    for built in build(copied, kernels, runnable()[-1:], tmp_path):
        for kernel, checked in zip(built, definitions, strict=True):
            inputs = {}
            for name in checked.inputs:
                kind = checked.tensors[name]
                shape = tuple(s if isinstance(s, int) else 7 for s in kind.shape)
                inputs[name] = rng.standard_normal(shape).astype(kind.dtype.numpy)
            found, fault = kernel(inputs)
            assert not fault
            assert_equal(checked, found, evaluate(checked, inputs))


RETURNED = """def f(float(64, 96) X) -> (O, E) {
  E(i, j) = exp(X(i, j))
  S(i) +=! E(i, j)
  O(i, j) = E(i, j) / S(i)
}"""


def test_what_is_returned_and_read_again_is_a_row_first() -> None:
    copies = with_row_copies(checked_of(RETURNED))
    assert copies.sources == {"E_row": "E"}
    assert lines(copies.checked)[:2] == [
        "E_row(i, j) = exp(X(i, j))",
        "E(i, j) = E_row(i, j) where i in 0:64, j in 0:96",
    ]
    plan = plan_with_rows(checked_of(RETURNED), planned)
    assert plan.buffers["E_row"].memory is Memory.ROW


def test_what_other_rows_read_again_is_not_copied() -> None:
    text = "def f(float(N, M) X) -> (O, E) { E(i) +=! X(i, j) O(i) = E(i) }"
    assert not with_row_copies(checked_of(text)).sources, "a sum has its own register"
    text = """def f(float(N) X) -> (O, E) {
      E(i) = exp(X(i)) where i in 0:N
      O(i) = E(N - 1 - i) where i in 0:N
    }"""
    plan = plan_with_rows(checked_of(text), planned)
    assert "E_row" not in plan.buffers
