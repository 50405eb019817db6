"""Values of ONNX's node cases as ONNX Runtime takes and gives them: every type there is.

Element types that NumPy lacks travel as constants of a graph without nodes, sequences and
optionals as lists and ``None``.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tcfuse.ort.inference import Session, runtime

_OWN = "?bhilqBHILQefdOUS"  # the types of NumPy that ONNX Runtime takes as they are


def fed(value: Any, type_: onnx.TypeProto) -> Any:
    """One datum of a case as a feed of an input of that type."""
    kind = type_.WhichOneof("value")
    if kind == "optional_type":
        return None if value is None else fed(value, type_.optional_type.elem_type)
    if kind == "sequence_type":
        return [fed(item, type_.sequence_type.elem_type) for item in value]
    if isinstance(value, TensorProto):
        value = numpy_helper.to_array(value)
    array = np.asarray(value)
    if array.dtype.char in _OWN:
        return np.ascontiguousarray(array).reshape(array.shape)
    return _constant(numpy_helper.from_array(array, "value").SerializeToString())[0]


@cache
def _constant(data: bytes) -> tuple[Any, Session]:
    """A serialized tensor as ONNX Runtime's own value, and the session whose memory that is."""
    tensor = TensorProto.FromString(data)
    value = helper.make_tensor_value_info("value", tensor.data_type, list(tensor.dims))
    graph = helper.make_graph([], "constant", [], [value], [tensor])
    opset = helper.make_opsetid("", onnx.defs.onnx_opset_version())
    model = helper.make_model(graph, opset_imports=[opset], ir_version=onnx.IR_VERSION)
    session = runtime().InferenceSession(model.SerializeToString())
    return session.run_with_ort_values(None, {})[0], session


def answers(session: Session, feeds: Mapping[str, Any]) -> list[Any]:
    """Every output of one run: arrays, lists of them, or ``None``."""
    kinds = [value.type for value in (*session.get_inputs(), *session.get_outputs())]
    if not all(kind.startswith("tensor(") and "string" not in kind for kind in kinds):
        return list(session.run(None, dict(feeds)))
    value = runtime().OrtValue
    given = {
        name: value.ortvalue_from_numpy(feed) if isinstance(feed, np.ndarray) else feed
        for name, feed in feeds.items()
    }
    return [array_from(result) for result in session.run_with_ort_values(None, given)]


def array_from(value: Any) -> np.ndarray:
    """The array of a tensor of ONNX Runtime."""
    number = value.element_type()
    dtype = helper.tensor_dtype_to_np_dtype(number)
    if dtype.char in _OWN:
        return np.asarray(value.numpy())
    raw = ctypes.string_at(value.data_ptr(), value.tensor_size_in_bytes())
    shape = value.shape()
    return numpy_helper.to_array(TensorProto(data_type=number, dims=shape, raw_data=raw))


def leaves(value: Any) -> Sequence[np.ndarray | None]:
    """The tensors in a result, in order."""
    if isinstance(value, list | tuple):
        return [leaf for item in value for leaf in leaves(item)]
    if isinstance(value, TensorProto):
        return [numpy_helper.to_array(value)]
    return [None if value is None else np.asarray(value)]
