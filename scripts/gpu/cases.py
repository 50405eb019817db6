"""ONNX's cases for single operators, each as one kernel."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx

from scripts.gpu.outcome import Outcome
from scripts.gpu.subject import Subject, check
from scripts.gpu.workbench import Settings, Workbench
from tcfuse.errors import InputError, UnsupportedError
from tcfuse.tc.compose import compose
from tcfuse.tc.sema import check as checked_def


@functools.cache
def all_cases() -> dict[str, Any]:
    """Every case of ONNX for a single operator, by name."""
    from tests.conformance.node_cases import cases

    return {case.name: case for case in cases()}


def names(settings: Settings) -> list[str]:
    """The cases."""
    del settings
    return list(all_cases())


def run(name: str, bench: Workbench) -> Outcome:
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

    case = all_cases()[name]
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
    from tests.conformance.compiled import group_of_everything

    model, group = group_of_everything(proto)
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
