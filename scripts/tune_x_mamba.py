"""Tune an unrolled selective scan, exported from PyTorch: see ``scripts/tune_model.py``."""

from __future__ import annotations

import sys

from scripts.tune_model import tune

if __name__ == "__main__":
    sys.exit(tune("x_mamba"))
