"""Random graphs on their way: inputs and answers, kernels, and the verdict."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir

from tcfuse.attempt import Attempt, attempt_parts
from tcfuse.errors import UnsupportedError
from tcfuse.graph.fusion import fuse_all
from tcfuse.graph.load import load_model
from tcfuse.graph.plan import FusionGroup
from tcfuse.graph.rewrite import Replacement, rewrite
from tcfuse.mapping_options import MappingOptions
from tcfuse.ort.arrays import to_array, to_value
from tcfuse.ort.inference import open_session, ort_errors
from tcfuse.targets.base import KernelSource
from tcfuse.targets.cpu import compile_kernel
from tcfuse.tc.compose import ComposeError, compose
from tcfuse.tc.sema import check
from tests.conformance.graph_grammar import Graph

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True, slots=True)
class Run:
    """Inputs, what is right, and how far from it is near enough, by name."""

    given: Arrays
    wanted: Arrays
    tolerances: dict[str, float]


@dataclass(frozen=True, slots=True)
class Ready:
    """A graph with its kernels, still to be built and run."""

    name: str
    kernels: tuple[KernelSource, ...]
    model: bytes
    runs: tuple[Run, ...]

    def answer(self, library: Path) -> str:
        """``equal``, or what is wrong, or why ONNX Runtime has no answer."""
        try:
            return self._compared(library)
        except ort_errors() as error:  # an operator that it does not have for the type
            if "tcfuse" in str(error):
                raise
            return f"left: {error}"

    def _compared(self, library: Path) -> str:
        model = ir.from_proto(onnx.load_from_string(self.model))
        session = open_session(model, library, threads=2)
        for k, run in enumerate(self.runs):
            feeds = {name: to_value(array) for name, array in run.given.items()}
            results = session.run_with_ort_values(list(run.wanted), feeds)
            for (name, want), result in zip(run.wanted.items(), results, strict=True):
                if wrong := difference(to_array(result), want, run.tolerances[name]):
                    return f"{name} in run {k}: {wrong}"
        return "equal"


def difference(got: np.ndarray, want: np.ndarray, tolerance: float) -> str:
    """How an answer differs by more than rounding; empty when it does not."""
    if got.shape != want.shape:
        return f"shape {got.shape} instead of {want.shape}"
    if want.dtype != np.float64:
        wrong = got != want
        if got.dtype != want.dtype:
            return f"{got.dtype} instead of {want.dtype}"
    else:
        narrow = want.astype(got.dtype).astype(np.float64)
        apart = np.minimum(*(np.abs(got.astype(np.float64) - w) for w in (want, narrow)))
        wrong = ~(apart <= tolerance)
    if not wrong.any():
        return ""
    at = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
    place = ", ".join(map(str, at))
    return (
        f"{int(wrong.sum())} of {wrong.size} differ, ({place}): {got[at]} instead of "
        f"{want[at]}, {tolerance:.2g} is rounding"
    )


def runs_of(graph: Graph) -> tuple[Run, ...]:
    """What a graph is run on."""
    return tuple(
        Run(
            {value.name: value.runs[k] for value in graph.inputs},
            {value.name: value.exact[k] for value in graph.outputs},
            {value.name: value.tolerance(k) for value in graph.outputs},
        )
        for k in range(graph.n_runs)
    )


@dataclass(frozen=True, slots=True)
class Case:
    """A graph by its seed and number."""

    name: str
    model: onnx.ModelProto
    runs: tuple[Run, ...]


def prepared(case: Case) -> Ready:
    """A graph with everything in kernels that they can take.

    Raises:
        UnsupportedError: That is nothing.
    """
    model = load_model(case.model)
    plans = fuse_all(model, conservative=False)
    kernels: list[KernelSource] = []
    replacements: list[Replacement] = []

    def compiled(group: FusionGroup) -> Attempt:
        try:
            composed = compose(group, model.opset_imports)
            checked = check(composed.definition, sizes=composed.interface.sizes)
            named = composed.interface, composed.definition.name
            kernel = compile_kernel(checked, *named, MappingOptions()).source
        except ComposeError:
            raise
        except UnsupportedError as error:
            return Attempt(group, reason=str(error))
        kernels.append(kernel)
        ports = composed.inputs, composed.outputs
        replacements.append(Replacement(group, kernel.name, *ports))
        return Attempt(group)

    reasons = [
        tried.reason
        for plan in plans
        for group in plan.groups
        for tried in attempt_parts(group, compiled)
    ]
    if not kernels:
        reasons += [rejection.reason for plan in plans for rejection in plan.rejections]
        raise UnsupportedError(next(filter(None, reasons), "nothing is fused"))
    fused = ir.to_proto(rewrite(model, replacements)).SerializeToString()
    return Ready(case.name, tuple(kernels), fused, case.runs)
