"""Vectors of every element type: memory, conversion, comparison, integers, reductions."""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from tcfuse.targets.compilers import levels
from tcfuse.types import DType
from tests.codegen.conftest import DEVICE, fused

pytestmark = [pytest.mark.compiler, pytest.mark.filterwarnings("ignore::RuntimeWarning")]

Array = np.ndarray
LEVELS = [*(level.name for level in levels()), DEVICE]
INTEGERS = {f"{u}int{b}_t": np.dtype(f"{u}int{b}") for u in ("", "u") for b in (8, 16, 32, 64)}
TYPES = {"float": np.dtype(np.float32), "double": np.dtype(np.float64), **INTEGERS}
WIDTHS = ("1", "2", "TCF_LANES")
MEMORY_WIDTHS = (*WIDTHS[1:], "64")  # several registers too
LOOKUP_WIDTHS = ("2", "16", "32", "64", "128")
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
ARITHMETIC = (
    "add",
    "sub",
    "mul",
    "floor_div",
    "floor_mod",
    "tdiv",
    "tmod",
    "ipow",
    "shl",
    "shr",
)
CODES = {
    "float8e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "float8e5m2": ml_dtypes.float8_e5m2,
    "float8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "float8e8m0": ml_dtypes.float8_e8m0fnu,
    "float4e2m1": ml_dtypes.float4_e2m1fn,
}
REDUCTIONS = ("hsum", "hprod", "hmin", "hmax")


def function(name: str, parameters: str, body: str) -> str:
    """A function that runs ``body`` for every ``L`` elements of ``n``."""
    return (
        f'extern "C" __attribute__((visibility("default"))) void {name}'
        f"({parameters}, int64_t n) {{\n  for (int64_t i = 0; i + L <= n; i += L) {body}\n}}\n"
    )


def of_width(text: Callable[[str], str], widths: tuple[str, ...] = WIDTHS) -> str:
    """``text`` of the name of each width, in which ``L`` is that many lanes."""
    made = ""
    for width in widths:
        made += f"namespace {text.__name__}_{width} {{\nusing namespace tcf;\n"
        made += f"constexpr int L = {width};\n{text(width)}}}\n"
    return made


def conversions(width: str) -> str:
    return "".join(
        function(
            f"convert_{a}_{b}_{width}",
            f"const {a}* x, {b}* y",
            f"store<L, {b}>(y + i, convert<{b}>(load<{a}, L>(x + i)));",
        )
        for a in TYPES
        for b in TYPES
    )


def comparisons(width: str) -> str:
    text = ""
    for t in TYPES:
        values = f"auto a = load<{t}, L>(x + i), b = load<{t}, L>(y + i);"
        for name in COMPARISONS:
            body = f"{{ {values} store_bool<L>(z + i, {name}(a, b)); }}"
            text += function(
                f"{name}_{t}_{width}", f"const {t}* x, const {t}* y, uint8_t* z", body
            )
        chosen = "select(and_(not_(load_bool<L>(m + i)), lt(a, b)), a, b)"
        parameters = f"const {t}* x, const {t}* y, const uint8_t* m, {t}* z"
        body = f"{{ {values} store<L, {t}>(z + i, {chosen}); }}"
        text += function(f"select_{t}_{width}", parameters, body)
    return text


def integers(width: str) -> str:
    text = ""
    for t in INTEGERS:
        for name in ARITHMETIC:
            body = f"store<L, {t}>(z + i, {name}(load<{t}, L>(x + i), load<{t}, L>(y + i)));"
            text += function(f"{name}_{t}_{width}", f"const {t}* x, const {t}* y, {t}* z", body)
        for name in ("neg", "abs", "sign", "bitnot_"):
            body = f"store<L, {t}>(y + i, {name}(load<{t}, L>(x + i)));"
            text += function(f"{name}_{t}_{width}", f"const {t}* x, {t}* y", body)
    return text


def memory(width: str) -> str:
    text = ""
    for t in TYPES:
        for name in REDUCTIONS:
            body = f"y[i / L] = {name}(load<{t}, L>(x + i));"
            text += function(f"{name}_{t}_{width}", f"const {t}* x, {t}* y", body)
        both = f"const {t}* x, {t}* y, int64_t k"
        body = f"store_first<L, {t}>(y, load_first<{t}, L>(x, k, {t}(7)), k);"
        text += function(f"first_{t}_{width}", both, body)
        body = f"store<L, {t}>(y, load_first<{t}, L>(x, k, {t}(7)));"
        text += function(f"filled_{t}_{width}", both, body)
        body = f"store_strided<L, {t}>(y + i, 1, load_strided<{t}, L>(x + i * k, k));"
        text += function(f"strided_{t}_{width}", both, body)
        index = "splat<int64_t, L>(k - i) - iota<int64_t, L>()"
        body = f"store<L, {t}>(y + i, gather<{t}, L>(x, {index}));"
        text += function(f"backwards_{t}_{width}", both, body)
    body = "y[i / L] = uint8_t(hand(load_bool<L>(x + i)) * 2 + hor(load_bool<L>(x + i)));"
    return text + function(f"masks_{width}", "const uint8_t* x, uint8_t* y", body)


def lookups(width: str) -> str:
    text = ""
    for t in TYPES:
        body = f"store<L, {t}>(y + i, lookup<{t}, L>(table, load<uint8_t, L>(x + i)));"
        parameters = f"const uint8_t* x, const {t}* table, {t}* y"
        text += function(f"lookup_{t}_{width}", parameters, body)
    return text


def halves(width: str) -> str:
    text = ""
    for name in ("half", "bfloat"):
        body = f"store<L, float>(y + i, load_{name}<L>(x + i));"
        text += function(f"load_{name}_{width}", "const uint16_t* x, float* y", body)
        body = f"store_{name}<L>(y + i, load<float, L>(x + i));"
        text += function(f"store_{name}_{width}", "const float* x, uint16_t* y", body)
        body = f"store<L, float>(y + i, round_{name}(load<float, L>(x + i)));"
        text += function(f"round_{name}_{width}", "const float* x, float* y", body)
    body = "store<L, float>(y + i, from_half_bits(load<uint16_t, L>(x + i)));"
    text += function(f"load_bits_{width}", "const uint16_t* x, float* y", body)
    body = "store<L, uint16_t>(y + i, to_half_bits(load<float, L>(x + i)));"
    return text + function(f"store_bits_{width}", "const float* x, uint16_t* y", body)


def codes(width: str) -> str:
    text = ""
    for name in CODES:
        body = f"store<L, float>(y + i, from_code<{name}>(load<uint8_t, L>(x + i)));"
        text += function(f"load_{name}_{width}", "const uint8_t* x, float* y", body)
        body = f"store<L, uint8_t>(y + i, to_code<{name}>(load<float, L>(x + i)));"
        text += function(f"store_{name}_{width}", "const float* x, uint8_t* y", body)
        body = f"store<L, float>(y + i, round_code<{name}>(load<float, L>(x + i)));"
        text += function(f"round_{name}_{width}", "const float* x, float* y", body)
    return text


SHORT = {"int8_t": -7, "uint8_t": 128, "int16_t": 0, "uint16_t": 40001}


def roundings(width: str) -> str:
    text = ""
    for t, zero in SHORT.items():
        body = f"store<L, {t}>(y + i, quantized<{t}>(load<float, L>(x + i), {zero}));"
        text += function(f"quantized_{t}_{width}", f"const float* x, {t}* y", body)
    for t in ("float", "double"):
        for name in ("at_least", "at_most"):
            body = f"store<L, {t}>(y + i, {name}(load<{t}, L>(x + i), splat<{t}, L>(-2)));"
            text += function(f"{name}_{t}_{width}", f"const {t}* x, {t}* y", body)
    body = "quotient_by(load<float, L>(x + i), 10.f, 9.9999994e-02f, 5.9604646e-09f)"
    body = f"store<L, float>(y + i, {body});"
    return text + function(f"tenth_{width}", "const float* x, float* y", body)


TEXT = of_width(conversions, WIDTHS[::2]) + of_width(comparisons, WIDTHS[::2])
TEXT += of_width(integers, WIDTHS[::2]) + of_width(memory, MEMORY_WIDTHS) + of_width(halves)
TEXT += of_width(codes) + of_width(lookups, LOOKUP_WIDTHS) + of_width(roundings)


def call(
    library: ctypes.CDLL, name: str, *arguments: Array | int, n: int | None = None
) -> None:
    first = arguments[0]
    assert isinstance(first, np.ndarray)
    passed = [
        ctypes.c_void_p(a.ctypes.data) if isinstance(a, np.ndarray) else ctypes.c_int64(a)
        for a in arguments
    ]
    getattr(library, name)(*passed, ctypes.c_int64(first.size if n is None else n))


def values(kind: np.dtype, seed: int = 1, count: int = 256) -> Array:
    """Bit patterns of every kind, small values and the ends of the range."""
    rng = np.random.default_rng(seed)
    raw = rng.integers(0, 256, count * kind.itemsize, dtype=np.uint8).view(kind)
    small = rng.integers(0 if kind.kind == "u" else -5, 6, count).astype(kind)
    if kind.kind == "f":
        wide = np.exp2(rng.uniform(-4, 66, count)) * rng.choice([-1, 1], count)
        ends = np.array(
            [0, -0.0, np.inf, -np.inf, np.nan, 2.0**31, -(2.0**31), 2.0**63, 2.0**64]
        )
    else:
        info = np.iinfo(kind)
        wide = rng.integers(info.min, info.max, count, kind, endpoint=True)
        ends = np.array([info.min, info.max, 0, 1], kind)
    chosen = rng.permutation(np.concatenate([v.astype(kind) for v in (raw, small, wide)]))
    return np.concatenate([ends.astype(kind), chosen])[:count]


def truncated(x: Array, bits: int) -> Array:
    """Towards zero; the least integer where that does not fit."""
    limit = 2.0 ** (bits - 1)
    fits = (x >= -limit) & (x < limit)
    kind = np.dtype(f"int{bits}")
    return np.where(fits, np.where(fits, x, 0).astype(kind), np.iinfo(kind).min)


def converted(x: Array, kind: np.dtype) -> Array:
    if x.dtype.kind != "f" or kind.kind == "f":
        return x.astype(kind)
    if kind == np.uint64:
        high = x >= 2.0**63
        low = truncated(np.where(high, x - x.dtype.type(2.0**63), x), 64).astype(np.uint64)
        return low ^ np.where(high, np.uint64(1 << 63), np.uint64(0))
    return truncated(x, 64 if kind in (np.int64, np.uint32) else 32).astype(kind)


@pytest.mark.parametrize("width", WIDTHS[::2])
@pytest.mark.parametrize("level", LEVELS)
def test_conversions(build, level, width):
    for a, from_ in TYPES.items():
        x = values(from_)
        for b, to in TYPES.items():
            y = np.empty(x.size, to)
            call(build(TEXT, level), f"convert_{a}_{b}_{width}", x, y)
            np.testing.assert_array_equal(y, converted(x, to), f"{a} to {b}")


@pytest.mark.parametrize("width", WIDTHS[::2])
@pytest.mark.parametrize("level", LEVELS)
def test_comparisons(build, level, width):
    for t, kind in TYPES.items():
        x, y = values(kind, 1), values(kind, 2)
        m = np.random.default_rng(4).integers(0, 3, x.size).astype(np.uint8)
        for name in COMPARISONS:
            z = np.full(x.size, 9, np.uint8)
            call(build(TEXT, level), f"{name}_{t}_{width}", x, y, z)
            np.testing.assert_array_equal(z, getattr(operator, name)(x, y), f"{name} {t}")
        chosen = np.empty_like(x)
        call(build(TEXT, level), f"select_{t}_{width}", x, y, m, chosen)
        np.testing.assert_array_equal(chosen, np.where((m == 0) & (x < y), x, y), t)


def wrapped(value: int, kind: np.dtype) -> int:
    bits = 8 * kind.itemsize
    value &= (1 << bits) - 1
    return value - (1 << bits) if kind.kind == "i" and value >> (bits - 1) else value


def truncating(a: int, b: int) -> int:
    return (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1) if b else 0


def power(a: int, b: int, bits: int) -> int:
    if b < 0:
        return a**-b if a in (1, -1) else 0
    return pow(a, b, 1 << bits)


def expected(name: str, a: int, b: int, bits: int) -> int:
    """What the library defines, in unlimited integers."""
    match name:
        case "add" | "sub" | "mul":
            return getattr(operator, name)(a, b)
        case "floor_div":
            return a // b if b else 0
        case "floor_mod":
            return a % b if b else 0
        case "tdiv":
            return truncating(a, b)
        case "tmod":
            return a - truncating(a, b) * b if b else 0
        case "ipow":
            return power(a, b, bits)
        case "shl":
            return a << b if 0 <= b < bits else 0
        case _:
            return a >> b if 0 <= b < bits else -1 if a < 0 else 0


@pytest.mark.parametrize("width", WIDTHS[::2])
@pytest.mark.parametrize("level", LEVELS)
def test_integers(build, level, width):
    for t, kind in INTEGERS.items():
        x, y = values(kind, 1), values(kind, 2)
        pairs = list(zip(map(int, x), map(int, y), strict=True))
        bits = 8 * kind.itemsize
        for name in ARITHMETIC:
            z = np.empty_like(x)
            call(build(TEXT, level), f"{name}_{t}_{width}", x, y, z)
            want = [wrapped(expected(name, a, b, bits), kind) for a, b in pairs]
            np.testing.assert_array_equal(z, np.array(want, kind), f"{name} {t}")
        for name, want in (
            ("neg", [-a for a, _ in pairs]),
            ("abs", [abs(a) for a, _ in pairs]),
            ("sign", [(a > 0) - (a < 0) for a, _ in pairs]),
            ("bitnot_", [~a for a, _ in pairs]),
        ):
            z = np.empty_like(x)
            call(build(TEXT, level), f"{name}_{t}_{width}", x, z)
            np.testing.assert_array_equal(z, np.array([wrapped(v, kind) for v in want], kind))


def folded(rows: Array, combine: Callable[[Array, Array], Array]) -> Array:
    """Halves of each row combined until one element is left, as the library does."""
    while rows.shape[1] > 1:
        half = rows.shape[1] // 2
        rows = combine(rows[:, :half], rows[:, half:])
    return rows[:, 0]


def lanes_of(width: str, name: str) -> int:
    if width != "TCF_LANES":
        return int(width)
    level = fused() if name == DEVICE else next(x for x in levels() if x.name == name)
    return level.lanes


@pytest.mark.parametrize("width", WIDTHS[1:])
@pytest.mark.parametrize("level", LEVELS)
def test_reductions(build, level, width):
    library, lanes = build(TEXT, level), lanes_of(width, level)
    combine = dict(zip(REDUCTIONS, (np.add, np.multiply, np.minimum, np.maximum), strict=True))
    for t, kind in TYPES.items():
        x = values(kind)
        for name in REDUCTIONS:
            y = np.empty(x.size // lanes, kind)
            call(library, f"{name}_{t}_{width}", x, y)
            np.testing.assert_array_equal(y, folded(x.reshape(-1, lanes), combine[name]), name)
    x = np.random.default_rng(2).choice(np.array([0, 1, 1, 1], np.uint8), 64 * lanes)
    y = np.empty(64, np.uint8)
    call(library, f"masks_{width}", x, y)
    rows = x.reshape(-1, lanes)
    np.testing.assert_array_equal(y, rows.all(1) * 2 + rows.any(1))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("level", LEVELS)
def test_roundings(build, level, width):
    library = build(TEXT, level)
    rng = np.random.default_rng(3)
    some = [np.nan, np.inf, -np.inf, 1e30, -1e30, 0.0, -0.0, 8388609.0, 2147483648.0, 1e-40]
    x = np.concatenate(
        [np.arange(-700, 700) / 2, rng.standard_normal(4096) * 1e5, some, np.zeros(10)]
    ).astype(np.float32)[: 5504 // 32 * 32]
    assert np.isnan(x).any()
    for t, zero in SHORT.items():
        limits = np.iinfo(t.removesuffix("_t"))
        moved = np.rint(x.astype(np.float64)) + zero
        want = np.where(np.isnan(moved), 0, np.clip(moved, limits.min, limits.max))
        y = np.empty(x.size, limits.dtype)
        call(library, f"quantized_{t}_{width}", x, y)
        np.testing.assert_array_equal(y, want, t)
    for t, kind in {"float": np.float32, "double": np.float64}.items():
        for name, bound in {"at_least": np.maximum, "at_most": np.minimum}.items():
            y = np.empty(x.size, kind)
            call(library, f"{name}_{t}_{width}", x.astype(kind), y)
            np.testing.assert_array_equal(y, bound(x.astype(kind), kind(-2)), name)
    y = np.empty_like(x)
    call(library, f"tenth_{width}", x, y)
    np.testing.assert_array_equal(y, x / np.float32(10))


@pytest.mark.parametrize("width", MEMORY_WIDTHS)
@pytest.mark.parametrize("level", LEVELS)
def test_memory(build, level, width):
    library, lanes = build(TEXT, level), lanes_of(width, level)
    for t, kind in TYPES.items():
        x = values(kind)
        for k in range(1, lanes):
            y = np.full(lanes, 3, kind)
            call(library, f"first_{t}_{width}", x, y, k, n=lanes)
            np.testing.assert_array_equal(
                y, np.where(np.arange(lanes) < k, x[:lanes], kind.type(3))
            )
            call(library, f"filled_{t}_{width}", x, y, k, n=lanes)
            np.testing.assert_array_equal(
                y, np.where(np.arange(lanes) < k, x[:lanes], kind.type(7))
            )
        y = np.empty(x.size // 4, kind)
        call(library, f"strided_{t}_{width}", x, y, 3, n=y.size)
        np.testing.assert_array_equal(y, x[: 3 * y.size : 3])
        y = np.empty_like(x)
        call(library, f"backwards_{t}_{width}", x, y, x.size - 1)
        np.testing.assert_array_equal(y, x[::-1])


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("load", "store", "kind"),
    [("half", "half", np.float16), ("bits", "bits", np.float16), ("bfloat", "bfloat", None)],
)
def test_halves(build, level, width, load, store, kind):
    library = build(TEXT, level)
    kind = np.dtype(kind or ml_dtypes.bfloat16)
    every = np.arange(1 << 16, dtype=np.uint16)
    wide = np.empty(every.size, np.float32)
    call(library, f"load_{load}_{width}", every, wide)
    np.testing.assert_array_equal(wide, every.view(kind).astype(np.float32))
    # Every half, what lies halfway to the next one, and what lies beside that.
    middle = (
        every[:-1].view(kind).astype(np.float64) + every[1:].view(kind).astype(np.float64)
    ) / 2
    middle = middle.astype(np.float32)
    x = np.concatenate([wide, middle, np.nextafter(middle, np.float32(0)), middle * 2, [0] * 3])
    x = np.concatenate([x.astype(np.float32), values(np.dtype(np.float32), count=1024)])
    x = x[: x.size // 16 * 16]
    got = np.empty(x.size, np.uint16)
    call(library, f"store_{store}_{width}", x, got)
    want = x.astype(kind)
    nan = np.isnan(want)
    np.testing.assert_array_equal(np.isnan(got.view(kind)), nan)
    np.testing.assert_array_equal(got[~nan], want.view(np.uint16)[~nan])
    if load != "bits":
        rounded = np.empty_like(x)
        call(library, f"round_{load}_{width}", x, rounded)
        np.testing.assert_array_equal(rounded, want.astype(np.float32))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", CODES)
def test_floats_of_a_byte(build, level, width, name):
    library, kind = build(TEXT, level), np.dtype(CODES[name])
    every = np.arange(16 if name == "float4e2m1" else 256, dtype=np.uint8)
    wide = np.empty(every.size, np.float32)
    call(library, f"load_{name}_{width}", every, wide)
    np.testing.assert_array_equal(wide, every.view(kind).astype(np.float32))
    # Every value, what lies halfway to the next one, and what lies beside that.
    known = np.unique(wide[np.isfinite(wide)])
    middle = known[:-1] + (known[1:] - known[:-1]) / 2
    beside = [np.nextafter(middle, np.float32(end)) for end in (-np.inf, np.inf)]
    beyond = known[-1] * np.linspace(1, 2, 32, dtype=np.float32)
    ends = np.float32([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1e-45, -1e-45])
    x = np.concatenate([wide, middle, *beside, beyond, -beyond, ends]).astype(np.float32)
    x = np.concatenate([x, values(np.dtype(np.float32), count=1024)])
    x = x[: x.size // 16 * 16]
    got = np.empty(x.size, np.uint8)
    call(library, f"store_{name}_{width}", x, got)
    want = DType.from_tc(name).nearest(x)
    nan = np.isnan(x)
    special = got[nan].view(kind).astype(np.float32)
    np.testing.assert_array_equal(special, want[nan].astype(np.float32))
    nan |= np.isnan(want)
    np.testing.assert_array_equal(np.isnan(got.view(kind)), np.isnan(want))
    np.testing.assert_array_equal(got[~nan], want.view(np.uint8)[~nan])
    rounded = np.empty_like(x)
    call(library, f"round_{name}_{width}", x, rounded)
    np.testing.assert_array_equal(rounded, want.astype(np.float32))


def test_a_power_of_two_is_the_nearest_one():
    known = 2.0 ** np.arange(-127, 128)
    middle = known[:-1] * 1.5
    x = np.concatenate([known, middle, *(np.nextafter(middle, end) for end in (0, np.inf))])
    x = np.concatenate([x, 2.0 ** np.array([-149.0, -140.0, -128.0])])
    for given in (x, x.astype(np.float32)):
        nearest = np.argmin(np.abs(known[::-1] - given[:, None]), axis=1)  # of two the larger
        want = known[::-1][nearest]
        np.testing.assert_array_equal(DType.FLOAT8E8M0.nearest(given).astype(np.float64), want)


@pytest.mark.parametrize("width", LOOKUP_WIDTHS)
@pytest.mark.parametrize("level", LEVELS)
def test_lookups(build, level, width):
    x = np.concatenate([np.arange(256), np.arange(255, -1, -1)]).astype(np.uint8)
    for t, kind in TYPES.items():
        table, y = values(kind, 3), np.empty(x.size, kind)
        call(build(TEXT, level), f"lookup_{t}_{width}", x, table, y)
        np.testing.assert_array_equal(y, table[x], t)
