"""What every step of one run shares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from tcfuse.options import OptimizeOptions
from tcfuse.store import Store

Progress: TypeAlias = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Run:
    """What every step of one run shares."""

    options: OptimizeOptions
    store: Store
    progress: Progress
