"""Wisdom as plain JSON that people review, commit and merge.

Equal wisdom has equal text: entries are sorted, each with its template as lines and its knobs
on one line, and nothing says when or where the text was written.  A text is only data: what is
not as it should be is left out, with a reason, and the rest is used.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from tcfuse.errors import InputError
from tcfuse.store import write_file
from tcfuse.wisdom.bounds import MOST_ENTRIES, MOST_PER_PROBLEM
from tcfuse.wisdom.problem import Entry
from tcfuse.wisdom.record import entry_of

FORMAT: Final = 1
MOST_BYTES = 256 << 20
MOST_REASONS = 20  # that are told


@dataclass(frozen=True, slots=True)
class Collection:
    """Entries of wisdom, the best of each problem and set of versions, in a fixed order.

    Attributes:
        entries: Few of each problem, the best first.
        refused: Why something that was read is not among them.
    """

    entries: tuple[Entry, ...] = ()
    refused: tuple[str, ...] = ()

    @classmethod
    def of(cls, entries: Iterable[Entry], refused: Iterable[str] = ()) -> Collection:
        """The best of those entries; no order of theirs matters."""
        best: dict[str, Entry] = {}
        for entry in entries:
            known = best.get(entry.key)
            if known is None or entry.better_than(known):
                best[entry.key] = entry
        kept: list[Entry] = []
        counts: dict[tuple[str, str], int] = {}
        for entry in sorted(best.values(), key=lambda e: e.rank):
            place = entry.problem.key, str(sorted(entry.versions.items()))
            counts[place] = counts.get(place, 0) + 1
            if counts[place] <= MOST_PER_PROBLEM:
                kept.append(entry)
        return cls(tuple(sorted(kept, key=_order)), tuple(refused))

    def merged(self, other: Collection) -> Collection:
        """The better of both for every problem, whichever is asked for the other."""
        refused = dict.fromkeys([*self.refused, *other.refused])
        return Collection.of([*self.entries, *other.entries], refused)

    @property
    def best_first(self) -> list[Entry]:
        """The entries, better ones before others."""
        return sorted(self.entries, key=lambda entry: entry.rank)

    def of_device(self, part: str) -> Collection:
        """What is for devices with ``part`` in their name."""
        wanted = part.lower()
        kept = (e for e in self.entries if wanted in e.problem.device.lower())
        return replace(self, entries=tuple(kept))

    def to_json(self) -> str:
        """The text of a file of wisdom."""
        written = [_reviewable(entry.to_record()) for entry in self.entries]
        body = ",\n".join(_indented(record) for record in written)
        opening = f'{{\n "format": {FORMAT},\n "entries": ['
        return f"{opening}\n{body}\n ]\n}}\n" if body else f"{opening}]\n}}\n"

    @classmethod
    def from_json(cls, text: str, name: str = "the text") -> Collection:
        """What ``to_json`` wrote, or anybody else.

        Args:
            text: The text.
            name: What messages call it.

        Raises:
            InputError: It is no wisdom, or of another format.
        """
        try:
            record = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{name}: is no JSON: {error}") from None
        if not isinstance(record, dict) or not isinstance(record.get("entries"), list):
            raise InputError(f"{name}: is no wisdom: it has no list of entries")
        if record.get("format") != FORMAT:
            found = record.get("format")
            raise InputError(f"{name}: has format {found!r}; this tcfuse reads {FORMAT}")
        entries, refused = list[Entry](), list[str]()
        for number, item in enumerate(record["entries"][:MOST_ENTRIES], 1):
            try:
                entries.append(entry_of(_plain(item)))
            except InputError as error:
                refused.append(f"{name}: entry {number} is left out: {error}")
        if (extra := len(record["entries"]) - MOST_ENTRIES) > 0:
            refused.append(f"{name}: {extra} entries too many are left out")
        return cls.of(entries, _few(refused))

    @classmethod
    def read(cls, path: Path) -> Collection:
        """What a file holds: JSON, or a database.

        Raises:
            InputError: There is no such file, or it is no wisdom.
        """
        try:
            with path.open("rb") as file:
                data = file.read(MOST_BYTES + 1)
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
        if len(data) > MOST_BYTES:
            raise InputError(f"{path}: is no wisdom: it has more than {MOST_BYTES >> 20} MiB")
        if data.startswith(b"SQLite format 3\0"):
            return cls._of_database(path)
        try:
            return cls.from_json(data.decode("utf-8-sig"), str(path))
        except UnicodeDecodeError:
            raise InputError(f"{path}: is no wisdom: it is not UTF-8 text") from None

    @classmethod
    def _of_database(cls, path: Path) -> Collection:
        from tcfuse.wisdom.database import Database  # SQLite takes its time

        with Database(path, readonly=True) as database:
            found = cls.of(database.entries())
            if database.problems:
                raise InputError(database.problems[0])
            return found

    def write(self, path: Path) -> None:
        """Write a file of wisdom, whole or not at all.

        Raises:
            InputError: It cannot be written.
        """
        write_file(path, self.to_json().encode())


def _order(entry: Entry) -> tuple[Any, ...]:
    """Where an entry stands in a text: equal layers together, smaller sizes first."""
    problem = entry.problem
    where = (problem.target, problem.device, problem.numerics, problem.threads)
    return (*where, problem.template, problem.sizes, sorted(entry.versions.items()), entry.rank)


def _reviewable(record: dict[str, Any]) -> dict[str, Any]:
    """A record with its template as lines."""
    lines = record["problem"]["template"].split("\n")
    return {**record, "problem": {**record["problem"], "template": lines}}


def _plain(item: object) -> object:
    """A record with its template as one text."""
    if not isinstance(item, dict) or not isinstance(item.get("problem"), dict):
        return item
    lines = item["problem"].get("template")
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        return item
    return {**item, "problem": {**item["problem"], "template": "\n".join(lines)}}


def _indented(record: Mapping[str, Any]) -> str:
    """One entry: a field a line, the lines of its template below each other."""
    problem = dict(record["problem"])
    template = ",\n".join(f"     {_line(line)}" for line in problem.pop("template"))
    fields = [f'    "template": [\n{template}\n    ]']
    fields += [f"    {_line(name)}: {_line(value)}" for name, value in problem.items()]
    inner = ",\n".join(fields)
    parts = [f'   "problem": {{\n{inner}\n   }}']
    parts += [f"   {_line(k)}: {_line(v)}" for k, v in record.items() if k != "problem"]
    return "  {\n" + ",\n".join(parts) + "\n  }"


def _line(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _few(reasons: list[str]) -> list[str]:
    """The first reasons, and how many more there are."""
    if len(reasons) <= MOST_REASONS:
        return reasons
    return [*reasons[:MOST_REASONS], f"and {len(reasons) - MOST_REASONS} more like these"]
