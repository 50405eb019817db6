"""Fuses subgraphs of ONNX models into polyhedrally compiled ONNX Runtime operators.

``optimize`` makes a model faster, and more so after ``tune``; ``session`` and
``session_options`` run the result in ONNX Runtime.  ``define`` turns the mathematics of a layer
into a function.  The names load what they need when they are first used.
"""

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tcfuse.layers.define import Layers, TcWarning, define
    from tcfuse.ort.session import session, session_options
    from tcfuse.pipeline import optimize
    from tcfuse.profile import profiling
    from tcfuse.result import Result
    from tcfuse.tuning.kept import Wisdom
    from tcfuse.tuning.run import tune

__all__ = [
    "Layers",
    "Result",
    "TcWarning",
    "Wisdom",
    "define",
    "optimize",
    "profiling",
    "session",
    "session_options",
    "tune",
]

logging.getLogger(__name__).addHandler(logging.NullHandler())  # silent unless asked for

_HOMES = {
    "define": "tcfuse.layers.define",
    "Layers": "tcfuse.layers.define",
    "TcWarning": "tcfuse.layers.define",
    "optimize": "tcfuse.pipeline",
    "profiling": "tcfuse.profile",
    "Result": "tcfuse.result",
    "session": "tcfuse.ort.session",
    "session_options": "tcfuse.ort.session",
    "tune": "tcfuse.tuning.run",
    "Wisdom": "tcfuse.tuning.kept",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tcfuse' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
