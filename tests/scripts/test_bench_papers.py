"""The command that times the papers' kernels, and what is said about it."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from op_library import papers
from scripts.paper_kernels.report import BEGIN, END, into_document

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
QUICK = next(line for _, block in BLOCKS for line in block.splitlines() if "--quick" in line)


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "bench_papers.py"), *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.compiler
@pytest.mark.ort
def test_the_quick_command_measures(tmp_path: Path) -> None:
    words = shlex.split(QUICK)
    assert words[:2] == ["python", "scripts/bench_papers.py"]
    records, table = tmp_path / "papers.json", tmp_path / "papers.md"
    done = bench(*words[2:], "--json", str(records), "--markdown", str(table))
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(records.read_text(encoding="utf-8"))
    assert row["kernel"] == "tbmm"
    assert row["flops"] == 2 * 20 * 26 * 72 * 26
    assert min(row["tcfuse_us"], row["numpy_us"], row["ort_us"], row["compile_cpu_s"]) > 0
    assert 0 < row["error"] < 1e-5
    assert table.read_text(encoding="utf-8").count("| tbmm | B=20 N=26 M=72 K=26 |") == 1


def test_an_unknown_kernel_is_named() -> None:
    done = bench("--only", "tnn")
    assert done.returncode == 1
    assert done.stderr.startswith("no kernel 'tnn'; there are tmm, tbmm, ")


def test_the_table_goes_between_the_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"above\n{BEGIN}\nold\n{END}\nbelow\n", encoding="utf-8")
    into_document(page, "new\n")
    assert page.read_text(encoding="utf-8") == f"above\n{BEGIN}\nnew\n{END}\nbelow\n"
    assert PAGE.count(BEGIN) == PAGE.count(END) == 1


def test_the_page_names_every_kernel() -> None:
    assert [name for name in papers.names() if f"`{name}`" not in PAGE] == []


@pytest.mark.compiler
def test_the_python_of_the_page_works() -> None:
    names: dict[str, object] = {}
    for language, block in BLOCKS:
        if language == "python":
            exec(block, names)
    assert names["y"].shape == (16, 100)
