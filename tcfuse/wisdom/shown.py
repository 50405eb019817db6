"""Knobs and sizes of wisdom as people read them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tcfuse.cuda_options import CudaOptions
from tcfuse.knob import knobs_of
from tcfuse.mapping_options import MappingOptions

_KINDS: tuple[tuple[str, type, str], ...] = (
    ("mapping", MappingOptions, ""),
    ("cuda", CudaOptions, "cuda-"),
)


def knobs_line(knobs: Mapping[str, Mapping[str, Any]]) -> str:
    """The knobs as flags are named: ``tile=32,32 unroll=8``; empty for the defaults."""
    shown = []
    for kind, options, prefix in _KINDS:
        values = knobs.get(kind, {})
        for name, known in knobs_of(options):
            if name in values:
                value = values[name]
                text = known.shown(tuple(value) if isinstance(value, list) else value)
                shown.append(f"{prefix}{name.replace('_', '-')}={text}")
    return " ".join(shown)


def operators_of(template: str, most: int = 6) -> str:
    """What a template computes, in few words: its functions and reductions, in order."""
    found = re.findall(r"([a-z_]\w*)\(|(\+=|\*=|min=|max=)!?", template.partition("{")[2])
    words = {"+=": "sum", "*=": "product", "min=": "min", "max=": "max"}
    names = [function or words[operator] for function, operator in found]
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    texts = [f"{name}*{n}" if n > 1 else name for name, n in counts.items()]
    return " ".join(texts[:most]) + (" ..." if len(texts) > most else "") or "elementwise"
