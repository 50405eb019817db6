"""What is known of every defined operator from ONNX's cases of it: for ``tcfuse ops``.

``python -m tests.conformance.compiled --all --record`` runs all cases and writes
``op_library/conformance.json``.  A case counts for an operator when it consists of that one
node.  An element type counts when one of these cases, with its first input and all that must
have the same type in it, still becomes a kernel's definition.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx

from tcfuse import opdef
from tcfuse.errors import InputError, UnsupportedError
from tcfuse.types import DType
from tests.conformance.compiled import composed_whole
from tests.conformance.node_cases import array_of

RECORD = Path(__file__).parents[2] / "op_library" / "conformance.json"


def own_cases(cases: Sequence[Any]) -> dict[tuple[str, str], list[Any]]:
    """The cases that are one node, by the domain and the name of its operator."""
    found: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for case in cases:
        if case.model is not None and len(case.model.graph.node) == 1:
            node = case.model.graph.node[0]
            found[node.domain, node.op_type].append(case)
    return found


def operators() -> list[tuple[str, str]]:
    """The domain and the name of every operator with a definition, in order."""
    return sorted({(d.domain, d.op_type) for d in opdef.registered()})


def record(cases: Sequence[Any], equal: Collection[str]) -> dict[str, Any]:
    """What ``op_library/conformance.json`` holds.

    Args:
        cases: ONNX's cases.
        equal: The names of those that ran inside a kernel and gave what ONNX expects.
    """
    own = own_cases(cases)
    rows = {}
    for domain, op_type in operators():
        mine = own.get((domain, op_type), [])
        name = f"{domain}::{op_type}" if domain else op_type
        rows[name] = {
            "cases": len(mine),
            "passed": sum(case.name in equal for case in mine),
            "types": [dtype.tc for dtype in types_taken(mine)],
        }
    return {
        "onnx": onnx.__version__,
        "total": len(cases),
        "equal": len(equal),
        "operators": rows,
    }


def write(cases: Sequence[Any], equal: Collection[str]) -> None:
    """Write ``op_library/conformance.json``, a line for each operator."""
    made = record(cases, equal)
    rows = [f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in made.pop("operators").items()]
    head = ", ".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in made.items())
    lines = ",\n".join(rows)
    RECORD.write_text(f'{{{head}, "operators": {{\n{lines}\n}}}}\n', encoding="utf-8")


def types_taken(cases: Sequence[Any]) -> list[DType]:
    """The element types of the first input with which some case of an operator is taken."""
    return [d for d in DType if any(is_taken(case, d) for case in cases)]


def is_taken(case: Any, dtype: DType) -> bool:
    """Whether a case still becomes a definition when its first input has another type."""
    try:
        composed_whole(retyped(case, dtype))
    except (InputError, UnsupportedError):
        return False
    return True


def retyped(case: Any, dtype: DType) -> Any:
    """The case with another type in its first input and wherever the same one must stand.

    Raises:
        UnsupportedError: The operator has no such form.
    """
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    node = model.graph.node[0]
    opset = next(e.version for e in model.opset_import if e.domain == node.domain)
    schema = onnx.defs.get_schema(node.op_type, opset, node.domain)
    if not node.input or not schema.inputs:
        raise UnsupportedError(f"{node.op_type} without inputs")
    variable = schema.inputs[0].type_str
    allowed = {
        t
        for c in schema.type_constraints
        if c.type_param_str == variable
        for t in c.allowed_type_strs
    }
    word = onnx.TensorProto.DataType.Name(dtype.onnx).lower()
    if f"tensor({word})" not in allowed:
        raise UnsupportedError(f"{node.op_type} of {word}")
    names = set(with_type(node.input, schema.inputs, variable))
    names |= set(with_type(node.output, schema.outputs, variable))
    for value in (*model.graph.input, *model.graph.output):
        if value.name in names:
            value.type.tensor_type.elem_type = dtype.onnx
    inputs = [value.name for value in model.graph.input]
    outputs = [value.name for value in model.graph.output]
    data_sets = [
        (as_type(inputs, given, names, dtype), as_type(outputs, wanted, names, dtype))
        for given, wanted in case.data_sets
    ]
    return SimpleNamespace(name=case.name, model=model, data_sets=data_sets)


def with_type(names: Sequence[str], formal: Sequence[Any], variable: str) -> Iterator[str]:
    """The values of a node whose type is the variable; the last formal one may be variadic."""
    for k, name in enumerate(names):
        if formal[min(k, len(formal) - 1)].type_str == variable:
            yield name


def as_type(
    names: Sequence[str], arrays: Sequence[Any], changed: Collection[str], dtype: DType
) -> list[Any]:
    """Arrays with some of them made anew; values do not matter, as nothing is run.

    Raises:
        UnsupportedError: Something is no tensor.
    """
    return [
        np.zeros(array_of(array).shape, dtype.numpy) if name in changed else array
        for name, array in zip(names, arrays, strict=False)
    ]
