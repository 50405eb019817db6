"""The simulation of the tuner's loop, where its answer is known."""

from pathlib import Path

import pytest

pytest.importorskip("distributed")

from scripts.tuning_scale_report import drawn, table
from scripts.tuning_simulation import Costs, Row, Trial, simulated, trials_of

ALIKE = [Trial(f"text {n}", 0.5, 1.0, 0.5, 0.0) for n in range(64)]


def test_workers_share_what_there_is():
    costs = Costs(ALIKE, setup_s=0.0, message_s=0.0)
    assert simulated(costs, 1, 16, most=64).rate == pytest.approx(30)
    assert simulated(costs, 4, 16, most=64).rate == pytest.approx(120)
    assert simulated(costs, 16, 16, most=64).rate == pytest.approx(480)


def test_a_generation_has_no_more_than_its_population():
    costs = Costs(ALIKE, setup_s=0.0, message_s=0.0)
    found = simulated(costs, 64, 16, most=64)
    assert found.rate == pytest.approx(480)
    assert found.limit == "generation"
    assert found.shares["generation"] == pytest.approx(0.75)
    assert simulated(costs, 64, 0, most=64).rate == pytest.approx(64 * 30)


def test_the_slowest_of_a_generation_is_waited_for():
    trials = [Trial(f"text {n}", 3.0 if n % 2 else 1.0, 0.0, 0.0, 0.0) for n in range(8)]
    found = simulated(Costs(trials, 0.0, 0.0), 2, 2, most=8)
    assert found.rate == pytest.approx(60 * 8 / (4 * 3))
    assert found.shares["generation"] == pytest.approx(1 / 3)


def test_workers_are_set_up_once_and_build_each_incumbent():
    costs = Costs(ALIKE, setup_s=10.0, message_s=0.0)
    assert simulated(costs, 2, 16, most=64).rate == pytest.approx(60 * 64 / (10 + 64))
    better = [Trial("best", 0.5, 1.0, 0.5, 2.0), *ALIKE[1:]]
    found = simulated(Costs(better, 0.0, 0.0), 2, 16, most=64)
    assert found.shares["incumbent"] == pytest.approx(1.5 / (64 * 2 + 1.5), rel=0.1)


def test_a_text_is_measured_once():
    trials = [Trial("the same", 0.5, 1.0, 0.5, 0.0)] * 16
    assert simulated(Costs(trials, 0.0, 0.0), 1, 16, most=16).rate == pytest.approx(
        60 * 16 / (16 * 0.5 + 1.5)
    )


def test_a_text_that_is_being_measured_is_not_measured_again():
    trials = [Trial("the same", 0.5, 1.0, 0.5, 0.0)] * 3
    found = simulated(Costs(trials, 0.0, 0.0), 3, 3, most=3)
    assert found.rate == pytest.approx(60 * 3 / 2)
    assert found.shares["measure"] == pytest.approx(0.5 / 6)
    assert found.shares["generation"] == pytest.approx(3 / 6)


def test_several_workers_ask_whether_to_measure_a_text():
    trials = [Trial(f"text {n}", 1.0, 0.0, 0.0, 0.0) for n in range(2)]
    alone = simulated(Costs(trials, 0.0, 0.25), 1, 2, most=2)
    assert alone.rate == pytest.approx(60 * 2 / 2.5)
    found = simulated(Costs(trials, 0.0, 0.25), 2, 2, most=2)
    assert found.rate == pytest.approx(60 * 2 / (2 * 0.25 + 1.0 + 0.25 + 0.25))


def test_messages_are_one_after_the_other():
    costs = Costs(ALIKE, setup_s=0.0, message_s=0.5)
    found = simulated(costs, 64, 0, most=640)
    assert found.rate == pytest.approx(60, rel=0.05)  # two for each candidate
    assert found.limit == "message"


def test_what_a_text_takes_is_told_by_those_that_were_known():
    rows = [
        Row("candidate", 1.5, 0.5, 1.0, "a"),
        Row("candidate", 0.4, 0.0, 1.0, "a"),
        Row("candidate", 0.6, 0.0, 1.0, "a"),
        Row("candidate", 0.2, 0.1, 1.0, "b"),
    ]
    assert trials_of(rows) == [
        Trial("a", 0.5, 1.0, 0.5, 1.0),
        Trial("a", 0.4, 1.0, 0.5, 1.0),
        Trial("a", 0.6, 1.0, 0.5, 1.0),
        Trial("b", 0.2, 0.0, 0.1, 1.0),
    ]


def test_the_recorded_table_is_read_and_shown():
    costs = Costs.read(Path(__file__).parents[2] / "docs" / "tuning_scale.csv")
    found = [simulated(costs, n, 16, most=64) for n in (1, 4, 256)]
    assert found[0].rate < found[1].rate
    assert drawn(found).startswith("<svg")
    assert table(found).count("\n") == 4
