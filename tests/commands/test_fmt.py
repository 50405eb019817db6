"""What ``tcfuse fmt`` writes, and what it leaves alone."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from tcfuse.cli import main

BEFORE = "def f(float(N) X)->(Y){Y(i)=X(i)} # c\n"
AFTER = "def f(float(N) X) -> (Y) {\n  Y(i) = X(i)\n}  # c\n"
BROKEN = "def f(float(N) X) -> (Y) { Y(i) = }"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "f.tc"
    path.write_text(BEFORE, encoding="utf-8")
    return path


def test_files_are_formatted_in_place(path: Path, capsys):
    assert main(["fmt", str(path)]) == 0
    assert path.read_text(encoding="utf-8") == AFTER
    assert capsys.readouterr().out == f"changed {path}\n"
    assert main(["fmt", str(path)]) == 0
    assert capsys.readouterr().out == ""


def test_check_lists_what_would_change(path: Path, capsys):
    assert main(["fmt", "--check", str(path)]) == 1
    assert capsys.readouterr().out == f"would change {path}\n"
    assert path.read_text(encoding="utf-8") == BEFORE
    path.write_text(AFTER, encoding="utf-8")
    assert main(["fmt", "--check", str(path)]) == 0


def test_diff_shows_what_would_change(path: Path, capsys):
    assert main(["fmt", "--diff", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-4:] == [f"-{BEFORE.rstrip()}", *(f"+{line}" for line in AFTER.splitlines())]
    assert path.read_text(encoding="utf-8") == BEFORE


def test_standard_input_goes_to_standard_output(monkeypatch: pytest.MonkeyPatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO(BEFORE))
    assert main(["fmt", "-"]) == 0
    assert capsys.readouterr().out == AFTER


def test_nothing_is_written_when_one_file_is_broken(path: Path, tmp_path: Path, capsys):
    broken = tmp_path / "g.tc"
    broken.write_text(BROKEN, encoding="utf-8")
    assert main(["fmt", str(path), str(broken)]) == 1
    assert f"{broken}:1:35: error: " in capsys.readouterr().err
    assert path.read_text(encoding="utf-8") == BEFORE


def test_a_file_that_cannot_be_written_is_named(
    path: Path, capsys, monkeypatch: pytest.MonkeyPatch
):
    def refuse(path: Path, data: bytes) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tcfuse.store.write_atomically", refuse)
    assert main(["fmt", str(path)]) == 1
    message = f"error: {path}: cannot be written: Permission denied\n"
    assert capsys.readouterr().err == message
    assert path.read_text(encoding="utf-8") == BEFORE
