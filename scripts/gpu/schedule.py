"""Items given to worker processes, for as long as there is time."""

from __future__ import annotations

import queue
import sys
import threading
import time
from collections.abc import Sequence

from scripts.gpu.items import PARTS
from scripts.gpu.outcome import Outcome
from scripts.gpu.process import NoDeviceError, WorkerProcess
from scripts.gpu.results import Results

GRACE_S = 25  # that an item may take beyond the time that was asked for
MANY = 60  # items of which those that are right are counted, not listed


class Clock:
    """The time that one run has.

    Attributes:
        is_fresh: Whether nothing has been done in it yet; then anything may start, or what
            takes long would never be done.
    """

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds
        self.is_fresh = seconds > 0

    @property
    def left(self) -> float:
        """Seconds."""
        return self._end - time.monotonic()

    def has(self, seconds: float) -> bool:
        """Whether there is time for something that takes so long."""
        return self.is_fresh or self.left > seconds


def do_items(
    part: str,
    items: Sequence[str],
    results: Results,
    workers: Sequence[WorkerProcess],
    clock: Clock,
) -> int:
    """Do items of one part, one at a time in each worker; how many are left.

    Args:
        part: Its name.
        items: Their names.
        results: Gets the outcomes.
        workers: The first one serves this thread and stays; the others are stopped.
        clock: Says how long.

    Raises:
        NoDeviceError: The first worker has lost the device.
    """
    kind = PARTS[part]
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    for item in items:
        waiting.put(item)
    done: list[str] = []
    started = time.monotonic()

    def serve(worker: WorkerProcess) -> None:
        while clock.has(kind.usual_s):
            try:
                item = waiting.get_nowait()
            except queue.Empty:
                return
            begin, most = time.monotonic(), clock.left + GRACE_S
            outcome = worker.do(item, min(kind.limit_s, most), cut=most < kind.limit_s)
            clock.is_fresh = False
            outcome["took_s"] = round(time.monotonic() - begin, 2)
            results.put(item, outcome)
            if outcome["status"] != "unfinished":
                done.append(item)
            _show(len(done), len(items), item, outcome, time.monotonic() - started)

    def serve_too(worker: WorkerProcess) -> None:
        try:
            serve(worker)
        except NoDeviceError as error:  # as for want of memory: the others do its items
            print(f"note: a process less: {error}", file=sys.stderr)

    first, *others = workers
    threads = [threading.Thread(target=serve_too, args=(worker,)) for worker in others]
    for thread in threads:
        thread.start()
    try:
        serve(first)
    finally:
        for thread, worker in zip(threads, others, strict=True):
            thread.join()
            worker.stop()
    return len(items) - len(done)


def _show(n: int, of: int, item: str, outcome: Outcome, seconds: float) -> None:
    """One line about an item."""
    status = outcome["status"]
    place = f"  [{n}/{of}, {seconds:.0f} s]"
    if of <= MANY or status not in ("ok", "outside"):
        why = f": {outcome['why']}" if "why" in outcome else ""
        print(f"{place} {item} {status}{why}", flush=True)
    elif n % 50 == 0:
        print(place, flush=True)
