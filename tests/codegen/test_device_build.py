"""NVRTC takes the whole device library, and makes the instructions of it that are meant."""

from __future__ import annotations

import functools
import re

import pytest

from tcfuse.codegen.device import NAME, device_header
from tcfuse.targets.nvrtc import FLAGS
from tcfuse.targets.nvrtc_library import Compilation, find_nvrtc
from tcfuse.targets.ptx import Ptx
from tcfuse.targets.ptx_version import needed
from tests.codegen.test_device import ARITIES
from tests.codegen.test_mathlib import TYPES
from tests.codegen.test_mathlib_lanes import (
    ARITHMETIC,
    CODES,
    COMPARISONS,
    INTEGERS,
    REDUCTIONS,
)

pytestmark = pytest.mark.cuda_build

ARCHS = (75, 80, 90, 100, 120)


@functools.cache
def compiled(text: str, arch: str) -> Compilation:
    flags = (f"--gpu-architecture={arch}", *FLAGS)
    return find_nvrtc().compile("k.cu", text, [(NAME, device_header())], flags)


def ptx(body: str, arch: int = 90) -> str:
    return compiled(f'#include "{NAME}"\n{body}', f"compute_{arch}").ptx


def kernel(name: str, kinds: str, body: str) -> str:
    """A kernel of inputs ``a``, ``b``, ... and output ``y`` at thread ``i``."""
    *inputs, output = kinds.split()
    parameters = [
        f"const {kind}* __restrict__ {p}" for kind, p in zip(inputs, "abcd", strict=False)
    ]
    parameters.append(f"{output}* __restrict__ y")
    return (
        f"TCF_LAUNCH(256) {name}({', '.join(parameters)}) {{\n"
        f"  const int i = int(blockIdx.x) * 256 + int(threadIdx.x); (void)i;\n  {body}\n}}\n"
    )


def everything() -> str:
    """A kernel of every function of scalars and of pairs of them, of some types."""
    text = ""
    for name, arity in ARITIES.items():
        for dtype in TYPES:
            given = ", ".join(f"{p}[i]" for p in "abc"[:arity])
            kinds = " ".join([dtype] * (arity + 1))
            text += kernel(f"{name}_{dtype}", kinds, f"y[i] = tcf::{name}({given});")
    pair = "tcf::load<{t}, 2>({p} + 2 * i)"
    for t in (*INTEGERS, *TYPES):
        a, b = (pair.format(t=t, p=p) for p in "ab")
        whole = t in INTEGERS
        for name in ARITHMETIC if whole else ("add", "sub", "mul"):
            body = f"tcf::store<2>(y + 2 * i, tcf::{name}({a}, {b}));"
            text += kernel(f"{name}_{t}", f"{t} {t} {t}", body)
        for name in COMPARISONS:
            body = f"tcf::store_bool<2>(y + 2 * i, tcf::{name}({a}, {b}));"
            text += kernel(f"{name}_{t}", f"{t} {t} uint8_t", body)
        for name in REDUCTIONS:
            text += kernel(f"{name}_{t}", f"{t} {t}", f"y[i] = tcf::{name}({a});")
        for to in ("uint8_t", "int32_t", "uint32_t", "int64_t", "uint64_t", "float"):
            body = f"tcf::store<2>(y + 2 * i, tcf::convert<{to}>({a}));"
            text += kernel(f"convert_{t}_{to}", f"{t} {to}", body)
    for name in CODES:
        decoded = f"tcf::from_code<tcf::{name}>(tcf::load<uint8_t, 2>(a + 2 * i))"
        body = f"tcf::store<2>(y + 2 * i, tcf::to_code<tcf::{name}>({decoded}));"
        text += kernel(f"code_{name}", "uint8_t uint8_t", body)
    wrapped = "tcf::wrapped<4, true>(tcf::load<int32_t, 2>(a + 2 * i))"
    body = f"tcf::store<2>(y + 2 * i, tcf::reinterpret<float>({wrapped}));"
    return text + kernel("wrapped", "int32_t float", body)


def team(size: int) -> str:
    """Every reduction of a team of that size."""
    text = ""
    for t in (*INTEGERS, *TYPES):
        body = f"tcf::team<{size}> team; tcf::found<{t}> at = {{a[i], i}};\n"
        body += "  y[i] = team.first(team.sum(a[i]) + team.product(a[i]));\n"
        body += "  y[i] += team.min(a[i]) + team.max(a[i]) + team.argmin(at).value;\n"
        body += "  if (team.any(a[i] > 0) && team.all(a[i] > 1)) y[i] = 1;\n"
        body += "  team.sync(); y[i] += team.argmax(at).index;"
        text += kernel(f"team_{size}_{t}", f"{t} {t}", body)
    return text


def test_every_function_compiles():
    made = ptx(everything() + team(1) + team(8) + team(256))
    assert needed(Ptx.parse(made)).unknown == ""


HARDWARE = (
    kernel("half", "uint16_t uint16_t", "y[i] = tcf::to_half(tcf::from_half(a[i]));")
    + kernel("bfloat", "float float", "y[i] = tcf::round_bfloat(a[i]);")
    + "".join(
        kernel(f"{name}_{t}", f"{t} {t} {t}", f"y[i] = tcf::{name}(a[i], b[i]);")
        for name in ("max_", "min_", "fmax", "fmin", "product")
        for t in TYPES
    )
)


@pytest.mark.parametrize("arch", ARCHS)
def test_what_depends_on_the_architecture_compiles(arch):
    made = compiled(f'#include "{NAME}"\n{HARDWARE}', f"sm_{arch}")
    assert made.cubin
    assert needed(Ptx.parse(made.ptx)).unknown == ""
    newer = arch >= 80
    assert ("cvt.rn.bf16.f32" in made.ptx) == newer
    assert ("max.NaN.f32" in made.ptx) == newer
    assert "cvt.rn.f16.f32" in made.ptx


WIDTHS = [("uint8_t", 4), ("uint16_t", 8), ("uint16_t", 2), ("uint8_t", 16)]
WIDTHS += [("float", 2), ("float", 4), ("double", 2), ("int64_t", 2)]


@pytest.mark.parametrize(("dtype", "lanes"), WIDTHS)
def test_a_pack_is_one_load_and_one_store(dtype, lanes):
    at = f"tcf::load<{dtype}, {lanes}>(a + {lanes} * i)"
    body = f"tcf::store<{lanes}>(y + {lanes} * i, tcf::add({at}, {at}));"
    made = ptx(kernel("k", f"{dtype} {dtype}", body))
    accesses = Ptx.parse(made).accesses("k")
    size = {"uint8_t": 1, "uint16_t": 2, "float": 4}.get(dtype, 8) * lanes
    assert (dict(accesses.loads), dict(accesses.stores)) == ({size: 1}, {size: 1})
    assert "ld.global.nc" in made


def test_what_is_wider_takes_an_instruction_for_every_16_bytes():
    at = "tcf::load<double, 4>(a + 4 * i)"
    made = ptx(kernel("k", "double double", f"tcf::store<4>(y + 4 * i, {at} + {at});"))
    accesses = Ptx.parse(made).accesses("k")
    assert (dict(accesses.loads), dict(accesses.stores)) == ({16: 2}, {16: 2})


@pytest.mark.parametrize(
    ("size", "barriers", "shuffles"),
    [(1, 0, 0), (2, 0, 1), (8, 0, 3), (32, 0, 5), (64, 1, 6), (256, 1, 8), (1024, 1, 10)],
)
def test_a_reduction_takes_one_barrier_of_a_block(size, barriers, shuffles):
    body = f"tcf::team<{size}> team; y[i] = team.sum(a[i]);"
    made = ptx(kernel("k", "float float", body))
    assert len(re.findall(r"\bbar(?:rier)?\.", made)) == barriers
    assert len(re.findall(r"shfl\.sync\.bfly", made)) == shuffles


def test_truth_is_put_together_by_the_barrier_itself():
    body = "tcf::team<256> team; y[i] = team.any(a[i] > 0) + team.all(a[i] > 1);"
    made = ptx(kernel("k", "float float", body))
    assert sorted(re.findall(r"bar\.red\.\w+", made)) == ["bar.red.and", "bar.red.or"]
    assert "shfl" not in made
    assert ".shared" not in made


def test_a_product_is_rounded_on_its_own():
    """Though multiplications and additions may be fused."""
    made = ptx(kernel("k", "float float", "y[i] = tcf::product(a[i], a[i]) + a[i];"))
    assert "fma" not in made
    assert "fma.rn.f32" in ptx(kernel("k", "float float", "y[i] = a[i] * a[i] + a[i];"))


def test_packs_stay_in_registers():
    steps = "auto v = tcf::load<float, 4>(a + 4 * i); for (int k = 0; k < 4; k++) "
    steps += "v = tcf::exp(v * tcf::splat<float, 4>(a[k])); "
    steps += "tcf::store<4>(y + 4 * i, tcf::select(tcf::lt(v, v + v), v, tcf::sigmoid(v)));"
    assert ".local" not in ptx(kernel("k", "float float", steps))


@pytest.mark.parametrize("name", ["sigmoid", "tanh", "erf"])
def test_a_quotient_of_moderate_numbers_takes_no_division(name):
    made = ptx(kernel("k", "float float", f"y[i] = tcf::{name}(a[i]);"))
    assert "div." not in made
    assert made.count("rcp.approx.ftz.f32") == 1
