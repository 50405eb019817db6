from __future__ import annotations

import pytest

from tcfuse.codegen.tensors import MOST_LANES, STACK_BYTES, arrange, tensors_of
from tcfuse.mapping.storage import Buffer, Memory
from tests.poly.definitions import SOFTMAX, SOFTMAX_OUTER, checked_of

ROW = Buffer("E", Memory.ROW, (1,))
REGISTERS = {name: Buffer(name, Memory.REGISTER, ()) for name in ("M", "S")}


def declared(text: str, buffers: dict[str, Buffer]) -> tuple[str, str, str]:
    """The declarations of the temporaries, and the two amounts of scratch."""
    checked = checked_of(text)
    arena = arrange(checked, buffers, tensors_of(checked, buffers))
    n_ports = len(checked.inputs) + len(checked.outputs)
    return "\n".join(arena.declarations[n_ports:]), arena.shared_bytes, arena.local_bytes


def test_ports_are_pointers() -> None:
    checked = checked_of("def f(float16(4) X, bool(4) P) -> (double(4) Y) { Y(i) = X(i) }")
    arena = arrange(checked, {}, tensors_of(checked, {}))
    assert arena.declarations == (
        "const uint16_t* __restrict T_X = (const uint16_t*)tensors[0];",
        "const uint8_t* __restrict T_P = (const uint8_t*)tensors[1];",
        "double* __restrict T_Y = (double*)tensors[2];",
    )


def test_strides_are_row_major() -> None:
    found = tensors_of(checked_of(SOFTMAX), {})
    assert [str(s) for s in found["X"].strides] == ["n1", "1"]
    assert str(found["X"].size) == "n0 * n1"


def test_storage_that_is_missing_has_no_stride() -> None:
    found = tensors_of(checked_of(SOFTMAX), {"E": ROW, **REGISTERS})
    assert [str(s) for s in found["E"].strides] == ["0", "1"]
    assert str(found["E"].size) == "n1"
    assert found["M"].register


def test_lanes_lie_next_to_each_other() -> None:
    row = Buffer("E", Memory.ROW, (1,), lanes=True)
    found = tensors_of(checked_of(SOFTMAX_OUTER), {"E": row})
    assert [str(s) for s in found["E"].strides] == ["0", str(MOST_LANES), "0"]
    assert found["E"].size.number == 64 * MOST_LANES


def test_symbolic_rows_are_scratch_of_the_chunk() -> None:
    text, shared, local = declared(SOFTMAX, {"E": ROW, **REGISTERS})
    assert text.splitlines() == [
        "float* __restrict T_E = (float*)(local + 0);",
        "float T_M = float(0);",
        "float T_S = float(0);",
    ]
    assert (shared, local) == ("0", "64 * ((4 * n1 + 63) / 64)")


def test_small_rows_are_on_the_stack() -> None:
    row = Buffer("E", Memory.ROW, (1,), lanes=True)
    text, shared, local = declared(SOFTMAX_OUTER, {"E": row})
    assert text == f"alignas(64) float T_E[{64 * MOST_LANES}];"
    assert (shared, local) == ("0", "0")


def test_large_rows_are_not() -> None:
    elements = STACK_BYTES // 4 + 1
    text, _, local = declared(
        f"""def f(float(3, {elements}) X) -> (float(3, {elements}) Y) {{
          E(i, j) = exp(X(i, j)) where i in 0:3, j in 0:{elements}
          Y(i, j) = E(i, {elements - 1} - j) where i in 0:3, j in 0:{elements}
        }}""",
        {"E": ROW},
    )
    assert text == "float* __restrict T_E = (float*)(local + 0);"
    assert int(local) % 64 == 0


def test_whole_tensors_follow_each_other() -> None:
    whole = {
        "M": Buffer("M", Memory.SHARED, (0,)),
        "E": Buffer("E", Memory.SHARED, (0, 1)),
        "S": Buffer("S", Memory.SHARED, (0,)),
    }
    text, shared, local = declared(SOFTMAX, whole)
    first = "64 * ((4 * n0 + 63) / 64)"
    lines = text.splitlines()
    assert lines[0] == "float* __restrict T_M = (float*)(shared + 0);"
    assert lines[1] == f"float* __restrict T_E = (float*)(shared + {first});"
    assert local == "0"
    sizes = {"n0": 3, "n1": 5}
    assert eval(shared.replace("/", "//"), {}, sizes) == 64 + 64 + 64


@pytest.mark.parametrize(
    ("dtype", "decoded", "encoded", "rounded"),
    [
        ("float", "x", "x", "x"),
        ("bool", "tcf::to_mask(x)", "tcf::from_mask<uint8_t>(x)", "x"),
        ("float16", "tcf::from_half(x)", "tcf::to_half(x)", "tcf::round_half(x)"),
    ],
)
def test_elements_in_memory(dtype: str, decoded: str, encoded: str, rounded: str) -> None:
    checked = checked_of(f"def f({dtype}(4) X) -> ({dtype}(4) Y) {{ Y(i) = X(i) }}")
    tensor = tensors_of(checked, {})["X"]
    assert tensor.decoded("x") == decoded
    assert tensor.encoded("x") == encoded
    assert tensor.rounded("x") == rounded
