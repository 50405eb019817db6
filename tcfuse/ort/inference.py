"""Sessions for measuring and checking: quiet, with chosen threads and optimization level."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import onnx_ir as ir

from tcfuse.errors import InputError

if TYPE_CHECKING:
    import onnxruntime

Session: TypeAlias = "onnxruntime.InferenceSession"
DATA_FOLDER = "session.model_external_initializers_file_folder_path"
MOST_BYTES = 1 << 30  # a larger model goes through a file: one protobuf holds 2 GiB at most


def runtime() -> Any:
    """The module ``onnxruntime``, whichever of its wheels is installed.

    Raises:
        InputError: None is.
    """
    try:
        import onnxruntime
    except ImportError:
        raise InputError(
            "onnxruntime is not installed; pip install 'tcfuse[cpu]', or pass "
            "--no-verify --no-gate"
        ) from None
    return onnxruntime


def ort_errors() -> tuple[type[Exception], ...]:
    """Everything ONNX Runtime raises when a model cannot be loaded or run."""
    runtime()
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    found = [v for v in vars(state).values() if isinstance(v, type)]
    errors = tuple(v for v in found if issubclass(v, Exception))
    return (*errors, RuntimeError, ValueError)  # older versions and the Python layer


def open_session(
    model: ir.Model | Path,
    library: Path | None = None,
    *,
    optimized: bool = True,
    threads: int = 1,
    settings: Mapping[str, str] | None = None,
    without: Sequence[str] = (),
    save_to: Path | None = None,
) -> Session:
    """A session of ``model`` on the CPU, with the kernels of ``library`` if given.

    Args:
        model: Left as it was.
        library: Shared library whose operators are registered.
        optimized: Let ONNX Runtime optimize the graph as far as it can.
        threads: Size of its thread pool.
        settings: Session configuration entries.
        without: Names of ONNX Runtime's optimizers that are left out.
        save_to: Where ONNX Runtime writes the graph that it made of ``model``.
    """
    ort = runtime()
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    levels = ort.GraphOptimizationLevel
    options.graph_optimization_level = (
        levels.ORT_ENABLE_ALL if optimized else levels.ORT_DISABLE_ALL
    )
    fixed = {"session.intra_op.allow_spinning": "0", "tcfuse.cuda": "0"}
    for key, value in {**fixed, **(settings or {})}.items():
        options.add_session_config_entry(key, value)
    if save_to is not None:
        options.optimized_model_filepath = str(save_to)
    if library is not None:
        options.register_custom_ops_library(str(library.resolve()))
    return _load(model, options, without)


def _load(model: ir.Model | Path, options: Any, without: Sequence[str]) -> Session:
    """Load through memory where possible, else through files that are deleted again."""
    from tcfuse.ort.injection import SINCE, Injected  # which needs ``runtime`` itself

    ort = runtime()

    def load(source: str | bytes) -> Session:
        providers = ["CPUExecutionProvider"]
        return ort.InferenceSession(
            source, options, providers=providers, disabled_optimizers=list(without)
        )

    if isinstance(model, Path):
        return load(str(model))
    constants = [value.const_value for value in model.graph.initializers.values()]
    folders = {str(t.base_dir) for t in constants if isinstance(t, ir.ExternalTensor)}
    inside = sum(
        tensor.nbytes
        for tensor in constants
        if tensor is not None and not isinstance(tensor, ir.ExternalTensor)
    )
    if inside < MOST_BYTES and len(folders) <= 1 and (not folders or _knows_folders(ort)):
        for folder in folders:  # ONNX Runtime reads the weights where they are
            options.add_session_config_entry(DATA_FOLDER, folder)
        if _version(ort) < SINCE or options.optimized_model_filepath:  # which holds them
            return load(ir.to_proto(model).SerializeToString())
        parts = Injected.of(model)
        options.add_external_initializers(list(parts.weights), list(parts.weights.values()))
        session = load(parts.message)
        session.tcfuse_weights = parts  # which it looks into as long as it lives
        return session
    with tempfile.TemporaryDirectory(prefix="tcfuse-") as folder:
        path = Path(folder) / "model.onnx"
        save_aside(model, path)
        return load(str(path))


def _knows_folders(ort: Any) -> bool:
    """Whether this version finds the external data of a model that comes through memory."""
    return _version(ort) >= (1, 21)


def _version(ort: Any) -> tuple[int, ...]:
    return tuple(map(int, ort.__version__.split(".")[:2]))


def weight_bytes(model: ir.Model) -> int:
    """Bytes of a model's constants: what ONNX Runtime keeps a copy of, packed, at most."""
    tensors = (value.const_value for value in model.graph.initializers.values())
    return sum(tensor.nbytes for tensor in tensors if tensor is not None)


def save_aside(model: ir.Model, path: Path) -> None:
    """Write ``model`` with its large tensors in ``path`` plus ``.data``; it stays as it was."""
    ir.save(model, path, external_data=f"{path.name}.data", size_threshold_bytes=1024)
