"""ONNX's own cases for single operators, run through our definitions and the evaluator.

Every case is accounted for: it passes, it fails, or it is refused for a reason that is counted.
A case may consist of several nodes (the expanded forms of operators that are functions); then
each node runs by its definition.
"""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

from op_library import activation, elementwise
from tcfuse import opdef
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import OpCall
from tcfuse.tc.evaluate import evaluate
from tcfuse.tc.parser import parse
from tcfuse.tc.sema import check
from tcfuse.types import TensorType
from tests.conformance.node_cases import ROUNDING, agree, array_of, cases, type_of

# The fewest cases of each family that must pass; a family is a module of op_library, or
# ``expanded`` for the function bodies of operators that have no definition of their own.
MINIMUM = {
    "elementwise": 314,
    "activation": 58,
    "conversion": 191,
    "reduction": 100,
    "softmax": 14,
    "layer_normalization": 38,
    "normalization": 17,
    "movement": 21,
    "slicing": 36,
    "padding": 12,
    "pooling": 47,
    "quantization": 30,
    "resize": 38,
    "roi_align": 3,
    "sampling": 22,
    "view": 39,
    "matmul": 18,
    "convolution": 6,
    "transposed_convolution": 11,
    "integer_products": 12,
    "einsum": 9,
    "col2im": 5,
    "deformable": 4,
    "determinant": 2,
    "arg_extremum": 39,
    "cumulative": 18,
    "indexing": 15,
    "loss": 52,
    "optimizers": 7,
    "scatter": 20,
    "signal": 13,
    "top_k": 7,
    "triangular": 21,
    "attention": 93,
    "causal_convolution": 13,
    "linear_attention": 14,
    "recurrent": 18,
    "rotary": 8,
    "expanded": 338,
}
# Everything else that a definition refuses among these cases would be news.
KNOWN_REFUSALS = {
    "Dropout that trains",
    "MaxUnpool to a given size: ONNX and ONNX Runtime count its elements differently",
    "align_corners where a factor leaves a part of a point: ONNX Runtime leaves it out",
}
# In float64 a quotient may fall to the other side of a middle than in a case's own precision.
TIES = (*ROUNDING, "DynamicQuantizeLinear")
# What the load stage folds away, so that definitions never see it.
FOLDED = ("Constant", "ConstantOfShape", "Range", "Shape", "Size")
TABLES = {
    "activation": {*activation.TABLE, *activation.CONTRIB_TABLE},
    "elementwise": {*elementwise.TABLE},
}


@dataclass
class Tally:
    """What became of the cases, by family."""

    passed: Counter[str] = field(default_factory=Counter)
    failed: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    refused: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def summary(self) -> str:
        """One line of counts, then one for each kind of reason to refuse."""
        counts = f"{self.passed.total()} passed, {sum(map(len, self.failed.values()))} failed"
        kinds: dict[str, list[str]] = defaultdict(list)
        for reason, names in sorted(self.refused.items(), key=lambda item: -len(item[1])):
            subject, lacks_definition, _ = reason.partition(" has no definition")
            kind = "no definition" if lacks_definition else reason
            kinds[kind].append(
                f"{subject} {len(names)}" if lacks_definition else str(len(names))
            )
        total = sum(map(len, self.refused.values()))
        lines = [f"ONNX node cases: {counts}, {total} refused"]
        return "\n".join(lines + [f"  {kind}: {', '.join(k)}" for kind, k in kinds.items()])


def types_between(
    model: onnx.ModelProto, given: Mapping[str, np.ndarray]
) -> dict[str, TensorType]:
    """The types of the values between nodes, as ONNX's own interpreter makes them."""
    if len(model.graph.node) == 1:
        return {}
    feeds = {i.name: given[i.name] for i in model.graph.input if i.name in given}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it divides by zero where a case means it to
        values = ReferenceEvaluator(model).run(None, feeds, intermediate=True)
    return {n: type_of(a) for n, a in values.items() if isinstance(a, np.ndarray | np.generic)}


def attributes_of(node: onnx.NodeProto) -> dict[str, Any]:
    """Attributes as an ``OpCall`` holds them."""
    values = {}
    for proto in node.attribute:
        value = onnx.helper.get_attribute_value(proto)
        values[proto.name] = value.decode() if isinstance(value, bytes) else value
    return values


def run_node(
    node: onnx.NodeProto,
    opset: int,
    values: Mapping[str, np.ndarray],
    types: Mapping[str, TensorType],
) -> dict[str, np.ndarray]:
    """The outputs of a node by its definition.

    Where knowing the values of all inputs gives another text, that one must agree.
    """
    found = opdef.find(node.op_type, opset, node.domain)
    arrays = [values.get(name) if name else None for name in node.input]
    outputs = [name for name in node.output if name]
    if missing := [name for name in outputs if name not in types]:
        raise UnsupportedError(f"no type for {missing[0]!r}")

    def text(known: Sequence[np.ndarray | None]) -> str:
        return found.lower(
            OpCall(
                node.op_type,
                opset,
                tuple(None if a is None else type_of(a) for a in arrays),
                tuple(types[name] if name else None for name in node.output),
                attributes_of(node),
                tuple(known),
                node.domain,
            )
        )

    params = [a for k, a in enumerate(arrays) if a is not None and k not in found.static]
    texts = {
        text([a if k in found.static else None for k, a in enumerate(arrays)]): None,
        text(arrays): None,
    }
    results = []
    for one in texts:
        checked = check(parse(one))
        given = dict(zip(checked.inputs, params, strict=True))
        made = evaluate(checked, given, exact_types=True)
        results.append({n: made[o] for n, o in zip(outputs, checked.outputs, strict=True)})
    for name in outputs if len(results) > 1 else ():
        np.testing.assert_array_equal(results[0][name], results[1][name])
    return results[0]


def run_case(
    case: str, model: onnx.ModelProto, inputs: Sequence[Any], expected: Sequence[Any]
) -> None:
    """Compare a case's outputs with ours.

    Raises:
        UnsupportedError: A node has no definition or its definition refuses.
    """
    opsets = {entry.domain: entry.version for entry in model.opset_import}
    for node in model.graph.node:
        if node.op_type not in FOLDED:
            opdef.find(node.op_type, opsets.get(node.domain, 1), node.domain)
    values = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    values |= zip((i.name for i in model.graph.input), map(array_of, inputs), strict=False)
    wanted = dict(
        zip((o.name for o in model.graph.output), map(array_of, expected), strict=True)
    )
    types = types_between(model, values) | {name: type_of(a) for name, a in wanted.items()}
    for array in values.values():
        type_of(array)
    for node in model.graph.node:
        if node.op_type in FOLDED:
            results = ReferenceEvaluator(node).run(None, {n: values[n] for n in node.input})
            values |= zip(node.output, results, strict=True)
        else:
            values |= run_node(node, opsets.get(node.domain, 1), values, types)
    rounds = any(node.op_type in TIES for node in model.graph.node)
    for name, want in wanted.items():
        agree(values[name], want, rounds=rounds, case=case)


def family_of(model: onnx.ModelProto) -> str:
    """The module of op_library that defines a case's operator."""
    node = model.graph.node[0]
    for family, names in TABLES.items():
        if node.op_type in names:
            return family
    opsets = {entry.domain: entry.version for entry in model.opset_import}
    try:
        module = opdef.find(
            node.op_type, opsets.get(node.domain, 1), node.domain
        ).lower.__module__
    except UnsupportedError:
        return "expanded"
    return module.removeprefix("op_library.")


@pytest.fixture(scope="module")
def tally() -> Tally:
    result = Tally()
    for case in cases():
        model = case.model
        if model is None or not model.graph.node:
            result.refused["not a model"].append(case.name)
            continue
        family = family_of(model)
        try:
            for inputs, expected in case.data_sets:
                run_case(case.name, model, inputs, expected)
        except UnsupportedError as reason:
            result.refused[str(reason)].append(case.name)
        except Exception as error:  # one bad case must not hide the others
            result.failed[family].append(f"{case.name}: {type(error).__name__}: {error}")
        else:
            result.passed[family] += 1
    return result


def test_refusals_are_known(tally, capsys):
    with capsys.disabled():
        print(f"\n{tally.summary()}")  # noqa: T201 - the counts are this test's result
    expected = ("has no definition", "no element type", "is not a tensor")
    others = {r for r in tally.refused if not any(text in r for text in expected)}
    assert others <= KNOWN_REFUSALS, others - KNOWN_REFUSALS


@pytest.mark.parametrize("family", MINIMUM)
def test_cases_pass(tally, family):
    assert not tally.failed[family], "\n".join(tally.failed[family])
    assert tally.passed[family] >= MINIMUM[family]


def test_no_other_family_fails(tally):
    assert not {family: names for family, names in tally.failed.items() if names}
