"""What docs/architecture.md promises: layers, short modules, a quick start, true documents."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = sorted((ROOT / "docs").rglob("*.md"))
MODULES = sorted((*ROOT.glob("tcfuse/**/*.py"), *ROOT.glob("op_library/*.py")))
LIMITS = {"tcfuse/pipeline.py": 150, "tcfuse/cli.py": 200}
MOST_LINES = 600
MOST_LINES_OF_A_FUNCTION = 60
NAMED = re.compile(r"\b(graph|tc|poly|mapping|codegen|targets|ort)\.([a-z_]+)\b")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A Python of its own, in the repository."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_imports_point_down():
    pytest.importorskip("importlinter", reason="import-linter is not installed")
    code = "from importlinter.cli import lint_imports; print(lint_imports(no_cache=True))"
    done = run("-c", code)
    assert done.stdout.splitlines()[-1:] == ["0"], done.stdout + done.stderr


def test_modules_are_short():
    for path in MODULES:
        n_lines = len(path.read_text(encoding="utf-8").splitlines())
        assert n_lines <= LIMITS.get(named(path), MOST_LINES), named(path)


def test_functions_are_short():
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                n_lines = (node.end_lineno or 0) - node.lineno + 1
                assert n_lines <= MOST_LINES_OF_A_FUNCTION, f"{named(path)}: {node.name}"


def test_help_takes_a_moment():
    code = (
        "import sys, time; from tcfuse.cli import main; status = main(['--help']);"
        "print(time.process_time(), file=sys.stderr); sys.exit(status)"
    )
    runs = [run("-c", code) for _ in range(3)]
    assert [done.returncode for done in runs] == [0, 0, 0]
    assert min(float(done.stderr) for done in runs) < 0.6  # 0.15 s of CPU on a quiet machine


@pytest.mark.parametrize(
    "path", [p for p in DOCUMENTS if ">>> " in p.read_text(encoding="utf-8")], ids=named
)
def test_documented_sessions_are_true(path: Path):
    done = run("-m", "doctest", "-o", "ELLIPSIS", str(path))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", DOCUMENTS, ids=named)
def test_documents_name_modules_that_exist(path: Path):
    for package, module in NAMED.findall(path.read_text(encoding="utf-8")):
        place = ROOT / "tcfuse" / package / module
        assert place.with_suffix(".py").is_file() or place.is_dir(), f"{package}.{module}"
