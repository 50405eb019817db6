"""What ``tcfuse check`` prints, and its exit status."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tcfuse.cli import main

RIGHT = "def f(float(N) X) -> (Y) {\n  Y(i) = X(i)\n}\n"
WARNS = "def f(float(N) X) -> (Y) {\n  Y(i) += X(i)\n}\n"
WRONG = """\
def a(float(N) X) -> (Y) {
  Y(i) = X(i) $ 2
}

def b(float(N) X) -> (Y, Z) {
  T(i) = X(i) +
    Q(i)
  Y(i) = T(i)  # not looked at: T is wrong
  Z(i) = X(X(i))
}

def c(float(N, K) X) -> (Y) {
  Y(i) += X(i, j) + X(i, 0)
}
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    monkeypatch.chdir(tmp_path)

    def write(text: str) -> str:
        (tmp_path / "f.tc").write_text(text, encoding="utf-8")
        return "f.tc"

    return write


def test_what_is_right_has_status_0(file: Callable[[str], str], capsys):
    assert main(["check", file(RIGHT)]) == 0
    assert capsys.readouterr().out == "1 file: nothing to complain about\n"


def test_warnings_are_errors_when_strict(file: Callable[[str], str], capsys):
    assert main(["check", file(WARNS)]) == 0
    assert "f.tc:2:3: warning: " in capsys.readouterr().out
    assert main(["check", "--strict", "f.tc"]) == 1


def test_it_goes_on_after_an_error(file: Callable[[str], str], capsys, golden):
    assert main(["check", "--notes", file(WRONG)]) == 1
    golden(capsys.readouterr().out, "txt")


def test_editors_get_json(file: Callable[[str], str], capsys):
    assert main(["check", "--json", file(WRONG)]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [(r["code"], r["severity"]) for r in found] == [
        ("TC01", "error"),
        ("TC24", "error"),
        ("TC09", "error"),
        ("TC19", "warning"),
        ("TC30", "note"),
    ]
    place = ("file", "line", "column", "end_line", "end_column")
    assert [found[1][key] for key in place] == ["f.tc", 7, 5, 7, 9]
    assert found[2]["message"] == "expected an integer subscript but found float"
    assert found[2]["hint"].startswith("cast it")


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO(WARNS))
    assert main(["check", "-"]) == 0
    assert capsys.readouterr().out.startswith("<stdin>:2:3: warning: ")


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, capsys, content: bytes | None):
    path = tmp_path / "bad.tc"
    if content is not None:
        path.write_bytes(content)
    assert main(["check", str(path)]) == 1
    assert f"{path}: cannot be read: " in capsys.readouterr().err
