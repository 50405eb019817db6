"""Tune Basic Pitch, which transcribes music: see ``scripts/tune_model.py``."""

from __future__ import annotations

import sys

from scripts.tune_model import tune

if __name__ == "__main__":
    sys.exit(tune("basic_pitch", "--input-shapes", "serving_default_input_2:0:1,43844,1"))
