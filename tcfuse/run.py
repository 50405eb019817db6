"""What every step of one run shares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from tcfuse.advising import Consultation, consultation
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
        wisdom: What is known of kernels like those of the run.
        ahead: Compiles what will be built; ``None`` where nothing will.
    """

    options: OptimizeOptions
    store: Store
    progress: Progress
    wisdom: Consultation
    ahead: Ahead | None = None

    @classmethod
    def of(cls, options: OptimizeOptions, progress: Progress, *, tries: bool = True) -> Run:
        """A run with the user's cache and wisdom.

        Args:
            options: With every target spelt out.
            progress: Called with a line of text now and then.
            tries: Whether something may be run to find knobs.

        Raises:
            InputError: The wisdom that was named is none.
        """
        wisdom = consultation(options, tries=tries)
        return cls(options, Store.default(), progress, wisdom)
