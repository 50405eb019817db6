"""How texts become libraries: by which compilers, from which cache, and what is said if not."""

from __future__ import annotations

import gc
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from tcfuse.debug import cache_dir
from tcfuse.emulator import Finding, Program
from tcfuse.emulator.build import with_dynamic_shared
from tcfuse.errors import ToolchainError
from tcfuse.targets.toolchain import Toolchain
from tests.emulator import kernels as right

RACE = r"""
template <int N>
static __device__ void rotate(float* x) {
  __shared__ float s[N];
  s[threadIdx.x] = x[threadIdx.x];
  x[threadIdx.x] = s[(threadIdx.x + 1) % N];  // BUG
}
extern "C" __global__ void race(float* x) { rotate<64>(x); }
"""


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("extern __shared__ float s[];", "extern float s[]"),
        (
            "extern __shared__ __align__(16) unsigned char raw [ ] ;",
            "extern unsigned char raw[]",
        ),
        ("extern __shared__ alignas(16) char s[];", "extern char s[]"),
        ("extern __shared__ alignas(sizeof(T)) T s[];", "extern T s[]"),
    ],
)
def test_dynamic_shared_memory_has_another_name(text, want):
    assert with_dynamic_shared(f"a; {text} b;") == f"a; {want} TCF_EMULATED_DYNAMIC; b;"


def test_lines_keep_their_numbers():
    text = "extern __shared__\n  float s[];\nint x;"
    assert with_dynamic_shared(text).splitlines()[2] == "int x;"


def test_other_shared_memory_stays():
    text = "__shared__ float s[4]; extern int n;"
    assert with_dynamic_shared(text) == text


@pytest.mark.compiler
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_system_compilers(compiler):
    """Values, findings with lines, and counters are the same from every compiler."""
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler}")
    toolchain = Toolchain.default(cache_dir(), compiler)
    program = Program.build(
        [right.TEXT, RACE], [*right.SYMBOLS, "race"], trace=True, toolchain=toolchain
    )
    for symbol in right.SYMBOLS:
        c = right.case(symbol)
        run = program.run(
            symbol,
            c.grid,
            c.block,
            c.shared_bytes,
            c.args,
            seed=1,
            read_only=c.read_only,
            unwritten=c.unwritten,
        )
        assert run.finished
        assert [str(report) for report in run.reports] == []
        c.check()
    run = program.run("race", 1, 64, 0, [np.ones(64, np.float32)])
    assert run.reports
    assert {str(r.by.place) for r in run.reports} >= {"kernel_1.cu:6"}
    assert {s.per_request for s in run.sites if s.space == "global"} == {4}


@pytest.mark.compiler
def test_fast_builds_of_system_compilers(compile_cuda):
    if shutil.which("g++") is None:
        pytest.skip("there is no g++")
    toolchain = Toolchain.default(cache_dir(), "g++")
    program = Program.build(right.TEXT, right.SYMBOLS, trace=False, toolchain=toolchain)
    c = right.matmul(33, 20, 40)
    assert program.run("matmul", c.grid, c.block, 0, c.args).finished
    c.check()


@pytest.mark.compiler
def test_the_same_text_is_compiled_once(compile_cuda, monkeypatch):
    compile_cuda(RACE, ("race",))
    monkeypatch.setattr("tcfuse.emulator.build.run", None)  # no compiler is run
    program = Program.build(RACE, ["race"], trace=True)
    assert program.run("race", 1, 64, 0, [np.ones(64, np.float32)]).reports
    with pytest.raises(TypeError):
        Program.build(RACE + "\n", ["race"], trace=True)


@pytest.mark.compiler
def test_libraries_that_nobody_uses_are_unloaded(compile_cuda):
    compile_cuda(RACE, ("race",))

    def loaded() -> int:
        maps = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
        return len({line.split()[4] for line in maps if "tcfuse-emulator-" in line})

    gc.collect()
    before = loaded()
    programs = [Program.build(RACE, ["race"], trace=True) for _ in range(3)]
    for program in programs:
        run = program.run("race", 1, 64, 0, [np.ones(64, np.float32)])
    assert loaded() == before + 3
    del program, programs
    gc.collect()
    assert loaded() == before
    assert "race" in str(run.reports[0])  # what it told outlives it
    assert run.sites


@pytest.mark.compiler
def test_text_that_does_not_compile(compile_cuda):
    compile_cuda(RACE, ("race",))
    with pytest.raises(ToolchainError) as caught:
        Program.build("\nextern int;\nint x = y;\n", [], trace=False)
    assert "kernel.cu:3" in str(caught.value)


@pytest.mark.compiler
def test_pyelftools_is_missing(compile_cuda, monkeypatch):
    compile_cuda(RACE, ("race",))
    monkeypatch.setitem(sys.modules, "elftools.elf.elffile", None)
    with pytest.raises(ToolchainError, match=r"pip install tcfuse\[cuda\]"):
        Program.build(RACE, ["race"], trace=True)
    assert (
        Program.build(RACE, ["race"], trace=False)
        .run("race", 1, 64, 0, [np.ones(64, np.float32)])
        .finished
    )


@pytest.mark.compiler
def test_findings_of_a_long_loop_are_few(compile_cuda):
    """One report for a pair of instructions, however often it happens."""
    text = RACE.replace("  x[thr", "  for (int k = 0; k < 9; k++) x[thr")
    run = compile_cuda(text, ("race",)).run("race", 1, 64, 0, [np.ones(64, np.float32)])
    assert 1 <= len(run.reports) <= 4
    assert {r.kind for r in run.reports} <= {
        Finding.RACE_READ_AFTER_WRITE,
        Finding.UNINITIALISED,
        Finding.RACE_WRITE_AFTER_READ,
    }
