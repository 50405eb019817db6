"""What the scripts ``tune_NAME.py`` share: a model tuned with a fixed seed, the result kept.

``python -m scripts.tune_NAME [MODEL.onnx] [FLAGS]``

A model of ``models/manifest.json`` is fetched when no path is given; the others are exports of
common architectures, of which the graph counts and not the weights, and need one.  Flags are
those of ``tcfuse tune``.

The result goes to ``scripts/tuned/NAME.json``, which ``tcfuse optimize MODEL.onnx --wisdom``
takes; what is in it is not tuned again unless ``--again`` asks for it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from models import fetch
from tcfuse.cli import main

TUNED = Path(__file__).parent / "tuned"
SEED = "0"


def tune(name: str, *flags: str) -> int:
    """Tune the model that the command line names; the exit status.

    Args:
        name: Of the model, and of the file that keeps what is found.
        flags: Of ``tcfuse tune``, before those of the command line.
    """
    given = sys.argv[1:]
    if not given or given[0].startswith("-"):
        try:
            given.insert(0, str(fetch.fetch(name)))
        except (fetch.FetchError, OSError) as error:
            print(f"error: {error}; give the path of the model", file=sys.stderr)
            return 2
    wisdom = TUNED / f"{name}.json"
    TUNED.mkdir(exist_ok=True)
    return main(
        ["tune", *given[:1], "--seed", SEED, "--wisdom", str(wisdom), *flags, *given[1:]]
    )
