"""Two forms of one optimized model: on plain tensors, and on ONNX Runtime's blocked ones.

The plain form runs everywhere.  ONNX Runtime keeps the tensors between convolutions blocked,
though, and a fused node on plain tensors costs a change of layout at each side; so for the CPU
there is a second form, made of the graph that ONNX Runtime itself makes of the model on this
machine (``ort.optimized``).  Which one is faster is measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from tcfuse.options import OptimizeOptions
from tcfuse.ort.arrays import run
from tcfuse.ort.inference import open_session, ort_errors, runtime
from tcfuse.ort.model_feeds import Wishes, model_feeds, shape_guesses
from tcfuse.ort.optimized import blocked_graph, may_be_blocked, native_block
from tcfuse.ort.session import Difference
from tcfuse.ort.timing import Ratio, bind, interleave
from tcfuse.processor import processor
from tcfuse.profile import timed
from tcfuse.result import Result, Source, given, path_of, with_notes
from tcfuse.run import Run
from tcfuse.store import key_of, tool_digest
from tcfuse.trial import structure, verdict_versions
from tcfuse.wisdom.verdict import FORM, Verdict

FASTER = 1.02
"""How much faster the blocked form must be to be kept: it runs on fewer machines."""

TOLERANCE = 1e-3
"""How far the outputs may be apart, of the largest one.  Each kernel was verified by itself;
this is about the operators around them, and the numbers in channels that only fill a block."""

LOADS, ROUNDS = 4, 16  # where memory lies is worth some percent for a session's life


@dataclass(frozen=True, slots=True)
class Form:
    """What one form is made of.

    Attributes:
        source: The graph.
        path: The file the user gave, if it was one.
        baseline: What ONNX Runtime would run without us; ``None``: the graph itself.
        block: Channels in a block; 0 for plain tensors.
    """

    source: Source
    path: Path | None
    baseline: Path | ir.Model | None = None
    block: int = 0

    @classmethod
    def plain(cls, source: Source) -> Form:
        """The model as it is."""
        path = path_of(source)
        return cls(source, path, path)


@timed("load")
def blocked_form(source: Source, options: OptimizeOptions, model: ir.Model) -> Form | None:
    """The same model on blocked tensors; ``None`` when there is none, or it is not wanted.

    It is for the CPU alone, and where nothing is measured it must be asked for.

    Args:
        source: The model.
        options: What is wanted.
        model: The model in memory, with kernels or without: large ones are not read again.
    """
    wanted = {"auto": options.gate, "blocked": True, "portable": False}[options.layout]
    if not wanted or options.targets != ("cpu",) or not may_be_blocked(model):
        return None
    path = path_of(source)
    baseline = path or given(source)
    graph = blocked_graph(baseline)
    return None if graph is None else Form(graph, path, baseline, native_block())


def fastest(plain: Result, blocked: Result, wishes: Wishes, run: Run) -> Result:
    """The blocked form with the plain one beside it, or the plain one alone."""
    if blocked.library is None:
        return plain
    forced = run.options.layout == "blocked"
    verdict = _verdict(plain, blocked, wishes)
    if (decided := run.wisdom.verdicts.find(verdict, run.store)) is not None:
        return _chosen(plain, blocked, decided, forced)
    key = key_of(
        *(structure(form.model) for form in (plain, blocked)),
        *(str(form.library and form.library.name) for form in (plain, blocked)),
        tuple(shape_guesses(blocked.model, wishes)),
        processor(),
        runtime().__version__,
        tool_digest(),
    )
    record = run.store.get("forms", key)
    if record is None:
        run.progress("comparing both forms of the model")
        compared = asdict(_compared(plain, blocked, wishes))
        record = replace(verdict, record=compared).to_record()
        run.store.put("forms", key, record)
    return _chosen(plain, blocked, record["record"], forced)


def _verdict(plain: Result, blocked: Result, wishes: Wishes) -> Verdict:
    """What is decided about, and where, with nothing decided."""
    names = {region.name for form in (plain, blocked) for region in form.report.kept}
    guesses = tuple(shape_guesses(blocked.model, wishes))
    subject = key_of(*(structure(form.model) for form in (plain, blocked)), guesses)
    versions = verdict_versions()
    return Verdict(FORM, subject, tuple(sorted(names)), processor(), versions, {})


@dataclass(frozen=True, slots=True)
class Compared:
    """What running both forms beside the original showed.

    Attributes:
        problem: Why the blocked form must not be used; empty when it may.
        gain: Its speed over that of the plain form.
        whole: Its speed over that of the original.
    """

    problem: str
    gain: Ratio | None = None
    whole: Ratio | None = None


def _chosen(plain: Result, blocked: Result, record: Mapping[str, Any], forced: bool) -> Result:
    """One of both forms, with a note about the other."""
    gain = record["gain"]["value"] if record["gain"] else 0.0
    if record["problem"]:
        return with_notes(
            plain, f"the form on blocked tensors was given up: {record['problem']}"
        )
    if gain < FASTER and not forced:
        return with_notes(plain, f"on blocked tensors the model ran at {gain:.3f} of its speed")
    whole = Ratio(**record["whole"])
    report = replace(blocked.report, speedup=whole.value, spread=whole.spread)
    chosen = replace(blocked, report=report, portable=plain)
    return with_notes(chosen, f"{gain:.2f} times as fast as the portable form")


def _compared(plain: Result, blocked: Result, wishes: Wishes) -> Compared:
    """Both forms beside the original: are the answers the same, and which is faster?"""
    original = plain.source or plain.model
    why = "no input is known that the model runs on (try --input-shapes)"
    for shapes in shape_guesses(blocked.model, wishes):
        inputs = model_feeds(blocked.model, shapes)
        times: dict[str, list[float]] = {}
        try:
            expected = run(open_session(original), inputs)
        except ort_errors():
            continue
        try:
            found = run(open_session(blocked.model, blocked.library), inputs)
            if not all(map(_agree, expected, found)):
                return Compared("its answers are not those of the original")
            for _ in range(LOADS):
                sessions = {
                    "original": open_session(original),
                    "plain": open_session(plain.model, plain.library),
                    "blocked": open_session(blocked.model, blocked.library),
                }
                calls = {name: bind(opened, inputs) for name, opened in sessions.items()}
                for name, measured in interleave(calls, ROUNDS // LOADS).items():
                    times.setdefault(name, []).extend(measured)
        except ort_errors() as error:
            return Compared(" ".join(str(error).split())[:200])
        gain, whole = (Ratio.paired(times[n], times["blocked"]) for n in ("plain", "original"))
        return Compared("", gain, whole)
    return Compared(why)


def _agree(expected: np.ndarray, found: np.ndarray) -> bool:
    """Whether two outputs differ by no more than the order of sums makes them."""
    return Difference.between(expected, found).relative <= TOLERANCE
