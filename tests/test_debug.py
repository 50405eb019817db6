"""Debug switches and the store of records."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tcfuse.debug import Debug
from tcfuse.errors import OptionError
from tcfuse.store import Store, key_of, tool_digest, write_atomically


def test_nothing_is_shown_by_default():
    assert Debug.from_environment({}) == Debug()


def test_variables_are_read(tmp_path: Path):
    switches = Debug.from_environment(
        {
            "TCFUSE_DUMP": str(tmp_path),
            "TCFUSE_DUMP_ONLY": "tc, mapped",
            "TCFUSE_VERIFY": "2",
            "TCFUSE_CXX": "clang++",
            "TCFUSE_LOG": "INFO",
        }
    )
    assert switches == Debug(tmp_path, frozenset({"tc", "mapped"}), 2, None, "clang++", "info")


@pytest.mark.parametrize("variable", ["TCFUSE_VERIFY", "TCFUSE_LOG"])
def test_a_value_that_means_nothing_is_refused(variable: str):
    with pytest.raises(OptionError, match=variable):
        Debug.from_environment({variable: "yes"})


def test_dumps_are_numbered_and_filtered(tmp_path: Path):
    switches = Debug(tmp_path / "new", frozenset({"tc"}))
    switches.dump(2, "tc", "k", "def k")
    switches.dump(4, "tree", "k", "domain")
    assert {p.name: p.read_text() for p in (tmp_path / "new").iterdir()} == {
        "02-k.tc": "def k\n"
    }


def test_a_record_is_read_back(tmp_path: Path):
    store = Store(tmp_path)
    assert store.get("kernels", "abc") is None
    store.put("kernels", "abc", {"a": 1})
    assert store.get("kernels", "abc") == {"a": 1}
    assert store.sizes()["kernels"][0] == 1
    store.clear()
    assert store.get("kernels", "abc") is None


@pytest.mark.parametrize("text", ["", "{", "[]", "\x00"])
def test_a_damaged_record_counts_as_absent(tmp_path: Path, text: str):
    store = Store(tmp_path)
    path = store.path("kernels", "abc")
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert store.get("kernels", "abc") is None


def test_a_folder_that_cannot_be_written_costs_the_cache_only(tmp_path: Path):
    (tmp_path / "file").write_text("")
    Store(tmp_path / "file").put("kernels", "abc", {})


def test_two_writers_leave_one_whole_file(tmp_path: Path):
    path = tmp_path / "record"
    texts = [bytes([k]) * 100_000 for k in range(8)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda text: write_atomically(path, text), texts))
    assert path.read_bytes() in texts
    assert [p.name for p in tmp_path.iterdir()] == ["record"]


def test_keys_tell_apart_where_parts_end():
    assert key_of("ab", "c") != key_of("a", "bc")
    assert key_of("ab", "c") == key_of("ab", b"c")
    assert len(tool_digest()) == 64
