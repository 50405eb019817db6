"""Check and time the kernels for NVIDIA GPUs on a machine that has one.

``python scripts/gpu_check.py --help`` shows what can be asked for; ``docs/gpu.md`` what comes
out.  It runs from a checkout, without tcfuse being installed.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.gpu.command import main

if __name__ == "__main__":
    sys.exit(main())
