"""Every contender on one small graph, in turn."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from scripts.gpu import micro_graphs, torch_forms
from scripts.gpu.cases import subject_of
from scripts.gpu.contenders import Enqueue, OnnxRuntime, Torch, measure, run_once
from scripts.gpu.contraction_forms import FORMS, subject_of_form
from scripts.gpu.limits import COPY
from scripts.gpu.micro_graphs import TOLERANCE, Scaled, module, scaled
from scripts.gpu.models import OURS, optimized
from scripts.gpu.outcome import Outcome
from scripts.gpu.subject import Subject
from scripts.gpu.workbench import Settings, Workbench, cuda_source
from tcfuse import gpu
from tcfuse.errors import TcfuseError


def names(settings: Settings) -> list[str]:
    """The graphs."""
    return micro_graphs.names(settings.shared)


def run(name: str, bench: Workbench) -> Outcome:
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
        except TcfuseError as reason:
            self.found["notes"]["tcfuse"] = str(reason)
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
        forms_of = module(self.bench.settings.shared, "micro_torch")
        plain = torch_forms.plain(self.subject.name) or forms_of.plain(self.subject.name)
        library = torch_forms.plain(self.subject.name) or forms_of.library(self.subject.name)
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
