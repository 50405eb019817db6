"""What every worker runs, a process of this machine or of another."""

from __future__ import annotations

import pickle
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol, TypeAlias

from tcfuse.errors import TcfuseError, UnsupportedError, WorkerError
from tcfuse.store import tool_digest
from tcfuse.tuning import cores
from tcfuse.tuning.candidate import Candidate, Outcome, Subject
from tcfuse.tuning.protocols import Evaluator
from tcfuse.tuning.tasks import Outcomes, Task, of_record
from tcfuse.wisdom.devices import device_of
from tcfuse.wisdom.versions import current_versions


class Sharing(Evaluator, Protocol):
    """An evaluator that need not measure what others have measured."""

    def learn(self, subject: Subject, outcomes: Sequence[Outcome]) -> None:
        """What came of some texts of a subject on a device like this one."""
        ...

    def made(self, subject: Subject, candidate: Candidate) -> Outcome:
        """What is known without measuring: the text, in an outcome that says ``made``."""
        ...


Make: TypeAlias = Callable[[], Sharing]
"""Makes the evaluator that a worker measures with; a function of a module, or ``partial`` of
one with arguments that are data, so that it can be pickled."""

_evaluators: dict[bytes, Sharing] = {}  # at most one, by its maker


@dataclass(frozen=True, slots=True)
class Identity:
    """What a worker says of itself before it is given anything.

    Attributes:
        host: Name of its machine.
        device: As ``wisdom.devices.device_of`` has it.
        versions: What must be the same for outcomes to be comparable.
    """

    host: str
    device: str
    versions: Mapping[str, str]


def identity(target: str) -> Identity:
    """This process, as a worker for kernels of that target."""
    return Identity(platform.node(), device_of(target), versions(target))


def versions(target: str) -> dict[str, str]:
    """Of what makes kernels and measures them."""
    return {**current_versions(target), "sources": tool_digest()}


def answer(make: Make, record: Mapping[str, Any]) -> dict[str, Any]:
    """Do a task, on cores of this worker's own.

    Returns:
        ``{"outcomes": [[knobs, outcome], ...]}``, or why nobody can do it:
        ``{"unsupported": ...}`` of this subject, ``{"error": ...}`` of any.
    """
    try:
        task = of_record(record)
        claim(task.subject)
        evaluator = _evaluator(make)
        if task.known:
            evaluator.learn(task.subject, task.known)
        tried = _tried(evaluator, task)
        return {"outcomes": [(knobs.to_record(), asdict(outcome)) for knobs, outcome in tried]}
    except UnsupportedError as error:
        return {"unsupported": str(error)}
    except TcfuseError as error:
        return {"error": str(error)}


def _tried(evaluator: Sharing, task: Task) -> Iterable[tuple[Candidate, Outcome]]:
    if task.asks:
        return [(each, evaluator.made(task.subject, each)) for each in task.candidates]
    if task.confirms:
        return evaluator.confirm(task.subject, task.candidates)
    return evaluator.evaluate(task.subject, task.candidates, task.incumbent)


def outcomes_of(record: Mapping[str, Any]) -> Outcomes:
    """The outcomes that ``answer`` returned.

    Raises:
        UnsupportedError: The subject cannot be measured.
        WorkerError: The worker cannot measure anything.
    """
    if "unsupported" in record:
        raise UnsupportedError(str(record["unsupported"]))
    if "error" in record:
        raise WorkerError(str(record["error"]))
    found = record["outcomes"]
    return [(Candidate.of_record(knobs), Outcome(**outcome)) for knobs, outcome in found]


def _evaluator(make: Make) -> Sharing:
    """The evaluator of this process; processes that it has started serve the next task too."""
    key = pickle.dumps(make)
    if key not in _evaluators:
        close()
        _evaluators[key] = make()
    return _evaluators[key]


def claim(subject: Subject) -> None:
    """Take the cores that a kernel's calls run on."""
    cores.claim(subject.threads if subject.target == "cpu" else 1)


def close() -> None:
    """End the evaluators of this process."""
    for evaluator in _evaluators.values():
        evaluator.close()
    _evaluators.clear()
