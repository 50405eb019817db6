"""Tune Magika, which tells types of files, with eight files: see ``scripts/tune_model.py``."""

from __future__ import annotations

import sys

from scripts.tune_model import tune

if __name__ == "__main__":
    sys.exit(tune("magika", "--input-shapes", "bytes:8,2048"))
