"""How tests call definitions: types written as TC writes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from tcfuse import opdef
from tcfuse.opdef import OpCall
from tcfuse.tc.evaluate import evaluate
from tcfuse.tc.parser import parse
from tcfuse.tc.sema import check
from tcfuse.types import DType, TensorType


def tensor_type(text: str | None) -> TensorType | None:
    """``float(N, 768)`` as a type; ``None`` stays ``None``."""
    if text is None:
        return None
    name, _, sizes = text.removesuffix(")").partition("(")
    dtype = DType.from_tc(name)
    assert dtype is not None
    listed = [size.strip() for size in sizes.split(",")] if sizes else []
    return TensorType(dtype, tuple(int(s) if s.isdecimal() else s for s in listed))


def lower_call(
    op_type: str,
    inputs: Sequence[str | None],
    outputs: Sequence[str | None],
    attributes: Mapping[str, Any] | None = None,
    *,
    constants: Mapping[int, Any] | None = None,
    opset: int = 21,
    domain: str = "",
) -> str:
    """The checked text of a call's definition."""
    known = {k: np.asarray(value) for k, value in (constants or {}).items()}
    call = OpCall(
        op_type,
        opset,
        tuple(map(tensor_type, inputs)),
        tuple(map(tensor_type, outputs)),
        attributes or {},
        tuple(known.get(k) for k in range(len(inputs))),
        domain,
    )
    text = opdef.find(op_type, opset, domain).lower(call)
    check(parse(text))
    return text


def run_call(
    op_type: str,
    arrays: Sequence[np.ndarray | None],
    outputs: Sequence[TensorType | None],
    attributes: Mapping[str, Any] | None = None,
    *,
    opset: int = 21,
    domain: str = "",
) -> list[np.ndarray]:
    """The outputs of a call on arrays, of which the static ones are known."""
    definition = opdef.find(op_type, opset, domain)
    types = [
        None if a is None else TensorType(next(d for d in DType if d.numpy == a.dtype), a.shape)
        for a in arrays
    ]
    known = [a if k in definition.static else None for k, a in enumerate(arrays)]
    params = [a for k, a in enumerate(arrays) if a is not None and k not in definition.static]
    text = definition.lower(
        OpCall(
            op_type, opset, tuple(types), tuple(outputs), attributes or {}, tuple(known), domain
        )
    )
    checked = check(parse(text))
    results = evaluate(
        checked, dict(zip(checked.inputs, params, strict=True)), exact_types=True
    )
    return [np.asarray(results[name]) for name in checked.outputs]


@pytest.fixture(scope="session")
def lower() -> Callable[..., str]:
    return lower_call


@pytest.fixture(scope="session")
def run() -> Callable[..., list[np.ndarray]]:
    return run_call
