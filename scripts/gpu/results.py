"""What was found, in one JSON file that is complete after every item."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

from scripts.gpu.outcome import Outcome
from tcfuse.store import write_atomically

FORMAT = 1
AGAIN = ("failed", "absent", "unfinished")  # outcomes that another run may change


class OtherMachineError(Exception):
    """A file of results is from another device or another version."""


class Results:
    """The outcomes so far; any thread may add one.

    Args:
        path: Of the file; what it has is kept.
        fresh: Forget what it has.
    """

    def __init__(self, path: Path, *, fresh: bool = False) -> None:
        self.path = path
        self.machine: dict[str, Any] = {}
        self.items: dict[str, Outcome] = {}
        self._lock = threading.Lock()
        if path.exists() and not fresh:
            known = json.loads(path.read_text(encoding="utf-8"))
            self.machine, self.items = known["machine"], known["items"]

    def set_machine(self, machine: dict[str, Any]) -> None:
        """Say where the outcomes come from.

        Raises:
            OtherMachineError: Those that the file has come from elsewhere.
        """
        for fact in ("device", "commit"):
            if self.items and self.machine.get(fact) != machine.get(fact):
                was, now = self.machine.get(fact), machine.get(fact)
                raise OtherMachineError(
                    f"{self.path} has results of {fact} {was}, not {now}; "
                    "--fresh forgets them, --out names another file"
                )
        self.machine = machine

    def is_done(self, item: str) -> bool:
        """Whether an item need not run again."""
        return item in self.items and self.items[item]["status"] not in AGAIN

    def put(self, item: str, outcome: Outcome) -> None:
        """Add an outcome and write the file."""
        with self._lock:
            self.items[item] = outcome
            self.write()

    def write(self) -> None:
        """Write the file."""
        data = {"format": FORMAT, "machine": self.machine, "items": self.items}
        text = json.dumps(data, indent=1, sort_keys=True)
        write_atomically(self.path, f"{text}\n".encode())
