"""Which of several forms of one model is faster, by running them in turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx_ir as ir

from tcfuse.ort.inference import open_session, ort_errors
from tcfuse.ort.model_feeds import Wishes, model_feeds, shape_guesses
from tcfuse.ort.timing import bind, interleave, paired_ratios, standard_error

LOADS, ROUNDS = 5, 6
"""Times that all are loaded, since where memory lies is worth some percent; rounds in each."""


@dataclass(frozen=True, slots=True)
class Gain:
    """How many times faster than the first, and the relative standard error of that."""

    value: float
    error: float


def compared(forms: Sequence[tuple[ir.Model, Path | None]], wishes: Wishes) -> list[Gain]:
    """How fast each form but the first is; nothing if the model does not run.

    Args:
        forms: Models and the libraries of their kernels.
        wishes: Sizes in measurements.
    """
    names = [str(k) for k in range(len(forms))]
    for shapes in shape_guesses(forms[0][0], wishes):
        inputs = model_feeds(forms[0][0], shapes)
        loads: list[dict[str, list[float]]] = []
        try:
            for _ in range(LOADS):
                sessions = [open_session(*form) for form in forms]
                calls = {n: bind(s, inputs) for n, s in zip(names, sessions, strict=True)}
                loads.append(interleave(calls, ROUNDS))
        except ort_errors():
            continue
        return [_gain(loads, names[0], name) for name in names[1:]]
    return []


def _gain(loads: Sequence[Mapping[str, Sequence[float]]], usual: str, other: str) -> Gain:
    ratios = [paired_ratios(times[usual], times[other]) for times in loads]
    return Gain(float(np.median(np.concatenate(ratios))), standard_error(ratios))
