"""Peak memory of a command: all of it, and the part that is no mapping of a file.

``python -m scripts.memory COMMAND ...`` runs the command and prints both.  ``VmHWM`` is what
the kernel counts, pages of mapped files included, which it may drop at any time; ``RssAnon``
is looked at a hundred times a second.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path


def peaks(command: Sequence[str]) -> dict[str, int]:
    """Highest ``VmHWM`` and ``RssAnon`` of a command, in MiB.

    Raises:
        subprocess.CalledProcessError: The command fails.
    """
    found = {"VmHWM": 0, "RssAnon": 0}
    with subprocess.Popen(command) as process:
        while process.poll() is None:
            for name, kibibytes in _status(process.pid).items():
                if name in found:
                    found[name] = max(found[name], kibibytes >> 10)
            time.sleep(0.01)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return found


def _status(pid: int) -> dict[str, int]:
    """The sizes, in KiB, that the kernel tells of a process; none once it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    pairs = (line.split() for line in lines if line.endswith(" kB"))
    return {name.rstrip(":"): int(size) for name, size, _ in pairs}


if __name__ == "__main__":
    print(peaks(sys.argv[1:]))
