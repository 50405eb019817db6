"""Which knobs a kernel gets, and what is said about entries that cannot be used."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tcfuse.mapping_options import MappingOptions
from tcfuse.wisdom import advice as module
from tcfuse.wisdom.advice import DEFAULTS, TRIED, TUNED, Advice, Advisor, tried
from tcfuse.wisdom.database import Database
from tcfuse.wisdom.problem import ANY_DEVICE
from tests.wisdom.entries import VERSIONS, entry, problem


@pytest.fixture(autouse=True)
def versions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "current_versions", lambda target: VERSIONS)


def test_nothing_is_known() -> None:
    advisor = Advisor()
    assert not advisor.knows
    assert advisor.advise(problem()) == DEFAULTS
    assert DEFAULTS.question == ""


def test_a_missing_database_is_not_made(tmp_path: Path) -> None:
    advisor = Advisor(database=Database(tmp_path / "wisdom.sqlite"))
    assert not advisor.knows
    assert advisor.advise(problem()) == DEFAULTS
    assert list(tmp_path.iterdir()) == []


def test_the_best_entry_of_the_problem() -> None:
    advisor = Advisor([entry(speedup=1.9, unroll=8), entry(speedup=1.2, unroll=2)])
    found = advisor.advise(problem())
    assert (found.knobs, found.origin) == ({"mapping": {"unroll": 8}}, TUNED)
    assert found.rivals == ()


def test_files_go_before_the_cache(tmp_path: Path) -> None:
    with Database(tmp_path / "wisdom.sqlite") as database:
        database.record(entry(speedup=1.9, unroll=8), entry(8, 8, unroll=16))
        advisor = Advisor([entry(speedup=1.2, unroll=2)], database)
        assert advisor.advise(problem()).knobs == {"mapping": {"unroll": 2}}
        assert advisor.advise(problem(8, 8)).knobs == {"mapping": {"unroll": 16}}


def test_other_threads_are_better_than_other_sizes() -> None:
    many = entry(problem=problem(100, 64, threads=4), knobs={"mapping": {"unroll": 2}})
    advisor = Advisor([many, entry(64, 64, unroll=8)])
    found = advisor.advise(problem(100, 64))
    assert (found.knobs, found.origin) == (many.knobs, "tuned for 4 threads")
    assert advisor.advise(problem(64, 64)).origin == TUNED
    assert [dict(r) for r in advisor.advise(problem(65, 64)).rivals] == [
        {"mapping": {"unroll": 8}}
    ]


def test_near_sizes_have_rivals() -> None:
    advisor = Advisor([entry(64, 64, unroll=8), entry(128, 64, unroll=2)])
    found = advisor.advise(problem(100, 64))
    assert found.origin == "of near sizes (128, 64; 0.4 powers of two away)"
    assert found.sizes == (128, 64)
    assert found.rivals == ({"mapping": {"unroll": 2}}, {"mapping": {"unroll": 8}})


def test_what_was_tried_is_known_afterwards(tmp_path: Path) -> None:
    for database in (Database(tmp_path / "wisdom.sqlite"), None):
        advisor = Advisor([entry(64, 64, unroll=8)], database)
        before = advisor.advise(problem(100, 64))
        advisor.learn(tried(problem(100, 64), {}, 1.0, 5.0))
        after = advisor.advise(problem(100, 64))
        assert after == Advice({}, TRIED)
        assert len({before.question, after.question, ""}) == 3


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (entry(versions={**VERSIONS, "compiler": "gcc 13"}), "gcc 13"),
        (entry(versions={**VERSIONS, "tcfuse": "0.0.1"}), "tcfuse 0.0.1"),
        (entry(problem=problem(device="another processor")), "another processor"),
    ],
)
def test_stale_entries_are_not_used_and_said(other: module.Entry, said: str) -> None:
    advisor = Advisor([other, replace(other, knobs={"mapping": {"unroll": 2}})])
    assert advisor.advise(problem()) == DEFAULTS
    assert advisor.notes() == [f"2 entries of wisdom are for {said}, and not used"]


def test_without_a_gpu_any_is_meant() -> None:
    known = entry(problem=problem(device="NVIDIA H100", target="cuda"))
    found = Advisor([known]).advise(problem(device=ANY_DEVICE, target="cuda"))
    assert found.knobs == known.knobs


def test_the_numerics_are_those_of_the_run() -> None:
    made = Advice({"mapping": {"unroll": 8, "tile": [32, 32]}}, TUNED)
    options = made.mapping(MappingOptions(numerics="strict"))
    assert options == MappingOptions(unroll=8, tile=(32, 32), numerics="strict")
    assert Advice.of_record(made.to_record()) == made
