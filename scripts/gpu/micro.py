"""The small graphs of ``SHARED/bench/micro_models.py`` at sizes for a GPU, against others.

There a graph has the size of one request to a CPU.  Here its first dimension is so much larger
that what is moved does not fit into the L2 cache; blocks of the original size are independent,
so that the first and the last are held against the float64 oracle of the original.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from scripts.gpu import torch_forms
from scripts.gpu.cases import subject_of
from scripts.gpu.contenders import Enqueue, OnnxRuntime, Torch, measure, run_once
from scripts.gpu.contraction_forms import FORMS, subject_of_form
from scripts.gpu.limits import COPY
from scripts.gpu.models import OURS, optimized
from scripts.gpu.outcome import Outcome
from scripts.gpu.subject import Subject
from scripts.gpu.workbench import Workbench, cuda_source
from tcfuse import gpu
from tcfuse.errors import TcfuseError

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
    """The module that defines the benches.

    Raises:
        FileNotFoundError: It is not there.
    """
    return _module(shared, "micro_models")


def names(shared: Path) -> list[str]:
    """The benches; none when the folder is not there."""
    try:
        return list(definitions(shared).BENCHES)
    except FileNotFoundError:
        return []


def scaled(name: str, shared: Path, megabytes: int) -> Scaled:
    """A bench that moves about ``megabytes``, and not less than it does as defined."""
    module = definitions(shared)
    micro = module.make(name)
    factor = 1
    while factor < MOST_FACTOR and micro.traffic() * factor < megabytes << 20:
        factor *= 2
    common = SHARED.get(name, ())
    inputs = {n: a if n in common else _repeated(a, factor) for n, a in micro.inputs.items()}
    model = _enlarged(onnx.load_from_string(module.to_onnx(name, micro)), factor, common)
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


def _module(shared: Path, name: str) -> Any:
    folder = shared.resolve() / "bench"
    if not (folder / f"{name}.py").exists():
        raise FileNotFoundError(f"{folder} has no {name}.py; --shared says where it is")
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    return importlib.import_module(name)


# ---------------------------------------------------------------------- measuring


def measure_micro(name: str, bench: Workbench) -> Outcome:
    """One bench: right, then every contender in turn."""
    settings = bench.settings
    subject = scaled(name, settings.shared, 0 if settings.dry_run else settings.megabytes)
    found: Outcome = {
        "status": "ok",
        "kind": subject.micro.kind,
        "factor": subject.factor,
        "bytes": subject.n_bytes,
        "flops": subject.flops,
        "notes": {},
    }
    runs = _Runs(subject, bench, found)
    runs.kernel()
    runs.copy()
    for contender in (runs.torch, runs.onnx_runtime, runs.deployed):
        if not settings.dry_run:
            runs.attempt(contender)
    times = measure(bench, runs.launched, runs.graphs)
    found["seconds"] = {
        contender: {mode: list(t.rounds) for mode, t in modes.items()}
        for contender, modes in times.items()
    }
    return found


class _Runs:
    """The contenders on one bench."""

    def __init__(self, subject: Scaled, bench: Workbench, found: Outcome) -> None:
        self.subject, self.bench, self.found = subject, bench, found
        self.launched: dict[str, Enqueue] = {}
        self.graphs: dict[str, Enqueue] = {}
        self.kept: list[Any] = []  # memory that launches use

    def attempt(self, contender: Callable[[], None]) -> None:
        """Add a contender; what stops it is a note."""
        try:
            contender()
        except Exception as error:  # whatever a library raises costs only its own row
            text = " ".join(str(error).split())[:200]
            self.found["notes"][contender.__name__] = f"{type(error).__name__}: {text}"

    def kernel(self) -> None:
        """The whole graph as one kernel of ours, started without ONNX Runtime."""
        try:
            whole = self._whole()
            source = cuda_source(whole.checked, whole.interface, whole.name)
        except TcfuseError as error:
            self.found["notes"]["tcfuse"] = str(error)
            return
        call = gpu.Call(self.bench.load(source), whole.inputs)
        call.enqueue()
        error = self.subject.error(call.read()[0])
        self.found["error"] = error
        if not error <= TOLERANCE[self.subject.micro.output_dtype]:
            self.found |= {"status": "wrong", "why": f"error {error:.2g}"}
        self._add("tcfuse", call.enqueue, call.enqueue, call)

    def _whole(self) -> Subject:
        subject = self.subject
        if subject.name in FORMS:
            arrays = {**subject.inputs, **subject.micro.weights}
            return subject_of_form(subject.name, arrays)
        return subject_of(subject.name, subject.model, subject.inputs)

    def copy(self) -> None:
        """As many bytes, half of them read and half written."""
        n = self.subject.n_bytes // 8 // 4 * 4
        call = gpu.Call(self.bench.load(COPY), [np.zeros(n, np.float32)])
        self._add("copy", call.enqueue, call.enqueue, call)

    def torch(self) -> None:
        """PyTorch operator by operator, with its own fused operators, and compiled."""
        torch = Torch(self.bench.device)
        tensors = SimpleNamespace(
            **torch.tensors({**self.subject.inputs, **self.subject.micro.weights})
        )
        module = _module(self.bench.settings.shared, "micro_torch")
        plain = torch_forms.plain(self.subject.name) or module.plain(self.subject.name)
        library = torch_forms.plain(self.subject.name) or module.library(self.subject.name)
        contraction = self.subject.micro.kind == "matmul"
        forms = {
            "cuBLAS/cuDNN" if contraction else "torch eager": library,
            "torch.compile": torch.compiled(plain),
        }
        for label, form in forms.items():
            enqueue = torch.call(form, tensors)
            enqueue()
            self._check(label, form(tensors).cpu().numpy())
            self._add(label, enqueue, torch.captured(enqueue), tensors)

    def onnx_runtime(self) -> None:
        """The graph as ONNX Runtime's CUDA provider runs it."""
        self._session("ONNX Runtime", self.subject.model.SerializeToString(), None)

    def deployed(self) -> None:
        """The graph as ``tcfuse optimize --target cuda`` leaves it, in ONNX Runtime."""
        model, library = optimized(self.subject.name, self.subject.model)
        self._session(OURS, str(model), str(library))

    def _session(self, label: str, model: bytes | str, library: str | None) -> None:
        runtime = OnnxRuntime(self.bench.device, self.bench.settings.ordinal)
        session = runtime.session(model, library)
        inputs = self.subject.inputs
        like = run_once(session, inputs)
        enqueue, binding = runtime.bound(session, inputs, like)
        enqueue()
        self.bench.device.synchronize()
        self._check(label, binding.copy_outputs_to_cpu()[0])
        self._add(label, enqueue, None, (session, binding))
        self.graphs[label] = runtime.graph(model, library, inputs, like)

    def _check(self, label: str, output: np.ndarray) -> None:
        error = self.subject.error(output)
        if not error <= TOLERANCE[self.subject.micro.output_dtype]:
            self.found["notes"][label] = f"wrong: error {error:.2g}"

    def _add(self, label: str, launched: Enqueue, graph: Enqueue | None, kept: object) -> None:
        self.launched[label] = launched
        if graph is not None:
            self.graphs[label] = graph
        self.kept.append(kept)
