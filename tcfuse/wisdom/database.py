"""What tuning found, on disk: the best entries of every problem, and journals of runs.

What was recorded is there when the call returns, whatever is killed afterwards; a file that
cannot be had costs the wisdom, not the run (``wisdom.shared_file``).
"""

from __future__ import annotations

import json
import logging
import sqlite3
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Self

from tcfuse.errors import InputError
from tcfuse.wisdom.bounds import MOST_ENTRIES, MOST_PER_PROBLEM, default_path
from tcfuse.wisdom.problem import Entry, Problem
from tcfuse.wisdom.record import entry_of
from tcfuse.wisdom.shared_file import SharedFile

log = logging.getLogger(__name__)

MOST_TRIALS = 1_000_000


class Database:
    """One file of wisdom; any number of threads and processes may use it.

    Args:
        path: The file; the first record makes it.
        readonly: Never write.
    """

    def __init__(self, path: Path, *, readonly: bool = False) -> None:
        self._file = SharedFile(path, readonly=readonly)

    @classmethod
    def default(cls) -> Database:
        """The user's."""
        return cls(default_path())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def path(self) -> Path:
        """Where it is."""
        return self._file.path

    @property
    def problems(self) -> list[str]:
        """What could not be done, a line each, for people."""
        return self._file.problems

    def close(self) -> None:
        """Close the file; it is opened again when it is needed."""
        self._file.close()

    def record(self, *entries: Entry) -> bool:
        """Keep entries, all or none; of each problem only the best few stay.

        Returns:
            Whether they are on disk.
        """

        def change(connection: sqlite3.Connection) -> None:
            for entry in entries:
                _put(connection, entry)
            _bound(connection)

        return self._file.write(change)

    def top(self, problem: Problem) -> list[Entry]:
        """The entries of a problem, of whatever versions, best first."""
        return _sorted(self._file.rows(_OF_PROBLEM, problem.key))

    def best(self, problem: Problem) -> Entry | None:
        """The best entry of a problem, of whatever versions; ``None`` when there is none."""
        return next(iter(self.top(problem)), None)

    def family(self, problem: Problem) -> list[Entry]:
        """Every entry for the same template, target and numerics, best first."""
        text = "SELECT record FROM entries WHERE family = ?"
        return _sorted(self._file.rows(text, problem.family))

    def entries(self) -> list[Entry]:
        """Every entry, best first."""
        return _sorted(self._file.rows("SELECT record FROM entries"))

    def times(self) -> dict[str, float]:
        """When each entry was recorded, by its key: seconds since 1970."""
        return dict(self._file.rows("SELECT key, time FROM entries"))

    def forget(self, entries: Iterable[Entry]) -> bool:
        """Remove entries; whether that is on disk."""
        keys = [(entry.key,) for entry in entries]
        text = "DELETE FROM entries WHERE key = ?"
        return self._file.write(lambda connection: connection.executemany(text, keys))

    def record_trial(self, run: str, candidate: str, outcome: str) -> bool:
        """Append what came of one candidate to the journal of a run.

        Returns:
            Whether it is on disk.
        """

        def change(connection: sqlite3.Connection) -> None:
            text = "INSERT INTO trials (run, candidate, outcome, time) VALUES (?, ?, ?, ?)"
            row = (run, candidate, outcome, time.time())
            number = connection.execute(text, row).lastrowid or 0
            if number % 1000 == 0:
                connection.execute("DELETE FROM trials WHERE id <= ?", (number - MOST_TRIALS,))

        return self._file.write(change)

    def trials(self, run: str) -> list[tuple[str, str]]:
        """Candidates and outcomes of a run, in the order in which they were recorded."""
        text = "SELECT candidate, outcome FROM trials WHERE run = ? ORDER BY id"
        return self._file.rows(text, run)

    def forget_trials(self, run: str) -> bool:
        """Remove the journal of a run; whether that is on disk."""
        text = "DELETE FROM trials WHERE run = ?"
        return self._file.write(lambda connection: connection.execute(text, (run,)))


_OF_PROBLEM = "SELECT record FROM entries WHERE problem = ?"


def _put(connection: sqlite3.Connection, entry: Entry) -> None:
    """One entry, unless there is a better one of the same knobs; then the best few stay."""
    problem = entry.problem
    known = _sorted(connection.execute(_OF_PROBLEM, (problem.key,)))
    rivals = [old for old in known if old.versions == entry.versions]
    if any(old.key == entry.key and not entry.better_than(old) for old in rivals):
        return
    record = json.dumps(entry.to_record(), sort_keys=True)
    row = (entry.key, problem.key, problem.family, record, time.time())
    connection.execute("INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?)", row)
    kept = sorted([entry, *(old for old in rivals if old.key != entry.key)], key=_rank)
    extra = [(old.key,) for old in kept[MOST_PER_PROBLEM:]]
    connection.executemany("DELETE FROM entries WHERE key = ?", extra)


def _bound(connection: sqlite3.Connection) -> None:
    """Remove the oldest entries where there are too many."""
    (count,) = connection.execute("SELECT count(*) FROM entries").fetchone()
    if count > MOST_ENTRIES:
        oldest = "SELECT key FROM entries ORDER BY time, key LIMIT ?"
        connection.execute(
            f"DELETE FROM entries WHERE key IN ({oldest})", (count - MOST_ENTRIES,)
        )


def _rank(entry: Entry) -> tuple[object, ...]:
    return entry.rank


def _sorted(rows: Iterable[tuple[str]]) -> list[Entry]:
    """The entries of rows, best first."""
    return sorted(_read(rows), key=_rank)


def _read(rows: Iterable[tuple[str]]) -> Iterator[Entry]:
    """The entries of rows; what is no entry is passed over."""
    for (text,) in rows:
        try:
            yield entry_of(json.loads(text))
        except (InputError, ValueError, TypeError, RecursionError) as error:
            log.debug("an entry of wisdom is passed over: %s", error)
