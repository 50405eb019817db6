"""Every node case of ONNX through ``tcfuse optimize --no-gate``, against stock ONNX Runtime.

``python -m tests.conformance.optimized --all`` runs all of them, ``--slice 2/8`` every eighth
from the second on.  The optimized model must give what ONNX Runtime gives for the original, or
be refused with it.  Cases run in a process that may crash: that costs one case.
"""

from __future__ import annotations

import argparse
import pickle
import queue
import resource
import subprocess
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from tcfuse.errors import InputError, UnsupportedError
from tcfuse.ort.inference import ort_errors, runtime
from tcfuse.ort.session import session_options
from tcfuse.ort.verify import NOT_RUN
from tcfuse.pipeline import optimize
from tcfuse.result import Result
from tests.conformance.choice import add_choice, chosen
from tests.conformance.node_cases import ROUNDING, agree, cases
from tests.conformance.ort_values import answers, fed, leaves

CHUNK = 100
BYTES = 12 << 30  # of address space a worker may take
SECONDS = 300.0  # a case may take, on a busy machine

GOOD = {
    "fused": "equal, with kernels in it",
    "kept": "equal, with nothing in kernels",
    "neither": "ONNX Runtime takes neither the original nor the optimized model",
    "more": "only the optimized model runs, and gives what ONNX expects",
}
BAD = {
    "refused": "optimize refuses what ONNX Runtime runs",
    "fault": "a kernel was wrong and given back, or a stage failed",
    "different": "not what ONNX Runtime gives",
    "crashed": "the process ends, or never does",
}


@dataclass(frozen=True, slots=True)
class Job:
    """A case as a worker gets it: plain bytes and arrays.

    Attributes:
        hostile: Something is wrong with it, and ``optimize`` may refuse it.
    """

    name: str
    model: bytes
    data_sets: Sequence[tuple[Sequence[Any], Sequence[Any]]]
    hostile: bool = False


@dataclass
class Outcome:
    """What became of each case: a word of ``GOOD`` or ``BAD``, and why."""

    found: dict[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def bad(self) -> dict[str, tuple[str, str]]:
        """The cases that are not as they must be."""
        return {name: told for name, told in self.found.items() if told[0] in BAD}

    def summary(self) -> str:
        """The bad ones, a table by outcome, and the totals in the last line."""
        lines = [f"{kind.upper()} {name}: {why}" for name, (kind, why) in self.bad.items()]
        kinds = [kind for kind, _ in self.found.values()]
        for kind, meaning in {**GOOD, **BAD}.items():
            lines.append(f"{kinds.count(kind):6} {kind:10} {meaning}")
        good = len(self.found) - len(self.bad)
        lines.append(f"as ONNX Runtime {good} of {len(self.found)}")
        return "\n".join(lines)


# ---------------------------------------------------------------------- in the worker


def judged(job: Job, folder: Path) -> tuple[str, str]:
    """What becomes of one case."""
    source, target = folder / "model.onnx", folder / "model.tcfuse.onnx"
    source.write_bytes(job.model)
    try:
        result = optimize(source, gate=False)
        result.save(target)
    except InputError as error:
        if job.hostile:
            return "neither", str(error)
        wanted = _results(onnx.load_from_string(job.model), source, job)
        return ("neither" if isinstance(wanted, str) else "refused"), str(error)
    if faults := _faults(result, job.hostile):
        return "fault", faults[0]
    if job.hostile:  # ONNX Runtime may not survive it
        tell(job, "neither", "the process ended while ONNX Runtime ran it")
    model = onnx.load_from_string(job.model)
    wanted, got = _results(model, source, job), _results(model, target, job)
    if isinstance(got, str):
        refused = isinstance(wanted, str) or (job.hostile and "tcfuse: " in got)
        return ("neither" if refused else "different"), got
    kind = "fused" if result.report.kept else "kept"
    if isinstance(wanted, str) and job.hostile:
        return "more", ""
    if isinstance(wanted, str):
        kind, wanted = "more", [expected for _, expected in job.data_sets]
    rounds = any(node.op_type in ROUNDING for node in model.graph.node)
    for ours, theirs in zip(got, wanted, strict=True):
        if difference := _difference(leaves(ours), leaves(theirs), rounds):
            return "different", difference
    return kind, ""


def _faults(result: Result, hostile: bool) -> list[str]:
    """Reasons that no region should be left alone for; absurd ones may not be verified."""
    bad = ("internal error", "verification failed", "does not compile")
    clean = ("verification failed: cannot be loaded", f"verification failed: {NOT_RUN}")
    if hostile:
        clean = ("verification failed",)
    reasons = [region.reason for region in result.report.regions]
    return [why for why in reasons if why.startswith(bad) and not why.startswith(clean)]


def _results(model: onnx.ModelProto, path: Path, job: Job) -> list[list[Any]] | str:
    """The outputs of each data set, or why there are none."""
    runtime().set_seed(1)  # so that random numbers are the same ones each time
    try:
        options = session_options(path)
        options.log_severity_level = 4
        levels = runtime().GraphOptimizationLevel
        options.graph_optimization_level = levels.ORT_DISABLE_ALL
        providers = ["CPUExecutionProvider"]
        session = runtime().InferenceSession(str(path), options, providers=providers)
        return [answers(session, feeds_of(model, given)) for given, _ in job.data_sets]
    except ort_errors() as error:
        return " ".join(str(error).split())[:300]


def feeds_of(model: onnx.ModelProto, given: Sequence[Any]) -> dict[str, Any]:
    """The data of a case by the names of its model's inputs."""
    pairs = zip(model.graph.input, given, strict=False)
    return {value.name: fed(datum, value.type) for value, datum in pairs}


def _difference(
    got: Sequence[np.ndarray | None], wanted: Sequence[np.ndarray | None], rounds: bool
) -> str:
    """How two results differ; empty when they do not."""
    if len(got) != len(wanted):
        return f"{len(got)} tensors instead of {len(wanted)}"
    for k, (ours, theirs) in enumerate(zip(got, wanted, strict=True)):
        try:
            _compare(ours, theirs, rounds)
        except AssertionError as error:
            return f"output {k}: {' '.join(str(error).split())[:300]}"
    return ""


def _compare(got: np.ndarray | None, want: np.ndarray | None, rounds: bool) -> None:
    """Raise ``AssertionError`` unless two tensors agree."""
    if got is None or want is None:
        assert got is want, "one is absent"
        return
    assert got.dtype.kind == want.dtype.kind == "O" or got.dtype == want.dtype, (
        f"{got.dtype} instead of {want.dtype}"
    )
    try:
        agree(got, want, rounds=rounds)
    except UnsupportedError:  # strings, and element types that tcfuse leaves alone
        assert got.shape == want.shape
        if got.dtype.kind != "O":
            got, want = got.astype(np.float64), want.astype(np.float64)
        np.testing.assert_array_equal(got, want)


def work(path: Path) -> None:
    """Run the cases of a file; a line each says how it went."""
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    for job in pickle.loads(path.read_bytes()):
        try:
            with tempfile.TemporaryDirectory() as folder:
                kind, why = judged(job, Path(folder))
        except Exception as error:  # reported, so that the next case runs
            last = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{Path(last.filename).name}:{last.lineno}"
            kind, why = "fault", f"{type(error).__name__} at {place}: {error}"
        tell(job, kind, why)


def tell(job: Job, kind: str, why: str) -> None:
    """Print what becomes of a case; the last line about it counts."""
    print(job.name, kind, " ".join(why.split())[:400], sep="\t", flush=True)  # noqa: T201


# ---------------------------------------------------------------------- around the worker


def run_cases(chosen: Iterable[Any], *, progress: bool = False) -> Outcome:
    """Every case through a worker, in chunks."""
    jobs = [Job(c.name, c.model.SerializeToString(), c.data_sets) for c in chosen]
    return run_jobs(jobs, progress=progress)


def run_jobs(jobs: Sequence[Job], *, progress: bool = False) -> Outcome:
    """The same for cases that are plain bytes."""
    outcome = Outcome()
    for start in range(0, len(jobs), CHUNK):
        for name, kind, why in run_apart(jobs[start : start + CHUNK]):
            outcome.found[name] = (kind, why)
            if progress and kind in BAD:
                print(f"{kind.upper()} {name}: {why}", file=sys.stderr)  # noqa: T201
        if progress:
            told = f"{len(outcome.found)} of {len(jobs)}, {len(outcome.bad)} bad"
            print(told, file=sys.stderr, flush=True)  # noqa: T201
    return outcome


def run_apart(jobs: Sequence[Job]) -> Iterator[tuple[str, str, str]]:
    """Run cases in another process, in a new one after each that ends it."""
    waiting = list(jobs)
    while waiting:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "jobs.pickle"
            path.write_bytes(pickle.dumps(waiting))
            for line in _lines(path):
                name, kind, why = line.rstrip("\n").split("\t")
                if waiting and name == waiting[0].name:
                    waiting.pop(0)
                yield name, kind, why
        if waiting:
            yield waiting.pop(0).name, "crashed", "the process ended or was stopped"


def _lines(path: Path) -> Iterator[str]:
    """What a worker prints, for as long as it does not keep still for too long."""
    command = [sys.executable, "-m", "tests.conformance.optimized", "--work", str(path)]
    root = Path(__file__).parents[2]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root)
    told: queue.Queue[str | None] = queue.Queue()

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            told.put(line)
        told.put(None)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        while (line := told.get(timeout=SECONDS)) is not None:
            if line.count("\t") == 2:  # and not what a library prints
                yield line
    except queue.Empty:
        return
    finally:
        process.kill()
        process.wait()
        reader.join()
        assert process.stdout is not None
        process.stdout.close()


def main() -> int:
    """Run cases and print what became of them; the exit status says whether all are right."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_choice(parser, every=40)
    parser.add_argument("--list", default="", help="list the cases of that outcome")
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work is not None:
        work(arguments.work)
        return 0
    outcome = run_cases(chosen(arguments, cases()), progress=True)
    for name, (kind, why) in outcome.found.items():
        if kind == arguments.list:
            print(f"{kind} {name}: {why}")  # noqa: T201
    print(outcome.summary())  # noqa: T201
    return int(bool(outcome.bad))


if __name__ == "__main__":
    sys.exit(main())
