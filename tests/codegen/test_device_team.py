"""Teams of threads in the emulator: what they find, and that no two threads race."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from tcfuse.emulator import Program
from tcfuse.errors import ToolchainError
from tests.codegen.test_mathlib_lanes import TYPES

pytestmark = [pytest.mark.compiler, pytest.mark.filterwarnings("ignore::RuntimeWarning")]

Array = np.ndarray
SIZES = tuple(1 << k for k in range(11))
KINDS = {**TYPES, "bool": np.dtype(np.bool_)}
NUMBERS = ("sum", "product", "min", "max", "first")
ROUNDS = 3
# Every size with two types, and every type with part of a warp and with several warps.
CASES = [(n, t) for n in SIZES for t in ("int32_t", "double")]
CASES += [(n, t) for n in (8, 128) for t in TYPES if t not in ("int32_t", "double")]


def threads(size: int) -> int:
    """Of a block: several teams, or the one."""
    return max(size, 64)


def kernel(size: int, dtype: str) -> str:
    """Every reduction, several times, each result stored by every thread."""
    block = threads(size)
    numbers = "".join(
        f"    y[(r * {len(NUMBERS)} + {k}) * {block} + t] = team.{name}(v);\n"
        for k, name in enumerate(NUMBERS)
    )
    return f"""
TCF_LAUNCH({block}) team_{size}_{dtype}(const {dtype}* a, {dtype}* y, int64_t* z, uint8_t* p) {{
  tcf::team<{size}> team;
  const int t = int(threadIdx.x);
  for (int r = 0; r < {ROUNDS}; ++r) {{
    const {dtype} v = a[r * {block} + t];
    const tcf::found<{dtype}> here = {{v, team.rank()}};
{numbers}    z[r * {block} + t] = team.argmax(here).index * 2000 + team.argmin(here).index;
    const int any = team.any(v > {dtype}(1)), all = team.all(v > {dtype}(1));
    p[r * {block} + t] = uint8_t(any * 2 + all);
  }}
}}
"""


@functools.cache
def program() -> Program:
    text = '#include "tcf_device.hpp"\n' + "".join(kernel(n, t) for n, t in CASES)
    try:
        return Program.build(text, [f"team_{n}_{t}" for n, t in CASES], trace=True)
    except ToolchainError as error:
        if error.output:
            raise
        pytest.skip(str(error))


def values(dtype: str, count: int, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    kind = TYPES[dtype]
    if kind.kind == "f":
        x = rng.uniform(0.97, 1.03, count).astype(kind)
        x[rng.random(count) < 0.002] = np.nan
    else:
        x = rng.integers(0, 256, count * kind.itemsize, dtype=np.uint8).view(kind)
    x[count // 3 :] = x[rng.integers(0, count, count - count // 3)]  # so that values repeat
    return x


def run(size: int, dtype: str, x: Array, seed: int) -> tuple[Array, Array, Array, object]:
    block = threads(size)
    y = np.zeros((ROUNDS, len(NUMBERS), block // size, size), x.dtype)
    z = np.zeros((ROUNDS, block // size, size), np.int64)
    p = np.zeros((ROUNDS, block // size, size), np.uint8)
    done = program().run(
        f"team_{size}_{dtype}", 1, block, 0, [x, y, z, p], seed=seed, read_only=[0]
    )
    return y, z, p, done


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(("size", "dtype"), CASES)
def test_reductions(size, dtype, seed):
    block = threads(size)
    x = values(dtype, ROUNDS * block, seed)
    y, z, p, done = run(size, dtype, x, seed)
    assert not done.reports, str(done.reports[0])
    rows = x.reshape(ROUNDS, block // size, size)
    for result in (*np.moveaxis(y, 1, 0), z, p):
        np.testing.assert_array_equal(result, result[..., :1].repeat(size, -1))
    got = dict(zip(NUMBERS, np.moveaxis(y[..., 0], 1, 0), strict=True))
    tolerance = {"rtol": 16 * np.finfo(x.dtype).eps} if x.dtype.kind == "f" else {"rtol": 0}
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(got["sum"], np.add.reduce(rows, -1, x.dtype), **tolerance)
        product = np.multiply.reduce(rows, -1, x.dtype)
        np.testing.assert_allclose(got["product"], product, **tolerance)
    np.testing.assert_array_equal(got["min"], rows.min(-1))
    np.testing.assert_array_equal(got["max"], rows.max(-1))
    np.testing.assert_array_equal(got["first"], rows[..., 0])
    # NumPy, too, takes the first of several and NaN for the largest and for the smallest.
    np.testing.assert_array_equal(z[..., 0], rows.argmax(-1) * 2000 + rows.argmin(-1))
    np.testing.assert_array_equal(p[..., 0], (rows > 1).any(-1) * 2 + (rows > 1).all(-1))
    waits = len(NUMBERS) + 2 + 2  # argmax and argmin, any and all
    assert done.barriers == (waits * ROUNDS if size > 32 else 0)
