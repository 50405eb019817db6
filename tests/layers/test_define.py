"""Definitions as functions: what they take, what they return, what they refuse."""

from __future__ import annotations

import copy
import inspect
import os
import subprocess
import sys
import threading
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import tcfuse
from tcfuse.errors import InputError, OptionError, TcError
from tcfuse.layers.define import TcWarning
from tests.layers.definitions import TEXT

pytestmark = pytest.mark.compiler


@pytest.fixture(scope="module")
def ops() -> tcfuse.Layers:
    return tcfuse.define(TEXT, sizes={"P": 4}, quiet=True)


def array(*shape: int, dtype: type = np.float32, seed: int = 0) -> np.ndarray:
    return np.asarray(np.random.default_rng(seed).standard_normal(shape) * 3).astype(dtype)


def exact_softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


# ---------------------------------------------------------------------- calling


def test_softmax(ops):
    for shape in ((4, 8), (1, 1), (300, 517)):
        x = array(*shape)
        y = ops.softmax(x)
        assert y.dtype == np.float32
        np.testing.assert_allclose(y, exact_softmax(x), rtol=1e-5, atol=1e-7)


def test_inputs_by_name_and_by_item(ops):
    a, b = array(5), array(5, seed=1)
    np.testing.assert_array_equal(ops.add(B=b, A=a), a + b)
    np.testing.assert_array_equal(ops["add"](a, B=b), a + b)


def test_short_floats_and_numbers_for_scalars(ops):
    x = array(9, dtype=np.float16)
    y, t = ops.scaled(x, 0.5)
    assert (y.dtype, t.dtype, t.shape) == (np.float16, ml_dtypes.bfloat16, ())
    np.testing.assert_array_equal(y, x * np.float16(0.5))
    np.testing.assert_allclose(t.astype(float), x.astype(float).sum(), rtol=1e-2)
    again, _ = ops.scaled(x, np.array(0.5, ml_dtypes.bfloat16))
    np.testing.assert_array_equal(again, y)


def test_a_fixed_size_and_no_input(ops):
    np.testing.assert_array_equal(ops.ramp(), np.arange(12).reshape(3, 4))
    assert ops.ramp().dtype == np.int32


def test_a_size_fixed_after_scheduling_is_checked_in_the_call(ops):
    late = tcfuse.define(TEXT, sizes={"D": 8, "P": 4}, fix_sizes="after", quiet=True)
    np.testing.assert_allclose(late.softmax(array(3, 8)), ops.softmax(array(3, 8)), rtol=1e-6)
    np.testing.assert_array_equal(late.ramp(), ops.ramp())
    with pytest.raises(TcError, match="softmax: D is not 8, which this kernel was made for"):
        late.softmax(array(3, 9))


def test_an_index_out_of_range_is_an_error(ops):
    table, index = array(5, 3, dtype=np.float64), np.array([4, 0, 4], np.int32)
    np.testing.assert_array_equal(ops.take(table, index), table[index])
    for wrong in (5, -1):
        with pytest.raises(InputError, match="take: an index is out of range"):
            ops.take(table, np.array([0, wrong], np.int32))


def test_a_guarded_read_out_of_bounds_gave_zero_without_a_word():
    text = """
    def lanes(float(N) X, bool(N) M) -> (float(N) O) { O(i) = M(i) ? X(i + 1) : 0 }
    def scalar(float(N) X, bool M) -> (float O) { O() = M ? X(3) : 0 }
    """
    ops = tcfuse.define(text, quiet=True)
    x, mask = array(40), np.arange(40) < 39
    np.testing.assert_array_equal(ops.lanes(x, mask), [*x[1:], 0])
    assert ops.scalar(x, True) == x[3]
    assert ops.scalar(x[:3], False) == 0
    with pytest.raises(InputError, match="lanes: an index is out of range"):
        ops.lanes(x, mask | True)
    with pytest.raises(InputError, match="scalar: an index is out of range"):
        ops.scalar(x[:3], True)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[::2],
        lambda x: x[::-1],
        lambda x: x.T,
        np.asfortranarray,
        lambda x: np.broadcast_to(x[:1], x.shape),
        lambda x: x.astype(">f4"),
        lambda x: np.frombuffer(b"?" + x.tobytes(), np.uint8)[1:].view("f4").reshape(x.shape),
        lambda x: np.ma.masked_array(x),
    ],
    ids=["strides", "backwards", "transposed", "fortran", "broadcast", "swapped", "unaligned",
         "subclass"],
)  # fmt: skip
def test_any_layout(ops, view):
    x = array(6, 10)
    given = view(x)
    before = np.array(given)
    np.testing.assert_allclose(ops.softmax(given), exact_softmax(before), rtol=1e-5)
    np.testing.assert_array_equal(np.array(given), before)


def test_read_only_inputs(ops):
    x = array(6, 10)
    x.flags.writeable = False
    np.testing.assert_allclose(ops.softmax(x), exact_softmax(x), rtol=1e-5)


def test_arrays_without_elements(ops):
    assert ops.softmax(array(0, 5)).shape == (0, 5)
    assert ops.softmax(array(5, 0)).shape == (5, 0)
    assert ops.flip(np.zeros((3, 0), bool)).shape == (0, 3)
    np.testing.assert_array_equal(ops.convolve(array(3), array(0)), np.zeros(4))
    assert ops.scaled(array(0, dtype=np.float16), 1.0)[1] == 0


def test_bool(ops):
    p = array(3, 5) > 0
    np.testing.assert_array_equal(ops.flip(p), ~p.T)


def test_many_shapes_are_remembered_and_forgotten(ops):
    for n in range(1, 600):
        assert ops.add(array(n), array(n)).shape == (n,)
    assert len(ops.add._plans) < 300


def test_threads_share_a_layer_and_a_call_uses_threads(ops):
    parallel = tcfuse.define(TEXT, threads=3, quiet=True, sizes={"P": 4})
    x = array(1400, 600)
    expected = ops.softmax(x)
    np.testing.assert_array_equal(parallel.softmax(x), expected)
    (plan,) = parallel.softmax._plans.values()
    assert max(plan.parts) > 2  # or no thread would be needed
    wrong = []

    def work(seed: int) -> None:
        mine = array(3 + seed, 50, seed=seed)
        for _ in range(50):
            if not np.allclose(ops.softmax(mine), exact_softmax(mine), rtol=1e-4):
                wrong.append(seed)
            if not np.array_equal(parallel.softmax(x), expected):
                wrong.append(-seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_an_output_that_is_updated_starts_from_out(ops):
    x, total = array(5, 3), np.ones(3, np.float32)
    expected = 1 + x.astype(np.float64).sum(axis=0)
    assert ops.accumulate(x, out=total) is total
    np.testing.assert_allclose(total, expected, rtol=1e-5)
    whole = np.ones((3, 2), np.float64).astype(">f4")
    ops.accumulate(x, out=whole[:, 1])
    np.testing.assert_allclose(whole[:, 1], expected, rtol=1e-5)
    np.testing.assert_array_equal(whole[:, 0], 1)
    with pytest.raises(TcError, match=r"starts from what 'T' holds \[TC40\]; pass that"):
        ops.accumulate(x)
    with pytest.raises(TcError, match="dimension 0 of 'T' is 4, but M is 3"):
        ops.accumulate(x, out=np.ones(4, np.float32))
    with pytest.raises(TcError, match="'T' has elements of type float64"):
        ops.accumulate(x, out=np.ones(3))
    with pytest.raises(TcError, match="read-only"):
        ops.accumulate(x, out=np.broadcast_to(np.float32(0), 3))


FORKED = """
import os, sys
import numpy as np, tcfuse

text = "def {} (float(N, M) X) -> (Y) {{ Y(i) +=! X(i, j) * {}.0 }}"
x = np.ones((3000, 3000), np.float32)
first = tcfuse.define(text.format("f", sys.argv[1]), threads=3)
assert (first.f(x) == 3000 * int(sys.argv[1])).all()
if (child := os.fork()) == 0:
    assert (first.f(x) == 3000 * int(sys.argv[1])).all()
    second = tcfuse.define(text.format("g", sys.argv[2]), threads=3)
    assert (second.g(x) == 3000 * int(sys.argv[2])).all()
    sys.exit(0)
third = tcfuse.define(text.format("h", sys.argv[2]))  # at the same time as the child
assert (third.h(x) == 3000 * int(sys.argv[2])).all()
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_compiles_and_uses_threads_of_its_own():
    command = [sys.executable, "-W", "ignore", "-c", FORKED, "3", "5"]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=root)
    assert done.returncode == 0, done.stderr


# ---------------------------------------------------------------------- out=


def test_out_is_filled_and_returned(ops):
    a, b, out = array(5), array(5, seed=1), np.zeros(5, np.float32)
    assert ops.add(a, b, out=out) is out
    np.testing.assert_array_equal(out, a + b)


def test_out_with_strides_or_another_byte_order(ops):
    a, b = array(5), array(5, seed=1)
    whole = np.zeros((5, 3), np.float32)
    column = whole[:, 1]
    assert ops.add(a, b, out=column) is column
    np.testing.assert_array_equal(whole[:, 1], a + b)
    assert not whole[:, [0, 2]].any()
    swapped = np.zeros(5, ">f4")
    ops.add(a, b, out=swapped)
    np.testing.assert_array_equal(swapped, a + b)


def test_out_may_be_an_input_or_overlap_one(ops):
    x = array(6, 10)
    expected = exact_softmax(x)
    ops.softmax(x, out=x)
    np.testing.assert_allclose(x, expected, rtol=1e-5)
    line = array(12)
    a, b, out = line[:10], line[1:11], line[2:]
    expected = a + b
    ops.add(a, b, out=out)
    np.testing.assert_array_equal(out, expected)


def test_out_of_several(ops):
    x = array(9, dtype=np.float16)
    y, t = ops.scaled(x, 2.0)
    out = np.empty(9, np.float16), np.empty((), ml_dtypes.bfloat16)
    given = ops.scaled(x, 2.0, out=out)
    assert given[0] is out[0]
    np.testing.assert_array_equal(out[0], y)
    assert out[1] == t
    _, new = ops.scaled(x, 2.0, out=(out[0], None))
    assert new == t


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (np.zeros(4, np.float32), r"shape \(4,\)"),
        (np.zeros((5, 1), np.float32), r"shape \(5, 1\)"),
        (np.zeros(5), "float64"),
        (np.broadcast_to(np.float32(0), 5), "read-only"),
        ((np.zeros(5, np.float32),) * 2, "2 arrays for the 1 outputs C"),
        ([0.0] * 5, "5 arrays for the 1 outputs C"),
        (7, "is a int, not an array"),
    ],
)
def test_out_that_does_not_fit(ops, out, message):
    with pytest.raises((TcError, InputError), match=message):
        ops.add(array(5), array(5), out=out)


# ---------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((array(5),), r"expected 2 inputs but found 1: A, B against A \[TC32\]"),
        ((array(5), array(5), array(5)), "inputs but found 3: A, B against A, B, number 3"),
        ((array(5), array(4)), "dimension 0 of 'B' is 4, but N is 5 by dimension 0 of 'A'"),
        ((array(5), array(5, 1)), "'B' has 2 dimensions instead of 1"),
        ((array(5), array(5, dtype=np.float64)), "'B' has elements of type float64, not float"),
        ((array(5), array(5, dtype=np.int32)), "'B' has elements of type int32, not float"),
        ((array(5), [1.0] * 5), "'B' is a list, not an array"),
        ((array(5), None), "'B' is a NoneType, not an array"),
    ],
)
def test_inputs_that_do_not_fit(ops, arguments, message):
    with pytest.raises((TcError, InputError), match=message):
        ops.add(*arguments)


def test_names_that_do_not_fit(ops):
    with pytest.raises(TcError, match="found 2: A, B against A, C"):
        ops.add(array(5), C=array(5))
    with pytest.raises(TcError, match="add: the input 'A' is given twice"):
        ops.add(array(5), A=array(5))
    with pytest.raises(TcError, match="found 1: A, B against B"):
        ops.add(B=array(5))


def test_sizes_that_no_kernel_takes(ops):
    with pytest.raises(TcError, match=r"N - K \+ 1"):
        ops.convolve(array(2), array(5))


def test_numbers_that_a_scalar_does_not_hold():
    ops = tcfuse.define("def f(int8 k, float x) -> (float y) { y() = x() * k() }", quiet=True)
    with pytest.raises(InputError, match="'k' is 300, which no int8 holds"):
        ops.f(300, 1.0)
    with pytest.raises(TcError, match="float64"):
        ops.f(1.5, 1.0)


def test_a_failed_call_leaves_the_layer_usable(ops):
    with pytest.raises(TcError):
        ops.add(array(5), array(4))
    np.testing.assert_array_equal(ops.add(array(4), array(4)), array(4) * 2)


# ---------------------------------------------------------------------- the object


def test_what_is_there(ops):
    names = "softmax, add, convolve, scaled, take, flip, accumulate, ramp"
    assert ", ".join(ops) == names
    assert len(ops) == 8
    assert "softmax" in ops
    assert set(ops) <= set(dir(ops))
    assert repr(ops).splitlines()[1] == "add(float(N) A, float(N) B) -> (float(N) C)"


def test_what_is_not_there(ops):
    known = "definitions are softmax, add, convolve, scaled, take, flip, accumulate, ramp"
    with pytest.raises(AttributeError, match=f"no definition 'relu'; {known}"):
        ops.relu  # noqa: B018
    with pytest.raises(KeyError, match=known):
        ops["relu"]


def test_signature_and_documentation(ops, golden):
    assert str(inspect.signature(ops.add)) == "(A, B, *, out=None)"
    assert ops.add.__name__ == "add"
    golden(ops.convolve.__doc__, "txt")


def test_a_text_that_is_no_definition():
    with pytest.raises(TcError, match="<tc>:1:1"):
        tcfuse.define("deff")
    with pytest.raises(TcError, match="defined twice"):
        tcfuse.define(f"{TEXT}\n{TEXT}")


def test_what_may_not_be_meant_is_a_warning_at_the_call():
    text = "def f(float(N, M) X) -> (float(M) T) { T(j) += X(i, j) }"
    with pytest.warns(TcWarning, match="'T' is reduced into before it is written") as found:
        tcfuse.define(text)
    assert found[0].filename == __file__
    tcfuse.define(text, quiet=True)


def test_a_copy_has_the_same_definitions(ops):
    assert list(copy.copy(ops)) == list(ops)


def test_options_that_are_none():
    with pytest.raises(OptionError, match="no knob 'speed'"):
        tcfuse.define(TEXT, speed=3)
    with pytest.raises(OptionError, match="threads is 0"):
        tcfuse.define(TEXT, threads=0)
    with pytest.raises(OptionError, match="no size 'Q'; sizes are N, D, K"):
        tcfuse.define(TEXT, sizes={"Q": 3})
    with pytest.raises(OptionError, match="size N is -1"):
        tcfuse.define(TEXT, sizes={"N": -1})
    with pytest.raises(
        OptionError, match=r"sizes is \{'N': 2.5\}; it gives names whole numbers"
    ):
        tcfuse.define(TEXT, sizes={"N": 2.5})  # type: ignore[dict-item]
    with pytest.raises(OptionError, match="threads is 'two'"):
        tcfuse.define(TEXT, threads="two")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="a definition is text or the Path of a file, not int"):
        tcfuse.define(7)  # type: ignore[arg-type]
    assert "softmax" in tcfuse.define(TEXT, sizes={"N": np.int64(3)}, quiet=True)  # type: ignore[dict-item]


def test_a_file(tmp_path: Path):
    path = tmp_path / "layers.tc"
    path.write_text("def f(float(N) X) -> (Y) { Y(i) = X(i) + }", encoding="utf-8")
    with pytest.raises(TcError, match=r"layers.tc:1:"):
        tcfuse.define(path)
    with pytest.raises(
        InputError, match=r"'layers.tc' is no definition; .* Path\('layers.tc'\)"
    ):
        tcfuse.define("layers.tc")
    with pytest.raises(InputError, match=r"other\.tc: cannot be read: No such file"):
        tcfuse.define(tmp_path / "other.tc")


CHILD = """
import numpy as np, tcfuse
ops = tcfuse.define("def f(float(N) X) -> (Y) {{ Y(i) = X(i) * {number}.0 + 1 }}")
for _ in range(2):
    assert (ops.f(np.ones(3, np.float32)) == {number} + 1).all()
import sys
assert not {{"onnx", "onnx_ir", "onnxruntime", "sympy", "scipy"}} & set(sys.modules)
"""


def test_compiling_is_told_once_and_the_next_process_finds_it(tmp_path: Path):
    told = []
    for number in (3, 3, 4):
        done = subprocess.run(
            [sys.executable, "-c", CHILD.format(number=number)],
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).parents[2],
        )
        told.append(done.stderr.splitlines())
    assert [len(lines) for lines in told] in ([1, 0, 1], [0, 0, 0])  # as the cache had it
    for line in (line for lines in told for line in lines):
        assert line.startswith("tcfuse: f compiled in ")


# ---------------------------------------------------------------------- bound calls


def test_a_bound_call_reads_what_its_arrays_hold_now(ops):
    x, y = array(4, 8), np.empty((4, 8), np.float32)
    call = ops.softmax.bind(x, out=y)
    for seed in range(3):
        x[...] = array(4, 8, seed=seed)
        assert call() is y
        np.testing.assert_array_equal(y, ops.softmax(x))


def test_a_bound_call_keeps_its_arrays(ops):
    call = ops.add.bind(array(5), B=array(5, seed=1))
    expected = array(5) + array(5, seed=1)
    junk = [np.full(5, np.nan, np.float32) for _ in range(100)]
    np.testing.assert_array_equal(call(), expected)
    assert len(junk) == 100


def test_a_bound_call_on_threads(ops):
    x = array(900, 517)
    wide = tcfuse.define(TEXT, sizes={"P": 4}, threads=3, quiet=True)
    np.testing.assert_array_equal(wide.softmax.bind(x)(), ops.softmax(x))
    assert ops.softmax.bind(array(0, 8))().shape == (0, 8)


def test_what_would_be_copied_cannot_be_bound(ops):
    x = array(4, 8)
    with pytest.raises(InputError, match=r"^I cannot be bound"):
        ops.softmax.bind(x[:, ::2])
    with pytest.raises(InputError, match=r"^O cannot be bound"):
        ops.softmax.bind(x, out=x)
    with pytest.raises(InputError, match=r"^O cannot be bound"):
        ops.softmax.bind(x, out=np.empty((8, 4), np.float32).T)
    with pytest.raises(TcError, match="starts from what its outputs hold and cannot be bound"):
        ops.accumulate.bind(x, out=np.zeros(8, np.float32))
