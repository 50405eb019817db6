"""CUDA kernels run on the CPU, from the exact text that ships, and checked on every access.

``emulate`` runs a whole kernel; ``Program`` compiles texts and launches single kernels.
"""

from tcfuse.emulator.emulate import Emulated, emulate
from tcfuse.emulator.launches import Run
from tcfuse.emulator.lines import Place
from tcfuse.emulator.program import Program
from tcfuse.emulator.report import (
    SITE_HEADER,
    Finding,
    Report,
    Site,
    Thread,
    Traffic,
    site_rows,
)

__all__ = [
    "SITE_HEADER",
    "Emulated",
    "Finding",
    "Place",
    "Program",
    "Report",
    "Run",
    "Site",
    "Thread",
    "Traffic",
    "emulate",
    "site_rows",
]
