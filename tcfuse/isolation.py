"""Compiling in a process of its own, which may be killed.

isl's integer linear programs can take hours, or all memory, on a few unlucky statements, and
its operation limit does not see every step.  A model is only data: one that is made to do that
costs a region, never the run.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import select
import selectors
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

from tcfuse import profile
from tcfuse.cuda_options import CudaOptions
from tcfuse.errors import UnsupportedError
from tcfuse.interface import Interface
from tcfuse.mapping_options import MappingOptions
from tcfuse.profile import ISL, timed

if TYPE_CHECKING:
    from tcfuse.targets.base import KernelTexts

SECONDS = 30  # of processor time for one kernel; a usual one takes 0.1
PATIENCE = 20  # times that of waiting, on a busy machine
BYTES = 6 << 30  # of address space

LENGTH = struct.Struct("<Q")


@dataclass(slots=True)
class Worker:
    """A process that compiles one kernel after the other; started when it is needed."""

    seconds: int = SECONDS
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @timed(ISL)
    def compile(
        self,
        definition: str,
        interface: Interface,
        hint: str,
        options: MappingOptions,
        fixed: Mapping[str, int] | None = None,
        cuda: CudaOptions | None = None,
    ) -> KernelTexts:
        """``compile_kernel`` of the text of a definition, within bounds.

        Args:
            definition: The text.
            interface: Its signature.
            hint: The kernel's name.
            options: Knobs.
            fixed: Sizes that the kernel may take for granted.
            cuda: Knobs of a kernel for GPUs; ``None`` makes one for the CPU.

        Raises:
            UnsupportedError: The target cannot do this, or not within the time and memory.
        """
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            question = (definition, interface, hint, options, fixed, cuda)
            recording = profile.current()
            deadline = time.monotonic() + PATIENCE * self.seconds
            send(process.stdin, (*question, self.seconds, recording is not None), deadline)
            kind, value, spent = receive(process.stdout, deadline)
            if recording is not None:
                recording.take(spent)
        except (TimeoutError, EOFError, BrokenPipeError):
            self.stop()
            bounds = f"{self.seconds} s of processor time or {BYTES >> 30} GiB of memory"
            raise UnsupportedError(f"compiling takes more than {bounds}") from None
        except BaseException:
            self.stop()
            raise
        if kind == "refused":
            raise UnsupportedError(value)
        if kind == "failed":
            raise RuntimeError(value)
        kernel: KernelTexts = value
        return kernel

    def start(self) -> None:
        """Begin to start the process, which takes 0.2 s, before there is something to do."""
        self._started()

    def interrupt(self) -> None:
        """End the process; a thread that waits for it gets an ``UnsupportedError``."""
        if (process := self._process) is not None:
            process.kill()

    def stop(self) -> None:
        """End the process, whatever it is doing."""
        if self._process is not None:
            end(self._process)
            self._process = None

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self.stop()
            self._process = begin("from tcfuse.isolation import serve; serve()")
        return self._process


WORKER = Worker()
atexit.register(WORKER.stop)


def begin(
    statement: str, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """A Python of its own that runs one statement, between two pipes.

    What it says on standard error, such as isl's repetition of its exceptions, is dropped.
    """
    return subprocess.Popen(
        [sys.executable, "-P", "-c", statement],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is for the parent, which ends this process
        env=environment,
    )


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process, whatever it is doing."""
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()


def send(
    stream: IO[bytes],
    message: object,
    deadline: float | None = None,
    *,
    encode: Callable[[Any], bytes] = pickle.dumps,
) -> None:
    """Write a message that ``receive`` reads.

    Args:
        stream: A pipe.
        message: What is sent.
        deadline: When to give up, by ``time.monotonic``; without one this waits for a reader.
        encode: Makes bytes of it.

    Raises:
        TimeoutError: Nobody has read what the pipe does not hold.
    """
    data = encode(message)
    data = LENGTH.pack(len(data)) + data
    if deadline is None:
        stream.write(data)
        stream.flush()
        return
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_WRITE)
        while data:
            if not selector.select(max(deadline - time.monotonic(), 0)):
                raise TimeoutError
            # A pipe that is ready takes so many bytes at once: this does not wait.
            data = data[os.write(stream.fileno(), data[: select.PIPE_BUF]) :]


def receive(
    stream: IO[bytes], deadline: float, *, decode: Callable[[bytes], Any] = pickle.loads
) -> Any:
    """The next message; from a process that runs what nobody has checked, no pickled one.

    Raises:
        TimeoutError: It does not come by ``deadline``.
        EOFError: The other side has ended.
    """
    head = _read(stream, LENGTH.size, deadline)
    return decode(_read(stream, LENGTH.unpack(head)[0], deadline))


def _read(stream: IO[bytes], count: int, deadline: float) -> bytes:
    data = b""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while len(data) < count:
            if not selector.select(max(deadline - time.monotonic(), 0)):
                raise TimeoutError
            piece = stream.read1(count - len(data))  # type: ignore[attr-defined]  # buffered
            if not piece:
                raise EOFError
            data += piece
    return data


def serve() -> None:
    """Answer the requests on standard input until it ends."""
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    while True:
        head = source.read(LENGTH.size)
        if len(head) < LENGTH.size:
            return
        *question, seconds, profiled = pickle.loads(source.read(*LENGTH.unpack(head)))
        _bound(seconds)
        if not profiled:
            send(sink, (*_answer(*question), {}))
            continue
        with profile.profiling() as recording, profile.phase(profile.ISL):
            kind, value = _answer(*question)
        send(sink, (kind, value, recording.result().spent))


def _bound(seconds: int) -> None:
    """End this process when it uses more memory, or that much more processor time."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource  # not on every system

        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
        limit = int(time.process_time()) + seconds + 1
        resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))


def _answer(
    definition: str,
    interface: Interface,
    hint: str,
    options: MappingOptions,
    fixed: Mapping[str, int] | None,
    cuda: CudaOptions | None,
) -> tuple[str, object]:
    from tcfuse.targets import cpu  # texts alone leave this process: nobody else needs isl
    from tcfuse.targets import cuda as gpu
    from tcfuse.targets.base import KernelTexts
    from tcfuse.tc.parser import parse
    from tcfuse.tc.sema import check

    try:
        checked = check(parse(definition), sizes=interface.sizes)
        made: cpu.Kernel | gpu.Kernel
        if cuda is None:
            made = cpu.compile_kernel(checked, interface, hint, options, fixed)
        else:
            made = gpu.compile_kernel(checked, interface, hint, options, cuda, fixed)
        return "done", KernelTexts(made.source, str(made.proof), made.tree, made.mapped)
    except UnsupportedError as error:
        return "refused", str(error)
    except Exception as error:  # told to the parent, which reports it as an internal error
        return "failed", f"{type(error).__name__}: {error}"
