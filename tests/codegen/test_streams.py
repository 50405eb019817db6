"""Outputs larger than caches are stored past them."""

import ctypes
import re
from pathlib import Path

import numpy as np
import pytest

from tcfuse.mapping_options import STREAMED_BYTES, MappingOptions
from tests.codegen.conftest import runnable
from tests.targets.kernels import build as build_kernels
from tests.targets.kernels import checked_of, functions_of, kernel_of

BODY = "Y(i, j) = X(i, j) * 2 where i in 0:{n}, j in 0:{m}"


def text_of(n: int, m: int, more: str = "", out: str = "Y") -> str:
    size = f"float({n}, {m})"
    returns = ", ".join(f"{size} {name}" for name in out.split())
    text = f"def f({size} X) -> ({returns}) {{ {BODY.format(n=n, m=m)} {more} }}"
    return functions_of(kernel_of(text).source)


def test_large_outputs_are_streamed_and_others_see_them() -> None:
    text = text_of(4096, 4096)
    assert text.index("tcf::stream<") < text.index("tcf::streamed();")


def test_what_fits_a_cache_stays_there() -> None:
    assert "tcf::stream" not in text_of(4096, 1024)


def test_what_is_read_again_is_not_streamed() -> None:
    again = "Z(i, j) = Y(i, j) + 1 where i in 0:4096, j in 0:4096"
    text = text_of(4096, 4096, again, "Y Z")
    assert set(re.findall(r"tcf::stream<\w+>\((\w+)", text)) == {"T_Z"}


def test_sizes_of_a_call_decide_where_they_are_not_known() -> None:
    """Outside of the loop over lanes; and only then there is something to wait for."""
    size, body = "float(N, M)", "Y(i, j) = X(i, j) * 2 where i in 0:N, j in 0:M"
    text = functions_of(kernel_of(f"def f({size} X) -> ({size} Y) {{ {body} }}").source)
    large = f"4 * M * N >= {STREAMED_BYTES}"
    assert text.index(large) < text.index("tcf::stream<") < text.index("tcf::store<")
    assert f"if ({large}) tcf::streamed();" in text


@pytest.mark.parametrize(("columns", "streamed"), [(16, False), (256, True), (4096, True)])
def test_short_runs_are_not_streamed(columns: int, streamed: bool) -> None:
    text = text_of((1 << 24) // columns, columns)
    assert ("tcf::stream<" in text) == streamed
    assert ("tcf::are_lines(" in text) == (columns == 256)


def test_a_kernel_that_keeps_rows_in_memory_streams_nothing() -> None:
    text = """
    def f(float(N, 4096) X) -> (float(N, 4096) Y) {
      E(i, j) = exp(X(i, j)) where i in 0:N, j in 0:4096
      S(i) +=! E(i, j) where i in 0:N, j in 0:4096
      Y(i, j) = E(i, j) / S(i) where i in 0:N, j in 0:4096
    }"""
    kernel = kernel_of(text)
    assert "tcf::store<" in functions_of(kernel.source)
    assert re.search(r"\bT_E\[4096\]", functions_of(kernel.source))
    assert "tcf::stream" not in functions_of(kernel.source)


def test_sums_are_not_streamed() -> None:
    text = """
    def f(float(N, M, 8) X) -> (float(N, M) Y) {
      Y(i, j) +=! X(i, j, k) where i in 0:N, j in 0:M, k in 0:8
    }"""
    assert "tcf::stream" not in functions_of(kernel_of(text).source)


@pytest.mark.compiler
@pytest.mark.parametrize("columns", [200, 256, 300, 512, 515, 1024, 1027])
def test_whatever_the_rows_every_element_is_stored(tmp_path: Path, columns: int) -> None:
    """Rows that are lines, and rows that begin and end at any place in them."""
    texts = [
        f"""def f(float({rows}, {width}) X, float({width}) B) -> (float({rows}, {width}) Y,
            double({rows}, {width}) Z) {{
          Y(i, j) = X(i, j) * 2 where i in 0:{rows}, j in 0:{width}
          Z(i, j) = double(X(i, j) + B(j)) where i in 0:{rows}, j in 0:{width}
        }}"""
        for rows, width in (("N", "M"), ("7", str(columns)))
    ]
    definitions = [checked_of(text) for text in texts]
    everything = MappingOptions(streaming=1)
    kernels = [kernel_of(definition, everything) for definition in definitions]
    assert all(
        "tcf::stream<" in k.source.text.split("TCF_KERNEL(")[-1] or columns < 256
        for k in kernels
    )
    x = np.arange(7 * columns, dtype=np.float32).reshape(7, columns)
    b = np.linspace(0, 1, columns, dtype=np.float32)
    for level in build_kernels(definitions, kernels, runnable(), tmp_path):
        for compiled in level:
            found, fault = compiled({"X": x, "B": b})
            assert not fault
            np.testing.assert_array_equal(found["Y"], x * 2)
            np.testing.assert_array_equal(found["Z"], (x + b).astype(np.float64))


@pytest.mark.compiler
@pytest.mark.parametrize("level", ["v2", "v3", "v4"])
def test_stores_at_any_place(build, level) -> None:
    """Lines that do not start at a multiple of 64 bytes are stored like others."""
    text = """
    extern "C" __attribute__((visibility("default"))) void copy(
        const float* x, float* y, int64_t n) {
      constexpr int L = 2 * TCF_LANES;
      for (int64_t i = 0; i + L <= n; i += L) tcf::stream<L>(y + i, tcf::load<float, L>(x + i));
      tcf::streamed();
    }"""
    library, n = build(text, level), 1024
    x = np.arange(n, dtype=np.float32)
    for shift in range(17):
        y = np.full(n + 64, -1, np.float32)
        at = y.ctypes.data + 4 * shift
        library.copy(ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(at), ctypes.c_int64(n))
        assert np.array_equal(y[shift : shift + n], x)
        assert (y[:shift] == -1).all()
        assert (y[shift + n :] == -1).all()
