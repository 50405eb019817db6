"""The process that measures for the tuner: it makes the cases once and forks for each job.

It has one thread and never runs a kernel itself, so whatever a candidate does ends with the
process that was forked for it.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import resource
import select
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from tcfuse.isolation import receive, send
from tcfuse.tuning.cases import Case, answer, make_cases, shared
from tcfuse.tuning.child import run_job
from tcfuse.tuning.guarded import Guarded, described, on_fault
from tcfuse.tuning.messages import Job, Limits, Report, Setup

ANSWER_S = 60.0  # for float64
_SET_PARENT_DEATH_SIGNAL, _SET_CHILD_SUBREAPER = 1, 36
_LIBC = ctypes.CDLL(None)
_TURN_S = 0.25
_LONG_S = 86400.0  # how long a job may be waited for
_DROPPED = "dropped"


def serve() -> None:
    """Answer the jobs on standard input until it ends."""
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    _LIBC.prctl(_SET_CHILD_SUBREAPER, 1)
    server = _Server((source.fileno(), sink.fileno()))
    while True:
        try:
            message = receive(source, time.monotonic() + _LONG_S)
        except (EOFError, TimeoutError):
            return
        send(sink, asdict(server.answer(message)))


@dataclass(slots=True)
class _Server:
    """The cases of the subject, and the descriptors that forked processes must not have."""

    private: tuple[int, ...]
    threads: int = 1
    cases: Sequence[Case] = ()

    def answer(self, message: Setup | Job) -> Report:
        """Do what is asked."""
        try:
            if isinstance(message, Setup):
                return self.set_up(message)
            return self.run(message)
        except MemoryError:
            return Report("memory", "the inputs do not fit")
        except Exception as error:  # told to the parent, which reports it as an internal error
            return Report("refused", f"internal error: {type(error).__name__}: {error}")

    def set_up(self, setup: Setup) -> Report:
        """Make the cases, and float64's answers in a process of its own."""
        checked, cases = make_cases(setup)
        self.threads, self.cases = setup.threads, cases
        done = shared((len(cases),), np.dtype(np.bool_))

        def fill(_tell: Callable[[str], object]) -> Report:
            for number, case in sorted(enumerate(cases), reverse=True):  # the small one first
                if case.affordable:
                    answer(checked, setup.interface, case)
                    done[number] = True
            return Report("ok")

        self.fork(fill, Limits(ANSWER_S), None)
        for case, known in zip(cases, done, strict=True):
            case.known = bool(known)
            if known:
                case.adopt(case.rounded())
            case.settle()
            case.place()
        gc.collect()
        gc.freeze()
        return Report("ok")

    def run(self, job: Job) -> Report:
        """Run contenders in a process of their own."""

        def body(tell: Callable[[str], object]) -> Report:
            areas: list[Guarded] = []

            def watched(found: list[Guarded]) -> None:
                areas[:] = found

            def fault(address: int, is_write: bool) -> NoReturn:
                text = described(areas, address, is_write=is_write)
                _tell(Report("crashed", f"signal {signal.SIGSEGV:d}: {text}"), tell)
                os._exit(0)

            on_fault((signal.SIGSEGV, signal.SIGBUS), fault)

            def stage(name: str) -> None:
                signal.signal(signal.SIGSEGV, signal.SIG_DFL)
                tell(f"{name}\n")

            return run_job(job, self.cases, self.threads, watched, stage)

        report = self.fork(body, job.limits, job.limits.memory)
        if job.race is None and report.status == "ok":
            notes = report.note.split()
            self.cases = [c for c, n in zip(self.cases, notes, strict=True) if n != _DROPPED]
            for case in self.cases:
                case.settle()
        return report

    def fork(
        self,
        body: Callable[[Callable[[str], object]], Report],
        limits: Limits,
        memory: int | None,
    ) -> Report:
        """What ``body`` reports from a process of its own."""
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            _in_child(body, writer, (reader, *self.private), limits, memory, self.threads)
        os.close(writer)
        try:
            return _Watch(child, reader, limits, limits.check_s).report()
        finally:
            os.close(reader)
            _end(child)


def _in_child(
    body: Callable[[Callable[[str], object]], Report],
    writer: int,
    private: Sequence[int],
    limits: Limits,
    memory: int | None,
    threads: int,
) -> NoReturn:
    """Everything that the forked process does; it never returns."""
    try:
        os.setsid()
        _LIBC.prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        for descriptor in private:
            os.close(descriptor)
        _bound(limits, memory, threads)

        def tell(text: str) -> None:
            data = text.encode()
            while data:
                data = data[os.write(writer, data) :]

        try:
            report = body(tell)
        except MemoryError:
            report = Report("memory", "no memory is left")
        except Exception as error:  # told to the parent, which reports it as an internal error
            report = Report("refused", f"internal error: {type(error).__name__}: {error}")
        _tell(report, tell)
    finally:
        os._exit(0)


def _tell(report: Report, tell: Callable[[str], object]) -> None:
    tell(json.dumps(asdict(report)) + "\n")


def _bound(limits: Limits, memory: int | None, threads: int) -> None:
    """Leave the process so much memory and processor time."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory is not None:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        most = pages * resource.getpagesize() + 2 * memory
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    seconds = int((limits.check_s + limits.race_s) * threads) + 2
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))


@dataclass(slots=True)
class _Watch:
    """A forked process, and how long it still may take."""

    child: int
    reader: int
    limits: Limits
    left: float
    spent: float = 0.0
    stage: str = "checking"
    data: bytes = b""

    def report(self) -> Report:
        """What it says, or what is seen of its end."""
        ended = os.pidfd_open(self.child)
        try:
            while self.left > 0:
                begin = time.monotonic()
                wait = min(self.left, _TURN_S)
                ready = select.select([self.reader, ended], [], [], wait)[0]
                # Longer than was asked for, the whole machine slept, or all of us were stopped.
                spent = min(time.monotonic() - begin, wait)
                self.left, self.spent = self.left - spent, self.spent + spent
                if self.reader in ready and (more := os.read(self.reader, 1 << 16)):
                    if (report := self.parsed(more)) is not None:
                        return report
                elif ended in ready:
                    return self.ending()
                elif ready:
                    time.sleep(0.001)  # it has closed the pipe, and is about to end or hangs
                    self.left -= 0.001
            return Report("timeout", f"still {self.stage} after {self.spent:.1f} s")
        finally:
            os.close(ended)

    def parsed(self, more: bytes) -> Report | None:
        """The report, once it is there; a line before it says that timing begins."""
        *lines, self.data = (self.data + more).split(b"\n")
        for line in lines:
            if not line.startswith(b"{"):
                self.stage, self.left = "timing", self.limits.race_s
                continue
            try:
                return _report_of(json.loads(line))
            except (ValueError, TypeError, KeyError):
                return Report("crashed", "it overwrote what it reports")
        return None

    def ending(self) -> Report:
        """How it ended without a report."""
        seen = os.waitid(os.P_PID, self.child, os.WEXITED | os.WNOWAIT)
        assert seen is not None, "it has ended"
        code = seen.si_status if seen.si_code == os.CLD_EXITED else -seen.si_status
        if code in (-signal.SIGXCPU, -signal.SIGPROF):
            return Report("timeout", f"out of processor time while {self.stage}")
        if code == -signal.SIGKILL:
            return Report("memory", f"killed while {self.stage}, for want of memory perhaps")
        if code < 0:
            name = signal.strsignal(-code)
            return Report("crashed", f"signal {-code} while {self.stage}: {name}")
        return Report("crashed", f"ended with status {code} while {self.stage}")


def _report_of(record: dict[str, Any]) -> Report:
    times = tuple(tuple(map(float, row)) for row in record["times"])
    texts = (str(record[name]) for name in ("status", "detail", "note"))
    status, detail, note = texts
    seconds = float(record["check_s"]), float(record["run_s"])
    return Report(status, detail[:300], times, *seconds, note)


def _end(child: int) -> None:
    """End the process and whatever it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    for _ in range(100):  # what it left is ours now
        try:
            found, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if found == 0:
            _kill_children()
            time.sleep(0.001)


def _kill_children() -> None:
    path = Path(f"/proc/self/task/{os.getpid()}/children")
    with contextlib.suppress(OSError):
        for number in path.read_text(encoding="ascii").split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(number), signal.SIGKILL)
