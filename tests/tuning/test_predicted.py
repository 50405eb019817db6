"""Candidates for GPUs that are not there are checked in the emulator, and priced."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tcfuse.cuda_options import CudaOptions
from tcfuse.errors import UnsupportedError
from tcfuse.tc.kernel_form import kernel_form
from tcfuse.tc.parser import parse
from tcfuse.tc.sema import check
from tcfuse.tuning.building import Compiling
from tcfuse.tuning.candidate import Candidate, Subject
from tcfuse.tuning.emulating import small_sizes
from tcfuse.tuning.predicted import PredictedEvaluator

TEXT = "def f(float(N, D) X) -> (float(N, D) Y) { Y(i, j) = X(i, j) * 2 }"
FORM = kernel_form(check(parse(TEXT), affine=False))
SUBJECT = Subject(
    "f", str(FORM.definition), FORM.interface, {"N": 4096, "D": 256}, target="cuda"
)
WRONG = Candidate(cuda=CudaOptions(block=64))


class Lying(Compiling):
    """Compiles something else for one candidate."""

    def __call__(self, subject, candidate):
        source = super().__call__(subject, candidate)
        if candidate == WRONG:
            return replace(source, text=source.text.replace("2.e+00f", "3.e+00f"))
        return source


@pytest.mark.compiler
def test_what_is_right_has_a_price_and_what_is_wrong_has_none():
    evaluator = PredictedEvaluator(most_points=2048, compile=Lying())
    narrow = Candidate(cuda=CudaOptions(vector_bytes=4))
    usual = Candidate(cuda=CudaOptions())
    try:
        found = dict(evaluator.evaluate(SUBJECT, [narrow, WRONG, usual], usual))
    finally:
        evaluator.close()
    assert all(outcome.predicted for outcome in found.values())
    assert found[usual].speedup == 1.0
    assert found[narrow].speedup < 1.0
    assert found[usual].micros > 2 * 4 * 4096 * 256 / 1.6e6
    assert found[WRONG].status == "wrong"
    assert "Y of N=8, D=256: error" in found[WRONG].detail


def test_what_cannot_be_compiled_is_said():
    def refuses(_subject, _candidate):
        raise UnsupportedError("no such thing")

    evaluator = PredictedEvaluator(compile=refuses)
    with pytest.raises(UnsupportedError, match=r"cannot be used: refused: no such thing"):
        next(evaluator.evaluate(SUBJECT, [Candidate()], Candidate()))


def test_outer_sizes_are_made_smaller_first():
    checked = check(FORM.definition, sizes=FORM.interface.sizes)
    sizes = {"N": 4096, "D": 256}
    assert small_sizes(checked, FORM.interface, sizes, 2048) == {"N": 8, "D": 256}
    assert small_sizes(checked, FORM.interface, sizes, 512) == {"N": 4, "D": 128}
    assert small_sizes(checked, FORM.interface, {"N": 3, "D": 2}, 1) == {"N": 3, "D": 2}
