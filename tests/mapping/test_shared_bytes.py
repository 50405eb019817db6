"""Definitions over packed elements are the same definitions over their bytes."""

from __future__ import annotations

import numpy as np
import pytest

from tcfuse.cuda_options import CudaOptions
from tcfuse.emulator import emulate
from tcfuse.errors import UnsupportedError
from tcfuse.mapping.shared_bytes import Whole, with_whole_bytes
from tcfuse.mapping_options import MappingOptions
from tcfuse.packed import packed
from tcfuse.targets.cuda import compile_kernel
from tcfuse.tc.checked import CheckedDef
from tcfuse.tc.evaluate import evaluate
from tcfuse.tc.kernel_form import kernel_form
from tcfuse.tc.parser import parse
from tcfuse.tc.sema import check
from tcfuse.types import DType

WRAP = "Y(i, j) = {t}(2 * X(i, j) + 1)"
DEFINITIONS = {
    "rows of whole bytes": "def f({t}(N, 4) X) -> ({t}(N, 4) Y) {{ " + WRAP + " }}",
    "two dimensions together": (
        "def f({t}(N, 4, 3) X) -> ({t}(N, 4, 3) Y) {{ Y(i, j, k) = {t}(1 + X(i, j, k)) }}"
    ),
    "an odd number": "def f({t}(3, 5) X) -> ({t}(3, 5) Y) {{ " + WRAP + " }}",
    "any number of elements": "def f({t}(N) X) -> ({t}(N) Y) {{ Y(i) = {t}(1 + X(i)) }}",
    "any number of odd rows": "def f({t}(N, 3) X) -> ({t}(N, 3) Y) {{ " + WRAP + " }}",
    "one element": "def f({t} X) -> ({t} Y) {{ Y = {t}(1 + X) }}",
    "elements that move": (
        "def f({t}(N, 8) X, {t}(N, 8) Z) -> ({t}(N, 8) Y)"
        " {{ Y(i, j) = j < 3 ? X(i, 7 - j) : Z(i, j - 3) where i in 0:N, j in 0:8 }}"
    ),
    "rows that data chooses": (
        "def f({t}(N, 4) X, int32(B) I) -> ({t}(B, 4) Y) {{ Y(b, j) = X(I(b), j) }}"
    ),
    "what is returned and read": (
        "def f({t}(N, 4) X) -> ({t}(N, 4) Y, float(N) Z) {{ " + WRAP + " Z(i) +=! Y(i, j) }}"
    ),
}
TYPES = ["int4", "uint4", "int2", "uint2", "float4e2m1"]
LENGTHS = {"N": 5, "B": 3}


def whole_of(text: str) -> tuple[CheckedDef, Whole]:
    form = kernel_form(check(parse(text), affine=False))
    checked = check(form.definition, sizes=form.interface.sizes)
    return checked, with_whole_bytes(checked, form.interface, form.interface.facts)


def arrays(checked: CheckedDef) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    found = {}
    for name in checked.inputs:
        kind = checked.tensors[name]
        shape = tuple(LENGTHS.get(size, size) for size in kind.shape)
        low, high = (0, 5) if kind.dtype is DType.INT32 else kind.dtype.limits
        found[name] = rng.integers(int(low), int(high), shape).astype(kind.dtype.numpy)
    return found


def sizes_of(whole: Whole) -> dict[str, int]:
    known = dict(LENGTHS)
    for name, value in whole.interface.derived:
        known[name] = eval(value.replace("/", "//"), {}, known)
    return {name: known[name] for name in whole.checked.sizes}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("what", DEFINITIONS)
def test_bytes_are_those_of_the_elements(what, dtype):
    checked, whole = whole_of(DEFINITIONS[what].format(t=dtype))
    given = arrays(checked)
    wanted = evaluate(checked, given, exact_types=True)
    held = {
        name: packed(array).reshape(
            [sizes_of(whole).get(s, s) for s in whole.checked.tensors[name].shape]
        )
        for name, array in given.items()
    }
    found = evaluate(whole.checked, held, sizes_of(whole), exact_types=True)
    for name, want in wanted.items():
        np.testing.assert_array_equal(found[name].reshape(-1), packed(want).reshape(-1))


def test_what_is_known_of_the_number_of_bytes():
    _, whole = whole_of(DEFINITIONS["any number of odd rows"].format(t="int4"))
    assert whole.interface.derived == (
        ("X_bytes", "(3 * (N) + 1) / 2"),
        ("Y_bytes", "(3 * (N) + 1) / 2"),
    )
    assert whole.facts[:2] == ("3 * (N) <= 2 * X_bytes", "2 * X_bytes <= 3 * (N) + 1")
    assert whole.interface.inputs[0].type.shape == ("N", 3)


def test_nothing_changes_without_packed_elements():
    checked, whole = whole_of("def f(int8(N) X) -> (int8(N) Y) { Y(i) = X(i) }")
    assert whole.checked is checked


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("def f(int4(N, M) X) -> (Y) { Y(i, j) = int32(X(i, j)) }", "rows of any length"),
        ("def f(int4(3, 3) X, int32(B) I) -> (Y) { Y(b) = int32(X(I(b), 0)) }", "data says"),
    ],
)
def test_what_has_no_affine_place_is_refused(text, sentence):
    with pytest.raises(UnsupportedError, match=sentence):
        whole_of(text)


@pytest.mark.compiler
@pytest.mark.parametrize("what", ["an odd number", "any number of odd rows"])
def test_no_two_threads_write_a_byte(what):
    text = DEFINITIONS[what].format(t="int4")
    form = kernel_form(check(parse(text), affine=False))
    checked = check(form.definition, sizes=form.interface.sizes)
    source = compile_kernel(
        checked, form.interface, "f", MappingOptions(), CudaOptions()
    ).source
    x = np.arange(15).reshape(LENGTHS["N"] if "rows" in what else 3, -1) % 16 - 8
    x = x.astype(DType.INT4.numpy)
    found = emulate(source, [x])
    assert not found.reports
    want = evaluate(checked, {"X": x}, exact_types=True)["Y"]
    np.testing.assert_array_equal(found.outputs[0].astype(int), want.astype(int))
