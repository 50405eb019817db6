"""How long a kernel takes to compile, in a process of its own with an empty cache.

``python -m scripts.paper_kernels.cold KERNEL DEFINITION SIZES`` prints the seconds from the
call that compiles to its end, and the processor time of all processes, as JSON.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import tcfuse
from op_library import papers
from scripts.paper_kernels.case import Step
from tcfuse.isolation import WORKER

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Cold:
    """Seconds of compiling with nothing in the cache: waited, and of processors."""

    wall: float
    processor: float


def compile_cold(step: Step, *, symbolic: bool) -> Cold:
    """Compile the kernel of a step in a new process."""
    sizes = "{}" if symbolic else json.dumps(dict(step.sizes))
    command = [sys.executable, "-m", __name__, step.kernel, step.definition, sizes]
    with tempfile.TemporaryDirectory(prefix="paper-kernels-") as folder:
        environment = {**os.environ, "TCFUSE_CACHE_DIR": folder}
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
    if done.returncode != 0:
        raise RuntimeError(f"{step.definition} does not compile: {done.stderr}")
    return Cold(**json.loads(done.stdout.splitlines()[-1]))


def main(kernel: str, definition: str, sizes: str) -> None:
    """Compile here."""
    start, used = time.perf_counter(), time.process_time()
    layers = tcfuse.define(papers.text(kernel), sizes=json.loads(sizes) or None, quiet=True)
    layers[definition].compile()
    wall = time.perf_counter() - start
    processor = time.process_time() - used
    WORKER.stop()  # a process is counted when it has ended
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor += children.ru_utime + children.ru_stime
    print(json.dumps({"wall": wall, "processor": processor}))


if __name__ == "__main__":
    main(*sys.argv[1:])
