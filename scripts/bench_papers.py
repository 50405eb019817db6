"""Time the kernels of the Tensor Comprehensions papers beside NumPy and ONNX Runtime.

``python scripts/bench_papers.py [--quick] [--only NAME] [--json FILE] [--markdown FILE]``

NumPy's matrix library reads how many threads it may use when it is loaded, so the measuring
runs in a process that is started with one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "BLIS_NUM_THREADS")


def main() -> int:
    """The exit status of the measuring process."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, **dict.fromkeys(VARIABLES, "1"), "PYTHONPATH": path}
    command = [sys.executable, "-m", "scripts.paper_kernels", *sys.argv[1:]]
    return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
