"""Arrays in and out of ONNX Runtime, also of the types that NumPy lacks."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tcfuse.ort.inference import Session, runtime
from tcfuse.types import DType


def is_native(dtype: np.dtype) -> bool:
    """Whether NumPy itself has ``dtype``, so that ONNX Runtime's Python interface does too."""
    return dtype.isbuiltin == 1


_FOREIGN = {f"tensor({d.name.lower()})" for d in DType if not is_native(d.numpy)}


def run(session: Session, inputs: Mapping[str, np.ndarray]) -> Sequence[np.ndarray]:
    """Every output of one run; inputs the session does not have are left out."""
    wanted = {value.name for value in session.get_inputs()}
    given = {name: x for name, x in inputs.items() if name in wanted}
    if not any(v.type in _FOREIGN for v in (*session.get_inputs(), *session.get_outputs())):
        outputs: Sequence[np.ndarray] = session.run(None, given)
        return outputs
    names = [value.name for value in session.get_outputs()]
    values = {name: to_value(x) for name, x in given.items()}
    return [to_array(v) for v in session.run_with_ort_values(names, values)]


def to_value(array: np.ndarray) -> Any:
    """``array`` as an ``OrtValue``, which keeps it alive."""
    value, array = runtime().OrtValue, np.asarray(array, order="C")
    if is_native(array.dtype):
        return value.ortvalue_from_numpy(array)
    dtype = next(d for d in DType if d.numpy == array.dtype)
    return value.ortvalue_from_numpy_with_onnx_type(array.view(f"u{dtype.bytes}"), dtype.onnx)


def to_array(value: Any) -> np.ndarray:
    """The elements of an ``OrtValue``."""
    dtype = DType.from_onnx(value.element_type())
    if dtype is None or is_native(dtype.numpy):
        return np.asarray(value.numpy())
    data = ctypes.string_at(value.data_ptr(), value.tensor_size_in_bytes())
    return np.frombuffer(data, dtype.numpy).reshape(value.shape())
