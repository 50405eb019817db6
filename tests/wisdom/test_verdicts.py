"""Runs decide alike where a verdict says how, and a strange verdict is none."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import onnx_ir as ir
import pytest

from models import softmax
from tcfuse import debug
from tcfuse.errors import InputError
from tcfuse.pipeline import optimize
from tcfuse.store import Store
from tcfuse.trial import gate_from_json
from tcfuse.wisdom.exchange import Collection
from tcfuse.wisdom.verdict import Verdicts, keep, measured, verdict_of
from tests.wisdom.entries import entry, ratio, verdict


def test_one_comes_back_as_it_was() -> None:
    known = verdict()
    assert verdict_of(json.loads(json.dumps(known.to_record()))) == known
    assert gate_from_json(known.record).kept == {"exp_1"}


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("kept", ["exp_1", "log_2"], "kept and dropped are not the kernels"),
        ("kept", [], "kept and dropped are not the kernels"),
        ("kept", ["exp_1", "other"], "kept and dropped are not the kernels"),
        ("kept", None, "kept is no list"),
        ("kept", [[]], "a kernel that is kept is no line"),
        ("dropped", {"log_2": "\x1b[31m"}, "a reason is no line"),
        ("alone", {"other": ratio(1.0)}, "alone is no object of kernels"),
        ("alone", {"exp_1": {"value": 1.0}}, "a ratio has no spread"),
        ("whole", ratio(1.0) | {"value": 0}, "value is 0"),
        ("whole", ratio(1.0) | {"value": float("nan")}, "value is nan"),
        ("note", 1, "a reason is no line"),
        ("more", 1, "record has 'more'"),
    ],
)
def test_strange_ones_are_refused(field: str, value: object, reason: str) -> None:
    record = json.loads(json.dumps(verdict().to_record()))
    record["record"][field] = value
    with pytest.raises(InputError, match=reason):
        verdict_of(record)
    text = json.dumps({"format": 1, "entries": [], "verdicts": [record]})
    assert Collection.from_json(text).verdicts == ()


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"problem": "", "gain": None, "whole": ratio(1.0)}, "neither a problem nor gain"),
        ({"problem": 1, "gain": None, "whole": None}, "problem is no line"),
        ({"gain": ratio(1.0), "whole": ratio(1.0)}, "record has no problem"),
    ],
)
def test_strange_ones_about_forms(record: dict, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        verdict_of(json.loads(json.dumps(verdict(kind="form", record=record).to_record())))


def test_where_they_are_looked_up(tmp_path: Path) -> None:
    store, known = Store(tmp_path), verdict()
    assert Verdicts().find(known, store) is None
    keep(store, [verdict(2.0)])
    assert Verdicts().find(known, store) == verdict(2.0).record
    assert Verdicts((known,)).find(known, store) == known.record
    assert Verdicts(imported=False).find(known, store) is None
    assert list(measured(store)) == [verdict(2.0)]


@pytest.mark.parametrize(
    "change", [{"device": "another"}, {"versions": {"onnxruntime": "1.0"}}]
)
def test_those_for_something_else_are_not_used_and_said(tmp_path: Path, change: dict) -> None:
    verdicts = Verdicts((verdict(**change),))
    assert verdicts.find(verdict(), Store(tmp_path)) is None
    assert "and not used" in verdicts.notes()[0]
    assert Verdicts((verdict(),)).notes() == []
    other = Verdicts((verdict(subject="another model"),))
    assert other.find(verdict(), Store(tmp_path)) is None
    assert other.notes() == []


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """Go on with a cache of that name, which is empty at first."""

    def change(name: str) -> None:
        monkeypatch.setenv("TCFUSE_CACHE_DIR", str(tmp_path / name))
        debug.current.cache_clear()

    return change


@pytest.mark.compiler
@pytest.mark.ort
def test_builds_with_the_same_wisdom_are_equal(
    tmp_path: Path,
    fresh: Callable[[str], None],
    tcfuse: Callable[..., tuple[int, str, str]],
) -> None:
    model, wisdom = tmp_path / "model.onnx", tmp_path / "wisdom.json"
    ir.save(softmax.build(4, 32, 48), model)
    fresh("first")
    optimize(model)  # measures
    assert tcfuse("wisdom", "export", wisdom, "--verdicts")[0] == 0
    (told,) = Collection.read(wisdom).verdicts
    # Numbers that no measurement gives show where the decision comes from.
    numbers = {**told.record, "whole": ratio(7.25), "note": "decided elsewhere"}
    Collection.of([], [replace(told, record=numbers)]).write(wisdom)

    def built() -> list[bytes]:
        result = optimize(model, wisdom=str(wisdom))
        assert "decided elsewhere" in result.report.notes
        out = result.save(tmp_path / "out.onnx")
        files = (out, out.with_suffix(".so"), tmp_path / "out.tcfuse.json")
        return [file.read_bytes() for file in files if file.exists()]

    warm = built()
    start = time.perf_counter()
    assert built() == warm
    assert time.perf_counter() - start < 3
    fresh("second")
    assert built() == warm


def test_tuning_leaves_them_in_its_file(tmp_path: Path) -> None:
    from tcfuse.tuning.kept import Wisdom

    file = tmp_path / "wisdom.json"
    before = Collection.of([entry()], [verdict()])
    before.write(file)
    Wisdom(()).save(file)
    assert Collection.read(file) == before
