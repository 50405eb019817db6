"""A worker process: started when there is something to do, and anew after it was lost."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from scripts.gpu.outcome import Outcome

ROOT = Path(__file__).resolve().parents[2]
START_S = 300  # opening the device; importing what an item needs
END_S = 10  # between its last word and the end of the process


class NoDeviceError(Exception):
    """The worker cannot open the device; the message says why."""


class LostError(Exception):
    """The worker ended."""


class LateError(LostError):
    """The worker did not answer in time, and was ended."""


class WorkerProcess:
    """One worker.

    Args:
        arguments: What ``worker.as_arguments`` makes of the settings.
    """

    def __init__(self, arguments: list[str]) -> None:
        self.arguments = arguments
        self.command = [sys.executable, "-m", "scripts.gpu.worker", *arguments]
        self.facts: dict[str, Any] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._rest = b""

    def start(self) -> None:
        """Start it, if it does not run.

        Raises:
            NoDeviceError: There is no device.
        """
        if self._process is not None:
            return
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        paths = (str(ROOT), os.environ.get("PYTHONPATH", ""))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        self._process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=environment,
            cwd=Path.cwd(),
        )
        self._rest = b""
        try:
            answer = self._line(START_S)
        except LostError as lost:
            raise NoDeviceError(str(lost)) from lost
        if "error" in answer:
            self.stop()
            raise NoDeviceError(answer["error"])
        self.facts = answer["facts"]

    def do(self, item: str, limit_s: float, *, cut: bool = False) -> Outcome:
        """An item's outcome; a worker that is lost over it is an outcome too.

        Args:
            item: Its name.
            limit_s: After how long it is stopped.
            cut: Whether that is for want of time, and no fault of the item's.

        Raises:
            NoDeviceError: There is no device.
        """
        self.start()
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{item}\n".encode())
            self._process.stdin.flush()
            answer = self._line(START_S)
            assert "begin" in answer
            answer = self._line(limit_s)
        except LateError as late:
            return {"status": "unfinished" if cut else "failed", "why": str(late)}
        except (BrokenPipeError, LostError) as lost:
            return {"status": "failed", "why": str(lost)}
        outcome: Outcome = answer["outcome"]
        if outcome["status"] == "failed":
            self.stop()  # the context may be lost
        return outcome

    def stop(self) -> None:
        """End it."""
        process, self._process = self._process, None
        if process is None:
            return
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._errors.close()

    def _line(self, limit_s: float) -> dict[str, Any]:
        """The next message.

        Raises:
            LostError: There is none in time.
        """
        assert self._process is not None
        assert self._process.stdout is not None
        end = time.monotonic() + limit_s
        while b"\n" not in self._rest:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self._process.stdout], [], [], left)[0]:
                self._process.kill()
                self.stop()
                raise LateError(f"no answer within {limit_s:.0f} s")
            data = os.read(self._process.stdout.fileno(), 1 << 16)
            if not data:
                raise LostError(self._last_words())
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message

    def _last_words(self) -> str:
        assert self._process is not None
        try:
            status = self._process.wait(END_S)
        except subprocess.TimeoutExpired:  # it has said its last word, and hangs at its end
            self._process.kill()
            status = self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        self.stop()
        last = lines[-1][:300] if lines else "it said nothing"
        return f"the process ended with status {status}: {last}"
