"""Rates of the machine: kept, read back, and never a reason for an error."""

import math

import pytest

from tcfuse.calibration import calibrated, forget, keep
from tcfuse.errors import InputError
from tcfuse.graph.machine import MACHINE, Machine, rounded
from tcfuse.processor import describe
from tcfuse.store import Store

MEASURED = Machine(
    name="measured",
    hertz=3.9e9,
    native_us=0.21,
    bandwidth=((1 << 19, 111e3), (math.inf, 17e3)),
    rates={"Add": 33e3},
)
ZEN = "processor\t: {}\nmodel name\t: AMD EPYC\ncpu family\t: {}\nmodel\t\t: 2\n\n"


def test_what_was_measured_is_planned_with_until_it_is_forgotten(tmp_path):
    store = Store(tmp_path)
    assert calibrated(store) == MACHINE
    keep(store, MEASURED)
    assert calibrated(store) == MEASURED
    forget(store)
    assert calibrated(store) == MACHINE
    forget(store)  # nothing is there any more


def test_a_damaged_calibration_counts_as_none(tmp_path):
    store = Store(tmp_path)
    keep(store, MEASURED)
    (file,) = tmp_path.rglob("*.json")
    file.write_text(file.read_text().replace("33000.0", "-1"))
    assert calibrated(store) == MACHINE


@pytest.mark.parametrize(
    "record",
    [
        {"bandwidth": []},
        {"bandwidth": [[4096, 1.0]]},
        {"bandwidth": [[None, 0]]},
        {"bandwidth": [[None, 1.0]], "speed": 1.0},
        {"bandwidth": [[None, 1.0]], "rates": {"Add": math.nan}},
        {},
    ],
)
def test_a_record_that_describes_no_machine_is_refused(record):
    with pytest.raises(InputError, match="calibration"):
        Machine.from_json(record)


def test_rates_that_differ_by_noise_round_to_one():
    step = rounded(20e3)
    assert abs(step / 20e3 - 1) < 0.125
    assert {rounded(step * (1 + noise)) for noise in (-0.09, 0.0, 0.09)} == {step}
    assert rounded(step * 1.25) > step


def test_a_rounded_machine_stays_as_it_is_when_rounded_again():
    once = MEASURED.rounded()
    assert once != MEASURED
    assert once.rounded() == once


def test_processors_of_one_name_are_told_apart_by_their_generation():
    third, fifth = (ZEN.format(0, n) + ZEN.format(1, n) for n in (25, 26))
    assert describe(third) == "AMD EPYC, 25, 2, 2 cores"
    assert describe(third) != describe(fifth)
    assert describe("") == ""
