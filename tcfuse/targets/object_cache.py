"""Compiled objects on disk, addressed by everything that determines them.

The digest of an object's bytes is part of its file name, so an entry that was damaged is told
from a good one and made again.  Entries are written under a temporary name and renamed: any
number of processes share the folder, and one that is killed leaves nothing that looks whole.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from tcfuse.store import write_atomically


@dataclass(frozen=True, slots=True)
class CacheContents:
    """What a cache holds.

    Units:
        bytes: Bytes on disk.
    """

    objects: int
    bytes: int


@dataclass(frozen=True, slots=True)
class ObjectCache:
    """A folder of objects."""

    root: Path

    def get(self, key: str) -> bytes | None:
        """The object of that key; ``None`` when there is none or it is damaged."""
        for path in self._folder(key).glob(f"{key}.*.o"):
            try:
                data = path.read_bytes()
            except OSError:  # cleared by another process meanwhile
                continue
            if path == self._path(key, data):
                return data
            path.unlink(missing_ok=True)
        return None

    def put(self, key: str, data: bytes) -> None:
        """Keep an object; a folder that cannot be written costs the cache, not the build."""
        try:
            write_atomically(self._path(key, data), data)
        except OSError:
            return

    def contents(self) -> CacheContents:
        """Number of objects and the bytes they take."""
        sizes = [p.stat().st_size for p in self.root.glob("*/*.o")]
        return CacheContents(len(sizes), sum(sizes))

    def clear(self) -> None:
        """Delete every object, and what killed processes left."""
        for path in (*self.root.glob("*/*.o"), *self.root.glob("*/.*.part")):
            path.unlink(missing_ok=True)

    def _folder(self, key: str) -> Path:
        return self.root / key[:2]

    def _path(self, key: str, data: bytes) -> Path:
        digest = hashlib.sha256(data).hexdigest()
        return self._folder(key) / f"{key}.{digest[:32]}.o"
