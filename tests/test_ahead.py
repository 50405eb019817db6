"""The C++ compiler works while isl does; what it makes is in the cache when it is asked for."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from models import attention
from tcfuse import ahead, debug
from tcfuse.ahead import Ahead, compiling_ahead
from tcfuse.kernels import Kernels
from tcfuse.options import OptimizeOptions
from tcfuse.pipeline import explain, optimize
from tcfuse.profile import COMPILER, Tally, profiling
from tcfuse.targets import toolchain
from tcfuse.targets.toolchain import Toolchain, Unit

pytestmark = [pytest.mark.compiler, pytest.mark.ort]


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache that knows nothing yet."""
    monkeypatch.setenv("TCFUSE_CACHE_DIR", str(tmp_path / "cache"))
    debug.current.cache_clear()
    yield tmp_path / "cache"
    monkeypatch.undo()
    debug.current.cache_clear()


def test_a_build_finds_every_object_but_the_table(monkeypatch: pytest.MonkeyPatch):
    compiled: list[str] = []
    run = Toolchain._run

    def counted(self: Toolchain, arguments: tuple[str, ...], folder: Path) -> None:
        compiled.append(Path(arguments[-3]).name if "-c" in arguments else "link")
        run(self, arguments, folder)

    monkeypatch.setattr(Toolchain, "_run", counted)
    with profiling() as recording:
        result = optimize(attention.build(), gate=False)
    n_kernels = len({region.name for region in result.report.kept})
    assert n_kernels > 0
    assert compiled[-2:] == ["table.c", "link"]  # all else was there
    n_units = len(compiled) - 1
    assert recording.result().tallies[COMPILER] == Tally(n_units, 0)
    assert len(set(compiled)) > n_kernels


def test_nothing_is_compiled_where_nothing_is_built(monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object) -> None:
        raise AssertionError("compiled")

    monkeypatch.setattr(toolchain, "run", fail)
    assert explain(attention.build()).regions


def test_a_warm_run_does_not_look_for_a_compiler(monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object) -> None:
        raise AssertionError("looked for a compiler")

    cold = optimize(attention.build(), gate=False)
    monkeypatch.setattr(toolchain, "find_compiler", fail)
    assert optimize(attention.build(), gate=False).library == cold.library


def test_what_does_not_compile_is_left_to_the_build(monkeypatch: pytest.MonkeyPatch):
    started = ahead.kernel_unit

    def damaged(*arguments: object) -> Unit:
        return Unit("k.cpp", "this is no C++", started(*arguments).level)

    monkeypatch.setattr(ahead, "kernel_unit", damaged)
    result = optimize(attention.build(), gate=False)
    assert result.report.kept  # the build has the right text


def test_nothing_is_begun_any_more_when_what_is_inside_fails():
    begun: list[int] = []
    with pytest.raises(KeyError), compiling_ahead(OptimizeOptions()) as compiling:  # noqa: PT012
        compiling._pool = ThreadPoolExecutor(1)
        for k in range(50):
            compiling._pool.submit(lambda k=k: (begun.append(k), time.sleep(0.02)))
        raise KeyError
    n_begun = len(begun)
    time.sleep(0.1)
    assert n_begun == len(begun) < 50


def test_kernels_for_gpus_alone_need_no_compiler():
    with compiling_ahead(OptimizeOptions()) as compiling:
        assert isinstance(compiling, Ahead)
        compiling.compile(Kernels(cpu=None))
        assert compiling._pool is None
