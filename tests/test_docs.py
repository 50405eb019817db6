"""What the documentation says is true: every command and every line of Python in it runs."""

from __future__ import annotations

import importlib.metadata
import re
import shlex
import subprocess
import sys
from pathlib import Path

import onnx_ir as ir
import pytest

from models import fetch, gelu
from tcfuse.cli import main
from tcfuse.errors import TcfuseError, UnsupportedError
from tcfuse.options import OptimizeOptions

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
CLI = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")


def blocks(page: str) -> list[tuple[str, str]]:
    """Language and text of every block of code on a page."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


OWN_LAYERS = blocks("own-layers.md")
SHELL = re.findall(r"^```sh\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
PYTHON = re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the model that the README speaks of."""
    ir.save(gelu.build(n="N", features=64), tmp_path / "model.onnx")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_page_is_reached_from_the_readme():
    found, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        found.add(page)
        links = re.findall(r"\]\(([^)#:]+\.md)", page.read_text(encoding="utf-8"))
        pages = {(page.parent / link).resolve() for link in links}
        waiting += [page for page in pages - found - set(waiting) if page.exists()]
    assert sorted(set((ROOT / "docs").rglob("*.md")) - found) == []


def test_the_readme_opens_with_two_commands():
    assert [len(block.splitlines()) for block in SHELL[:2]] == [1, 1]
    assert SHELL[0].startswith("pip install '.[cpu]' && ")
    assert SHELL[1].startswith("pip install '.[dev]' && python -m pytest")


def test_ci_runs_exactly_the_second_command():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    extract = re.search(r"^command=\$\((.*)\)$", script, re.MULTILINE)
    assert extract is not None
    done = subprocess.run(
        ["bash", "-c", extract[1]], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == SHELL[1]


@pytest.mark.compiler
@pytest.mark.ort
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("block", SHELL[2:])
def test_documented_commands_work(block: str):
    for line in block.splitlines():
        arguments = shlex.split(line)
        assert arguments[0] == "tcfuse"
        assert main(arguments[1:]) == 0


@pytest.mark.compiler
@pytest.mark.ort
def test_documented_python_works(folder: Path):
    assert main(["optimize", "model.onnx", "-o", "fast.onnx", "--no-gate"]) == 0
    library = (folder / "fast.so").read_bytes()
    names: dict[str, object] = {}
    for block in PYTHON:
        exec(block, names)
        # the gate may have given everything back; a loaded library is replaced, not overwritten
        (folder / "again.so").write_bytes(library)
        (folder / "again.so").replace(folder / "fast.so")
    assert names["outputs"][0].shape == (8, 64)


@pytest.mark.compiler
@pytest.mark.ort
def test_the_first_command_works(tmp_path: Path):
    """All of it but pip, which this environment has behind it."""
    _, fetching, optimizing = SHELL[0].strip().split(" && ")
    name = shlex.split(fetching)[2]
    try:
        fetch.fetch(name, tmp_path / "build")
    except (fetch.FetchError, OSError) as error:
        pytest.skip(f"no {name}: {error}")
    for command in (fetching, optimizing):
        words = shlex.split(command)
        if words[0] == "tcfuse":
            words = [sys.executable, "-m", "tcfuse", *words[1:]]
        else:
            words = [sys.executable, str(ROOT / words[1]), *words[2:]]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "build" / "ppocr2_cls.tcfuse.onnx").is_file()


@pytest.mark.compiler
@pytest.mark.ort
def test_the_page_about_tuning_works(folder: Path):
    """With fewer candidates: nobody waits here."""
    (folder / "docs").symlink_to(ROOT / "docs")
    for language, block in blocks("tuning.md"):
        if language == "python":
            exec(block.replace('budget="5s"', "population=2, generations=1"), {})
            continue
        for line in block.splitlines():
            arguments = shlex.split(line)
            assert arguments.pop(0) == "tcfuse"
            few = ["--time-budget", "1h", "--population", "2", "--generations", "1"]
            assert main(arguments + few * (arguments[0] == "tune")) == 0
    assert (folder / "tuned.html").is_file()


@pytest.mark.compiler
@pytest.mark.ort
def test_the_page_about_own_layers_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Every command and every block of Python, in the order in which they are read."""
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for language, block in OWN_LAYERS:
        if language == "python":
            exec(block, names)
        elif language == "sh":
            for line in block.splitlines():
                assert main(shlex.split(line)[1:]) == 0
    assert names["index"].shape == (4,)


def test_the_page_about_own_layers_shows_the_files():
    shown = [block for language, block in OWN_LAYERS if not language]
    files = [path.read_text(encoding="utf-8") for path in (ROOT / "docs/layers").glob("*.tc")]
    assert sorted(shown) == sorted(re.sub(r"^#.*\n", "", text, flags=re.M) for text in files)


def test_every_flag_of_optimize_is_documented(capsys: pytest.CaptureFixture[str]):
    main(["optimize", "--help"])
    flags = set(
        re.findall(r"--[a-z][a-z-]+", capsys.readouterr().out.partition("Examples:")[0])
    )
    documented = set(re.findall(r"--[a-z][a-z-]+", CLI))
    hidden = {"--help", "--output", "--verbose", "--quiet", "--gate", "--verify"}
    assert flags - documented - hidden == set()


def test_every_command_is_documented(capsys: pytest.CaptureFixture[str]):
    main(["--help"])
    commands = re.findall(
        r"^  ([a-z]+)  ", capsys.readouterr().out.partition("Commands:")[2], re.MULTILINE
    )
    assert "optimize" in commands
    for command in commands:
        assert f"`tcfuse {command}" in CLI


def test_options_have_the_names_of_flags():
    assert {"target", "gate", "verify", "dim", "input_shapes", "numerics"} <= set(
        OptimizeOptions.__slots__
    )


def test_links_lead_somewhere():
    for document in (ROOT / "README.md", *ROOT.glob("docs/**/*.md")):
        text = document.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
            if not target.startswith("http"):
                assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_errors_have_one_root():
    assert issubclass(UnsupportedError, TcfuseError)


def test_a_wheel_holds_what_is_read_at_run_time():
    installed = [
        {str(path) for path in distribution.files or ()}
        for distribution in importlib.metadata.distributions(name="tcfuse")
        if distribution.read_text("RECORD")
    ]
    files = next((names for names in installed if "tcfuse/cli.py" in names), None)
    if files is None:
        pytest.skip("an editable install reads the working tree")
    needed = [
        path.relative_to(ROOT).as_posix()
        for package in ("tcfuse", "op_library")
        for path in (ROOT / package).rglob("*")
        if path.suffix in (".py", ".c", ".cpp", ".h", ".hpp", ".tc")
    ]
    assert [path for path in needed if path not in files] == []
