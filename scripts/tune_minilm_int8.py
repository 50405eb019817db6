"""Tune MiniLM with 8-bit weights, with a text of 128 words: see ``scripts/tune_model.py``."""

from __future__ import annotations

import sys

from scripts.tune_model import tune

if __name__ == "__main__":
    sys.exit(tune("minilm_int8", "--dim", "batch=1", "--dim", "sequence=128"))
