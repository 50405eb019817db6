"""What was recorded is there, whatever happens to the processes and to the file."""

from __future__ import annotations

import contextlib
import logging
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tcfuse.wisdom import database as module
from tcfuse.wisdom import shared_file
from tcfuse.wisdom.database import Database
from tests.wisdom.entries import VERSIONS, entry, problem

KILLS = 20
WRITER = """
import sys
from pathlib import Path
from tcfuse.wisdom.database import Database
from tests.wisdom.entries import entry
who, path = sys.argv[1], Path(sys.argv[2])
with Database(path) as database:
    print("ready", flush=True)
    for number in range(int(sys.argv[3])):
        assert database.record_trial(who, f"candidate {number}", "outcome")
        assert database.record(entry(int(who) + 2, number, speedup=1 + number))
        print(number, flush=True)
"""


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(tmp_path / "new" / "wisdom.sqlite")


def writer(path: Path, who: int, count: int) -> subprocess.Popen[str]:
    """A process that records, and says after each record which one it was."""
    argv = [sys.executable, "-c", WRITER, str(who), str(path), str(count)]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd=Path.cwd())


class TestEntries:
    def test_one_comes_back_as_it_was(self, database: Database) -> None:
        assert database.best(problem()) is None
        assert database.record(entry(note="tuned"))
        assert database.top(problem()) == [entry(note="tuned")]

    def test_no_file_appears_before_something_is_recorded(self, database: Database) -> None:
        assert database.entries() == []
        assert not database.path.parent.exists()

    def test_the_best_goes_first_and_few_stay(self, database: Database) -> None:
        for count in range(1, 13):
            assert database.record(entry(unroll=count, speedup=1 + count / 10))
        found = [e.knobs["mapping"]["unroll"] for e in database.top(problem())]
        assert found == list(range(12, 2, -1))

    def test_the_better_of_two_with_the_same_knobs_stays(self, database: Database) -> None:
        for speedup in (1.2, 1.4, 1.3):
            database.record(entry(speedup=speedup))
        assert [e.speedup for e in database.top(problem())] == [1.4]

    def test_measured_goes_before_predicted(self, database: Database) -> None:
        database.record(entry(speedup=3.0, unroll=8, predicted=True), entry(speedup=1.1))
        assert [e.speedup for e in database.top(problem())] == [1.1, 3.0]

    def test_versions_do_not_push_each_other_out(self, database: Database) -> None:
        old = {**VERSIONS, "tcfuse": "0.0.9"}
        database.record(*(entry(unroll=n, speedup=9.0, versions=old) for n in range(1, 11)))
        database.record(entry(speedup=1.1))
        assert len(database.top(problem())) == 11

    @pytest.mark.parametrize(
        "change",
        [
            {"target": "cuda"},
            {"numerics": "fast"},
            {"template": "def g"},
        ],
    )
    def test_a_family_differs_in_sizes_alone(self, database: Database, change: dict) -> None:
        other = problem(**change)
        database.record(entry(64, 64), entry(8, 8), entry(problem=other))
        sizes = {e.problem.sizes for e in database.family(problem(1, 1))}
        assert sizes == {(64, 64), (8, 8)}
        assert database.top(other) == [entry(problem=other)]

    def test_devices_share_a_family_and_no_problem(self, database: Database) -> None:
        other = problem(device="another")
        database.record(entry(), entry(problem=other))
        assert len(database.family(other)) == 2
        assert database.top(other) == [entry(problem=other)]

    def test_the_oldest_go_when_there_are_too_many(
        self, database: Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "MOST_ENTRIES", 3)
        for size in range(5):
            database.record(entry(size))
        assert {e.problem.sizes for e in database.entries()} == {(2,), (3,), (4,)}

    def test_forgotten_ones_are_gone(self, database: Database) -> None:
        database.record(entry(8), entry(9))
        assert database.forget([entry(8)])
        assert database.entries() == [entry(9)]
        assert database.times().keys() == {entry(9).key}


class TestTrials:
    def test_they_come_back_in_order(self, database: Database) -> None:
        for number in (3, 1, 2):
            assert database.record_trial("a run", f"candidate {number}", f"outcome {number}")
        assert database.record_trial("another", "x", "y")
        assert database.trials("a run") == [
            (f"candidate {n}", f"outcome {n}") for n in (3, 1, 2)
        ]
        assert database.forget_trials("a run")
        assert database.trials("a run") == []
        assert database.trials("another") == [("x", "y")]


def test_kills_at_random_moments_lose_nothing(tmp_path: Path) -> None:
    path, rng = tmp_path / "wisdom.sqlite", random.Random(0)
    for kill in range(KILLS):
        process = writer(path, kill, 1_000_000)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(rng.uniform(0, 0.05))
        os.kill(process.pid, signal.SIGKILL)
        said = [int(line) for line in process.stdout.read().splitlines() if line]
        process.stdout.close()
        process.wait()
        with Database(path) as database:
            found = [int(c.split()[1]) for c, _ in database.trials(str(kill))]
            assert found == list(range(len(found)))
            assert len(found) >= len(said)  # what was said was recorded
            sizes = {e.problem.sizes for e in database.entries()}
            assert {(kill + 2, number) for number in said} <= sizes
            assert database.problems == []
    assert [file.name for file in tmp_path.glob("*.damaged*")] == []


def test_processes_that_write_at_the_same_time(tmp_path: Path) -> None:
    path = tmp_path / "wisdom.sqlite"
    processes = [writer(path, who, 40) for who in range(4)]  # all make the file at once
    for process in processes:
        assert process.communicate()[0].endswith("39\n")
        assert process.returncode == 0
    with Database(path) as database:
        assert all(len(database.trials(str(who))) == 40 for who in range(4))
        assert len(database.entries()) == 4 * 40


def test_a_file_that_another_process_makes_meanwhile_is_no_damaged_one(tmp_path: Path) -> None:
    """It was empty at the first question and wisdom at the last one."""
    path = tmp_path / "wisdom.sqlite"

    class Slow(sqlite3.Connection):
        """Somebody else makes the file between its first two questions."""

        def execute(self, text: str, *values: object) -> sqlite3.Cursor:
            if "user_version" in text and not path.with_name("made").exists():
                path.with_name("made").touch()
                other = sqlite3.connect(path, 0.0, isolation_level=None)
                with contextlib.suppress(sqlite3.OperationalError):  # it has to wait
                    shared_file._prepare(other, write=True)
                other.close()
            return super().execute(text, *values)

    connection = sqlite3.connect(path, 0.0, isolation_level=None, factory=Slow)
    with contextlib.suppress(sqlite3.OperationalError):
        shared_file._prepare(connection, write=True)
    connection.close()
    with Database(path) as database:
        assert database.record_trial("run", "candidate", "outcome")
        assert database.problems == []


class TestFilesThatAreNoWisdom:
    @pytest.mark.parametrize("content", [b"no database at all" * 100, b"SQLite format 3\0" * 9])
    def test_a_damaged_one_is_set_aside(
        self, database: Database, content: bytes, caplog: pytest.LogCaptureFixture
    ) -> None:
        database.path.parent.mkdir()
        database.path.write_bytes(content)
        assert database.record(entry())
        assert database.entries() == [entry()]
        aside = database.path.with_name("wisdom.sqlite.damaged-0")
        assert aside.read_bytes() == content
        assert "it is wisdom.sqlite.damaged-0 now" in caplog.text

    def test_one_that_is_damaged_in_the_middle(self, database: Database) -> None:
        for number in range(300):
            database.record(entry(number))
        database.close()
        data = bytearray(database.path.read_bytes())
        data[4096:-4096] = os.urandom(len(data) - 8192)
        database.path.write_bytes(data)
        assert database.entries() == []
        assert database.record(entry())
        assert database.entries() == [entry()]

    def test_one_of_another_program_is_set_aside(self, database: Database) -> None:
        database.path.parent.mkdir()
        with sqlite3.connect(database.path) as other:
            other.execute("CREATE TABLE t (x)")
        other.close()
        assert database.record(entry())
        assert "a database of something else" in database.problems[0]

    def test_one_of_a_newer_tcfuse_stays(self, database: Database) -> None:
        database.record(entry())
        database.close()
        with sqlite3.connect(database.path) as newer:
            newer.execute("PRAGMA user_version = 99")
        newer.close()
        assert database.entries() == []
        assert not database.record(entry())
        assert "a newer tcfuse" in database.problems[0]
        assert database.path.is_file()

    def test_an_entry_that_is_none_is_passed_over(self, database: Database) -> None:
        database.record(entry(8), entry(9))
        database.close()
        with sqlite3.connect(database.path) as other:
            other.execute("UPDATE entries SET record = '{}' WHERE key = ?", (entry(8).key,))
        other.close()
        assert database.entries() == [entry(9)]


class TestFoldersThatCannotBeHad:
    def test_no_folder_costs_the_wisdom_alone(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.WARNING)
        (tmp_path / "file").write_text("")
        database = Database(tmp_path / "file" / "wisdom.sqlite")
        assert database.entries() == []
        assert not database.record(entry())
        assert not database.record(entry())
        assert len(caplog.records) == 1

    def test_one_that_may_only_be_read(self, database: Database) -> None:
        database.record(entry())
        database.close()
        readonly = Database(database.path, readonly=True)
        assert readonly.entries() == [entry()]
        assert not readonly.record(entry(9))
        assert readonly.entries() == [entry()]

    @pytest.mark.skipif(os.geteuid() == 0, reason="nothing is denied to root")
    def test_a_folder_without_permission(self, database: Database) -> None:
        database.record(entry())
        database.close()
        database.path.chmod(0o444)
        database.path.parent.chmod(0o555)
        try:
            again = Database(database.path)
            assert again.entries() == [entry()]
            assert not again.record(entry(9))
        finally:
            database.path.parent.chmod(0o755)
