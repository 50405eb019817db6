"""CUDA C to cubins and PTX, through the cache, and what is said of each kernel."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tcfuse.codegen.device import NAME
from tcfuse.errors import OptionError, ToolchainError
from tcfuse.targets import nvrtc_library
from tcfuse.targets.base import CudaPhase, CudaSource
from tcfuse.targets.cubin import read_cubin
from tcfuse.targets.cuda_archs import default_archs, parse_archs
from tcfuse.targets.nvrtc import CudaImages, compile_all, compile_cuda, flags
from tcfuse.targets.nvrtc_library import Nvrtc, find_nvrtc
from tcfuse.targets.object_cache import ObjectCache
from tests.targets.cuda_sources import (
    ALL,
    CALLING,
    ELEMENTWISE,
    HEADER,
    REDUCTION,
    SPILLING,
    TWO,
    VECTOR,
    WRONG,
    kernel,
    source,
)

cuda_build = pytest.mark.cuda_build
SUPPORTED = (75, 80, 86, 87, 88, 89, 90, 100, 120)


def build(given: CudaSource, *archs: str, cache: ObjectCache | None = None) -> CudaImages:
    return compile_cuda(given, archs, header=HEADER, cache=cache)


def test_archs_are_parsed_in_order_and_once() -> None:
    assert parse_archs("sm_90, sm_80,sm_90", SUPPORTED) == ("sm_80", "sm_90")
    assert parse_archs("sm_100,sm_89", SUPPORTED) == ("sm_89", "sm_100")


@pytest.mark.parametrize("text", ["", "sm_70", "90", "sm_80,", "sm_90a", "compute_80"])
def test_an_unknown_arch_names_those_that_are_known(text: str) -> None:
    with pytest.raises(OptionError, match=r"only sm_75, sm_80, .*sm_100, sm_120$"):
        parse_archs(text, SUPPORTED)


def test_the_common_archs_are_those_supported() -> None:
    assert default_archs(SUPPORTED) == ("sm_80", "sm_90")
    assert default_archs((90, 100)) == ("sm_90",)
    assert default_archs((130, 120)) == ("sm_120",)


@cuda_build
@pytest.mark.parametrize("given", [REDUCTION, TWO], ids=lambda given: given.name)
def test_every_arch_compiles(given: CudaSource) -> None:
    archs = [f"sm_{n}" for n in find_nvrtc().archs]
    made = build(given, *archs)
    assert [image.arch for image in made.images] == [*archs, archs[0], archs[-1]]
    assert [image.kind for image in made.images] == ["cubin"] * len(archs) + ["ptx"] * 2
    for image in made.images[:-2]:
        cubin = read_cubin(image.data)
        assert f"sm_{cubin.arch}" == image.arch
        assert cubin.kernels.keys() == made.resources.keys()
    assert f".target {archs[-1]}\n".encode() in made.images[-1].data


@cuda_build
def test_the_common_archs_are_compiled_for_when_none_is_given() -> None:
    made = build(ELEMENTWISE)
    assert [f"{image.arch} {image.kind}" for image in made.images] == [
        "sm_80 cubin",
        "sm_90 cubin",
        "sm_80 ptx",
        "sm_90 ptx",
    ]


@cuda_build
def test_the_text_of_any_arch_may_go_along() -> None:
    made = compile_cuda(ELEMENTWISE, ["sm_90", "sm_80"], header=HEADER, ptx=["sm_80", "sm_90"])
    assert [f"{image.arch} {image.kind}" for image in made.images] == [
        "sm_80 cubin",
        "sm_90 cubin",
        "sm_80 ptx",
        "sm_90 ptx",
    ]


@cuda_build
def test_what_does_not_compile_is_said_with_the_place() -> None:
    with pytest.raises(ToolchainError) as caught:
        build(WRONG, "sm_80")
    said = str(caught.value)
    assert said.startswith("wrong.cu does not compile: wrong.cu(3): error: ")
    assert '"missing" is undefined' in said
    assert "\n" not in said
    assert "--gpu-architecture=sm_80" in caught.value.command
    assert "1 error detected" in caught.value.output


@cuda_build
def test_a_launch_of_nothing_is_refused() -> None:
    given = source("other", kernel("some", ""), "some", "other")
    with pytest.raises(ToolchainError, match="no kernel function other"):
        build(given, "sm_80")


@cuda_build
def test_contraction_follows_the_source() -> None:
    fused = build(ELEMENTWISE, "sm_80").images[-1].data
    apart = build(replace(ELEMENTWISE, contract=False), "sm_80").images[-1].data
    assert b"fma.rn.f32" in fused
    assert b"fma" not in apart
    assert "--fmad=false" not in flags(ELEMENTWISE, "sm_80")


@cuda_build
def test_functions_need_no_device_qualifier() -> None:
    given = source(
        "plain",
        "template <class T> T one() { return 1; }" + kernel("plain", "y[0] = one<int>();"),
    )
    assert build(given, "sm_80").images


@cuda_build
def test_a_second_run_calls_no_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = ObjectCache(tmp_path)
    first = build(REDUCTION, "sm_80", "sm_90", cache=cache)

    def never(*_: object) -> None:
        pytest.fail("NVRTC was called")

    monkeypatch.setattr(Nvrtc, "compile", never)
    assert build(REDUCTION, "sm_90", "sm_80", cache=cache) == first


@cuda_build
@pytest.mark.parametrize(
    "change", ["text", "header", "arch", "flags", "name"], ids=lambda change: change
)
def test_whatever_matters_is_in_the_key(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, calls = ObjectCache(tmp_path), []
    build(ELEMENTWISE, "sm_80", cache=cache)
    given, header, arch = ELEMENTWISE, HEADER, "sm_80"
    match change:
        case "text":
            given = replace(given, text=given.text + "\n")
        case "header":
            header += "\n"
        case "arch":
            arch = "sm_90"
        case "flags":
            given = replace(given, contract=False)
        case "name":
            given = replace(given, name="scaled")
    compile_ = Nvrtc.compile

    def counted(self: Nvrtc, *arguments: object) -> object:
        calls.append(arguments)
        return compile_(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Nvrtc, "compile", counted)
    compile_cuda(given, [arch], header=header, cache=cache)
    assert len(calls) == 1


@cuda_build
def test_what_is_damaged_in_the_cache_is_made_again(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path)
    first = build(ELEMENTWISE, "sm_80", cache=cache)
    paths = sorted(tmp_path.glob("*/*.o"))
    for path in paths:
        path.write_bytes(b"half")
        assert build(ELEMENTWISE, "sm_80", cache=cache) == first
        assert sorted(tmp_path.glob("*/*.o")) == paths


@cuda_build
@pytest.mark.parametrize("given", ALL, ids=lambda given: given.name)
@pytest.mark.parametrize("arch", ["sm_75", "sm_86", "sm_90", "sm_120"])
def test_the_cubin_says_what_the_log_says(given: CudaSource, arch: str) -> None:
    name, headers = f"{given.name}.cu", [(NAME, HEADER)]
    made = find_nvrtc().compile(name, given.text, headers, flags(given, arch))
    logged = {}
    for part in made.log.split("Compiling entry function '")[1:]:
        numbers = [
            re.search(pattern, part)
            for pattern in (r"Used (\d+) registers", r"(\d+) bytes stack", r"(\d+) bytes smem")
        ]
        logged[part.split("'")[0]] = tuple(int(n[1]) if n else 0 for n in numbers)
    read = read_cubin(made.cubin)
    assert f"sm_{read.arch}" == arch
    assert {s: (k.registers, k.stack, k.shared) for s, k in read.kernels.items()} == logged
    assert all(k.code_bytes and k.code_bytes % 16 == 0 for k in read.kernels.values())


@cuda_build
def test_spills_are_counted_and_warned_of() -> None:
    made = build(SPILLING, "sm_80", "sm_90")
    for arch in ("sm_80", "sm_90"):
        needs = made.resources["spilling"][arch]
        assert needs.registers == 32
        assert needs.spill_stores > 0
        assert needs.spill_loads > 0
        assert needs.stack >= needs.spill_stores / 4
    assert [str(w).split(":")[0] for w in made.warnings] == [
        "spilling for sm_80 spills registers",
        "spilling for sm_90 spills registers",
    ]
    for given in (ELEMENTWISE, VECTOR, REDUCTION, TWO, CALLING):
        assert not build(given, "sm_80").warnings


@cuda_build
def test_shared_memory_is_the_kernels_own() -> None:
    made = build(REDUCTION, "sm_80", "sm_90", "sm_120").resources["row_sum"]
    assert {arch: needs.shared for arch, needs in made.items()} == dict.fromkeys(made, 32)


@cuda_build
def test_narrow_accesses_are_warned_of_where_wide_ones_were_meant() -> None:
    def meant(given: CudaSource, n_bytes: int) -> list[str]:
        when = f"(n % 4 == 0) && (tcf_alignment % {n_bytes} == 0)"
        launch = replace(given.launches[0], when=when)
        made = build(replace(given, phases=(CudaPhase((launch,)),)), "sm_80")
        return [str(warning) for warning in made.warnings]

    assert not meant(VECTOR, 16)
    assert not meant(ELEMENTWISE, 4)
    assert meant(ELEMENTWISE, 16) == [
        "scale for sm_80 was meant to access 16 bytes at once, and accesses 4 at most"
    ]


@cuda_build
def test_the_widest_accesses_are_found() -> None:
    widths = {
        (symbol, needs["sm_80"].load_bytes, needs["sm_80"].store_bytes)
        for given in (ELEMENTWISE, VECTOR, TWO, CALLING)
        for symbol, needs in build(given, "sm_80").resources.items()
    }
    assert widths == {
        ("scale", 4, 4),
        ("vector", 16, 16),
        ("two_0", 4, 4),
        ("two_1", 4, 4),
        ("calling", 16, 16),
    }


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"text", Path(sys.executable).read_bytes()])
def test_what_is_no_cubin_is_refused(data: bytes) -> None:
    with pytest.raises(ToolchainError, match="not a cubin"):
        read_cubin(data)


def test_a_missing_nvrtc_is_said_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", none)
    with pytest.raises(ToolchainError, match=r"pip install 'tcfuse\[cuda\]'"):
        nvrtc_library.locate()


def test_a_library_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "libnvrtc.so.13"
    path.write_bytes(b"no library")
    with pytest.raises(ToolchainError, match="NVRTC cannot be loaded"):
        Nvrtc.load(path, "13.0")


@cuda_build
def test_a_fresh_process_finds_the_builtins() -> None:
    """Of the wheel for CUDA 13.0, which does not say where they are."""
    code = (
        "from tcfuse.targets.nvrtc_library import find_nvrtc\n"
        "n = find_nvrtc()\n"
        "made = n.compile('a.cu', '__device__ int a;', [], ['--gpu-architecture=sm_80'])\n"
        "print(len(made.cubin))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) > 0


@cuda_build
def test_threads_get_what_one_alone_gets(tmp_path: Path) -> None:
    """Also through one cache, at the same time."""
    alone = [build(given, "sm_80", "sm_90") for given in (ELEMENTWISE, VECTOR, REDUCTION)]
    given = [ELEMENTWISE, VECTOR, REDUCTION] * 3
    with ThreadPoolExecutor(4) as pool:
        made = list(
            pool.map(lambda g: build(g, "sm_80", "sm_90", cache=ObjectCache(tmp_path)), given)
        )
    assert made == alone * 3


@cuda_build
def test_a_killed_process_leaves_nothing_that_counts(tmp_path: Path) -> None:
    code = (
        "import os, tcfuse.store, tcfuse.targets.object_cache as c\n"
        "from pathlib import Path\n"
        "from tests.targets.test_nvrtc import ELEMENTWISE, build\n"
        "written = []\n"
        "def write(path, data):\n"
        "    if len(written) == 2:\n"
        "        path.parent.mkdir(exist_ok=True)\n"
        "        path.with_name('.half.part').write_bytes(data[:9])\n"
        "        os._exit(9)\n"
        "    written.append(path)\n"
        "    tcfuse.store.write_atomically(path, data)\n"
        "c.write_atomically = write\n"
        f"build(ELEMENTWISE, 'sm_80', cache=c.ObjectCache(Path({str(tmp_path)!r})))\n"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, check=False)
    assert done.returncode == 9
    assert len(list(tmp_path.glob("*/*.o"))) == 2
    made = build(ELEMENTWISE, "sm_80", cache=ObjectCache(tmp_path))
    assert made == build(ELEMENTWISE, "sm_80")


@cuda_build
def test_kernels_compile_together_as_alone(tmp_path: Path) -> None:
    given = [ELEMENTWISE, VECTOR, REDUCTION]
    cache = ObjectCache(tmp_path)
    together = compile_all(given, ["sm_80"], header=HEADER, cache=cache)
    assert together == [build(source, "sm_80") for source in given]
    with pytest.raises(ToolchainError, match=r"wrong\.cu does not compile"):
        compile_all([*given, WRONG], ["sm_80"], header=HEADER, cache=cache)
