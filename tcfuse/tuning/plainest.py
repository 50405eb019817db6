"""The plainest of the candidates that are one kernel: what changes nothing is not kept.

A search sets knobs that the winner's text does not depend on.  In wisdom they would say that
something was found which was not, and at other sizes they may matter.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import reduce

from tcfuse.cuda_options import CudaOptions
from tcfuse.mapping_options import MappingOptions
from tcfuse.tuning.candidate import Candidate
from tcfuse.tuning.space import CUDA
from tcfuse.tuning.tuned import differences

Knob = tuple[str, str]
"""Whose it is, ``mapping`` or ``cuda``, and its name."""

_NAMED = {"mapping": "", "cuda": CUDA}

SourcesOf = Callable[[Sequence[Candidate]], Iterable[str]]
"""Digests of candidates' kernels; an empty one for what has none."""


def plainest(
    candidate: Candidate, source: str, sources_of: SourcesOf, forced: Collection[str] = ()
) -> Candidate:
    """A candidate with the same kernel that differs from the defaults in fewer knobs.

    Args:
        candidate: What was found.
        source: The digest of its kernel; empty where nobody knows it.
        sources_of: Asked twice at most, and then once a knob.
        forced: Knobs that stay; those of GPUs begin with ``cuda_``.
    """
    if not source:
        return candidate
    knobs = [(kind, name) for kind, own in differences(candidate).items() for name in own]
    knobs = [(kind, name) for kind, name in knobs if _NAMED[kind] + name not in forced]
    alone = [default_in(candidate, knob) for knob in knobs]
    found = zip(knobs, sources_of(alone) if alone else (), strict=True)
    idle = [knob for knob, made in found if made == source]
    together = reduce(default_in, idle, candidate)
    if len(idle) < 2 or list(sources_of([together])) == [source]:
        return together
    for knob in idle:  # of two that say the same one must stay
        fewer = default_in(candidate, knob)
        if list(sources_of([fewer])) == [source]:
            candidate = fewer
    return candidate


def default_in(candidate: Candidate, knob: Knob) -> Candidate:
    """The candidate with one knob as nobody chose it."""
    kind, name = knob
    if kind == "mapping":
        usual = getattr(MappingOptions(), name)
        return replace(candidate, mapping=replace(candidate.mapping, **{name: usual}))
    assert candidate.cuda is not None, "who has knobs of a GPU differs in them"
    usual = getattr(CudaOptions(), name)
    return replace(candidate, cuda=replace(candidate.cuda, **{name: usual}))
