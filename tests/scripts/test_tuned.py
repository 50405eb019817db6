"""The results of ``scripts/tune_*.py`` that are kept in the tree still apply."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from math import prod
from pathlib import Path

import onnx_ir as ir
import pytest

import tcfuse as package
from models import gelu
from tcfuse.tc.fixing import check_with_sizes
from tcfuse.tc.parser import parse
from tcfuse.tc.sema import check
from tcfuse.tuning.candidate import Candidate
from tcfuse.tuning.measure import LocalEvaluator
from tcfuse.tuning.subjects import subjects_of_definitions
from tcfuse.tuning.tuned import Task, candidate_of, differences
from tcfuse.wisdom.exchange import Collection
from tcfuse.wisdom.problem import Entry

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
FILES = sorted((SCRIPTS / "tuned").glob("*.json"))
OWN = sorted(p for p in SCRIPTS.glob("tune_*.py") if p.name != "tune_model.py")
MODELS = {
    *("ppocr2_cls", "magika", "minilm_int8", "basic_pitch", "x_bert", "x_convnext_qdq"),
    *("x_mamba", "x_effnet"),
}


def task_of(entry: Entry) -> Task:
    """The kernel that an entry is about, at its sizes."""
    written = parse(entry.problem.template)
    names = check(written, affine=False).sizes
    sizes = dict(zip(names, entry.problem.sizes, strict=False))  # the text need not name all
    (task,) = subjects_of_definitions(check_with_sizes([written], sizes), sizes).tasks
    return task


def sample() -> Iterator[Entry]:
    """Of each file the smallest kernel whose knobs differ from the defaults."""
    for path in FILES:
        tuned = [entry for entry in Collection.read(path).entries if entry.knobs]
        if tuned:
            yield min(tuned, key=lambda e: (prod(e.problem.sizes), e.key))


def test_there_is_a_script_for_each_model():
    assert {path.stem.removeprefix("tune_") for path in OWN} == MODELS
    for path in OWN:
        text = path.read_text(encoding="utf-8")
        assert len(text.splitlines()) < 30
        assert path.stem.removeprefix("tune_") in [
            node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)
        ]


def test_there_is_a_result_of_each_script():
    assert {path.stem for path in FILES} == MODELS


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_entry_is_legal(path: Path):
    found = Collection.read(path)
    assert found.refused == ()
    assert found.entries
    assert found.to_json() == path.read_text(encoding="utf-8")
    for entry in found.entries:
        assert not entry.predicted
        assert entry.speedup >= 1
        candidate = candidate_of(entry, entry.problem.numerics)
        assert differences(candidate).items() == dict(entry.knobs).items()
        checked = check(parse(entry.problem.template), affine=False)
        assert len(checked.sizes) <= len(entry.problem.sizes)


@pytest.mark.compiler
@pytest.mark.parametrize("entry", list(sample()), ids=lambda entry: entry.key[:8])
def test_tuned_kernels_compile_and_are_right(entry: Entry):
    task, candidate = task_of(entry), candidate_of(entry, entry.problem.numerics)
    evaluator = LocalEvaluator()
    try:
        ((_, outcome),) = evaluator.evaluate(task.subject, [candidate], Candidate())
    finally:
        evaluator.close()
    assert outcome.status in ("ok", "slow"), (
        outcome.detail
    )  # how fast it is here is another matter


@pytest.mark.compiler
@pytest.mark.ort
def test_a_file_is_used_where_its_kernels_are(tmp_path: Path):
    """A model of the same kernel, at the sizes that were tuned, on the same machine."""
    ir.save(gelu.build(n="N", features=64), tmp_path / "model.onnx")
    options = {"gate": False, "verify": False, "dim": {"N": 32}}
    found = package.tune(
        tmp_path / "model.onnx", budget="1h", population=2, generations=1, **options
    )
    (entry,) = found.entries
    knobs = {"mapping": {"unroll": 8 if entry.knobs.get("mapping", {}) != {"unroll": 8} else 4}}
    other = Entry(entry.problem, knobs, 2.0, 1.0, predicted=False, versions=entry.versions)
    Collection.of([other]).write(tmp_path / "wisdom.json")
    result = package.optimize(
        tmp_path / "model.onnx", wisdom=str(tmp_path / "wisdom.json"), **options
    )
    plain = package.optimize(tmp_path / "model.onnx", use_wisdom=False, **options)
    assert result.report.kept[0].name != plain.report.kept[0].name
