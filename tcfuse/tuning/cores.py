"""Cores of this machine, each for one worker at a time.

Whoever measures on a core holds a lock on a file of that core, so that two workers, of one run
or of several, never time kernels on the same one.  Locks end with the process that holds them,
however it ends.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from tcfuse.errors import WorkerError

TOPOLOGY = Path("/sys/devices/system/cpu")

_held: dict[int, int] = {}  # descriptors of lock files, by core; open until the process ends


def claim(n_cores: int = 1) -> tuple[int, ...]:
    """Take cores for as long as this process lives, and run this thread on them.

    Processes and threads that this thread starts afterwards run there too.  What the process
    holds already is used first.  Systems other than Linux choose cores themselves.

    Raises:
        WorkerError: There are not as many that nobody else holds.
    """
    if sys.platform != "linux":
        return ()
    usable = by_distance(os.sched_getaffinity(os.getpid()), TOPOLOGY)
    for core in usable:
        if len(_held) < n_cores and core not in _held and (lock := _lock(core)) is not None:
            _held[core] = lock
    if len(_held) < n_cores:
        n_free = len(_held)
        release()
        raise WorkerError(
            f"{n_cores} cores are needed and {n_free} of {len(usable)} are free: "
            "other workers measure on the rest"
        )
    cores = tuple(_held)[:n_cores]
    os.sched_setaffinity(0, cores)
    return cores


def count() -> int:
    """How many cores this process may run on."""
    if sys.platform != "linux":
        return os.cpu_count() or 1
    return len(os.sched_getaffinity(0))


def release() -> None:
    """Let others have what this process holds."""
    for lock in _held.values():
        os.close(lock)
    _held.clear()


def by_distance(cores: Iterable[int], topology: Path) -> tuple[int, ...]:
    """Cores in the order in which to use them: threads of a core that is in use come last."""
    wanted = sorted(cores)
    rank = {core: _siblings(core, topology).index(core) for core in wanted}
    return tuple(sorted(wanted, key=lambda core: (rank[core], core)))


def _siblings(core: int, topology: Path) -> Sequence[int]:
    """The hardware threads of the core that ``core`` is one of; itself where nobody tells."""
    path = topology / f"cpu{core}" / "topology" / "thread_siblings_list"
    try:
        text = path.read_text(encoding="ascii").strip()
        spans = [part.split("-") for part in text.split(",")]
        found = [n for span in spans for n in range(int(span[0]), int(span[-1]) + 1)]
    except (OSError, ValueError):
        return [core]
    return found if core in found else [core]


def _lock(core: int) -> int | None:
    """A lock on the file of a core; ``None`` when somebody else has it."""
    import fcntl  # not on every system

    folder = Path(tempfile.gettempdir()) / f"tcfuse-cores-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    descriptor = os.open(folder / f"{core}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
