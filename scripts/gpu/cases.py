"""The kernels that are checked: ONNX's cases for single operators, and those of the papers."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx

from scripts.gpu.outcome import Outcome
from scripts.gpu.subject import Subject, check
from scripts.gpu.workbench import Workbench
from scripts.paper_kernels.case import Case
from scripts.paper_kernels.cases import cases as paper_cases
from scripts.paper_kernels.kernels import checked_of, shape_of, workload
from tcfuse.errors import InputError, UnsupportedError
from tcfuse.graph.boundary import group_of
from tcfuse.graph.legality import Candidate, may_join
from tcfuse.graph.load import load_model
from tcfuse.tc.compose import compose
from tcfuse.tc.evaluate import evaluate
from tcfuse.tc.kernel_form import kernel_form
from tcfuse.tc.sema import check as checked_def

# ---------------------------------------------------------------------- operators


@functools.cache
def operator_cases() -> dict[str, Any]:
    """Every case of ONNX for a single operator, by name."""
    from tests.conformance.node_cases import cases

    return {case.name: case for case in cases([])}


def check_operator(name: str, bench: Workbench) -> Outcome:
    """One of ONNX's cases, as one kernel."""
    from tests.conformance.compiled import OUTSIDE

    try:
        subject = operator_subject(name)
    except (InputError, UnsupportedError) as reason:
        outside = any(text in str(reason) for text in OUTSIDE)
        return {"status": "outside" if outside else "refused", "why": str(reason)}
    return check(subject, bench)


def operator_subject(name: str) -> Subject:
    """The kernel of a case, with the case's first inputs.

    Raises:
        UnsupportedError: An operator has no definition, or may not be fused.
    """
    from tests.conformance.compiled import bake, check_defined
    from tests.conformance.node_cases import array_of

    case = operator_cases()[name]
    if case.model is None or not case.model.graph.node:
        raise UnsupportedError("not a model")
    proto = onnx.ModelProto()
    proto.CopyFrom(case.model)
    check_defined(proto)
    names = [value.name for value in proto.graph.input]
    given = dict(zip(names, map(array_of, case.data_sets[0][0]), strict=False))
    bake(proto, given)
    return subject_of(name, proto, given)


def subject_of(
    name: str,
    proto: onnx.ModelProto,
    given: Mapping[str, np.ndarray],
) -> Subject:
    """All nodes of a model as one kernel.

    Raises:
        UnsupportedError: A node may not join, or a stage refuses.
    """
    model = load_model(proto)
    nodes = tuple(model.graph)
    if not nodes:
        raise UnsupportedError("everything is folded")
    for node in nodes:
        if not (verdict := may_join(Candidate(node, model.opset_imports))):
            raise UnsupportedError(f"{node.op_type}: {verdict.reason}")
    group = group_of(nodes, model.opset_imports)
    if not group.inputs:
        raise UnsupportedError("nothing is read")
    composed = compose(group, model.opset_imports)
    interface = composed.interface
    constants = {
        str(value.name): value.const_value.numpy()
        for value in composed.inputs
        if value.const_value is not None
    }
    arrays = {**constants, **given}
    inputs = tuple(arrays[str(value.name)] for value in composed.inputs)
    checked = checked_def(composed.definition, sizes=interface.sizes)
    return Subject(name.removeprefix("test_"), checked, interface, inputs)


# ---------------------------------------------------------------------- papers


@functools.cache
def papers() -> dict[str, Case]:
    """The kernels of the papers at small sizes, by a name that tells their sizes."""
    return {f"{case.name}-{k}": case for k, case in enumerate(paper_cases(quick=True))}


def check_paper(name: str, bench: Workbench) -> Outcome:
    """The kernels of one case; each reads what float64 makes of the one before."""
    case = papers()[name]
    arrays = dict(workload(case).inputs)
    worst: Outcome = {"status": "ok", "error": 0.0, "launches": 0}
    for step in case.steps:
        checked = checked_of(step)
        for tensor in checked.inputs:
            shape = shape_of(checked, tensor, step)
            arrays[tensor] = np.ascontiguousarray(arrays[tensor].reshape(shape))
        form = kernel_form(checked)
        ready = checked_def(form.definition, sizes=form.interface.sizes)
        inputs = tuple(arrays[port.name] for port in form.interface.inputs)
        subject = Subject(step.definition, ready, form.interface, inputs)
        found = check(subject, bench)
        if found["status"] != "ok":
            return found
        worst["error"] = max(worst["error"], found["error"])
        worst["launches"] += found["launches"]
        exact = evaluate(checked, {n: arrays[n] for n in checked.inputs}, step.sizes)
        for tensor, array in exact.items():
            arrays[tensor] = array.astype(checked.tensors[tensor].dtype.numpy)
    return worst
