"""Small graphs as text: fused whole, run on the CPU or in the emulator, held against ONNX
Runtime."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
import onnxruntime
from onnx import helper, parser

from tests.conformance.compiled import Outcome

Runs = Sequence[tuple[Sequence[np.ndarray], Sequence[np.ndarray]]]


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph with inputs and what they give, as in one of its cases."""

    name: str
    model: onnx.ModelProto
    data_sets: Runs


def graph(
    name: str, text: str, given: Sequence[np.ndarray] = (), opset: int = 18, **sizes: int
) -> Graph:
    """The graph ``text`` describes; inputs that are not given are drawn, of those ``sizes``."""
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]>\n{text}')
    rng = np.random.default_rng(len(text))
    arrays = list(given) or [drawn(value, rng, sizes) for value in model.graph.input]
    feeds = {v.name: a for v, a in zip(model.graph.input, arrays, strict=True)}
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return Graph(name, model, [(arrays, session.run(None, feeds))])


def drawn(
    value: onnx.ValueInfoProto, rng: np.random.Generator, sizes: Mapping[str, int]
) -> np.ndarray:
    """An input of that type, positive; integers are 0 or 1."""
    kind = value.type.tensor_type
    shape = [
        d.dim_value if d.HasField("dim_value") else sizes[d.dim_param] for d in kind.shape.dim
    ]
    dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type)
    scale = 1 if dtype.kind == "f" else 2
    return np.asarray(np.round(rng.random(shape) * scale, 3), dtype)


def wrong(
    graphs: Iterable[Graph], run_cases: Callable[[list[Graph]], Outcome]
) -> dict[str, str]:
    """What is wrong with those that are not equal, refused ones included."""
    chosen = list(graphs)
    outcome = run_cases(chosen)
    found = {**outcome.refused, **outcome.failed}
    missing = len(chosen) - len(outcome.equal) - len(found)
    return {**found, **({"outside": str(outcome.outside)} if missing else {})}
