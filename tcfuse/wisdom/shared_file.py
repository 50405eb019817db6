"""One SQLite file that any number of processes share, and any of them may be killed.

SQLite writes ahead to a log and waits for the disk: what a write returned from is there, and
what was interrupted is not.  A file that is something else is set aside, one that cannot be
written is read, and where there is nothing to be had a run goes on without.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

log = logging.getLogger(__name__)

T = TypeVar("T")

APPLICATION: Final = 0x54434657  # "TCFW", so that other databases are told apart
SCHEMA: Final = 1
BUSY_SECONDS = 30.0  # how long one process waits for another one's write
TABLES = (
    """CREATE TABLE IF NOT EXISTS entries (
        key TEXT PRIMARY KEY, problem TEXT NOT NULL, family TEXT NOT NULL,
        record TEXT NOT NULL, time REAL NOT NULL
    ) WITHOUT ROWID""",
    "CREATE INDEX IF NOT EXISTS by_problem ON entries (problem)",
    "CREATE INDEX IF NOT EXISTS by_family ON entries (family)",
    """CREATE TABLE IF NOT EXISTS trials (
        id INTEGER PRIMARY KEY, run TEXT NOT NULL, candidate TEXT NOT NULL,
        outcome TEXT NOT NULL, time REAL NOT NULL
    )""",
    "CREATE INDEX IF NOT EXISTS by_run ON trials (run, id)",
)


class SharedFile:
    """Reads and writes of one file; what went wrong is in ``problems``, and in the log.

    Any number of threads may use it.

    Args:
        path: The file; the first write makes it.
        readonly: Never write.
    """

    def __init__(self, path: Path, *, readonly: bool = False) -> None:
        self.path = path
        self.problems: list[str] = []
        self._readonly = readonly
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None

    def close(self) -> None:
        """Close the file; it is opened again when it is needed."""
        with self._lock:
            if self._connection is not None:
                with contextlib.suppress(sqlite3.Error):
                    self._connection.close()
                self._connection = None

    def rows(self, text: str, *values: object) -> list[Any]:
        """What a query finds, row by row; nothing where there is nothing to read."""
        found = self._guarded(lambda c: c.execute(text, values).fetchall(), write=False)
        return found or []

    def write(self, change: Callable[[sqlite3.Connection], object]) -> bool:
        """Make one change, whole or not at all; whether it is on disk."""

        def whole(connection: sqlite3.Connection) -> bool:
            connection.execute("BEGIN IMMEDIATE")
            try:
                change(connection)
                connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise
            return True

        return self._guarded(whole, write=True) or False

    def _guarded(self, action: Callable[[sqlite3.Connection], T], *, write: bool) -> T | None:
        """What ``action`` gives; ``None`` where the file does not allow it.

        A damaged file is set aside and the action tried once more, on a new one.
        """
        with self._lock:
            for _ in range(2):
                try:
                    connection = self._opened(write=write)
                    return None if connection is None else action(connection)
                except sqlite3.OperationalError as error:
                    self._complain(f"{self.path}: wisdom cannot be used: {error}")
                    break
                except sqlite3.DatabaseError as error:
                    self.close()
                    if not self._set_aside(str(error)):
                        break
                except OSError as error:
                    self._complain(f"{self.path}: wisdom cannot be used: {error.strerror}")
                    break
            self.close()
        return None

    def _opened(self, *, write: bool) -> sqlite3.Connection | None:
        """The connection; ``None`` when there is no file and nothing is to be written."""
        if write and self._readonly:
            raise sqlite3.OperationalError("it was opened for reading")
        if self._connection is None:
            if not write and not self.path.exists():
                return None
            if write:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = _connected(self.path, readonly=self._readonly)
        return self._connection

    def _set_aside(self, why: str) -> bool:
        """Give a file that is no wisdom another name; whether a new one may be begun."""
        if self._readonly:
            self._complain(f"{self.path}: is no file of wisdom: {why}")
            return False
        name, number = self.path.name, 0
        while (aside := self.path.with_name(f"{name}.damaged-{number}")).exists():
            number += 1
        try:
            self.path.rename(aside)
            for suffix in ("-wal", "-shm"):
                self.path.with_name(name + suffix).unlink(missing_ok=True)
        except FileNotFoundError:
            return True  # another process was faster
        except OSError as error:
            self._complain(
                f"{self.path}: is no file of wisdom ({why}), and cannot be set aside: "
                f"{error.strerror}"
            )
            return False
        self._complain(f"{self.path}: is no file of wisdom ({why}); it is {aside.name} now")
        return True

    def _complain(self, text: str) -> None:
        if text not in self.problems:
            self.problems.append(text)
            log.warning("%s", text)


def _connected(path: Path, *, readonly: bool) -> sqlite3.Connection:
    """An open database with its tables; read only where it cannot be written.

    Raises:
        sqlite3.OperationalError: It cannot be opened.
        sqlite3.DatabaseError: It is no wisdom.
    """
    modes = ["ro", "ro&immutable=1"]  # the last one for a folder without a place for the log
    for mode in modes if readonly else ["rwc", *modes]:
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                return _prepared(path, mode)
            except sqlite3.OperationalError as error:
                # Beginning a log does not wait for others by itself.
                if "locked" in str(error) and time.monotonic() < deadline:
                    time.sleep(0.01)
                    continue
                failed = error
                break
        if not path.exists():
            break
    raise failed


def _prepared(path: Path, mode: str) -> sqlite3.Connection:
    """An open database, after a look at whose it is."""
    uri = f"{path.resolve().as_uri()}?mode={mode}"
    connection = sqlite3.connect(
        uri, BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=True
    )
    try:
        _prepare(connection, write=mode == "rwc")
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, *, write: bool) -> None:
    connection.execute("BEGIN")  # all of one moment: another process may be making the file
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (schema,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    connection.execute("COMMIT")
    if tables and application != APPLICATION:
        raise sqlite3.DatabaseError("it is a database of something else")
    if tables and schema > SCHEMA:
        raise sqlite3.OperationalError("a newer tcfuse wrote it")
    if not write:
        return
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    if not tables:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {SCHEMA}")
        for text in TABLES:
            connection.execute(text)
        connection.execute("COMMIT")
