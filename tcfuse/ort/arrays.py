"""Arrays in and out of ONNX Runtime, also of the types that NumPy lacks."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tcfuse.ort.inference import Session, runtime
from tcfuse.packed import dtype_of, packed, packed_bytes, unpacked
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
    dtype = dtype_of(array)
    if dtype.bits >= 8:
        codes = array.view(f"u{dtype.bytes}")
    else:
        # The shape is that of the memory, of which packed elements take the first bytes.
        codes = np.zeros(array.shape, np.uint8)
        codes.reshape(-1)[: packed_bytes(dtype, array.shape)] = packed(array)
    return value.ortvalue_from_numpy_with_onnx_type(codes, dtype.onnx)


def to_array(value: Any) -> np.ndarray:
    """The elements of an ``OrtValue``."""
    dtype = DType.from_onnx(value.element_type())
    if dtype is None or is_native(dtype.numpy):
        return np.asarray(value.numpy())
    shape = value.shape()
    data = ctypes.string_at(value.data_ptr(), packed_bytes(dtype, shape))
    return unpacked(np.frombuffer(data, np.uint8), dtype, shape)
