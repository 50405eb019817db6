"""Other ways to compute the same on the GPU: PyTorch and ONNX Runtime, on the device's stream.

All contenders use one stream and are timed by the same events, so that nothing differs but what
they do.  Each is a function that asks for the work and does not wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from scripts.gpu.workbench import Workbench
from tcfuse import gpu
from tcfuse.errors import DeviceError

Enqueue = Callable[[], None]
DRY_ROUNDS, DRY_SECONDS = 2, 1e-4


def measure(
    bench: Workbench,
    launched: Mapping[str, Enqueue],
    graphs: Mapping[str, Enqueue],
) -> dict[str, dict[str, gpu.Times]]:
    """Time contenders in turn, launched one by one and in CUDA graphs.

    Args:
        bench: Where.
        launched: The contenders.
        graphs: What to put into a graph for them; one that starts a graph of its own is called
            as it is (``Replayed``).

    Returns:
        For each contender, times by ``launched`` and ``graph``.
    """
    device, settings = bench.device, bench.settings
    rounds = DRY_ROUNDS if settings.dry_run else settings.rounds
    seconds = DRY_SECONDS if settings.dry_run else gpu.BLOCK_SECONDS
    found: dict[str, dict[str, gpu.Times]] = {name: {} for name in {**launched, **graphs}}
    blocks = {name: gpu.launched(device, enqueue) for name, enqueue in launched.items()}
    for name, times in gpu.interleave(blocks, rounds, seconds).items():
        found[name]["launched"] = times
    with ExitStack() as stack:
        blocks = {}
        for name, enqueue in graphs.items():
            if isinstance(enqueue, Replayed):
                blocks[name] = gpu.launched(device, enqueue)
            else:
                calls = 2 if settings.dry_run else gpu.GRAPH_CALLS
                blocks[name] = stack.enter_context(gpu.captured(device, enqueue, calls))
        for name, times in gpu.interleave(blocks, rounds, seconds).items():
            found[name]["graph"] = times
    return found


class Replayed:
    """A graph that its library captured and starts; calling it starts it."""

    def __init__(self, replay: Enqueue) -> None:
        self.replay = replay

    def __call__(self) -> None:
        """Start the graph."""
        self.replay()


class Torch:
    """PyTorch on the device's stream.

    Raises:
        DeviceError: It is not installed, or sees no GPU.
    """

    def __init__(self, device: gpu.Device) -> None:
        try:
            import torch
        except ImportError as error:
            raise DeviceError(f"PyTorch cannot be used: {error}") from error
        if not torch.cuda.is_available():
            raise DeviceError("PyTorch sees no GPU")
        self.torch: Any = torch
        self.stream: Any = torch.cuda.ExternalStream(device.stream)

    def tensors(self, arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """Arrays as tensors on the GPU."""
        return {name: self.torch.from_numpy(array).cuda() for name, array in arrays.items()}

    def product(self, dtype: str, edge: int, *, tf32: bool) -> Enqueue:
        """A product of two square matrices."""
        torch = self.torch
        a, b = (
            torch.randn(edge, edge, device="cuda", dtype=getattr(torch, dtype)) for _ in "ab"
        )
        out = torch.empty_like(a)

        def enqueue() -> None:
            torch.backends.cuda.matmul.allow_tf32 = tf32
            with torch.cuda.stream(self.stream):
                torch.mm(a, b, out=out)

        return enqueue

    def call(self, function: Callable[[Any], Any], tensors: Any) -> Enqueue:
        """A function of tensors, in full float32."""
        torch = self.torch

        def enqueue() -> None:
            torch.backends.cuda.matmul.allow_tf32 = False
            torch.backends.cudnn.allow_tf32 = False
            with torch.no_grad(), torch.cuda.stream(self.stream):
                function(tensors)

        return enqueue

    def compiled(self, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """The function through ``torch.compile``."""
        compiled: Callable[[Any], Any] = self.torch.compile(function, dynamic=False)
        return compiled

    def captured(self, enqueue: Enqueue) -> Replayed:
        """A call as a graph: PyTorch's own, which knows its memory."""
        torch = self.torch
        for _ in range(3):
            enqueue()
        self.stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=self.stream):
            enqueue()

        def replay() -> None:
            with torch.cuda.stream(self.stream):
                graph.replay()

        return Replayed(replay)


class OnnxRuntime:
    """ONNX Runtime's CUDA execution provider on the device's stream.

    Attributes:
        provider: The execution provider.
        memory: Where it has inputs and outputs.

    Raises:
        DeviceError: It is not installed, or was built without the provider.
    """

    provider, memory = "CUDAExecutionProvider", "cuda"

    def __init__(self, device: gpu.Device, ordinal: int = 0) -> None:
        try:
            import onnxruntime
        except ImportError as error:
            raise DeviceError(f"ONNX Runtime cannot be used: {error}") from error
        if self.provider not in onnxruntime.get_available_providers():
            raise DeviceError("ONNX Runtime was built without CUDA; onnxruntime-gpu has it")
        self.ort: Any = onnxruntime
        self.device, self.ordinal = device, ordinal

    def settings(self) -> dict[str, str]:
        """Options of the provider: the device's stream, and all of float32."""
        return {
            "device_id": str(self.ordinal),
            "user_compute_stream": str(self.device.stream),
            "use_tf32": "0",
        }

    def session(self, model: bytes | str, library: str | None = None, **provider: str) -> Any:
        """A session whose nodes run on the GPU.

        Raises:
            DeviceError: The provider cannot be loaded; it asks for libraries that are missing.
        """
        options = self.ort.SessionOptions()
        options.log_severity_level = 3
        if library is not None:
            options.register_custom_ops_library(library)
        providers = [(self.provider, {**self.settings(), **provider})]
        session = self.ort.InferenceSession(model, options, providers=providers)
        if self.provider not in session.get_providers():
            raise DeviceError("ONNX Runtime cannot load its CUDA provider (cuBLAS, cuDNN?)")
        return session

    def bound(
        self, session: Any, inputs: Mapping[str, np.ndarray], like: Sequence[np.ndarray]
    ) -> tuple[Enqueue, Any]:
        """A call with memory on the GPU that stays the same, and what reads its outputs.

        Args:
            session: Whose.
            inputs: By name.
            like: Arrays of the shapes and types of the outputs.
        """
        value, binding = self.ort.OrtValue, session.io_binding()
        place = (self.memory, self.ordinal)
        kept = []
        for name in (i.name for i in session.get_inputs()):
            array = np.ascontiguousarray(inputs[name])
            kept.append(value.ortvalue_from_numpy(array, *place))
            binding.bind_ortvalue_input(name, kept[-1])
        for output, array in zip(session.get_outputs(), like, strict=True):
            kept.append(value.ortvalue_from_shape_and_type(array.shape, array.dtype, *place))
            binding.bind_ortvalue_output(output.name, kept[-1])
        options = self.ort.RunOptions()
        options.add_run_config_entry("disable_synchronize_execution_providers", "1")

        def enqueue(kept: object = kept) -> None:  # ``kept`` lives as long as the binding
            session.run_with_iobinding(binding, options)

        return enqueue, binding

    def graph(
        self,
        model: bytes | str,
        library: str | None,
        inputs: Mapping[str, np.ndarray],
        like: Sequence[np.ndarray],
    ) -> Replayed:
        """The model in a CUDA graph, which ONNX Runtime captures in the first runs."""
        session = self.session(model, library, enable_cuda_graph="1")
        enqueue, _ = self.bound(session, inputs, like)
        for _ in range(3):
            enqueue()
        return Replayed(enqueue)


def run_once(session: Any, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The outputs of a session, on the CPU."""
    wanted = {i.name for i in session.get_inputs()}
    found: list[np.ndarray] = session.run(None, {n: inputs[n] for n in wanted})
    return found
