"""Races end when their figures have decided, and noise does not promote."""

from __future__ import annotations

import itertools
from random import Random
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcfuse.tuning.racing import CONFIRM, Race, is_slow, race


class Machine:
    """Contenders that take a time of their own, on a clock that nobody waits for."""

    def __init__(self, micros: list[float], noise: float = 0.0, seed: int = 0) -> None:
        self.now, self.random, self.noise, self.calls = 0.0, Random(seed), noise, [0] * 9
        self.contenders = [self._contender(k, each) for k, each in enumerate(micros)]

    def _contender(self, k, micros):
        def call():
            self.calls[k] += 1
            self.now += micros * 1e-6 * (1 + self.random.uniform(0, self.noise))

        return call

    def run(self, rules: Race) -> list[list[float]]:
        return race(self.contenders, rules, lambda: self.now, lambda: self.now)


def speedup(times):
    return median(a / b for a, b in zip(times[0], times[-1], strict=True))


def test_what_is_hopeless_is_given_up_after_two_rounds():
    times = Machine([100, 100, 200]).run(Race())
    assert is_slow(times, Race())
    assert [len(row) for row in times] == [2, 2, 2]


def test_what_is_behind_is_timed_less_than_what_is_near_and_that_less_than_what_is_ahead():
    rounds = [len(Machine([100, 100 * far]).run(Race())[0]) for far in (1.2, 1.02, 0.95)]
    assert rounds == [Race().least, Race().most, Race().promoted]


def test_a_race_is_bounded_in_time():
    for micros in (1, 50, 3000, 20_000, 200_000):
        machine = Machine([micros, micros, micros * 0.9])
        machine.run(Race())
        assert machine.now < 2 * Race().budget_s + 15 * 3e-6 * micros + 0.03


@given(st.integers(0, 10_000), st.sampled_from([0.8, 1.0, 1.25]))
def test_uneven_noise_moves_a_ratio_by_little(seed, far):
    times = Machine([40, 40 * far], noise=0.3, seed=seed).run(Race(hopeless=9, behind=9))
    assert speedup(times) == pytest.approx(1 / far, rel=0.03)


def test_drift_cancels():
    machine = Machine([100, 100])
    growing = itertools.count()
    steady = [lambda call=call: _slower(machine, call, growing) for call in machine.contenders]
    times = race(steady, CONFIRM, lambda: machine.now, lambda: machine.now)
    assert times[0][-1] > 1.5 * times[0][0]
    assert speedup(times) == pytest.approx(1.0, abs=0.01)


def _slower(machine, call, growing):
    call()
    machine.now += 4e-8 * next(growing)


def test_all_of_a_confirmation_run_however_far_they_are_behind():
    times = Machine([100, 900, 150]).run(CONFIRM)
    assert len(times[2]) >= 100
    assert not is_slow(times, CONFIRM)
