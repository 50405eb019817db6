"""A run takes its knobs from wisdom, says so, and notices what is new."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from models import softmax
from tcfuse.advising import Consultation
from tcfuse.commands.optimize import print_report
from tcfuse.isolation import Worker
from tcfuse.ort.manifest import Report
from tcfuse.ort.timing import Ratio
from tcfuse.pipeline import explain, optimize
from tcfuse.store import Store
from tcfuse.wisdom import bounds
from tcfuse.wisdom.database import Database
from tcfuse.wisdom.devices import device_of
from tcfuse.wisdom.exchange import Collection
from tcfuse.wisdom.problem import Entry, Layer
from tcfuse.wisdom.versions import current_versions

pytestmark = [pytest.mark.compiler, pytest.mark.ort]

KNOBS = {"mapping": {"unroll": 4, "accumulators": 2}}


@pytest.fixture(autouse=True)
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Wisdom of this test alone beside the cache of all."""
    monkeypatch.setattr(bounds, "NAME", tmp_path / "cache" / "wisdom.sqlite")
    assert bounds.default_path() == tmp_path / "cache" / "wisdom.sqlite"
    return bounds.default_path()


def entries(knobs: dict[str, Any] = KNOBS, columns: int = 96, **sizes: int) -> list[Entry]:
    """Wisdom about the kernels of the model with so many columns."""
    explain(softmax.build(4, 8, columns), use_wisdom=False)
    layers = [
        Layer.of_record(json.loads(path.read_text())["layer"])
        for path in (Store.default().root / "layers").rglob("*.json")
    ]
    device, versions = device_of("cpu"), current_versions()
    problems = [layer.at(sizes, "cpu", device, "default") for layer in layers]
    return [
        Entry(problem, knobs, 1.5, 10.0, predicted=False, versions=versions)
        for problem in problems
        if problem.sizes == (4, 8, columns)
    ]


def record(*found: Entry) -> None:
    with Database.default() as database:
        assert database.record(*found)


def tuned(columns: int = 96, **options: Any) -> dict[str, Any]:
    """What is said about the knobs of the one kernel where nothing is run."""
    (region,) = explain(softmax.build(4, 8, columns), **options).regions
    assert region.kept
    return region.tuned


def test_without_wisdom_there_is_none(database: Path) -> None:
    assert tuned() == {}
    assert not database.exists()


def test_tuned_knobs_are_used_and_shown(capsys: pytest.CaptureFixture[str]) -> None:
    record(*entries())
    plain = optimize(softmax.build(4, 8, 96), gate=False, use_wisdom=False)
    result = optimize(softmax.build(4, 8, 96), gate=False)
    (region,) = result.report.regions
    assert region.tuned == {"cpu": {"knobs": KNOBS, "origin": "tuned"}}
    assert region.name != plain.report.regions[0].name
    assert Report.from_json(result.report.to_json()).regions == result.report.regions
    print_report(result.report, Path("out.onnx"))
    assert "accumulators=2 (tuned)" in " ".join(capsys.readouterr().out.split())


def test_a_warm_run_notices_new_wisdom_and_compiles_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert tuned() == {}
    found = entries()
    record(*found)
    assert tuned()["cpu"]["knobs"] == KNOBS

    def refuse(*_: object) -> None:
        pytest.fail("something was compiled")

    monkeypatch.setattr(Worker, "compile", refuse)
    monkeypatch.setattr(Worker, "start", refuse)
    assert tuned()["cpu"]["knobs"] == KNOBS
    with Database.default() as database:
        database.forget(found)
    assert tuned() == {}
    assert tuned(use_wisdom=False) == {}


def test_knobs_that_a_person_sets_win() -> None:
    from tcfuse.mapping_options import MappingOptions

    record(*entries())
    assert tuned(mapping=MappingOptions(unroll=2)) == {}
    assert tuned(numerics="strict") == {}  # another problem
    assert tuned(numerics="default")["cpu"]["knobs"] == KNOBS


def test_a_file_goes_first(tmp_path: Path) -> None:
    found = entries()
    other = {"mapping": {"unroll": 16}}
    Collection.of([replace(e, knobs=other) for e in found]).write(tmp_path / "w.json")
    record(*found)
    assert tuned(wisdom=str(tmp_path / "w.json"))["cpu"]["knobs"] == other
    assert tuned()["cpu"]["knobs"] == KNOBS


def test_knobs_that_do_not_suit_a_kernel_are_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from tcfuse import kernels
    from tcfuse.errors import UnsupportedError

    record(*entries(columns=40))
    compile_cached = kernels.compile_cached

    def picky(*arguments: Any) -> object:
        if arguments[3].unroll == 4:
            raise UnsupportedError("not unrolled today")
        return compile_cached(*arguments)

    monkeypatch.setattr(kernels, "compile_cached", picky)
    said = tuned(40)["cpu"]
    assert said == {
        "knobs": {},
        "origin": "the knobs of wisdom do not suit it: not unrolled today",
    }


def test_stale_entries_are_said() -> None:
    old = [replace(e, versions={**e.versions, "compiler": "cc 1"}) for e in entries()]
    record(*old)
    report = optimize(softmax.build(4, 8, 96), gate=False).report
    assert report.regions[0].tuned == {}
    assert "1 entry of wisdom is for cc 1, and not used" in report.notes


class TestNearSizes:
    def test_a_run_that_measures_nothing_takes_the_nearest(self) -> None:
        record(*entries())
        said = tuned(100)["cpu"]
        assert said["knobs"] == KNOBS
        assert said["origin"].startswith("of near sizes (4, 8, 96;")
        with Database.default() as database:
            assert len(database.entries()) == 1

    @pytest.mark.parametrize(("ratio", "knobs"), [(1.5, KNOBS), (1.001, {}), (0.5, {})])
    def test_otherwise_they_run_against_the_defaults(
        self, monkeypatch: pytest.MonkeyPatch, ratio: float, knobs: dict
    ) -> None:
        record(*entries())
        races = []

        def race(made: list, *_: object) -> list[Ratio]:
            races.append([source.name for source in made])
            return [Ratio(1.0, 0.0, 9.0, 9.0), Ratio(ratio, 0.0, 9.0, 9.0 / ratio)]

        monkeypatch.setattr("tcfuse.advising.race", race)
        assert explain(softmax.build(4, 8, 128)).regions[0].tuned["cpu"]["knobs"] == KNOBS
        for _ in range(2):
            report = optimize(softmax.build(4, 8, 128)).report
            assert report.regions[0].tuned.get("cpu", {"knobs": {}})["knobs"] == knobs
        assert len(races) == 1  # the second run knows
        assert len(set(races[0])) == 2
        with Database.default() as database:
            (entry,) = [e for e in database.entries() if e.note]
        assert entry.problem.sizes == (4, 8, 128)
        assert entry.knobs == knobs

    def test_a_race_is_run(self) -> None:
        record(*entries())
        optimize(softmax.build(4, 8, 112))
        with Database.default() as database:
            (entry,) = [e for e in database.entries() if e.note]
        assert entry.note == "tried at these sizes"
        assert entry.micros > 0

    def test_without_time_far_ones_are_left(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tcfuse.advising.SECONDS", 0.0)
        record(*entries())
        near = optimize(softmax.build(4, 8, 100)).report.regions[0]
        far = optimize(softmax.build(4, 8, 500)).report.regions[0]
        assert near.tuned["cpu"]["knobs"] == KNOBS
        assert far.tuned == {}

    def test_explain_runs_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        record(*entries())
        monkeypatch.setattr(Consultation, "_tried", lambda *_: pytest.fail("it was run"))
        assert explain(softmax.build(4, 8, 128)).regions[0].tuned["cpu"]["knobs"] == KNOBS

    def test_sizes_with_names_have_those_of_measurements(self) -> None:
        record(*entries())  # fixed sizes are another layer
        model = softmax.build(4, "S", 96)
        assert optimize(model, gate=False).report.regions[0].tuned == {}


def test_a_damaged_database_costs_a_line(
    database: Path, caplog: pytest.LogCaptureFixture
) -> None:
    database.parent.mkdir()
    database.write_text("no database" * 100)
    report = optimize(softmax.build(4, 8, 96), gate=False).report
    assert report.regions[0].kept
    assert any("wisdom.sqlite.damaged-0" in note for note in report.notes)
    assert "wisdom.sqlite.damaged-0" in caplog.text


def test_a_file_that_is_no_wisdom_is_an_error(
    tmp_path: Path, tcfuse: Callable[..., tuple[int, str, str]]
) -> None:
    (tmp_path / "w.json").write_text("{}")
    status, _, err = tcfuse("optimize", "m.onnx", "--wisdom", tmp_path / "w.json")
    assert status == 1
    assert "w.json: is no wisdom" in err


def test_commands_compile_the_tuned_kernel_again(
    tmp_path: Path, tcfuse: Callable[..., tuple[int, str, str]]
) -> None:
    record(*entries())
    path = optimize(softmax.build(4, 8, 96), gate=False).save(tmp_path / "out.onnx")
    name = json.loads((tmp_path / "out.tcfuse.json").read_text())["regions"][0]["name"]
    status, out, _ = tcfuse("show", "--stage", "source", path)
    assert status == 0
    assert name.rpartition("_")[2] in out
