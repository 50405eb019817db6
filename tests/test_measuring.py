"""Measuring a machine: whole, in numbers a machine may have, and never in the way."""

import math

import pytest

from tcfuse import debug, measuring
from tcfuse.calibration import calibrated
from tcfuse.graph.machine import MACHINE
from tcfuse.ort import native_rates
from tcfuse.ort.native_subjects import SUBJECTS, Subject
from tcfuse.store import Store

pytestmark = pytest.mark.ort
FEW = [subject for subject in SUBJECTS if subject.name in ("Add", "Softplus", "ReorderInput")]


@pytest.fixture
def few(monkeypatch):
    """Only a few kernels, and small tensors."""
    unknown = Subject("NoSuchOperator", FEW[0].inputs)
    monkeypatch.setattr(native_rates, "SUBJECTS", (*FEW, unknown))
    monkeypatch.setattr(measuring, "MOST_BYTES", 1 << 22)
    monkeypatch.setattr(native_rates, "BLOCK_SECONDS", 1e-4)


def test_what_is_measured_is_a_machine(few):
    shown = []
    machine = measuring.measure(lambda text, done: shown.append(done))
    assert set(machine.rates) == {"Add", "Softplus"}  # no such operator, no rate
    assert machine.rates["Add"] > 5 * machine.rates["Softplus"]
    assert machine.reorder_rate not in machine.rates.values()
    assert 1e8 < machine.hertz < 1e11
    assert 0 < machine.native_us < 20
    assert 0 < machine.fused_us < 20
    assert machine.bandwidth[-1][0] == math.inf
    assert shown == sorted(shown)
    assert shown[-1] < 1


def test_the_command_keeps_shows_and_forgets_a_calibration(few, tcfuse, tmp_path, monkeypatch):
    monkeypatch.setenv("TCFUSE_CACHE_DIR", str(tmp_path))
    debug.current.cache_clear()
    store = Store(tmp_path)
    status, out, _ = tcfuse("calibrate")
    assert status == 0
    assert "Softplus, GB/s" in out
    kept = calibrated(store)
    assert kept != MACHINE
    assert kept == kept.rounded()
    assert "measured on" in tcfuse("doctor")[1]
    status, out, _ = tcfuse("calibrate", "--forget")
    assert status == 0
    assert "built-in table" in out
    assert calibrated(store) == MACHINE
    debug.current.cache_clear()


def test_every_name_is_measured_once_and_in_the_built_in_table():
    names = [subject.name for subject in SUBJECTS]
    assert len(set(names)) == len(names)
    assert {n for n in names if not n.startswith("Reorder")} == set(MACHINE.rates)
