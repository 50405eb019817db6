"""One case: every contender right, then all of them in turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx_ir as ir

from models.draft import Draft
from scripts.paper_kernels.case import Case, OnnxForm
from scripts.paper_kernels.kernels import Arrays, Workload, namespace, runner, workload
from scripts.paper_kernels.machine import Peak, copying
from tcfuse.ort.inference import open_session
from tcfuse.ort.timing import Ratio, bind, interleave

OPSET = 21
TRIALS = 3
MOST_SECONDS = 60  # for one case; a slow one gets fewer rounds
FEWEST_ROUNDS = 5
Outputs = Sequence[np.ndarray]


class WrongResultError(Exception):
    """A contender does not compute what it should."""


@dataclass(frozen=True)
class Contender:
    """A call, and what it is."""

    label: str
    call: Callable[[], Any]


@dataclass(frozen=True)
class Row:
    """What was measured of one case.

    Attributes:
        numpy: How many times faster than NumPy.
        ort: How many times faster than ONNX Runtime.
        copy_us: Microseconds a copy of as many bytes takes.
        peak: Operations a second of the loop of multiply-adds.
        error: The largest difference from float64, relative to the largest element.
    """

    case: Case
    n_bytes: int
    flops: int
    numpy: Ratio
    ort: Ratio
    numpy_form: str
    ort_form: str
    copy_us: float
    peak: float
    error: float

    @property
    def compute_us(self) -> float:
        """Microseconds the operations take at the peak."""
        return self.flops / self.peak * 1e6

    @property
    def bound(self) -> str:
        """What limits the kernel."""
        return "compute" if self.compute_us > self.copy_us else "memory"

    @property
    def fraction(self) -> float:
        """The least time the limits allow, over the time it takes."""
        return max(self.compute_us, self.copy_us) / self.ort.after_us


def measure(case: Case, peak: Peak, *, rounds: int, symbolic: bool) -> Row:
    """Check and time a case.

    Raises:
        WrongResultError: A contender is wrong.
    """
    work = workload(case)
    expected = [np.asarray(a) for a in case.numpy[0](namespace(work.inputs, np.float64))]
    call, known = runner(case, work.inputs, symbolic=symbolic)
    call()
    mine = Contender("tcfuse", call)
    error = check("tcfuse", [known[name] for name in work.outputs], expected, work)
    numpy = fastest(list(numpy_contenders(case, work, expected)))
    ort = fastest(list(onnx_contenders(case, work, expected)))
    contenders = {
        "tcfuse": call,
        "numpy": numpy.call,
        "ort": ort.call,
        "copy": copying(work.n_bytes),
        "peak": peak.call,
    }
    seconds = 2 * sum(best_time(c.call) for c in (mine, numpy, ort))
    fitting = max(int(MOST_SECONDS / max(seconds, 1e-9)), FEWEST_ROUNDS)
    times = interleave(contenders, min(rounds, fitting))
    return Row(
        case,
        work.n_bytes,
        work.flops,
        Ratio.paired(times["numpy"], times["tcfuse"]),
        Ratio.paired(times["ort"], times["tcfuse"]),
        numpy.label,
        ort.label,
        median(times["copy"]) * 1e6,
        peak.flops / median(times["peak"]),
        error,
    )


def check(name: str, found: Outputs, expected: Outputs, work: Workload) -> float:
    """The largest error relative to the largest element.

    Raises:
        WrongResultError: It is more than rounding explains.
    """
    allowed = float(np.finfo(np.float32).eps) * (16 + work.terms)
    worst = 0.0
    for left, right in zip(found, expected, strict=False):
        apart = np.abs(left.reshape(right.shape) - right).max(initial=0)
        # numpy's maximum keeps a NaN, Python's need not
        worst = float(np.maximum(worst, apart / (1 + np.abs(right).max(initial=0))))
    if not worst <= allowed:
        raise WrongResultError(f"{name} is off by {worst:.1e}, more than {allowed:.1e}")
    return worst


def numpy_contenders(case: Case, work: Workload, expected: Outputs) -> Sequence[Contender]:
    """Every formulation in NumPy, checked."""
    found = []
    arrays = namespace(work.inputs)
    for form in case.numpy:
        label = form.__qualname__.partition(".")[0]
        check(f"NumPy's {label}", form(arrays), expected, work)
        found.append(Contender(label, lambda form=form: form(arrays)))
    return found


def onnx_contenders(case: Case, work: Workload, expected: Outputs) -> Sequence[Contender]:
    """Every formulation in ONNX operators, with weights as inputs and as constants, checked."""
    found = []
    shapes = case.shapes(case.sizes) if case.shapes is not None else {}
    arrays = {n: a.reshape(shapes.get(n, a.shape)) for n, a in work.inputs.items()}
    for form in case.onnx:
        for weights in ((), case.weights) if case.weights else ((),):
            label = form.__qualname__.partition(".")[0] + (
                " (constant weights)" if weights else ""
            )
            session = open_session(model_of(case, form, arrays, weights))
            wanted = {value.name for value in session.get_inputs()}
            fed = {name: array for name, array in arrays.items() if name in wanted}
            check(f"ONNX Runtime's {label}", session.run(None, fed), expected, work)
            found.append(Contender(label, bind(session, fed)))
    return found


def model_of(case: Case, form: OnnxForm, arrays: Arrays, weights: Sequence[str]) -> ir.Model:
    """One formulation as a model."""
    draft = Draft(case.name, opset=OPSET)
    values: Mapping[str, ir.Value] = {
        name: draft.constant(array, array.dtype)
        if name in weights
        else draft.input(name, array.shape, ir.DataType.from_numpy(array.dtype))
        for name, array in arrays.items()
    }
    outputs = form(draft, SimpleNamespace(**values), case.sizes)
    for position, value in enumerate(outputs):
        value.name, value.dtype = f"output{position}", ir.DataType.FLOAT
        draft.graph.outputs.append(value)
    return draft.model()


def fastest(contenders: Sequence[Contender]) -> Contender:
    """The one whose best call takes the least time."""
    if len(contenders) == 1:
        return contenders[0]
    return min(contenders, key=lambda c: best_time(c.call))


def best_time(call: Callable[[], Any]) -> float:
    """Seconds of processor time of the fastest of a few calls."""
    call()
    times = []
    for _ in range(TRIALS):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
        if times[-1] > 1:
            break
    return min(times)
