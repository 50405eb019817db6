"""Candidates tried by workers of dask.distributed, on this machine and on others.

What is sent are tasks: the text of a kernel and knobs; what comes back are outcomes.  Only
workers that have the same tcfuse and the same device are given any.  Each has one candidate at
a time, so that measurements on a device come one after the other; where a worker has a ``GPU``
among its resources, a task for a GPU takes it.  Records are written by the client alone.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tcfuse.errors import WorkerError
from tcfuse.tuning import dispatch, remote
from tcfuse.tuning.candidate import Candidate, Outcome, Subject
from tcfuse.tuning.dispatch import PATIENCE
from tcfuse.tuning.remote import Identity, Make, outcomes_of
from tcfuse.tuning.tasks import Known, Lost, Outcomes, Task, to_record
from tcfuse.wisdom.devices import device_of
from tcfuse.wisdom.problem import ANY_DEVICE

if TYPE_CHECKING:
    from distributed import Future  # as Any: half of its functions have types

log = logging.getLogger(__name__)

SECONDS = 15.0  # for an answer of the scheduler
FIRST_SECONDS = 60.0  # for a worker that is asked who it is, and has to load tcfuse for that
POLL = 1.0  # seconds between looks at who is there
RESOURCE = "GPU"


class ClusterEvaluator:
    """Tries candidates on the workers of a cluster that have the wanted device.

    Attributes:
        device: What the outcomes are of, as ``wisdom.devices.device_of`` has it.

    Args:
        address: Of the scheduler: ``tcp://host:8786``, or ``tls://...``.
        make: Makes the evaluator of each worker.
        target: ``cpu`` or ``cuda``.
        device: The wanted device; that of this machine when empty, or that of the workers when
            this machine has none.

    Raises:
        WorkerError: distributed is not installed, nobody answers at the address, or none of
            the workers has the device.
    """

    def __init__(self, address: str, make: Make, target: str = "cpu", device: str = "") -> None:
        self._crew = Crew(address, target)
        try:
            self.device = self._crew.choose(device)
        except BaseException:
            self._crew.close()
            raise
        log.log(logging.WARNING if "left out" in str(self) else logging.INFO, "%s", self)
        self._workers = DaskWorkers(self._crew, make)
        self._known = Known()

    def __str__(self) -> str:
        return self._crew.summary()

    def evaluate(
        self, subject: Subject, candidates: Sequence[Candidate], incumbent: Candidate
    ) -> Iterator[tuple[Candidate, Outcome]]:
        """See ``protocols.Evaluator``.

        Raises:
            UnsupportedError: The kernel with default knobs cannot be measured.
            WorkerError: The scheduler is gone, no worker is left, or they end whatever they
                are given.
        """
        return dispatch.evaluate(self._workers, subject, candidates, incumbent, self._known)

    def confirm(
        self, subject: Subject, candidates: Sequence[Candidate]
    ) -> Iterator[tuple[Candidate, Outcome]]:
        """See ``protocols.Evaluator``; one worker measures all of them."""
        return dispatch.confirm(self._workers, subject, candidates)

    def close(self) -> None:
        """Leave the cluster; its workers end what they are at and stay."""
        self._crew.close()


@dataclass(frozen=True, slots=True)
class Seen:
    """A worker, and why it is given nothing; empty for one that may be."""

    identity: Identity | None
    refusal: str = ""
    resources: Mapping[str, float] = field(default_factory=dict)


class Crew:
    """Who is there, and who of them may be given tasks."""

    def __init__(self, address: str, target: str) -> None:
        try:
            import distributed
        except ImportError:
            raise WorkerError(
                "--scheduler needs dask.distributed: pip install 'tcfuse[distributed]'"
            ) from None
        self._address, self._target, self._wanted = address, target, ""
        self._versions = remote.versions(target)
        self._seen: dict[str, Seen] = {}
        self._looked = 0.0
        try:
            self.client = distributed.Client(address, timeout=SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:  # TimeoutError among them
            raise WorkerError(f"no scheduler answers at {address}: {error}") from None

    def choose(self, wanted: str) -> str:
        """Decide which device is meant, and wait for a worker that has it."""
        end = time.monotonic() + PATIENCE
        while not self.look() and time.monotonic() < end:
            time.sleep(POLL / 4)
        if not self._seen:
            raise WorkerError(f"the scheduler at {self._address} has no workers")
        there = Counter(identity.device for identity in self._fit())
        here = wanted or device_of(self._target)
        if not wanted and here == ANY_DEVICE and there:
            kinds = [device for device in there if device != ANY_DEVICE] or [ANY_DEVICE]
            if len(kinds) > 1:
                raise WorkerError(f"workers have several GPUs, choose one: {_listed(kinds)}")
            here = kinds[0]
        self._wanted = here
        if not self.usable():
            raise WorkerError(f"no worker can be used: {self.summary()}")
        return here

    def look(self) -> Mapping[str, Seen]:
        """Who is there now, asked at most once a second.

        Raises:
            WorkerError: The scheduler does not answer.
        """
        if time.monotonic() - self._looked < POLL:
            return self._seen
        there = self._present()
        for gone in self._seen.keys() - there.keys():
            del self._seen[gone]
        for worker in there.keys() - self._seen.keys():
            self._seen[worker] = self._ask(worker, there[worker].get("resources") or {})
        self._looked = time.monotonic()
        return self._seen

    def usable(self) -> dict[str, Seen]:
        """Workers that may be given tasks, by address."""
        return {name: seen for name, seen in self.look().items() if not self._refusal(seen)}

    def exclude(self, worker: str) -> None:
        """Give a worker nothing more."""
        if worker in self._seen:
            self._seen[worker] = Seen(None, "it hangs")

    def summary(self) -> str:
        """One line: how many workers serve the device, and what is the matter with the rest."""
        reasons = Counter(self._refusal(seen) for seen in self._seen.values())
        n_usable = reasons.pop("", 0)
        parts = [f"{_counted(n_usable)} with {_named(self._wanted)}"]
        parts += [f"{_counted(n)} left out: {why}" for why, n in sorted(reasons.items())]
        return "; ".join(parts)

    def close(self) -> None:
        """Leave."""
        with contextlib.suppress(Exception):  # a scheduler that is gone is no reason to fail
            self.client.close(timeout=SECONDS)

    def _present(self) -> dict[str, Any]:
        try:
            found = self.client.sync(self.client.scheduler.identity, callback_timeout=SECONDS)
        except Exception as error:
            raise WorkerError(
                f"the scheduler at {self._address} does not answer any more: "
                f"{type(error).__name__}"
            ) from None
        return dict(found["workers"])

    def _ask(self, worker: str, resources: Mapping[str, float]) -> Seen:
        try:
            found = self.client.sync(
                self.client.run,
                remote.identity,
                self._target,
                workers=[worker],
                on_error="return",
                callback_timeout=FIRST_SECONDS,
            )[worker]
        except Exception as error:  # it has just ended, or its Python is another one
            found = error
        if isinstance(found, Identity):
            return Seen(found, resources=resources)
        return Seen(None, f"it cannot say which tcfuse it has ({type(found).__name__})")

    def _fit(self) -> Iterator[Identity]:
        """Workers whose outcomes are comparable with ours."""
        for seen in self._seen.values():
            if seen.identity and seen.identity.versions == self._versions:
                yield seen.identity

    def _refusal(self, seen: Seen) -> str:
        """Why a worker is given nothing; empty when it is."""
        if seen.identity is None:
            return seen.refusal
        if seen.identity.versions != self._versions:
            return "it has another tcfuse or another compiler than this machine"
        if seen.identity.device != self._wanted:
            return f"it has {_named(seen.identity.device)}"
        return ""


class DaskWorkers:
    """Tasks with workers of a cluster; see ``dispatch.Workers``."""

    def __init__(self, crew: Crew, make: Make) -> None:
        self._crew = crew
        self._make = make
        self._futures: dict[str, Future] = {}
        self._done = threading.Event()

    def idle(self) -> Sequence[str]:
        """See ``dispatch.Workers``."""
        return [name for name in self._crew.usable() if name not in self._futures]

    def send(self, worker: str, task: Task) -> None:
        """See ``dispatch.Workers``."""
        there = self._crew.look().get(worker)
        gpu = (
            task.subject.target == "cuda" and there is not None and RESOURCE in there.resources
        )
        future = self._crew.client.submit(
            remote.answer,
            self._make,
            to_record(task),
            key=f"tcfuse-{uuid.uuid4().hex}",  # equal tasks are measured again
            workers=[worker],
            resources={RESOURCE: 1} if gpu else None,
        )
        future.add_done_callback(lambda _: self._done.set())
        self._futures[worker] = future

    def receive(self, seconds: float) -> Sequence[tuple[str, Outcomes | Lost]]:
        """See ``dispatch.Workers``."""
        self._done.wait(seconds)
        self._done.clear()  # what is done from here on is seen below, or next time
        there = self._crew.look()
        found: list[tuple[str, Outcomes | Lost]] = []
        for worker, future in list(self._futures.items()):
            if future.done():
                found.append((worker, self._result(future)))
            elif worker not in there:
                future.cancel()
                found.append((worker, Lost(f"the worker {worker} is gone")))
            else:
                continue
            del self._futures[worker]
        return found

    def give_up(self, worker: str, *, hangs: bool = False) -> None:
        """See ``dispatch.Workers``."""
        with contextlib.suppress(Exception):
            self._futures.pop(worker).cancel()
        if hangs:
            self._crew.exclude(worker)

    def _result(self, future: Future) -> Outcomes | Lost:
        import distributed

        try:
            return outcomes_of(future.result(timeout=SECONDS))
        except (distributed.scheduler.KilledWorker, distributed.CancelledError) as error:
            return Lost(f"its worker ended ({type(error).__name__})")


def evaluator(
    address: str, make: Make, target: str = "cpu", device: str = ""
) -> ClusterEvaluator:
    """See ``ClusterEvaluator``; distributed is loaded here, not when tcfuse is."""
    return ClusterEvaluator(address, make, target, device)


def _counted(n_workers: int) -> str:
    return f"{n_workers} worker" + ("" if n_workers == 1 else "s")


def _named(device: str) -> str:
    return device or "no GPU"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(sorted(names))
