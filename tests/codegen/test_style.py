"""Knobs of the text of loops, and of the C++ compiler: other code, the same answers."""

from pathlib import Path

import numpy as np
import pytest

from tcfuse.mapping_options import INSTRUCTIONS, STREAMED_BYTES, MappingOptions
from tcfuse.targets.base import Compilation
from tcfuse.targets.compilers import X86_LEVELS, Compiler, Level, levels
from tcfuse.targets.toolchain import Toolchain, Unit
from tests.codegen.conftest import runnable
from tests.targets.kernels import build, checked_of, functions_of, kernel_of

TEXT = """
def f(float({n}, {m}) X) -> (float({n}, {m}) Y, float({n}) S) {{
  Y(i, j) = exp(X(i, j)) where i in 0:{n}, j in 0:{m}
  S(i) +=! X(i, j) * X(i, j) where i in 0:{n}, j in 0:{m}
}}"""


def flags(kind: str, level: Level = X86_LEVELS[0], **chosen: object) -> tuple[str, ...]:
    unit = Unit("k.cpp", "", level, compilation=Compilation(**chosen))
    return Toolchain(Compiler(kind, ("cc",), "1")).flags(unit)


@pytest.mark.parametrize("kind", ["zig", "clang", "gcc"])
def test_each_choice_tells_each_compiler_something_else(kind: str) -> None:
    every = {flags(kind, instructions=name) for name in INSTRUCTIONS if name != "auto"}
    assert len(every) == len(INSTRUCTIONS) - 1
    assert flags(kind, hoisting=False) != flags(kind)
    assert "-O2" in flags(kind, optimization=2)
    assert "-O3" in flags(kind)


@pytest.mark.parametrize("level", X86_LEVELS, ids=lambda level: level.name)
@pytest.mark.parametrize("kind", ["zig", "clang", "gcc"])
def test_clang_orders_for_latency_where_registers_are_few(kind: str, level: Level) -> None:
    usual = "latency" if kind != "gcc" and level.name != "v4" else "compiler"
    assert flags(kind, level) == flags(kind, level, instructions=usual)


def test_the_operator_shell_is_compiled_as_ever() -> None:
    unit = Unit("k.c", "", levels()[0], is_kernel=False, compilation=Compilation("source"))
    assert "-enable-misched=false" not in Toolchain(Compiler("zig", ("cc",), "1")).flags(unit)


@pytest.mark.parametrize("registers", [1, 2, 4, 8])
def test_a_step_of_a_loop_has_as_many_registers_as_were_wanted(registers: int) -> None:
    text = functions_of(
        kernel_of(TEXT.format(n=8, m=512), MappingOptions(registers=registers)).source
    )
    wanted = f", {registers})" if registers > 1 else ")"
    assert f"tcf::lanes_for(4, 512{wanted}" in text


def test_nothing_is_streamed_where_no_size_is_large_enough() -> None:
    text = "def f(float(N, M) X) -> (float(N, M) Y) { Y(i, j) = X(i, j) * 2 }"
    assert "tcf::stream<" not in kernel_of(text, MappingOptions(streaming=0)).source.text
    assert f"4 * M * N >= {STREAMED_BYTES}" in kernel_of(text).source.text


@pytest.mark.compiler
@pytest.mark.parametrize("columns", [1, 7, 64, 200])
@pytest.mark.parametrize(
    "knobs",
    [
        *({"registers": n} for n in (1, 2, 4, 8)),
        {"instructions": "source", "hoisting": False},
        {"instructions": "latency", "optimization": 2, "streaming": 1},
    ],
    ids=str,
)
def test_answers_do_not_depend_on_the_style(
    tmp_path: Path, columns: int, knobs: dict[str, object]
) -> None:
    texts = [TEXT.format(n=n, m=m) for n, m in (("N", "M"), (3, columns))]
    definitions = [checked_of(text) for text in texts]
    kernels = [kernel_of(d, MappingOptions(**knobs)) for d in definitions]
    x = np.random.default_rng(0).standard_normal((3, columns)).astype(np.float32)
    for level in build(definitions, kernels, runnable(), tmp_path):
        for compiled in level:
            found, fault = compiled({"X": x})
            assert not fault
            np.testing.assert_allclose(found["Y"], np.exp(x), rtol=1e-6)
            np.testing.assert_allclose(found["S"], (x * x).sum(1), rtol=1e-5)
