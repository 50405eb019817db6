"""``tcfuse wisdom``: what tuning found, as a table and as files to review and merge."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tcfuse.commands.progress import print_lines, print_table
from tcfuse.errors import InputError
from tcfuse.store import Store
from tcfuse.wisdom.bounds import default_path
from tcfuse.wisdom.database import Database
from tcfuse.wisdom.devices import device_of
from tcfuse.wisdom.exchange import Collection
from tcfuse.wisdom.problem import ANY_DEVICE, UNKNOWN, Entry
from tcfuse.wisdom.shown import knobs_line, operators_of
from tcfuse.wisdom.verdict import keep as keep_verdicts
from tcfuse.wisdom.verdict import measured
from tcfuse.wisdom.versions import current_versions, stale

HEADER = ("kernel", "sizes", "for", "speedup", "micros", "knobs", "age", "note")
UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


def list_entries(path: Path | None, device: str, templates: bool) -> int:
    """Print a line for each entry of a file, or of the cache; the exit status.

    Args:
        path: The file; ``None``: the cache's.
        device: A part of the devices' names.
        templates: Also print the definitions.
    """
    collection, times = _known(path)
    entries = collection.of_device(device).entries
    if not entries:
        print_lines(["no wisdom yet: 'tcfuse tune MODEL' finds some"])
        return 0
    names = _names(entries)
    print_table(HEADER, (_row(e, names[e.problem.template], times.get(e.key)) for e in entries))
    if templates:
        for template, name in names.items():
            print_lines(["", f"# {name}", template.rstrip()])
    return 0


def export(path: Path, device: str, *, verdicts: bool) -> int:
    """Write the cache's wisdom to a file; the exit status.

    Args:
        path: The file.
        device: A part of the devices' names.
        verdicts: Also write what runs decided about whole models.
    """
    entries = _known(None)[0].entries
    decided = measured(Store.default()) if verdicts else ()
    collection = Collection.of(entries, decided).of_device(device)
    collection.write(path)
    print_lines([f"{path}: {_counted(collection)}"])
    return 0


def import_file(path: Path) -> int:
    """Merge a file into the cache's wisdom; the exit status.

    Raises:
        InputError: It is no wisdom, or the cache cannot be written.
    """
    found = _read([path])
    with Database.default() as database:
        before = {entry.key for entry in database.entries()}
        if not database.record(*found.entries):
            raise InputError("; ".join(database.problems))
        after = {entry.key for entry in database.entries()}
    keep_verdicts(Store.default(), found.verdicts)
    print_lines([f"{default_path()}: {_counted(found)} read, {len(after - before)} new"])
    return 0


def merge(paths: Sequence[Path], output: Path) -> int:
    """Write the better of several files' entries for every problem; the exit status.

    Raises:
        InputError: A file is no wisdom, or the output cannot be written.
    """
    merged = _read(paths)
    merged.write(output)
    print_lines([f"{output}: {_counted(merged)}"])
    return 0


def prune(*, outdated: bool, keep: int | None) -> int:
    """Remove entries from the cache's wisdom; the exit status.

    Args:
        outdated: Those of other versions of tcfuse or the compiler.
        keep: All but so many of each problem and set of versions.
    """
    with Database.default() as database:
        entries = database.entries()
        gone = [e for e in entries if outdated and _stale_version(e)]
        if keep is not None:
            counts: dict[tuple[str, str], int] = {}
            for entry in entries:  # the best first
                place = entry.problem.key, str(sorted(entry.versions.items()))
                counts[place] = counts.get(place, 0) + 1
                gone += [entry] if counts[place] > keep else []
        if gone and not database.forget(gone):
            raise InputError("; ".join(database.problems))
    removed = len({entry.key for entry in gone})
    left = len(entries) - removed
    print_lines([f"{default_path()}: {_entries(removed)} removed, {left} left"])
    return 0


def _known(path: Path | None) -> tuple[Collection, Mapping[str, float]]:
    """The wisdom of a file, or of the cache, and when its entries were recorded."""
    if path is not None:
        return _read([path]), {}
    with Database.default() as database:
        found = Collection.of(database.entries()), database.times()
        if database.problems:
            raise InputError("; ".join(database.problems))
    return found


def _read(paths: Iterable[Path]) -> Collection:
    """The wisdom of files, merged; what is left out of them is told."""
    merged = Collection()
    for path in paths:
        merged = merged.merged(Collection.read(path))
    for reason in merged.refused:
        print(f"warning: {reason}", file=sys.stderr)
    return merged


def _names(entries: Iterable[Entry]) -> dict[str, str]:
    """A name for each template: what it computes, numbered where that is not enough."""
    names: dict[str, str] = {}
    for template in dict.fromkeys(entry.problem.template for entry in entries):
        short = operators_of(template)
        count = sum(name.partition(" #")[0] == short for name in names.values())
        names[template] = f"{short} #{count + 1}" if count else short
    return names


def _row(entry: Entry, name: str, recorded: float | None) -> tuple[str, ...]:
    problem = entry.problem
    where = [problem.target, problem.device, f"{problem.threads} threads"]
    where[2:] = where[2:] if problem.threads != 1 else []
    where += [problem.numerics] if problem.numerics != "default" else []
    notes = [_stale_version(entry), _other_device(entry)]
    notes = [f"stale: for {other}" for other in notes if other]
    notes += ["predicted"] if entry.predicted else []
    notes += [entry.note] if entry.note else []
    return (
        name,
        "x".join("?" if size == UNKNOWN else str(size) for size in problem.sizes),
        ", ".join(filter(None, where)),
        f"{entry.speedup:.2f}",
        f"{entry.micros:.1f}",
        knobs_line(entry.knobs) or "the defaults",
        "" if recorded is None else _age(time.time() - recorded),
        "; ".join(notes),
    )


def _stale_version(entry: Entry) -> str:
    """What version an entry is for that is not the one here; empty when it is."""
    return stale(entry.versions, current_versions(entry.problem.target))


def _other_device(entry: Entry) -> str:
    """The device that an entry is for, where that is another kind of this one."""
    here = device_of(entry.problem.target)
    return "" if here in (entry.problem.device, ANY_DEVICE) else "another device"


def _age(seconds: float) -> str:
    for unit, name in UNITS:
        if seconds >= unit:
            return f"{seconds / unit:.0f} {name}"
    return "0 s"


def _counted(found: Collection) -> str:
    count = len(found.verdicts)
    decided = f", {count} {'verdict' if count == 1 else 'verdicts'}" if count else ""
    return _entries(len(found.entries)) + decided


def _entries(count: int) -> str:
    return f"{count} {'entry' if count == 1 else 'entries'}"
