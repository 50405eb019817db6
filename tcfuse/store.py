"""What outlives a run: JSON records addressed by a digest of everything that determines them.

A record is written to a temporary name and renamed, so readers never see half of one and two
processes on one folder do not disturb each other; a damaged record counts as absent.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from tcfuse.debug import cache_dir
from tcfuse.errors import InputError

Record: TypeAlias = dict[str, Any]

SOURCE_SUFFIXES = (".py", ".c", ".cpp", ".h", ".hpp")


@dataclass(frozen=True, slots=True)
class Store:
    """A folder of records, one folder below it for each kind."""

    root: Path

    @classmethod
    def default(cls) -> Store:
        """The store in the user's cache folder."""
        return cls(cache_dir())

    def path(self, kind: str, key: str) -> Path:
        """Where the record of that key lies."""
        return self.root / kind / key[:2] / f"{key}.json"

    def get(self, kind: str, key: str) -> Record | None:
        """The record, or ``None`` when there is none that can be read."""
        try:
            record = json.loads(self.path(kind, key).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return record if isinstance(record, dict) else None

    def put(self, kind: str, key: str, record: Record) -> None:
        """Keep a record; a folder that cannot be written costs the cache, not the run."""
        try:
            write_atomically(self.path(kind, key), json.dumps(record).encode())
        except OSError:
            return

    def sizes(self) -> dict[str, tuple[int, int]]:
        """Number of files and bytes for each kind."""
        found: dict[str, tuple[int, int]] = {}
        for folder in sorted(p for p in self.root.glob("*") if p.is_dir()):
            files = [p.stat().st_size for p in folder.rglob("*") if p.is_file()]
            found[folder.name] = (len(files), sum(files))
        return found

    def clear(self) -> None:
        """Delete every record."""
        for folder in self.root.glob("*"):
            if folder.is_dir():
                shutil.rmtree(folder, ignore_errors=True)
            else:
                folder.unlink(missing_ok=True)


def read_text(path: Path) -> str:
    """The text of a file that a person named; a byte order mark is no part of it.

    Raises:
        InputError: The file cannot be read, or is not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: cannot be read: it is not UTF-8 text") from None


def write_file(path: Path, data: bytes) -> None:
    """Write a file that a person named, whole or not at all.

    Raises:
        InputError: It cannot be written.
    """
    try:
        write_atomically(path, data)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None


def write_atomically(path: Path, data: bytes) -> None:
    """Write ``data`` so that ``path`` is either as before or complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def key_of(*parts: object) -> str:
    """A digest of the parts' texts, which must be deterministic."""
    digest = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


@functools.cache
def tool_digest() -> str:
    """A digest of tcfuse's own sources: an edited tcfuse never reads its predecessor's records.

    The outermost shell (command line, manifest) is left out: no record depends on it.
    """
    package = Path(__file__).resolve().parent
    outer = {package / "cli.py", *package.glob("commands/*.py")}
    digest = hashlib.sha256()
    for root in (package, package.parent / "op_library"):
        for path in sorted(root.rglob("*")):
            if path.suffix in SOURCE_SUFFIXES and path not in outer:
                digest.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return digest.hexdigest()
