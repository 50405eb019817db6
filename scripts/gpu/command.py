"""The command line of ``scripts/gpu_check.py``: which items, for how long, what came out."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from scripts.gpu import machine
from scripts.gpu.items import PARTS, item_names
from scripts.gpu.process import NoDeviceError, WorkerProcess
from scripts.gpu.report import report
from scripts.gpu.results import OtherMachineError, Results
from scripts.gpu.schedule import Clock, do_items
from scripts.gpu.workbench import Settings
from scripts.gpu.worker import add_settings, as_arguments, settings_of

OK, WRONG, USAGE, NO_DEVICE, UNFINISHED = 0, 1, 2, 3, 4
TOGETHER = ("papers", "cases")  # parts whose items may share the GPU, since nothing is timed
MOST_WORKERS = 8
EXAMPLES = """
examples:
  python scripts/gpu_check.py                         every part, for 7.5 minutes; run it again
                                                      until it ends with status 0 or 1
  python scripts/gpu_check.py --part limits --part micro --only gelu --only softmax
  python scripts/gpu_check.py --part cases:2/4        the second quarter of a part
  python scripts/gpu_check.py --part models --models ~/.cache/tcfuse-models
  python scripts/gpu_check.py --list --part micro     name the items
  python scripts/gpu_check.py --dry-run --part limits --part papers --only softmax
                                                      everything but the GPU

exit status: 0 all right; 1 something is wrong; 2 wrong usage; 3 no GPU; 4 time is up, items are
left: the same command goes on where this one stopped
"""


def parser() -> argparse.ArgumentParser:
    """What can be asked for."""
    made = argparse.ArgumentParser(
        prog="gpu_check.py",
        description="Check and time tcfuse's kernels for NVIDIA GPUs.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument(
        "--part",
        action="append",
        metavar="NAME[:N/M]",
        help=f"what to do, the N-th of M slices of it: {', '.join(PARTS)}; repeatable (all)",
    )
    made.add_argument(
        "--only", action="append", metavar="TEXT", help="items whose name has this; repeatable"
    )
    made.add_argument("--list", action="store_true", help="name the items and stop")
    made.add_argument(
        "--out", type=Path, default=Path("gpu_check.json"), metavar="FILE",
        help="results, complete after every item (%(default)s); the table is beside it",
    )  # fmt: skip
    made.add_argument("--fresh", action="store_true", help="forget the results of earlier runs")
    made.add_argument(
        "--minutes", type=float, default=7.5, metavar="T",
        help="start no item after this (%(default)s)",
    )  # fmt: skip
    made.add_argument(
        "--jobs", type=int, default=min(MOST_WORKERS, os.cpu_count() or 1), metavar="N",
        help="processes that compile and check at the same time (%(default)s)",
    )  # fmt: skip
    add_settings(made)
    return made


def main(arguments: list[str] | None = None) -> int:
    """Run the command; its exit status."""
    command = parser()
    options = command.parse_args(arguments)
    try:
        wanted = [_part(text) for text in options.part or PARTS]
    except ValueError as error:
        command.error(str(error))
    settings = settings_of(options)
    first = WorkerProcess(as_arguments(settings))
    if not options.list:
        try:
            first.start()
        except NoDeviceError as error:
            print(f"error: no GPU can be used: {error}", file=sys.stderr)
            print("--dry-run does everything but use one", file=sys.stderr)
            return NO_DEVICE
    try:
        return _run(options, settings, wanted, first)
    except OtherMachineError as error:
        print(f"error: {error}", file=sys.stderr)
        return USAGE
    except NoDeviceError as error:
        print(f"error: the GPU is lost: {error}", file=sys.stderr)
        return NO_DEVICE
    finally:
        first.stop()


def _part(text: str) -> tuple[str, int, int]:
    """``cases:2/4`` as the name and the slice; the whole part is slice 1 of 1."""
    name, _, rest = text.partition(":")
    number, _, count = (rest or "1/1").partition("/")
    if name not in PARTS or not (number.isdecimal() and count.isdecimal()):
        raise ValueError(f"--part {text}: parts are {', '.join(PARTS)}, slices like :2/4")
    if not 1 <= int(number) <= int(count):
        raise ValueError(f"--part {text}: there is no slice {number} of {count}")
    return name, int(number), int(count)


def _items(
    options: argparse.Namespace, settings: Settings, part: tuple[str, int, int]
) -> list[str]:
    """The items of a part that were asked for."""
    name, number, count = part
    only = options.only or [""]
    found = [item for item in item_names(name, settings) if any(t in item for t in only)]
    return found[number - 1 :: count]


def _run(
    options: argparse.Namespace,
    settings: Settings,
    wanted: list[tuple[str, int, int]],
    first: WorkerProcess,
) -> int:
    """Do everything that was asked for and is not done yet."""
    if options.list:
        for part in wanted:
            print("\n".join(_items(options, settings, part)))
        return OK
    results = Results(options.out, fresh=options.fresh)
    results.set_machine(_machine(first.facts, settings))
    print(machine.describe(first.facts))
    for line in results.machine["missing"]:
        print(f"missing: {line}")
    clock = Clock(options.minutes * 60)
    left = 0
    for part in wanted:
        items = _items(options, settings, part)
        todo = [item for item in items if not results.is_done(item)]
        if not items:
            print(f"{part[0]}: nothing to do ({_why_empty(part[0])})")
            continue
        print(f"{part[0]}: {len(items)} items, {len(items) - len(todo)} done before")
        jobs = options.jobs if part[0] in TOGETHER else 1
        others = [WorkerProcess(first.arguments) for _ in range(min(jobs, len(todo)) - 1)]
        left += do_items(part[0], todo, results, [first, *others], clock)
    results.write()
    data = json.loads(results.path.read_text(encoding="utf-8"))
    text = report(data)
    results.path.with_suffix(".txt").write_text(text, encoding="utf-8")
    print(f"\n{text}\n{results.path} has everything")
    if left:
        print(f"time is up with {left} items left: run the same command again")
        return UNFINISHED
    bad = Counter(outcome["status"] for outcome in results.items.values())
    return WRONG if bad["wrong"] or bad["failed"] else OK


def _why_empty(part: str) -> str:
    hints = {"micro": "--shared has no bench/", "models": "--models names a folder of models"}
    return hints.get(part, "--only fits none")


def _machine(facts: dict[str, Any], settings: Settings) -> dict[str, Any]:
    found = machine.versions()
    return {
        "device": facts["name"],
        "facts": facts,
        "versions": found,
        "missing": machine.missing(found),
        "commit": machine.commit(),
        "dry_run": settings.dry_run,
        "backend": settings.backend,
    }
