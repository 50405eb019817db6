"""Finding compilers, compiling, linking and the cache of objects."""

from __future__ import annotations

import ctypes
import os
import shlex
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tcfuse.errors import ToolchainError
from tcfuse.targets import compilers
from tcfuse.targets.compilers import (
    Compiler,
    Level,
    baseline,
    find_compiler,
    find_zig,
    levels,
    system_compilers,
)
from tcfuse.targets.object_cache import ObjectCache
from tcfuse.targets.toolchain import Toolchain, Unit

pytestmark = pytest.mark.compiler

VECTORS = """
typedef float V __attribute__((vector_size(4 * TCF_LANES), aligned(4)));
extern "C" __attribute__((visibility("default"))) void larger(const float* a, float* b) {
  V x = *(const V*)a, y = *(V*)b;
  *(V*)b = x > y ? x : y;
}
"""


def usable() -> list[Compiler]:
    zig = find_zig()
    return [*((zig,) if zig else ()), *system_compilers()]


@pytest.fixture(params=usable(), ids=lambda compiler: compiler.kind)
def compiler(request: pytest.FixtureRequest) -> Compiler:
    return request.param


def unit(text: str = VECTORS, level: Level | None = None) -> Unit:
    return Unit("larger.cpp", text, level or levels()[0])


def test_kernels_with_vectors_compile_and_run(compiler: Compiler, tmp_path: Path) -> None:
    toolchain = Toolchain(compiler)
    out = tmp_path / "larger.so"
    toolchain.link(toolchain.compile([unit()]), out)
    a, b = (ctypes.c_float * 4)(1, 5, 2, 6), (ctypes.c_float * 4)(4, 3, 2, 1)
    ctypes.CDLL(str(out)).larger(a, b)
    assert list(b) == [4, 5, 2, 6]


def test_every_level_compiles(compiler: Compiler) -> None:
    objects = Toolchain(compiler).compile([unit(level=level) for level in levels()])
    assert len(set(objects)) == len(levels())


def test_flags_follow_the_level(compiler: Compiler) -> None:
    if len(levels()) == 1:
        pytest.skip("this architecture has one level")
    flags = [" ".join(Toolchain(compiler).flags(unit(level=level))) for level in levels()]
    for text, name, lanes in zip(flags, ("v2", "v3", "v4"), (4, 8, 16), strict=True):
        assert f"-DTCF_LANES={lanes} -DTCF_SUFFIX=_{name}" in text
        assert name in text.split("-march=")[1].split()[0]
        assert "-ffast-math" not in text
    assert "v2" not in baseline().march


def test_levels_of_other_architectures() -> None:
    (level,) = levels("aarch64")
    assert (level.march, level.position, level.lanes) == ("", 0, 4)
    assert baseline("aarch64") == level
    assert [each.name for each in levels("AMD64")] == ["v2", "v3", "v4"]


@pytest.mark.parametrize(("contract", "fused"), [("fast", True), ("off", False)])
def test_contraction_is_a_choice(compiler: Compiler, tmp_path: Path, contract, fused) -> None:
    if len(levels()) == 1 or "avx2" not in Path("/proc/cpuinfo").read_text():
        pytest.skip("this machine is below x86-64-v3")
    text = """
    extern "C" __attribute__((visibility("default"))) float residue(float a, float b) {
      return a * b - 1.0f;
    }"""
    toolchain = Toolchain(compiler)
    out = tmp_path / "residue.so"
    each = Unit("residue.cpp", text, levels()[1], contract=contract)
    toolchain.link(toolchain.compile([each]), out)
    residue = ctypes.CDLL(str(out)).residue
    residue.restype = ctypes.c_float
    third = ctypes.c_float(1 / 3)
    assert (residue(ctypes.c_float(3), third) != 0) == fused


def test_copying_loops_call_nothing(compiler: Compiler, tmp_path: Path) -> None:
    text = """
    extern "C" __attribute__((used)) void copy(const float* a, float* b, long n) {
      for (long i = 0; i < n; i++) b[i] = a[i];
      for (long i = 0; i < n; i++) b[i + n] = 0;
    }"""
    toolchain = Toolchain(compiler)
    toolchain.link(toolchain.compile([unit(text)]), tmp_path / "copy.so")


def test_an_error_carries_the_command_and_the_output(
    compiler: Compiler, tmp_path: Path
) -> None:
    toolchain = Toolchain(compiler, ObjectCache(tmp_path))
    name = "zig" if compiler.kind == "zig" else r"\S+"
    with pytest.raises(ToolchainError, match=rf"larger\.cpp for .*: {name} failed") as caught:
        toolchain.compile([unit("int x = nonsense;")])
    assert "nonsense" in caught.value.output
    # The command still finds the source.
    words = shlex.split(caught.value.command)
    assert "-std=c++17" in words
    assert Path(words[words.index("-c") + 1]).read_text() == "int x = nonsense;"


def test_undefined_symbols_do_not_link(compiler: Compiler, tmp_path: Path) -> None:
    text = 'extern "C" int absent(int); extern "C" int f(int x) { return absent(x); }'
    text = text.replace('extern "C" int f', 'extern "C" __attribute__((used)) int f')
    toolchain = Toolchain(compiler)
    with pytest.raises(ToolchainError, match="failed") as caught:
        toolchain.link(toolchain.compile([unit(text)]), tmp_path / "f.so")
    assert "absent" in caught.value.output
    assert list(tmp_path.iterdir()) == []


def test_a_library_is_replaced_not_rewritten(tmp_path: Path) -> None:
    """A process that has the old library mapped keeps it."""
    toolchain = Toolchain(usable()[0])
    out = tmp_path / "larger.so"
    objects = toolchain.compile([unit()])
    toolchain.link(objects, out)
    first = out.stat().st_ino
    with out.open("rb") as held:
        toolchain.link(objects, out)
        assert os.fstat(held.fileno()).st_ino == first
    assert out.stat().st_ino != first
    assert [path.name for path in tmp_path.iterdir()] == ["larger.so"]


# The cache


def counting(tmp_path: Path) -> tuple[Toolchain, Path]:
    """A toolchain whose compiler writes a line to a log each time it runs."""
    log = tmp_path / "log"
    script = tmp_path / "counting-c++"
    command = " ".join(usable()[0].argv)
    script.write_text(f'#!/bin/sh\necho run >> "{log}"\nexec {command} "$@"\n')
    script.chmod(0o755)
    compiler = Compiler(usable()[0].kind, (str(script),), "1")
    return Toolchain(compiler, ObjectCache(tmp_path / "cache")), log


def runs(log: Path) -> int:
    return len(log.read_text().splitlines())


def test_an_object_is_compiled_once(tmp_path: Path) -> None:
    toolchain, log = counting(tmp_path)
    first = toolchain.compile([unit()])
    assert toolchain.compile([unit()]) == first
    assert runs(log) == 1
    assert toolchain.contents().objects == 1
    assert toolchain.contents().bytes == len(first[0])
    toolchain.clear()
    assert toolchain.contents().objects == 0
    assert toolchain.compile([unit()]) == first
    assert runs(log) == 2


def test_whatever_determines_an_object_is_in_its_key(tmp_path: Path) -> None:
    toolchain, log = counting(tmp_path)
    toolchain.compile([unit()])
    include = tmp_path / "include"
    include.mkdir()
    header = include / "x.h"
    header.write_text("#define X 1\n")
    with_header = Unit("x.cpp", '#include "x.h"\nint x = X;', levels()[0], include=include)
    toolchain.compile([unit(VECTORS + "\n")])
    toolchain.compile([Unit("larger.cpp", VECTORS, levels()[-1], contract="off")])
    toolchain.compile([with_header])
    header.write_text("#define X 2\n")
    toolchain.compile([with_header])
    newer = Compiler(toolchain.compiler.kind, toolchain.compiler.argv, "2")
    Toolchain(newer, toolchain.cache).compile([unit()])
    assert runs(log) == 6


@pytest.mark.parametrize("damage", [b"", b"half", None])
def test_a_damaged_object_is_made_again(tmp_path: Path, damage: bytes | None) -> None:
    toolchain, log = counting(tmp_path)
    (good,) = toolchain.compile([unit()])
    (entry,) = (tmp_path / "cache").glob("*/*.o")
    data = good[:-1] + bytes([good[-1] ^ 1]) if damage is None else damage
    entry.write_bytes(data)
    assert toolchain.compile([unit()]) == [good]
    assert runs(log) == 2
    assert entry.read_bytes() == good


def test_a_cache_that_cannot_be_written_costs_only_the_cache(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    toolchain = Toolchain(usable()[0], ObjectCache(blocked / "cache"))
    assert toolchain.compile([unit()])


def test_one_cache_serves_many_at_once(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path)
    data = bytes(range(256)) * 64

    def work(seed: int) -> None:
        for turn in range(50):
            key = f"{turn % 5:064x}"
            assert cache.get(key) in (None, data)
            cache.put(key, data)
            if (seed, turn) == (0, 25):
                cache.clear()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert not list(tmp_path.glob("*/.*"))


def test_a_killed_process_leaves_nothing_that_looks_whole(tmp_path: Path) -> None:
    program = f"""
from pathlib import Path
from tcfuse.targets.object_cache import ObjectCache
cache = ObjectCache(Path({str(tmp_path)!r}))
while True:
    cache.put("{0:064x}", bytes(1 << 20))
    cache.clear()
"""
    process = subprocess.Popen([sys.executable, "-c", program])
    time.sleep(0.5)
    process.send_signal(signal.SIGKILL)
    process.wait()
    cache = ObjectCache(tmp_path)
    assert cache.get(f"{0:064x}") in (None, bytes(1 << 20))
    cache.clear()
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


# Choosing a compiler


def test_zig_comes_first_where_it_is_installed() -> None:
    zig = find_zig()
    if zig is None:
        pytest.skip("ziglang is not installed")
    assert find_compiler() == find_compiler("zig") == zig
    assert zig.kind == "zig"
    assert zig.version in str(zig)


def test_zig_needs_no_other_program(monkeypatch) -> None:
    zig = find_zig()
    if zig is None:
        pytest.skip("ziglang is not installed")
    monkeypatch.setenv("PATH", "")
    assert Toolchain(zig).compile([unit("int x = 1;")])


def test_a_system_compiler_can_be_wanted() -> None:
    found = system_compilers()
    if not found:
        pytest.skip("there is no system compiler")
    assert find_compiler(found[0].argv[0]) == found[0]


def test_the_system_compiler_serves_where_zig_is_missing(monkeypatch) -> None:
    monkeypatch.setattr(compilers, "find_zig", lambda: None)
    found = system_compilers()
    if found:
        assert find_compiler() == found[0]
    monkeypatch.setattr(compilers, "system_compilers", tuple)
    with pytest.raises(ToolchainError, match="pip install ziglang"):
        find_compiler()
    with pytest.raises(ToolchainError, match="pip install ziglang"):
        find_compiler("zig")


def test_an_unusable_compiler_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match="cannot be run"):
        find_compiler(str(tmp_path / "absent-c++"))
    with pytest.raises(ToolchainError, match="failed"):
        find_compiler("false")
