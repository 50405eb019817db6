"""``python -m tcfuse``."""

from __future__ import annotations

import sys

from tcfuse.cli import main

if __name__ == "__main__":
    sys.exit(main())
