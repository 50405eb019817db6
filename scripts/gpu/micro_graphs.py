"""The small graphs of ``SHARED/bench/micro_models.py`` at sizes for a GPU.

There a graph has the size of one request to a CPU.  Here its first dimension is so much larger
that what is moved does not fit into the L2 cache; blocks of the original size are independent,
so that the first and the last are held against the float64 oracle of the original.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

SHARED = {"softmax_mask": ("m",), "rope": ("c", "s")}  # inputs that all of a batch share
TOLERANCE = {"float32": 1e-4, "uint8": 1.0}  # of the largest value; in levels
MOST_FACTOR = 256


@dataclass(frozen=True)
class Scaled:
    """A bench at a size of our own.

    Attributes:
        micro: As it is defined.
        factor: How many times its first dimension.
        inputs: By name.
        model: As ONNX.
        n_bytes: What has to be read and written.
        flops: What has to be computed; 0 where bytes are what counts.
    """

    name: str
    micro: Any
    factor: int
    inputs: Mapping[str, np.ndarray]
    model: onnx.ModelProto
    n_bytes: int
    flops: int

    def error(self, output: np.ndarray) -> float:
        """The largest difference from float64, relative to the largest value or in levels."""
        rows = output.shape[0] // self.factor
        worst = 0.0
        for block in (0, self.factor - 1):
            expected = self._expected(block)
            found = output[block * rows : (block + 1) * rows].astype(np.float64)
            apart = np.abs(found.reshape(expected.shape) - expected).max(initial=0.0)
            whole = self.micro.output_dtype != "float32"
            scale = 1.0 if whole else float(np.abs(expected).max(initial=1e-12))
            worst = float(np.maximum(worst, apart / scale))
        return worst

    def _expected(self, block: int) -> np.ndarray:
        shared = SHARED.get(self.name, ())
        arrays = dict(self.micro.weights)
        for name, array in self.inputs.items():
            rows = array.shape[0] // self.factor
            whole = name in shared
            arrays[name] = array if whole else array[block * rows : (block + 1) * rows]
        wide = {
            n: a.astype(np.float64) if a.dtype == np.float32 else a for n, a in arrays.items()
        }
        expected: np.ndarray = self.micro.oracle(SimpleNamespace(**wide))
        return expected


def definitions(shared: Path) -> Any:
    """The module that defines them.

    Raises:
        FileNotFoundError: It is not there.
    """
    return module(shared, "micro_models")


def names(shared: Path) -> list[str]:
    """The benches; none when the folder is not there."""
    try:
        return list(definitions(shared).BENCHES)
    except FileNotFoundError:
        return []


def scaled(name: str, shared: Path, megabytes: int) -> Scaled:
    """A bench that moves about ``megabytes``, and not less than it does as defined."""
    defined = definitions(shared)
    micro = defined.make(name)
    factor = 1
    while factor < MOST_FACTOR and micro.traffic() * factor < megabytes << 20:
        factor *= 2
    common = SHARED.get(name, ())
    inputs = {n: a if n in common else _repeated(a, factor) for n, a in micro.inputs.items()}
    model = _enlarged(onnx.load_from_string(defined.to_onnx(name, micro)), factor, common)
    fixed = sum(w.nbytes for w in micro.weights.values()) if not micro.gathered else 0
    fixed += sum(micro.inputs[n].nbytes for n in common)
    n_bytes = fixed + (micro.traffic() - fixed) * factor
    return Scaled(name, micro, factor, inputs, model, n_bytes, micro.flops * factor)


def _repeated(array: np.ndarray, factor: int) -> np.ndarray:
    """An array and ``factor - 1`` others with the same elements in other places."""
    flat = array.reshape(-1)
    blocks = [np.roll(flat, 977 * k).reshape(array.shape) for k in range(factor)]
    return np.concatenate(blocks)


def _enlarged(model: onnx.ModelProto, factor: int, common: tuple[str, ...]) -> onnx.ModelProto:
    """The model with another first dimension, of its inputs and where it is reshaped."""
    graph = model.graph
    for value in (*graph.input, *graph.output):
        if value.name not in common:
            value.type.tensor_type.shape.dim[0].dim_value *= factor
    shapes = {node.input[1] for node in graph.node if node.op_type == "Reshape"}
    for tensor in graph.initializer:
        if tensor.name in shapes:
            sizes = numpy_helper.to_array(tensor).copy()
            sizes[0] *= factor
            tensor.CopyFrom(numpy_helper.from_array(sizes, tensor.name))
    return model


def module(shared: Path, name: str) -> Any:
    """A module of the folder's ``bench``.

    Raises:
        FileNotFoundError: It is not there.
    """
    folder = shared.resolve() / "bench"
    if not (folder / f"{name}.py").exists():
        raise FileNotFoundError(f"{folder} has no {name}.py; --shared says where it is")
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    return importlib.import_module(name)
