"""Predictions: for the sizes that are measured, by the machine's rates, and compared."""

from dataclasses import replace

import onnx
import pytest

from tcfuse.calibration import keep
from tcfuse.graph.load import load_model
from tcfuse.graph.machine import MACHINE
from tcfuse.options import OptimizeOptions
from tcfuse.planning import accuracy, plan, predicted
from tcfuse.store import Store


def model(shape="N, 64"):
    body = "a = Tanh(x) b = Mul(a, x) y = Add(b, x)"
    head = '<ir_version: 8, opset_import: ["" : 17]>'
    text = f"{head} g (float[{shape}] x) => (float[{shape}] y) {{{body}}}"
    return load_model(onnx.parser.parse_model(text))


def expected_of(store, **options):
    plans = plan(model(), OptimizeOptions.of(**options), store)
    (group,) = plans[0].groups
    return predicted(group, plans)


def test_a_region_is_predicted_for_the_sizes_it_is_measured_with(tmp_path):
    store = Store(tmp_path)
    small, large = (expected_of(store, dim={"N": n}) for n in (64, 65536))
    assert small["before_us"] < 20 < 1000 < large["before_us"]
    assert large["before_us"] / large["after_us"] == pytest.approx(large["speedup"])


def test_a_region_is_predicted_with_the_rates_of_the_machine(tmp_path):
    store = Store(tmp_path)
    before = expected_of(store, dim={"N": 4096})
    keep(store, replace(MACHINE, rates={**MACHINE.rates, "Tanh": 1e3}))
    assert expected_of(store, dim={"N": 4096})["before_us"] > 3 * before["before_us"]


@pytest.mark.parametrize(
    ("sizes", "regions"),
    [
        ({"dim": {"N": 1}}, 0),
        ({"input_shapes": {"x": (1, 64)}}, 0),
        ({"dim": {"N": 65536}}, 1),
        ({}, 1),  # it may be run with any size
    ],
)
def test_what_loses_for_the_sizes_that_were_asked_for_is_not_tried(tmp_path, sizes, regions):
    keep(Store(tmp_path), replace(MACHINE, fused_us=0.6))
    (found,) = plan(model(), OptimizeOptions.of(**sizes), Store(tmp_path))
    assert len(found.groups) == regions


def pairs(guessed, seen):
    return [({"speedup": a}, {"speedup": b}) for a, b in zip(guessed, seen, strict=True)]


def test_predictions_are_compared_by_ratio_and_order():
    found = accuracy(pairs([2, 4, 8, 16], [1, 2, 4, 8]))
    assert (found.ratio, found.factor, found.rank) == pytest.approx((2, 2, 1))
    assert accuracy(pairs([1, 2, 3], [3, 2, 1])).rank == pytest.approx(-1)
    assert accuracy(pairs([1, 1, 2, 3], [5, 5, 6, 7])).rank == pytest.approx(1)
    assert accuracy(pairs([1, 1, 1], [1, 2, 3])).rank == 0
    assert "0.50 of the measured" in str(accuracy(pairs([1, 2, 3], [2, 4, 6])))


def test_kernels_that_were_not_timed_do_not_count():
    given = [*pairs([1, 2], [1, 2]), ({"speedup": 3.0}, {"error": 0.0})]
    assert accuracy(given) is None
