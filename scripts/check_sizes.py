"""Fail when a module of the package is longer than it may be.

python scripts/check_sizes.py 600
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMITS = {"tcfuse/pipeline.py": 150}


def main(most: int) -> int:
    """Print every module that is too long; the exit status."""
    too_long = 0
    for path in sorted((*ROOT.glob("tcfuse/**/*.py"), *ROOT.glob("op_library/*.py"))):
        name = str(path.relative_to(ROOT))
        n_lines = len(path.read_text(encoding="utf-8").splitlines())
        if n_lines > LIMITS.get(name, most):
            too_long += 1
            print(f"{name}: {n_lines} lines, at most {LIMITS.get(name, most)}")
    return int(too_long > 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 600))
