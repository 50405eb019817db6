"""Tune PP-OCR's classifier of text directions; see ``scripts/tune_model.py``."""

from __future__ import annotations

import sys

from scripts.tune_model import tune

if __name__ == "__main__":
    sys.exit(tune("ppocr2_cls", "--input-shapes", "x:6,3,48,192"))
