from __future__ import annotations

import time

import pytest

from tcfuse.errors import TcError
from tcfuse.tc.parser import parse, parse_expr
from tcfuse.tc.sema import check
from tcfuse.tc.typing import Type, Weak, assignable, promote, resolve, type_of
from tcfuse.types import DType, TensorType

F16, BF16, F32, F64 = DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32, DType.FLOAT64
I8, I32, I64, U8, U32 = DType.INT8, DType.INT32, DType.INT64, DType.UINT8, DType.UINT32


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (F32, F32, F32),
        (F32, F64, F64),
        (F16, F16, F32),
        (F16, BF16, F32),
        (F16, F64, F64),
        (F16, I64, F32),
        (I64, F32, F32),
        (U8, U32, U32),
        (I8, I32, I32),
        (U32, I8, I32),
        (U8, I8, I8),
        (Weak.INT, F16, F32),
        (Weak.INT, U8, U8),
        (Weak.FLOAT, I32, F32),
        (Weak.FLOAT, F64, F64),
        (Weak.FLOAT, Weak.INT, Weak.FLOAT),
        (Weak.BOOL, DType.BOOL, DType.BOOL),
    ],
)
def test_promotion(a: Type, b: Type, expected: Type) -> None:
    assert promote(a, b) is expected
    assert promote(b, a) is expected


def test_bool_does_not_mix() -> None:
    with pytest.raises(TcError, match="no common type for bool and float"):
        promote(DType.BOOL, F32)


def test_weak_types_resolve() -> None:
    assert [resolve(w) for w in (Weak.BOOL, Weak.INT, Weak.FLOAT)] == [DType.BOOL, I64, F32]
    assert resolve(I8) is I8


TENSORS = {
    name: TensorType(dtype, ("N",))
    for name, dtype in {
        "H": F16,
        "F": F32,
        "D": F64,
        "I": I32,
        "U": U8,
        "B": DType.BOOL,
    }.items()
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3", Weak.INT),
        ("i + N", Weak.INT),
        ("i * 0.5", Weak.FLOAT),
        ("H(i)", F16),
        ("-H(i)", F32),
        ("H(i) + 1", F32),
        ("i < 3 ? H(i) : 0", F16),
        ("i < 3 ? H(i) : F(i)", F32),
        ("i < 3 ? 1 : 2.0", Weak.FLOAT),
        ("min(H(i), 0)", F32),
        ("I(i) + i", I32),
        ("I(i) / 2.0", F32),
        ("F(i) % 2", F32),
        ("H(i) % D(i)", F64),
        ("I(i) * U(i)", I32),
        ("exp(F(i))", F32),
        ("exp(D(i))", F64),
        ("exp(I(i))", F32),
        ("exp(2)", Weak.FLOAT),
        ("pow(F(i), D(i))", F64),
        ("abs(I(i))", I32),
        ("abs(H(i))", F32),
        ("sign(-2)", Weak.INT),
        ("tdiv(I(i), 2)", I32),
        ("shl(U(i), 1)", U8),
        ("isnan(F(i))", DType.BOOL),
        ("F(i) < D(i)", DType.BOOL),
        ("B(i) && true", DType.BOOL),
        ("true || false", Weak.BOOL),
        ("B(i) == false", DType.BOOL),
        ("max(B(i), true)", DType.BOOL),
        ("int8(F(i))", I8),
        ("float(B(i)) * 2", F32),
        ("F(I(i))", F32),
        ("t + 1", F64),
    ],
)
def test_types(text: str, expected: Type) -> None:
    assert type_of(parse_expr(text), TENSORS, {"t": F64}) is expected


TYPE_ERRORS = {
    "float_subscript": "F(F(i))",
    "and_of_floats": "F(i) && true",
    "not_of_integers": "!I(i)",
    "integer_condition": "I(i) ? 1 : 2",
    "bool_plus_number": "B(i) + 1",
    "negated_bool": "-B(i)",
    "bool_or_number": "i < 3 ? B(i) : 1",
    "function_of_bool": "exp(B(i))",
    "bits_of_floats": "bitand(F(i), 1)",
    "too_many_subscripts": "F(i, i)",
    "no_subscripts": "F()",
    "undefined": "G(i)",
}


@pytest.mark.parametrize("name", TYPE_ERRORS)
def test_type_error(name: str, golden) -> None:
    with pytest.raises(TcError) as error:
        type_of(parse_expr(TYPE_ERRORS[name]), TENSORS)
    golden(error.value, "txt")


def test_assignment_narrows_only_to_half() -> None:
    assert all(assignable(F16, kind) for kind in (F16, BF16, F32, I64, Weak.FLOAT, Weak.INT))
    assert not any(assignable(F16, kind) for kind in (F64, DType.BOOL))
    assert not any(assignable(F32, kind) for kind in (F64, DType.BOOL, Weak.BOOL))
    assert assignable(I32, Weak.INT)
    assert assignable(I32, I8)
    assert assignable(I32, U8)
    assert not any(assignable(I32, kind) for kind in (I64, U32, F32, Weak.FLOAT, DType.BOOL))
    assert not assignable(DType.BOOL, Weak.INT)


def test_half_sums_that_nobody_declared_are_float() -> None:
    text = """
    def f(float16(N, K) X) -> (S, M, Y) {
      S(i) +=! X(i, j)
      M(i) max=! X(i, j)
      Y(i) = X(i, 0)
    }
    """
    tensors = check(parse(text)).tensors
    assert [tensors[name].dtype for name in "SMY"] == [F32, F16, F16]


def test_what_is_known_of_softmax() -> None:
    text = """
    def Softmax(float(N, K) X) -> (float(N, K) Y) {
      M(i) max=! X(i, j)
      S(i) +=! e where e = exp(X(i, j) - M(i))
      Y(i, j) = exp(X(i, j) - M(i)) / S(i)
    }
    """
    checked = check(parse(text))
    assert checked.sizes == ("N", "K")
    assert (checked.inputs, checked.temporaries, checked.outputs) == (
        ("X",),
        ("M", "S"),
        ("Y",),
    )
    assert {n: str(t) for n, t in checked.tensors.items()} == {
        "X": "float(N, K)",
        "M": "float(N)",
        "S": "float(N)",
        "Y": "float(N, K)",
    }
    assert [s.reduction for s in checked.statements] == [("j",), ("j",), ()]
    assert not checked.origins


def test_scalars_need_no_subscripts() -> None:
    checked = check(parse("def f(float A, float(N) X) -> (S, T) { S +=! X(i) T = S * A }"))
    assert str(checked.tensors["S"]) == "float"
    assert checked.tensors["T"].shape == ()


def test_names_in_range_bounds_are_sizes() -> None:
    checked = check(parse("def f(float(N) X) -> (Y) { Y(i) = X(0) where i in 0:P + 1 }"))
    assert checked.sizes == ("N", "P")
    assert checked.tensors["Y"].shape == ("P + 1",)


def test_equal_extents_have_equal_texts() -> None:
    text = """
    def f(float(A, B) X) -> (Y, Z) {
      Y(i) = 1.0 where i in 0:B + A
      Z(i) = 2.0 where i in 0:A - 1 + B + 1
    }
    """
    tensors = check(parse(text)).tensors
    assert tensors["Y"] == tensors["Z"] == TensorType(F32, ("A + B",))


def test_hundreds_of_lets_and_statements_are_quick() -> None:
    lets = ", ".join(["t0 = X(i)", *(f"t{k} = t{k - 1} * 2 + X(i)" for k in range(1, 600))])
    one = parse(f"def f(float(N) X) -> (Y) {{ Y(i) = t599 where i in 0:N, {lets} }}")
    body = " ".join(f"T{k}(i) = T{k - 1}(i) + X(i) where i in 0:N" for k in range(1, 400))
    many = parse(f"def f(float(N) X) -> (T399) {{ T0(i) = X(i) where i in 0:N {body} }}")
    start = time.process_time()
    check(one)
    check(many)
    # A tenth of a second where this was written.
    assert time.process_time() - start < 2.0


def wrap(
    body: str, returns: str = "Y", params: str = "float(N) X, int32(N) I, bool(N) B"
) -> str:
    return f"def f({params}) -> ({returns}) {{\n  {body}\n}}"


ERRORS = {
    "definition_named_like_a_builtin": "def round(float(N) X) -> (Y) { Y(i) = X(i) }",
    "tensor_named_like_a_builtin": wrap("exp(i) = X(i)", "Y"),
    "parameter_twice": wrap("Y(i) = X(i)", "Y", "float(N) X, float(N) X"),
    "size_and_tensor": wrap("Y(i) = X(i)", "Y", "float(X) X"),
    "product_size": wrap("Y(i) = X(i)", "Y", "float(N*M) X"),
    "negative_size": wrap("Y(i) = X(i)", "Y", "float(2 - 3) X"),
    "input_written": wrap("X(i) = X(i) + 1", "X2"),
    "never_written": wrap("Z(i) = X(i)"),
    "read_before_written": wrap("Z(i) = Y(i) Y(i) = X(i)"),
    "undefined_tensor": wrap("Y(i) = Q(i)"),
    "misspelt_function": wrap("Y(i) = expp(X(i))"),
    "wrong_rank": wrap("Y(i) = X(i, i)"),
    "wrong_output_rank": wrap("Y(i) = X(i)", "float(N, N) Y"),
    "second_rank": wrap("Y(i) = X(i) Y(i, j) = X(i) + X(j)"),
    "bare_tensor": wrap("Y(i) = X(i) + Z where Z = 1", "Y, Z"),
    "tensor_without_subscripts": wrap("Y(i) = X(i) * X"),
    "indexed_let": wrap("Y(i) = t(i) where t = X(i)"),
    "index_twice": wrap("Y(i, i) = X(i)"),
    "reduction_without_operator": wrap("Y(i) = X(i) * X(j)"),
    "reduction_without_start": wrap("Y(i) += X(i)"),
    "reset_and_read": wrap("Y(i) = X(i) Y(i) +=! Y(j)"),
    "narrowing": wrap("Y(i) = X(i)", "int32(N) Y"),
    "narrowing_double": wrap("Y(i) = double(X(i))", "float(N) Y"),
    "later_wider_type": wrap("Y(i) = I(i) Y(i) = Y(i) * X(i)"),
    "sum_of_bools": wrap("Y +=! B(i)"),
    "float_subscript": wrap("Y(i) = X(X(i))"),
    "float_bound": wrap("Y(i) = X(i) where i in 0:2.5"),
    "tensor_in_bound": wrap("Y(i) = X(i) where i in 0:I(0)"),
    "tensor_in_bound_by_let": wrap("Y(i) = X(i) where i in 0:n, n = I(0)"),
    "product_in_bound": wrap("Y(i) = X(0) where i in 0:n, n = N * N"),
    "product_as_extent": wrap("Y(i) = X(0) where i in 0:N * N"),
    "index_in_bound": wrap("Y(i) +=! X(j) where i in 0:N, j in 0:i"),
    "range_on_let": wrap("Y(i) = X(i) * t where t = 2, t in 0:3"),
    "two_ranges": wrap("Y(i) = X(i) where i in 0:3, i in 0:4"),
    "reversed_range": wrap("Y(i) = 1.0 where i in 8:4"),
    "tensor_as_bound": wrap("Y(i) = X(i) where i in 0:X"),
    "tensor_name_as_bound": wrap("Y(i) = X(i) where i in 0:Y"),
    "let_twice": wrap("Y(i) = X(i) * t where t = 2, t = 3"),
    "let_too_late": wrap("Y(i) = s where s = t + 1, t = X(i)"),
    "let_named_like_a_size": wrap("Y(i) = X(i) * N where N = 2"),
    "index_named_like_a_size": wrap("Y(N) = X(N)"),
    "range_named_like_a_tensor": wrap("Y(i) +=! X(i) where I in 0:3"),
    "condition_is_a_number": wrap("Y(i) = i ? X(i) : 0"),
    "logic_on_numbers": wrap("Y(i) = I(i) && B(i)"),
    "written_beyond_its_shape": wrap(
        "Y(i) = X(i) where i in 0:N Y(i) = X(i - N) where i in N:2*N"
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_error(name: str, golden) -> None:
    with pytest.raises(TcError) as error:
        check(parse(ERRORS[name], "f.tc"))
    golden(error.value, "txt")
