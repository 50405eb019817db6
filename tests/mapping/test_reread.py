"""Matrices that every step of a recurrence reads are copied once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tcfuse.mapping.reread import STEPS, with_rows
from tcfuse.tc.unparse import unparse_expr
from tests.codegen.conftest import runnable
from tests.mapping.mapped import lanes, mapped
from tests.poly.definitions import checked_of
from tests.targets.kernels import build, functions_of, kernel_of


def scan(steps: int, channels: int = 64, states: int = 16) -> str:
    """A state of some numbers a channel that decays and is summed in every step."""
    lines, before = [], "S(i, j)"
    for k in range(steps):
        lines.append(
            f"h{k}(i, j) = exp(D({k}, i) * A(i, j)) * {before} + B({k}, j) "
            f"where i in 0:{channels}, j in 0:{states}"
        )
        lines.append(
            f"r{k}(i) +=! h{k}(i, j) * C({k}, j) where i in 0:{channels}, j in 0:{states}"
        )
        before = f"h{k}(i, j)"
    total = " + ".join(f"r{k}(i)" for k in range(steps))
    lines.append(f"Y(i) = {total} where i in 0:{channels}")
    return (
        f"def f(float({channels}, {states}) A, float({channels}, {states}) S, "
        f"float({steps}, {channels}) D, float({steps}, {states}) B, float({steps}, {states}) C)"
        f" -> (float({channels}) Y) {{\n  " + "\n  ".join(lines) + "\n}"
    )


def values(text: str) -> list[str]:
    found = with_rows(checked_of(text))
    return [unparse_expr(s.comprehension.value) for s in found.statements]


def test_a_matrix_of_many_steps_is_read_once() -> None:
    found = values(scan(STEPS))
    assert found[0] == "A(i0, i1)"
    assert sum("A(" in value for value in found) == 1
    assert sum("A_row(i, j)" in value for value in found) == STEPS


def test_a_matrix_of_few_steps_is_read_by_them() -> None:
    assert not any("A_row" in value for value in values(scan(STEPS - 1)))


def test_reads_of_another_place_stay() -> None:
    turned = scan(STEPS, channels=16).replace("A(i, j)", "A(j, i)")
    assert not any("A_row" in value for value in values(turned))


def test_lanes_run_across_the_channels_of_a_scan() -> None:
    _, _, tree = mapped(scan(STEPS))
    assert set(lanes(tree).values()) == {"i"}


def test_lanes_stay_on_long_rows() -> None:
    _, _, tree = mapped(scan(STEPS, states=256))
    assert lanes(tree)["S0"] == "j"


def test_long_bodies_of_squares_are_loops() -> None:
    text = functions_of(kernel_of(scan(1)).source)
    assert "tcf::load_columns<" in text
    assert "TCF_UNROLL" not in text


@pytest.mark.compiler
@pytest.mark.parametrize(("channels", "states"), [(64, 16), (40, 16), (5, 3)])
def test_a_scan_is_right(tmp_path: Path, channels: int, states: int) -> None:
    checked = checked_of(scan(STEPS, channels, states))
    stream = np.random.default_rng(0)
    arrays = {
        name: stream.standard_normal(checked.tensors[name].shape).astype(np.float32)
        for name in checked.inputs
    }
    state, expected = arrays["S"].astype(float), np.zeros(channels)
    for k in range(STEPS):
        state = np.exp(arrays["D"][k][:, None] * arrays["A"]) * state + arrays["B"][k]
        expected += state @ arrays["C"][k]
    for (compiled,) in build([checked], [kernel_of(checked)], runnable(), tmp_path):
        found, fault = compiled(arrays)
        assert not fault
        np.testing.assert_allclose(found["Y"], expected, rtol=2e-4)
