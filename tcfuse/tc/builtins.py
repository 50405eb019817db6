"""The built-in functions of the language: how many arguments, and which type comes back.

Source: the CUDA math library's names, which TC took over, and the integer functions that ONNX
operators need.
"""

from __future__ import annotations

from dataclasses import dataclass

from tcfuse.types import DType


@dataclass(frozen=True, slots=True)
class Builtin:
    """A built-in function.

    Attributes:
        arity: Number of arguments.
        keeps_type: Whether the result has the (promoted) type of the arguments; otherwise it is
            ``float``, or ``double`` when an argument is.
        result: The type of the result whatever the arguments are, if it is fixed.
        integer: Whether the arguments must be integers.
        bits: The type that the bits of the argument, of a type with as many, are read as.
    """

    arity: int
    keeps_type: bool = False
    result: DType | None = None
    integer: bool = False
    bits: DType | None = None


_UNARY = """
    acos acosh asin asinh atan atanh cbrt ceil cos cosh cospi cyl_bessel_i0 cyl_bessel_i1
    erf erfc erfcinv erfcx erfinv exp exp10 exp2 expm1 fabs floor j0 j1 lgamma log log10
    log1p log2 logb normcdf normcdfinv rcbrt round roundeven rsqrt sigmoid sin sinh sinpi
    sqrt tan tanh tgamma trunc y0 y1
"""
_BINARY = """
    atan2 copysign fdim fdivide fmax fmin fmod hypot nextafter pow remainder rhypot
"""

BUILTINS: dict[str, Builtin] = {
    **{name: Builtin(1) for name in _UNARY.split()},
    **{name: Builtin(2) for name in _BINARY.split()},
    **{name: Builtin(3) for name in ("fma", "norm3d", "rnorm3d")},
    **{name: Builtin(4) for name in ("norm4d", "rnorm4d")},
    **{name: Builtin(1, keeps_type=True) for name in ("abs", "sign")},
    **{name: Builtin(1, result=DType.BOOL) for name in ("isnan", "isinf")},
    **{
        name: Builtin(2, keeps_type=True, integer=True)
        for name in ("tdiv", "tmod", "ipow", "bitand", "bitor", "bitxor", "shl", "shr")
    },
    "bitnot": Builtin(1, keeps_type=True, integer=True),
    **{f"as_{d.tc}": Builtin(1, bits=d) for d in DType if d is not DType.BOOL},
    # Without arguments: the parser turns them into the literals they stand for.
    "inf": Builtin(0),
    "nan": Builtin(0),
}
