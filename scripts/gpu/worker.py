"""The process that has the GPU: does items, and says before and after each one which.

A kernel that faults ends the context, so after an error of the driver the process ends, and
``command`` starts another one for the items that are left.
"""

from __future__ import annotations

import argparse
import json
import sys
import traceback
from pathlib import Path
from typing import Any, TextIO

from scripts.gpu.items import prepare, run_item
from scripts.gpu.outcome import Outcome
from scripts.gpu.workbench import Settings, Workbench
from tcfuse.errors import DeviceError, TcfuseError, UnsupportedError

LOST = 75  # exit status after an error of the driver
NO_DEVICE = 3


def add_settings(parser: argparse.ArgumentParser) -> None:
    """The options that ``Settings`` has."""
    default = Settings()
    parser.add_argument(
        "--backend",
        choices=("driver", "pycuda"),
        default=default.backend,
        help="how the GPU is reached: libcuda by ctypes (default), or pycuda",
    )
    parser.add_argument(
        "--device", dest="ordinal", type=int, default=0, metavar="N", help="which GPU (0)"
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="no GPU: the emulator and a libcuda that launches through it, at small sizes",
    )
    parser.add_argument(
        "--shared",
        type=Path,
        default=default.shared,
        metavar="DIR",
        help="folder with bench/ and models/ (%(default)s)",
    )
    parser.add_argument(
        "--models",
        type=Path,
        default=default.models,
        metavar="DIR",
        help="folder with NAME.onnx",
    )
    parser.add_argument(
        "--megabytes",
        type=int,
        default=default.megabytes,
        metavar="N",
        help="what a small graph moves at least (%(default)s)",
    )
    parser.add_argument(
        "--rounds",
        type=int,
        default=default.rounds,
        metavar="N",
        help="turns of the contenders (%(default)s)",
    )


def settings_of(options: argparse.Namespace) -> Settings:
    """The settings among the options of a command line."""
    fields = Settings.__dataclass_fields__
    return Settings(**{name: getattr(options, name) for name in fields})


def as_arguments(settings: Settings) -> list[str]:
    """The command line that gives a worker these settings."""
    arguments = ["--backend", settings.backend, "--device", str(settings.ordinal)]
    arguments += ["--shared", str(settings.shared), "--models", str(settings.models)]
    arguments += ["--megabytes", str(settings.megabytes), "--rounds", str(settings.rounds)]
    return [*arguments, *(["--dry-run"] if settings.dry_run else [])]


def perform(name: str, bench: Workbench) -> tuple[Outcome, bool]:
    """An item's outcome, and whether the device can still be used."""
    try:
        found = run_item(name, bench)
        bench.device.synchronize()
    except DeviceError as error:
        return {"status": "failed", "why": str(error)}, False
    except UnsupportedError as error:
        return {"status": "refused", "why": str(error)}, True
    except TcfuseError as error:
        return {"status": "failed", "why": f"{type(error).__name__}: {error}"}, True
    except Exception as error:  # the next items may work
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(last.filename).name}:{last.lineno}"
        return {"status": "failed", "why": f"{type(error).__name__}: {error} ({place})"}, True
    return found, True


def main() -> int:
    """Do the items that are named; one JSON a line on standard output."""
    parser = argparse.ArgumentParser(prog="python -m scripts.gpu.worker", description=__doc__)
    add_settings(parser)
    parser.add_argument("items", nargs="*", help="from standard input when there are none")
    options = parser.parse_args()
    answers, sys.stdout = sys.stdout, sys.stderr  # what libraries print goes elsewhere
    settings = settings_of(options)
    try:
        bench = Workbench.open(settings)
    except DeviceError as error:
        say(answers, error=str(error))
        return NO_DEVICE
    say(answers, facts=_facts(bench))
    for name in options.items or map(str.strip, sys.stdin):
        prepare(name)  # may take seconds, which are no item's
        say(answers, begin=name)
        found, usable = perform(name, bench)
        say(answers, item=name, outcome=found)
        if not usable:
            return LOST
    return 0


def _facts(bench: Workbench) -> dict[str, Any]:
    facts = bench.device.facts
    return {name: getattr(facts, name) for name in facts.__dataclass_fields__}


def say(answers: TextIO, **message: object) -> None:
    """Write one line."""
    answers.write(json.dumps(message) + "\n")
    answers.flush()


if __name__ == "__main__":
    sys.exit(main())
