"""Types that memory holds otherwise than registers: reading, storing, rounding as C++ text."""

from __future__ import annotations

from tcfuse.types import DType

FORMATS = {
    DType.FLOAT8E4M3FN: "tcf::float8e4m3fn",
    DType.FLOAT8E4M3FNUZ: "tcf::float8e4m3fnuz",
    DType.FLOAT8E5M2: "tcf::float8e5m2",
    DType.FLOAT8E5M2FNUZ: "tcf::float8e5m2fnuz",
    DType.FLOAT8E8M0: "tcf::float8e8m0",
}
"""The C names of floats of at most a byte."""


def decoded(dtype: DType, text: str) -> str:
    """A raw element, or a vector of them, as a value."""
    match dtype:
        case DType.BOOL:
            return f"tcf::to_mask({text})"
        case DType.FLOAT16:
            return f"tcf::from_half({text})"
        case DType.BFLOAT16:
            return f"tcf::from_bfloat({text})"
        case _ if dtype in FORMATS:
            return f"tcf::from_code<{FORMATS[dtype]}>({text})"
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
        case _ if dtype in FORMATS:
            return f"tcf::to_code<{FORMATS[dtype]}>({text})"
        case _:
            return text


def rounded(dtype: DType, text: str) -> str:
    """A value as it would come back after being stored."""
    match dtype:
        case DType.FLOAT16:
            return f"tcf::round_half({text})"
        case DType.BFLOAT16:
            return f"tcf::round_bfloat({text})"
        case _ if dtype in FORMATS:
            return f"tcf::round_code<{FORMATS[dtype]}>({text})"
        case _:
            return text
