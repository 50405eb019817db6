"""How long a search may take, and how that is written."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tcfuse.errors import OptionError

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)([smh]?)")


def seconds_of(duration: str | float) -> float:
    """A duration in seconds: a number of them, or a text like ``90s``, ``5m`` or ``1h30m``.

    Raises:
        OptionError: It is no duration, or none that is more than nothing.
    """
    text = str(duration).strip().lower()
    parts = _DURATION.findall(text)
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if "".join(number + unit for number, unit in parts) != text or not 0 < seconds < math.inf:
        raise OptionError(f"no duration {text!r}; write for example 90s, 5m or 1h30m")
    return seconds


def shown(seconds: float) -> str:
    """Seconds as people read them.

    >>> shown(75.2)
    '1m15s'
    """
    whole = round(seconds)
    hours, minutes = whole // 3600, whole // 60 % 60
    if whole < 60:
        return f"{whole}s"
    return f"{hours}h{minutes:02}m" if hours else f"{minutes}m{whole % 60:02}s"


@dataclass(slots=True)
class Clock:
    """Time that a search has used, by the wall.

    Attributes:
        seconds: How much there is.
        used: What earlier runs of the same search used.
        now: Tells the time.
    """

    seconds: float = math.inf
    used: float = 0.0
    now: Callable[[], float] = field(default_factory=lambda: time.monotonic)
    _start: float = field(init=False)

    def __post_init__(self) -> None:
        self._start = self.now()

    @property
    def elapsed(self) -> float:
        """What was used so far."""
        return self.used + self.now() - self._start

    @property
    def left(self) -> float:
        """What is left; nothing is not less than nothing."""
        return max(self.seconds - self.elapsed, 0.0)
