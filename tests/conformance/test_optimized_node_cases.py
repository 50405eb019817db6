"""A fixed sample of ONNX's node cases, optimized and run; ``--all-cases`` runs every one."""

from __future__ import annotations

import pickle

import pytest

from tests.conformance import optimized
from tests.conformance.node_cases import cases
from tests.conformance.optimized import Job, run_apart, run_cases

EVERY = 40  # the sample is every so manieth case


@pytest.mark.compiler
@pytest.mark.ort
@pytest.mark.timeout(7200)
def test_optimized_cases_give_what_onnx_runtime_gives(request, capsys):
    every = 1 if request.config.getoption("--all-cases") else EVERY
    outcome = run_cases(cases()[::every])
    with capsys.disabled():
        print(f"\n{outcome.summary()}")  # noqa: T201 - the counts are this test's result
    assert not outcome.bad
    assert len(outcome.found) >= 1884 // every


def test_a_case_that_ends_its_process_costs_no_other(monkeypatch):
    def lines(path):
        for job in pickle.loads(path.read_bytes()):
            if job.name == "b":
                return
            yield f"{job.name}\tkept\t\n"

    monkeypatch.setattr(optimized, "_lines", lines)
    found = [(name, kind) for name, kind, _ in run_apart([Job(n, b"", ()) for n in "abc"])]
    assert found == [("a", "kept"), ("b", "crashed"), ("c", "kept")]
