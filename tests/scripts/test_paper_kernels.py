"""The contenders of the papers' bench compute the same, and work is counted as it should be."""

from __future__ import annotations

import numpy as np
import pytest

from op_library import papers
from scripts.paper_kernels.case import Case, Step
from scripts.paper_kernels.cases import cases
from scripts.paper_kernels.kernels import checked_of, namespace, workload
from scripts.paper_kernels.measure import (
    WrongResultError,
    check,
    numpy_contenders,
    onnx_contenders,
)
from tcfuse.tc.evaluate import evaluate

QUICK = [pytest.param(case, id=f"{case.name}-{k}") for k, case in enumerate(cases(quick=True))]
BENCHED = """
    tmm tbmm conv gconv group_norm group_norm_two_kernels moments kronecker3 wavenet lut1 lut2
    c3 mlp1 mlp3 tensordot triple_hadamard layer_norm softmax
"""


def values(case: Case) -> list[np.ndarray]:
    """What the definitions make of a case's inputs."""
    known = dict(workload(case).inputs)
    for step in case.steps:
        checked = checked_of(step)
        shapes = {name: checked.tensors[name].shape for name in checked.inputs}
        given = {
            name: known[name].reshape([step.sizes[str(size)] for size in shape])
            if all(isinstance(size, str) for size in shape)
            else known[name]
            for name, shape in shapes.items()
        }
        known |= evaluate(checked, given)
    return [known[name] for name in workload(case).outputs]


def test_every_kernel_of_the_papers_is_there() -> None:
    for quick in (False, True):
        found = {step.kernel for case in cases(quick=quick) for step in case.steps}
        assert found == set(BENCHED.split())
    assert found <= set(papers.names())


@pytest.mark.parametrize("case", QUICK)
def test_numpy_computes_the_definition(case: Case) -> None:
    work = workload(case)
    arrays = namespace(work.inputs, np.float64)
    for form in case.numpy:
        for left, right in zip(form(arrays), values(case), strict=True):
            np.testing.assert_allclose(left, right.reshape(left.shape), rtol=1e-7, atol=1e-7)
    assert len(numpy_contenders(case, work, values(case))) == len(case.numpy)


@pytest.mark.ort
@pytest.mark.parametrize("case", QUICK)
def test_onnx_operators_compute_the_definition(case: Case) -> None:
    found = onnx_contenders(case, workload(case), values(case))
    assert len(found) == len(case.onnx) * (2 if case.weights else 1)


def test_work_is_counted() -> None:
    sizes = {"M": 3, "N": 5, "K": 7}
    case = Case("tmm", (Step("tmm", "tmm", sizes),), (), ())
    work = workload(case)
    assert (work.flops, work.n_bytes, work.terms) == (2 * 105, 4 * (21 + 35 + 15), 7)


def test_indices_are_no_work() -> None:
    sizes = {"B": 1, "RES": 2, "DIL": 3, "SKIP": 4, "REC": 5, "DILATION": 1}
    work = workload(Case("wavenet", (Step("wavenet", "wavenet", sizes),), (), ()))
    gates = 2 * 5 * 3 * 2 * 4  # two products and two sums for each tap
    pointwise = 5 * 3 * 7
    branches = 5 * 2 * (3 * 2 + 2) + 5 * 4 * (3 * 2 + 1)
    assert work.flops == gates + pointwise + branches


def test_a_wrong_contender_is_noticed() -> None:
    case = next(cases(quick=True))
    work, right = workload(case), values(next(cases(quick=True)))
    assert check("right", right, right, work) == 0
    with pytest.raises(WrongResultError, match="wrong is off by"):
        check("wrong", [right[0] + 0.01 * np.abs(right[0]).max()], right, work)
    with pytest.raises(WrongResultError, match="wrong is off by nan"):
        check("wrong", [right[0] * np.nan], right, work)
