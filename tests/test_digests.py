"""Digests that stand as long as nobody has touched the file."""

import os
import shutil
from pathlib import Path

import pytest

from tcfuse.digests import keep_digest, known_digest
from tcfuse.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "cache")


def test_a_file_as_it_was_has_its_digest(store: Store, tmp_path: Path):
    path, other = tmp_path / "a", tmp_path / "b"
    for k, file in enumerate((path, other)):
        file.write_bytes(b"1234")
        assert known_digest(store, file) is None
        keep_digest(store, file, f"digest {k}")
    assert known_digest(store, path) == "digest 0"
    assert known_digest(store, other) == "digest 1"


def test_a_file_that_is_gone_has_none(store: Store, tmp_path: Path):
    path = tmp_path / "a"
    keep_digest(store, path, "digest")
    assert known_digest(store, path) is None
    path.write_bytes(b"1234")
    keep_digest(store, path, "digest")
    path.unlink()
    assert known_digest(store, path) is None


@pytest.mark.parametrize("how", ["in place", "by another", "longer"])
def test_other_bytes_under_the_old_time_have_none(how: str, store: Store, tmp_path: Path):
    path, other = tmp_path / "a", tmp_path / "b"
    path.write_bytes(b"1234")
    keep_digest(store, path, "digest")
    before = path.stat()
    if how == "by another":
        other.write_bytes(b"4321")
        shutil.move(other, path)
    else:
        path.write_bytes(b"4321" if how == "in place" else b"12345")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert known_digest(store, path) is None
