"""An optimized model in ONNX Runtime: open it with its kernels, run, compare, time.

The kernels of ``model.onnx`` are in ``model.so`` beside it.  Without that file the same model
runs too, on the original operators.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tcfuse.errors import InputError
from tcfuse.ort.arrays import run as run_session
from tcfuse.ort.inference import Session, ort_errors, runtime
from tcfuse.ort.manifest import library_path
from tcfuse.ort.timing import Ratio, bind, interleave

REGISTERED = (
    "tcfuse.library"  # the session entry that says which library its operators are from
)
CUDA_PROVIDERS = {"CUDAExecutionProvider", "CudaPluginExecutionProvider"}


def session_options(
    model_path: str | Path,
    sess_options: Any = None,
    *,
    entries: Mapping[str, str] | None = None,
) -> Any:
    """``onnxruntime.SessionOptions`` with the model's kernels registered, if it has any.

    Args:
        model_path: The optimized model.
        sess_options: Options to add the kernels to; new ones when there are none.
        entries: Session configuration entries to set first: ``tcfuse.disable`` names operators
            (separated by commas, ``*`` for all) that the original operators run instead,
            ``tcfuse.level`` (``v2``, ``v3``) is the highest instruction set to use, and
            ``tcfuse.cuda=0`` leaves GPUs alone, for sessions without a CUDA provider.

    Raises:
        InputError: ONNX Runtime is not installed, the options hold another model's kernels, or
            the library cannot be loaded.
    """
    ort = runtime()
    options = ort.SessionOptions() if sess_options is None else sess_options
    for key, value in (entries or {}).items():
        options.add_session_config_entry(key, value)
    library = library_path(Path(model_path)).resolve()
    if not library.is_file():
        return options
    if (earlier := _registered(options)) is None:
        _register(options, library)
    elif earlier != str(library):
        raise InputError(f"these session options hold the kernels of {earlier}; use new ones")
    return options


def session(
    path: str | Path,
    providers: Sequence[Any] | None = None,
    sess_options: Any = None,
    **arguments: Any,
) -> Session:
    """``onnxruntime.InferenceSession`` of an optimized model, with its kernels.

    Args:
        path: The optimized model.
        providers: As for ``InferenceSession``; default: the CPU.
        sess_options: Options to use; the model's kernels are added to them.
        arguments: Passed on to ``InferenceSession``.

    Raises:
        InputError: ONNX Runtime is not installed, or there is no such model.
    """
    ort = runtime()
    if not Path(path).is_file():
        raise InputError(f"{path}: there is no such file")
    chosen = ["CPUExecutionProvider"] if providers is None else list(providers)
    names = {p if isinstance(p, str) else p[0] for p in chosen}
    gpus = {} if names & CUDA_PROVIDERS else {"tcfuse.cuda": "0"}
    options = session_options(path, sess_options, entries=gpus)
    return ort.InferenceSession(str(path), options, providers=chosen, **arguments)


def run(
    model: Session | str | Path, feeds: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray | Any]:
    """Every output of one run, by name.

    Args:
        model: A session, or the path of a model to open with its kernels.
        feeds: Inputs by name.

    Raises:
        InputError: The model has no input of one of the names.
    """
    opened = session(model) if isinstance(model, str | Path) else model
    names = [value.name for value in opened.get_outputs()]
    unknown = feeds.keys() - {value.name for value in opened.get_inputs()}
    if unknown:
        raise InputError(f"the model has no input {sorted(unknown)[0]!r}")
    return dict(zip(names, run_session(opened, feeds), strict=True))


@dataclass(frozen=True, slots=True)
class Difference:
    """How far two arrays are apart.

    Attributes:
        absolute: Largest difference; infinite when shapes differ, or one has NaN or an
            infinity where the other has not.
        relative: The same divided by the largest finite value of the first.
    """

    absolute: float
    relative: float

    @classmethod
    def between(cls, a: np.ndarray, b: np.ndarray) -> Difference:
        """The difference of ``b`` from ``a``."""
        if a.shape != b.shape or a.dtype != b.dtype:
            return cls(np.inf, np.inf)
        if a.dtype.kind in "OUS":
            return cls(0.0, 0.0) if np.array_equal(a, b) else cls(np.inf, np.inf)
        x, y = a.astype(np.float64), b.astype(np.float64)
        with np.errstate(all="ignore"):
            apart = np.where((x == y) | (np.isnan(x) & np.isnan(y)), 0.0, np.abs(x - y))
        absolute = float(np.nan_to_num(apart, nan=np.inf, posinf=np.inf).max(initial=0.0))
        scale = float(np.abs(x[np.isfinite(x)]).max(initial=0.0))
        return cls(absolute, absolute / scale if scale and absolute else absolute)


def compare(a: Mapping[str, np.ndarray], b: Mapping[str, np.ndarray]) -> dict[str, Difference]:
    """The difference of each output, by name.

    Raises:
        InputError: The two have different outputs.
    """
    if a.keys() != b.keys():
        raise InputError(f"outputs are {', '.join(a)} and {', '.join(b)}")
    return {name: Difference.between(a[name], b[name]) for name in a}


@dataclass(frozen=True, slots=True)
class PairedTimes:
    """What timing contenders side by side showed.

    Attributes:
        medians_us: Microseconds a call of each contender.
        ratios: How many times faster each is than the first; the first is 1.
    """

    medians_us: tuple[float, ...]
    ratios: tuple[Ratio, ...]


def time_paired(
    contenders: Sequence[Session | Callable[[], Any]],
    feeds: Mapping[str, np.ndarray] | None = None,
    rounds: int = 9,
    min_time: float = 0.0,
    threads: int = 1,
) -> PairedTimes:
    """Time sessions (or calls) in turn, forwards and backwards, the first as baseline.

    Args:
        contenders: Sessions, each run on ``feeds`` with inputs and outputs bound once, or
            functions to call.
        feeds: Inputs by name.
        rounds: Turns at least.
        min_time: Seconds to go on for at least.
        threads: Threads the contenders use; with one, CPU time is measured.
    """
    calls = {
        str(k): c if callable(c) else bind(c, feeds or {}) for k, c in enumerate(contenders)
    }
    for call in calls.values():
        call()
    times: dict[str, list[float]] = {name: [] for name in calls}
    start = time.perf_counter()
    while True:
        for name, more in interleave(calls, rounds, threads).items():
            times[name] += more
        if time.perf_counter() - start >= min_time:
            break
    ratios = tuple(Ratio.paired(times["0"], each) for each in times.values())
    return PairedTimes(tuple(ratio.after_us for ratio in ratios), ratios)


def _registered(options: Any) -> str | None:
    """The library whose operators the options have; they can be registered only once."""
    try:
        return str(options.get_session_config_entry(REGISTERED))
    except RuntimeError:
        return None


def _register(options: Any, library: Path) -> None:
    try:
        options.register_custom_ops_library(str(library))
    except ort_errors() as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{library}: the kernels cannot be loaded: {reason}") from error
    options.add_session_config_entry(REGISTERED, str(library))
