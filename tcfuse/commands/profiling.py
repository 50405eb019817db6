"""``--profile``: a table of where the time of a command went."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tcfuse.profile import profiling, since_start


@contextmanager
def profiled(wanted: bool) -> Iterator[None]:
    """Print, if wanted, what the process spent until what is inside has ended well."""
    if not wanted:
        yield
        return
    with profiling() as recording:
        recording.add("start", since_start())
        yield
        print(recording.result(), file=sys.stderr)
