"""What every step of one run shares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from tcfuse.ahead import Ahead
from tcfuse.options import OptimizeOptions
from tcfuse.store import Store

Progress: TypeAlias = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Run:
    """What every step of one run shares.

    Attributes:
        store: The cache.
        progress: Called with a line of text now and then.
        ahead: Compiles what will be built; ``None`` where nothing will.
    """

    options: OptimizeOptions
    store: Store
    progress: Progress
    ahead: Ahead | None = None
