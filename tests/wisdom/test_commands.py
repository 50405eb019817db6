"""``tcfuse wisdom`` as people use it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import pytest

from tcfuse.commands import wisdom as module
from tcfuse.store import Store
from tcfuse.wisdom import bounds
from tcfuse.wisdom.database import Database
from tcfuse.wisdom.exchange import Collection
from tcfuse.wisdom.shown import knobs_line, operators_of
from tests.wisdom.entries import TEMPLATE, VERSIONS, entry, problem, verdict

Command: TypeAlias = Callable[..., tuple[int, str, str]]

OLD = replace(entry(32, 32, unroll=2), versions={**VERSIONS, "tcfuse": "0.0.1"})


@pytest.fixture(autouse=True)
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Wisdom of this test alone."""
    monkeypatch.setattr(bounds, "NAME", tmp_path / "cache" / "wisdom.sqlite")
    monkeypatch.setattr(module, "current_versions", lambda target: VERSIONS)
    monkeypatch.setattr(module, "device_of", lambda target: "a processor")
    return bounds.default_path()


def test_no_wisdom_yet(tcfuse: Command, database: Path) -> None:
    assert tcfuse("wisdom", "list") == (
        0,
        "no wisdom yet: 'tcfuse tune MODEL' finds some\n",
        "",
    )
    assert not database.exists()


def test_a_table_that_people_read(tcfuse: Command, golden: Callable, tmp_path: Path) -> None:
    file = tmp_path / "w.json"
    other = entry(problem=problem(8, 8, device="another", threads=4))
    mean = TEMPLATE.replace("exp(T0(i0, i1))", "T0(i0, i1) + 1")
    more = entry(problem=problem(3, 4, template=mean), knobs={}, note="tried at these sizes")
    known = [entry(128, 768, knobs=KNOBS), OLD, other, more]
    Collection.of([*known, entry(9, 9, predicted=True)]).write(file)
    status, out, _ = tcfuse("wisdom", "list", file, "--templates")
    assert status == 0
    golden(out, "txt")
    assert tcfuse("wisdom", "list", file, "--device", "ANOTHER")[1].count("\n") == 2


KNOBS = {"mapping": {"unroll": 8, "tile": [32, 32], "skewing": True}, "cuda": {"team": 32}}


def test_export_import_merge(tcfuse: Command, tmp_path: Path, database: Path) -> None:
    with Database.default() as cache:
        cache.record(entry(8, 8), OLD)
    a, b, c = (tmp_path / f"{name}.json" for name in "abc")
    assert tcfuse("wisdom", "export", a) == (0, f"{a}: 2 entries\n", "")
    Collection.of([entry(8, 8, speedup=1.9), entry(16, 16)]).write(b)
    assert tcfuse("wisdom", "merge", a, b, "-o", c) == (0, f"{c}: 3 entries\n", "")
    assert tcfuse("wisdom", "import", c) == (0, f"{database}: 3 entries read, 1 new\n", "")
    with Database.default() as cache:
        assert Collection.of(cache.entries()) == Collection.read(c)
        assert cache.top(problem(8, 8))[0].speedup == 1.9
    assert tcfuse("wisdom", "export", tmp_path / "d.json")[0] == 0
    assert (tmp_path / "d.json").read_bytes() == c.read_bytes()


def test_verdicts_go_along(
    tcfuse: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module.Store, "default", lambda: Store(tmp_path / "store"))
    file, again = tmp_path / "w.json", tmp_path / "again.json"
    Collection.of([entry()], [verdict()]).write(file)
    assert "1 entry, 1 verdict read" in tcfuse("wisdom", "import", file)[1]
    assert tcfuse("wisdom", "export", again)[1] == f"{again}: 1 entry\n"
    assert tcfuse("wisdom", "export", again, "--verdicts")[0] == 0
    assert again.read_bytes() == file.read_bytes()


def test_what_is_left_out_is_told(tcfuse: Command, tmp_path: Path) -> None:
    file = tmp_path / "w.json"
    text = Collection.of([entry(8, 8), entry(9, 9)]).to_json()
    file.write_text(text.replace('"unroll": 4', '"unroll": -4', 1))
    status, out, err = tcfuse("wisdom", "import", file)
    assert status == 0
    assert "1 entry read, 1 new" in out
    assert "warning: " in err
    assert "entry 1 is left out: unroll is -4" in err


@pytest.mark.parametrize(
    ("flags", "removed", "left"),
    [(["--stale"], 1, 3), (["--keep", 1], 1, 3), (["--stale", "--keep", 0], 4, 0)],
)
def test_prune(tcfuse: Command, database: Path, flags: list, removed: int, left: int) -> None:
    with Database.default() as cache:
        cache.record(entry(8, 8), entry(8, 8, unroll=2, speedup=1.1), entry(9, 9), OLD)
    count = f"{removed} {'entry' if removed == 1 else 'entries'}"
    said = f"{database}: {count} removed, {left} left\n"
    assert tcfuse("wisdom", "prune", *flags) == (0, said, "")
    with Database.default() as cache:
        assert len(cache.entries()) == left


def test_mistakes_are_one_line(tcfuse: Command, tmp_path: Path, database: Path) -> None:
    assert tcfuse("wisdom", "prune")[0] == 2
    status, _, err = tcfuse("wisdom", "import", tmp_path / "missing.json")
    assert (status, err.count("\n")) == (1, 1)
    (tmp_path / "cache").write_text("a file where the folder should be")
    Collection.of([entry()]).write(tmp_path / "w.json")
    status, _, err = tcfuse("wisdom", "import", tmp_path / "w.json")
    assert (status, err.count("error: ")) == (1, 1)


def test_knobs_are_shown_as_flags_are_named() -> None:
    assert knobs_line(KNOBS) == "skewing=true tile=32,32 unroll=8 cuda-team=32"
    assert knobs_line({}) == ""


def test_what_a_template_computes() -> None:
    assert operators_of(TEMPLATE) == "exp"
    assert operators_of("def f(x) -> (y) { T1(i) +=! exp(T0(i)) * exp(T0(i)) }") == (
        "sum exp*2"
    )
    assert operators_of("def f(x) -> (y) { T1(i) = T0(i) }") == "elementwise"
