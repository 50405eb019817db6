"""Wisdom as plain JSON that people review, commit and merge.

Equal wisdom has equal text: entries are sorted, each with its template as lines and its knobs
on one line, and nothing says when or where the text was written.  A text is only data: what is
not as it should be is left out, with a reason, and the rest is used.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from tcfuse.errors import InputError
from tcfuse.store import write_file
from tcfuse.wisdom.bounds import MOST_ENTRIES, MOST_PER_PROBLEM
from tcfuse.wisdom.problem import Entry
from tcfuse.wisdom.record import entry_of
from tcfuse.wisdom.verdict import Verdict, verdict_of

T = TypeVar("T")

FORMAT: Final = 1
MOST_BYTES = 256 << 20
MOST_REASONS = 20  # that are told


@dataclass(frozen=True, slots=True)
class Collection:
    """Entries of wisdom, the best of each problem and set of versions, in a fixed order.

    Attributes:
        entries: Few of each problem, the best first.
        verdicts: What was decided about whole models.
        refused: Why something that was read is not among them.
    """

    entries: tuple[Entry, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    refused: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        entries: Iterable[Entry],
        verdicts: Iterable[Verdict] = (),
        refused: Iterable[str] = (),
    ) -> Collection:
        """The best of those entries; no order of theirs, or of verdicts, matters."""
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
        decided: dict[str, Verdict] = {}
        for verdict in sorted(verdicts, key=lambda v: v.rank):
            decided.setdefault(verdict.key, verdict)
        chosen = tuple(sorted(kept, key=_order))
        return cls(chosen, tuple(decided.values()), tuple(refused))

    def merged(self, other: Collection) -> Collection:
        """The better of both for every problem, whichever is asked for the other."""
        refused = dict.fromkeys([*self.refused, *other.refused])
        both = [*self.entries, *other.entries], [*self.verdicts, *other.verdicts]
        return Collection.of(*both, refused)

    @property
    def best_first(self) -> list[Entry]:
        """The entries, better ones before others."""
        return sorted(self.entries, key=lambda entry: entry.rank)

    def of_device(self, part: str) -> Collection:
        """What is for devices with ``part`` in their name."""
        wanted = part.lower()
        kept = (e for e in self.entries if wanted in e.problem.device.lower())
        decided = (v for v in self.verdicts if wanted in v.device.lower())
        return replace(self, entries=tuple(kept), verdicts=tuple(decided))

    def to_json(self) -> str:
        """The text of a file of wisdom."""
        written = [_reviewable(entry.to_record()) for entry in self.entries]
        parts = [f' "format": {FORMAT}', _list("entries", map(_indented, written))]
        if self.verdicts:
            parts.append(_list("verdicts", (_decided(v.to_record()) for v in self.verdicts)))
        return "{\n" + ",\n".join(parts) + "\n}\n"

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
        refused: list[str] = []
        entries = _checked(record["entries"], f"{name}: entry", _entry, refused)
        decided = record.get("verdicts", [])
        if not isinstance(decided, list):
            raise InputError(f"{name}: is no wisdom: its verdicts are no list")
        verdicts = _checked(decided, f"{name}: verdict", verdict_of, refused)
        return cls.of(entries, verdicts, _few(refused))

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


def _checked(
    items: list[object], what: str, read: Callable[[object], T], refused: list[str]
) -> list[T]:
    """What ``items`` are; the reasons of those that are nothing go to ``refused``."""
    found: list[T] = []
    for number, item in enumerate(items[:MOST_ENTRIES], 1):
        try:
            found.append(read(item))
        except InputError as error:
            refused.append(f"{what} {number} is left out: {error}")
    if (extra := len(items) - MOST_ENTRIES) > 0:
        refused.append(f"{what} {MOST_ENTRIES} is the last one: {extra} more are left out")
    return found


def _order(entry: Entry) -> tuple[Any, ...]:
    """Where an entry stands in a text: equal layers together, smaller sizes first."""
    problem = entry.problem
    where = (problem.target, problem.device, problem.numerics, problem.threads)
    return (*where, problem.template, problem.sizes, sorted(entry.versions.items()), entry.rank)


def _reviewable(record: dict[str, Any]) -> dict[str, Any]:
    """A record with its template as lines."""
    lines = record["problem"]["template"].split("\n")
    return {**record, "problem": {**record["problem"], "template": lines}}


def _entry(item: object) -> Entry:
    """An entry, whose template may be a list of lines."""
    problem = item.get("problem") if isinstance(item, dict) else None
    lines = problem.get("template") if isinstance(problem, dict) else None
    if isinstance(lines, list) and all(isinstance(line, str) for line in lines):
        assert isinstance(item, dict)
        item = {**item, "problem": {**item["problem"], "template": "\n".join(lines)}}
    return entry_of(item)


def _list(name: str, texts: Iterable[str]) -> str:
    """A field that is a list, an item on lines of its own."""
    body = ",\n".join(texts)
    return f' "{name}": [\n{body}\n ]' if body else f' "{name}": []'


def _decided(record: Mapping[str, Any]) -> str:
    """One verdict: a field a line, and each kernel's numbers on one."""
    parts = [f"   {_line(k)}: {_line(v)}" for k, v in record.items() if k != "record"]
    fields = (f"    {_line(name)}: {_by_kernel(v)}" for name, v in record["record"].items())
    inner = ",\n".join(fields)
    return "  {\n" + ",\n".join([*parts, f'   "record": {{\n{inner}\n   }}']) + "\n  }"


def _by_kernel(value: object) -> str:
    if not isinstance(value, dict) or not value:
        return _line(value)
    lines = ",\n".join(f"     {_line(k)}: {_line(v)}" for k, v in sorted(value.items()))
    return f"{{\n{lines}\n    }}"


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
