"""Texts of wisdom: equal for equal wisdom, merged in any order, and never trusted."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcfuse.errors import InputError
from tcfuse.wisdom.bounds import MOST_PER_PROBLEM
from tcfuse.wisdom.database import Database
from tcfuse.wisdom.exchange import Collection
from tests.wisdom.entries import VERSIONS, entry, problem, ratio, verdict

ENTRIES = st.builds(
    lambda sizes, speedup, unroll, predicted, tcfuse, device, note: replace(
        entry(*sizes, speedup=speedup, unroll=unroll),
        problem=problem(*sizes, device=device),
        predicted=predicted,
        versions={**VERSIONS, "tcfuse": tcfuse},
        note=note,
    ),
    st.tuples(st.sampled_from([8, 64]), st.just(64)),
    st.sampled_from([0.5, 1.0, 1.5, 2.0]),
    st.integers(1, 16),
    st.booleans(),
    st.sampled_from(["0.1.0", "0.2.0"]),
    st.sampled_from(["a", "b"]),
    st.sampled_from(["", "tuned", "größer"]),
)
VERDICTS = st.builds(
    lambda value, subject, device: verdict(value, subject=subject, device=device),
    st.sampled_from([0.5, 1.5, 2.0]),
    st.sampled_from(["one", "two"]),
    st.sampled_from(["a", "b"]),
)
KNOBS = {"mapping": {"unroll": 8, "tile": [32, 32]}, "cuda": {"team": 32}}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
COLLECTIONS = st.builds(
    Collection.of, st.lists(ENTRIES, max_size=30), st.lists(VERDICTS, max_size=8)
)


class TestTexts:
    @settings(deadline=None, max_examples=40)
    @given(COLLECTIONS)
    def test_a_text_is_read_back(self, collection: Collection) -> None:
        text = collection.to_json()
        assert Collection.from_json(text) == collection
        assert Collection.from_json(text).to_json() == text

    @settings(deadline=None, max_examples=40)
    @given(st.lists(ENTRIES, max_size=30), st.randoms())
    def test_equal_wisdom_has_an_equal_text(self, entries: list, random: Any) -> None:
        shuffled = list(entries)
        random.shuffle(shuffled)
        assert Collection.of(entries).to_json() == Collection.of(shuffled).to_json()

    def test_people_can_read_it(self, golden: Callable[[object, str], None]) -> None:
        tuned = entry(128, 768, note="tuned in 60 s")
        golden(Collection.of([tuned, entry(64, 64, speedup=1.25)]).to_json(), "json")

    def test_verdicts_can_be_read_too(self, golden: Callable[[object, str], None]) -> None:
        form = {"problem": "", "gain": ratio(1.1), "whole": ratio(1.3)}
        both = [verdict(), verdict(kind="form", record=form)]
        golden(Collection.of([], both).to_json(), "json")

    def test_nothing_is_a_text_too(self) -> None:
        assert Collection.from_json(Collection().to_json()) == Collection()


class TestMerging:
    @settings(deadline=None, max_examples=40)
    @given(COLLECTIONS, COLLECTIONS)
    def test_the_order_does_not_matter(self, a: Collection, b: Collection) -> None:
        assert a.merged(b) == b.merged(a)

    @settings(deadline=None, max_examples=40)
    @given(COLLECTIONS, COLLECTIONS, COLLECTIONS)
    def test_nor_does_the_grouping(self, a: Collection, b: Collection, c: Collection) -> None:
        assert a.merged(b).merged(c) == a.merged(b.merged(c))

    @settings(deadline=None, max_examples=40)
    @given(COLLECTIONS)
    def test_twice_is_once(self, a: Collection) -> None:
        assert a.merged(a) == a
        assert a.merged(Collection()) == a

    @settings(deadline=None, max_examples=40)
    @given(COLLECTIONS, COLLECTIONS)
    def test_the_better_entry_is_first(self, a: Collection, b: Collection) -> None:
        merged = a.merged(b)
        for one in (*a.entries, *b.entries):
            same = [
                e
                for e in merged.entries
                if e.problem == one.problem and e.versions == one.versions
            ]
            assert len(same) <= MOST_PER_PROBLEM
            assert not one.better_than(same[0])

    @settings(deadline=None, max_examples=20)
    @given(COLLECTIONS, COLLECTIONS)
    def test_a_database_merges_alike(
        self, tmp_path_factory: pytest.TempPathFactory, a: Collection, b: Collection
    ) -> None:
        path = tmp_path_factory.mktemp("wisdom") / "wisdom.sqlite"
        with Database(path) as database:
            assert database.record(*a.entries)
            assert database.record(*b.entries)
            assert Collection.of(database.entries()).entries == a.merged(b).entries


def changed(path: str, value: object) -> str:
    """The text of one good entry and of one with another value at a path."""
    record = json.loads(Collection.of([entry(8, 8)]).to_json())
    bad = json.loads(json.dumps(record["entries"][0]))
    *parents, last = path.split(".")
    place = bad
    for parent in parents:
        place = place[parent]
    if value is DELETED:
        del place[last]
    else:
        place[last] = value
    return json.dumps({"format": 1, "entries": [bad, *record["entries"]]})


DELETED = object()


class TestStrangeTexts:
    @pytest.mark.parametrize(
        ("path", "value", "reason"),
        [
            ("knobs", {"mapping": {"nonsense": 1}}, "no knob 'nonsense'"),
            ("knobs", {"mapping": {"unroll": 1 << 40}}, "unroll is"),
            ("knobs", {"mapping": {"unroll": True}}, "unroll is"),
            ("knobs", {"mapping": {"tile": [-1]}}, "tile is"),
            ("knobs", {"mapping": {"tile": [[]]}}, "tile is"),
            ("knobs", {"mapping": {"numerics": "fast"}}, "numerics is the run's"),
            ("knobs", {"cuda": {"team": 7}}, "team is"),
            ("knobs", {"cuda": {"nonsense": 7}}, "no knob 'nonsense'"),
            ("knobs", {"other": {}}, "knobs is no object of"),
            ("knobs", {"mapping": []}, "knobs of mapping"),
            ("knobs", None, "knobs is no object"),
            ("speedup", 0, "speedup is 0"),
            ("speedup", float("nan"), "speedup is nan"),
            ("speedup", 10**400, "speedup is 1"),
            ("speedup", "fast", "speedup is 'fast'"),
            ("micros", -1.0, "micros is -1.0"),
            ("micros", True, "which is no number"),
            ("predicted", 1, "neither true nor false"),
            ("note", "a\x1b[31m", "note is no line"),
            ("note", "x" * 1000, "note is no line"),
            ("versions", {"tcfuse": 1}, "a version is no line"),
            ("versions", [], "versions is no object"),
            ("problem.sizes", [1.5, 2], "a size is 1.5"),
            ("problem.sizes", [-1, 2], "a size is -1"),
            ("problem.sizes", [1] * 10_000, "no list of at most"),
            ("problem.threads", 10**9, "threads is"),
            ("problem.target", "tpu", "target is 'tpu'"),
            ("problem.numerics", ["fast"], "numerics is"),
            ("problem.device", "a\nb", "device is no line"),
            ("problem.template", "", "template is no text"),
            ("problem.template", "x" * 1_000_000, "template is no text"),
            ("problem.template", "def \x07", "template has characters"),
            ("problem.more", 1, "problem has 'more'"),
            ("more", 1, "entry has 'more'"),
            ("speedup", DELETED, "entry has no speedup"),
            ("problem.sizes", DELETED, "problem has no sizes"),
        ],
    )
    def test_one_bad_entry_costs_itself_alone(
        self, path: str, value: object, reason: str
    ) -> None:
        found = Collection.from_json(changed(path, value), "a.json")
        assert found.entries == (entry(8, 8),)
        (said,) = found.refused
        assert said.startswith("a.json: entry 1 is left out: ")
        assert reason in said
        assert said.isprintable()
        assert len(said) < 600

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("", "no JSON"),
            ("[" * 100_000, "no JSON"),
            ("[]", "no list of entries"),
            ('{"format": 1}', "no list of entries"),
            ('{"format": 2, "entries": []}', "has format 2"),
        ],
    )
    def test_what_is_no_wisdom_is_an_error(self, text: str, reason: str) -> None:
        with pytest.raises(InputError, match=reason):
            Collection.from_json(text)

    @settings(deadline=None, max_examples=150)
    @given(st.data())
    def test_anything_anywhere_is_read_or_refused(self, data: st.DataObject) -> None:
        record = json.loads(Collection.of([entry(8, 8, knobs=KNOBS)], [verdict()]).to_json())
        place: Any = record
        for _ in range(data.draw(st.integers(1, 6))):
            keys = sorted(place) if isinstance(place, dict) else range(len(place))
            key = data.draw(st.sampled_from(list(keys)))
            if not isinstance(place[key], dict | list) or not place[key]:
                break
            parent, place = place, place[key]
        else:
            place = parent
        place[key] = data.draw(JSON)
        try:
            found = Collection.from_json(json.dumps(record))
        except InputError:
            return
        assert Collection.from_json(found.to_json()) == replace(found, refused=())

    def test_few_reasons_are_told(self) -> None:
        text = json.dumps({"format": 1, "entries": [{}] * 500})
        assert len(Collection.from_json(text).refused) == 21


class TestFiles:
    def test_a_file_or_a_database(self, tmp_path: Path) -> None:
        wisdom = Collection.of([entry(8), entry(9)])
        wisdom.write(tmp_path / "a.json")
        assert Collection.read(tmp_path / "a.json") == wisdom
        with Database(tmp_path / "b.sqlite") as database:
            database.record(*wisdom.entries)
        assert Collection.read(tmp_path / "b.sqlite") == wisdom

    def test_those_that_are_neither(self, tmp_path: Path) -> None:
        path = tmp_path / "a.json"
        with pytest.raises(InputError, match=r"a\.json: cannot be read: No such file"):
            Collection.read(path)
        path.write_bytes(b"\xff\xfe")
        with pytest.raises(InputError, match="not UTF-8"):
            Collection.read(path)
        path.write_bytes(b"SQLite format 3\0" + b"\1" * 500)
        with pytest.raises(InputError, match="no file of wisdom"):
            Collection.read(path)
        assert [file.name for file in tmp_path.iterdir()] == ["a.json"]  # it is not ours

    def test_devices_are_chosen_by_a_part_of_their_name(self) -> None:
        other = entry(problem=problem(device="NVIDIA H100", target="cuda"))
        wisdom = Collection.of([entry(), other])
        assert wisdom.of_device("h100").entries == (other,)
