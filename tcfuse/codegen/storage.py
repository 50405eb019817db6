"""Types that memory holds otherwise than registers: reading, storing, rounding as C++ text."""

from __future__ import annotations

from tcfuse.types import DType

_FLOATS = {
    DType.FLOAT8E4M3FN: "tcf::float8e4m3fn",
    DType.FLOAT8E4M3FNUZ: "tcf::float8e4m3fnuz",
    DType.FLOAT8E5M2: "tcf::float8e5m2",
    DType.FLOAT8E5M2FNUZ: "tcf::float8e5m2fnuz",
    DType.FLOAT8E8M0: "tcf::float8e8m0",
    DType.FLOAT4E2M1: "tcf::float4e2m1",
}
"""The C names of floats of at most a byte."""

_INTEGERS = {
    DType.UINT4: "uint8_t",
    DType.INT4: "int8_t",
    DType.UINT2: "uint8_t",
    DType.INT2: "int8_t",
}
"""The byte that holds an integer of less."""

C_TYPES = {
    DType.BOOL: "bool",
    DType.UINT8: "uint8_t",
    DType.UINT16: "uint16_t",
    DType.UINT32: "uint32_t",
    DType.UINT64: "uint64_t",
    DType.INT8: "int8_t",
    DType.INT16: "int16_t",
    DType.INT32: "int32_t",
    DType.INT64: "int64_t",
    DType.FLOAT16: "float",
    DType.BFLOAT16: "float",
    DType.FLOAT32: "float",
    DType.FLOAT64: "double",
    **dict.fromkeys(_FLOATS, "float"),
    **dict.fromkeys(_INTEGERS, "int32_t"),
}
"""What registers hold."""

RAW_TYPES = {
    **C_TYPES,
    DType.BOOL: "uint8_t",
    DType.FLOAT16: "uint16_t",
    DType.BFLOAT16: "uint16_t",
    **dict.fromkeys(_FLOATS, "uint8_t"),
    **_INTEGERS,
}
"""What memory holds."""


def decoded(dtype: DType, text: str) -> str:
    """A raw element, or a vector of them, as a value."""
    match dtype:
        case DType.BOOL:
            return f"tcf::to_mask({text})"
        case DType.FLOAT16:
            return f"tcf::from_half({text})"
        case DType.BFLOAT16:
            return f"tcf::from_bfloat({text})"
        case _ if dtype in _FLOATS:
            return f"tcf::from_code<{_FLOATS[dtype]}>({text})"
        case _ if dtype in _INTEGERS:
            return f"tcf::cast<int32_t>({text})"
        case _:
            return text


def encoded(dtype: DType, text: str) -> str:
    """A value as what is stored."""
    match dtype:
        case DType.BOOL:
            return f"tcf::from_mask<uint8_t>({text})"
        case DType.FLOAT16:
            return f"tcf::to_half({text})"
        case DType.BFLOAT16:
            return f"tcf::cast<uint16_t>(tcf::bfloat_bits({text}) >> 16)"
        case _ if dtype in _FLOATS:
            return f"tcf::to_code<{_FLOATS[dtype]}>({text})"
        case _ if dtype in _INTEGERS:
            return f"tcf::cast<{_INTEGERS[dtype]}>({text})"
        case _:
            return text


def rounded(dtype: DType, text: str) -> str:
    """A value as it would come back after being stored."""
    match dtype:
        case DType.FLOAT16:
            return f"tcf::round_half({text})"
        case DType.BFLOAT16:
            return f"tcf::round_bfloat({text})"
        case _ if dtype in _FLOATS:
            return f"tcf::round_code<{_FLOATS[dtype]}>({text})"
        case _ if dtype in _INTEGERS:
            return f"tcf::wrapped<{dtype.bits}, {str(dtype.is_signed).lower()}>({text})"
        case _:
            return text


def reinterpreted(source: DType, target: DType, text: str) -> str:
    """The bits of a value as a value of another type that has as many."""
    raw = f"tcf::reinterpret<{RAW_TYPES[target]}>({encoded(source, text)})"
    value = decoded(target, raw)
    return rounded(target, value) if target in _INTEGERS else value
