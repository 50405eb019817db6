"""Several workers on this machine: a process a worker, each on cores of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any

from tcfuse.errors import WorkerError
from tcfuse.tuning import cores, dispatch, remote
from tcfuse.tuning.candidate import Candidate, Outcome, Subject
from tcfuse.tuning.remote import Make, outcomes_of
from tcfuse.tuning.tasks import Known, Lost, Outcomes, Task, to_record

SERVE = "from tcfuse.tuning.workers import serve; serve({})"


class WorkersEvaluator:
    """Tries several candidates at once on this machine, each on cores of its own.

    Args:
        n_workers: How many.
        make: Makes the evaluator of each.
    """

    def __init__(self, n_workers: int, make: Make) -> None:
        self._workers = LocalWorkers(n_workers, make)
        self._known = Known()

    def evaluate(
        self, subject: Subject, candidates: Sequence[Candidate], incumbent: Candidate
    ) -> Iterator[tuple[Candidate, Outcome]]:
        """See ``protocols.Evaluator``.

        Raises:
            UnsupportedError: The kernel with default knobs cannot be measured.
            WorkerError: There are not enough cores, or workers end whatever they are given.
        """
        n_cores = self._workers.n_workers * (subject.threads if subject.target == "cpu" else 1)
        if n_cores > (n_usable := cores.count()):
            raise WorkerError(
                f"--workers {self._workers.n_workers} takes {n_cores} cores and there are "
                f"{n_usable}: kernels that share a core cannot be timed"
            )
        return dispatch.evaluate(self._workers, subject, candidates, incumbent, self._known)

    def confirm(
        self, subject: Subject, candidates: Sequence[Candidate]
    ) -> Iterator[tuple[Candidate, Outcome]]:
        """See ``protocols.Evaluator``; one worker measures all of them."""
        return dispatch.confirm(self._workers, subject, candidates)

    def close(self) -> None:
        """End every process."""
        self._workers.close()


class LocalWorkers:
    """Processes of this machine, started when they are needed; see ``dispatch.Workers``."""

    def __init__(self, n_workers: int, make: Make) -> None:
        self.n_workers = n_workers
        self._make = make
        self._processes: dict[str, _Process | None] = {
            f"worker {number}": None for number in range(1, n_workers + 1)
        }
        self._busy: set[str] = set()

    def idle(self) -> Sequence[str]:
        """See ``dispatch.Workers``."""
        return [name for name in self._processes if name not in self._busy]

    def send(self, worker: str, task: Task) -> None:
        """See ``dispatch.Workers``."""
        process = self._processes[worker] or _Process()
        self._processes[worker] = process
        self._busy.add(worker)
        with contextlib.suppress(OSError):  # ``receive`` finds that it has ended
            process.connection.send((self._make, to_record(task)))

    def receive(self, seconds: float) -> Sequence[tuple[str, Outcomes | Lost]]:
        """See ``dispatch.Workers``."""
        names = {}
        for name in self._busy:
            if (process := self._processes[name]) is not None:
                names[process.connection] = name
        ready = wait(list(names), seconds)
        return [(names[end], self._received(names[end], end)) for end in names if end in ready]

    def _received(self, name: str, connection: Connection[Any, Any]) -> Outcomes | Lost:
        try:
            record = connection.recv()
        except (EOFError, OSError):
            return Lost(f"its process ended {self._stop(name)}")
        self._busy.discard(name)
        if "failed" in record:
            raise RuntimeError(record["failed"])
        return outcomes_of(record)

    def give_up(self, worker: str, *, hangs: bool = False) -> None:
        """See ``dispatch.Workers``."""
        del hangs  # the process is ended either way, and another one started
        self._stop(worker)

    def _stop(self, worker: str) -> str:
        """End a process; how it ended."""
        self._busy.discard(worker)
        process, self._processes[worker] = self._processes[worker], None
        return process.stop() if process else ""

    def close(self) -> None:
        """End every process."""
        for worker in self._processes:
            self._stop(worker)


class _Process:
    """A Python that answers on a socket, in a session of its own with all it starts."""

    def __init__(self) -> None:
        self.connection, theirs = Pipe()
        self._popen = subprocess.Popen(
            [sys.executable, "-P", "-c", SERVE.format(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,  # Ctrl-C is for the parent, which ends this process
        )
        theirs.close()

    def stop(self) -> str:
        """End it and what it started; how it ended, if it had."""
        self.connection.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(0.2)  # one that has closed its socket is about to end
        status = self._popen.poll()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._popen.pid, signal.SIGKILL)
        self._popen.wait()
        if status is None:
            return "without an answer"
        return f"by signal {-status}" if status < 0 else f"with status {status}"


def serve(descriptor: int) -> None:
    """Answer the tasks that come on a socket until it ends."""
    connection: Connection[Any, Any] = Connection(descriptor)
    while True:
        try:
            make, task = connection.recv()
        except EOFError:
            break
        try:
            record = remote.answer(make, task)
        except Exception as error:  # told to the parent, which reports it as an internal error
            record = {"failed": f"{type(error).__name__}: {error}"}
        try:
            connection.send(record)
        except BrokenPipeError:  # nobody wants it any more
            break
    remote.close()
