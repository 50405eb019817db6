"""The model's price of a kernel on a GPU that is not there."""

from __future__ import annotations

import pytest

from tcfuse.targets.geometry import Step
from tcfuse.tuning.price import Counted, Gpu, micros

FULL = [Step("k", 10_000, 256, 0)]
GPU = Gpu()


def test_a_launch_takes_what_the_slowest_resource_takes():
    moved = Counted(moved=1.5e6, asked=1.5e6, shared=0, requests=0, barriers=0)
    assert micros([moved], FULL, 1.0) == pytest.approx(1.0 + 0.1 * 0.3 + GPU.launch_us)
    assert micros([moved], FULL, 8.0) == pytest.approx(8 * 1.03 + GPU.launch_us)


@pytest.mark.parametrize("what", ["moved", "asked", "shared", "requests", "barriers"])
def test_more_of_anything_never_costs_less(what):
    usual = {"moved": 1e6, "asked": 1e6, "shared": 1e6, "requests": 1e4, "barriers": 4}
    more = {**usual, what: 2 * usual[what]}
    assert micros([Counted(**more)], FULL, 1.0) > micros([Counted(**usual)], FULL, 1.0)


def test_few_threads_cannot_use_the_device():
    work = [Counted(1.5e7, 1.5e7, 0, 0, 0)]
    few = micros(work, [Step("k", 8, 128, 0)], 1.0)
    assert few > 10 * micros(work, FULL, 1.0)


def test_every_launch_costs_something():
    nothing = Counted(0, 0, 0, 0, 0)
    assert micros([nothing] * 2, FULL * 2, 1.0) == pytest.approx(2 * GPU.launch_us)
