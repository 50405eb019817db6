"""Random values of statements: every operator and built-in, none of them ill-conditioned.

Floats stay of moderate size.  What jumps, a comparison or ``floor``, is only asked of *exact*
values: elements of inputs and what sums of them and dyadic numbers make, which floats hold.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

Item = TypeVar("Item")

FLOATS = ("float", "float", "float", "float32", "double", "float64", "float16", "bfloat16")
INTEGERS = ("int64", "int32", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64")
KINDS = {**dict.fromkeys(FLOATS, "float"), **dict.fromkeys(INTEGERS, "int"), "bool": "bool"}
LARGEST = 16.0  # beyond it a float is scaled down before it is used
# s stands for any float, u for one between -1 and 1, e for an exact one.
SMOOTH = """
    asinh(s) atan(s) cos(s) erf(s) fabs(s) j0(s) j1(s) normcdf(s) sigmoid(s) sin(s) tanh(s)
    abs(s) acos(0.875*u) acosh(2.5+u) asin(0.875*u) atanh(0.875*u) cbrt(2+u) cosh(u) cospi(u)
    cyl_bessel_i0(u) cyl_bessel_i1(u) erfc(u) erfcinv(1+0.75*u) erfcx(u) erfinv(0.75*u) exp(u)
    exp2(u) exp10(u) expm1(u) lgamma(2.5+u) log(2+u) log10(2+u) log1p(0.75*u) log2(2+u)
    normcdfinv(0.5+0.375*u) rcbrt(2+u) rsqrt(2+u) sinh(u) sinpi(u) sqrt(2+u) tan(u)
    tgamma(2.5+u) y0(2.5+u) y1(2.5+u) ceil(e) floor(e) round(e) roundeven(e) trunc(e) sign(e)
    logb(1+fabs(e)) atan2(s,2+u) copysign(s,e+0.00390625) fdim(s,s) fdivide(s,2+u) fmax(s,s)
    fmin(s,s) fmod(e,1.5) hypot(s,2+u) nextafter(e,e) pow(2+u,u) remainder(e,1.25)
    rhypot(s,2+u) fma(u,s,s) norm3d(s,s,1) rnorm3d(s,2+u,s) norm4d(s,s,s,1) rnorm4d(u,s,2+u,s)
    e%1.5 -s
"""
INTEGER = """
    x+y x-y x*y min(x,y) max(x,y) x/bitor(abs(y),1) x%bitor(abs(y),1) x/3 x%5 tdiv(x,y)
    tmod(x,y) ipow(x,bitand(y,3)) bitand(x,y) bitor(x,y) bitxor(x,y) bitnot(x)
    shr(x,bitand(y,7)) shl(x,bitand(y,7)) abs(x) sign(x) -x
"""
LITERALS = ("0.5", "2", "1.25", ".75", "3.", "25e-2", "0x1p-2", "1.5E0", "0")


@dataclass(frozen=True)
class Float:
    """An expression that is not above ``bound`` in magnitude."""

    text: str
    bound: float


class Choices:
    """Draws, in words."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def among(self, items: Sequence[Item]) -> Item:
        return self.rng.choice(items)

    def chance(self, percent: int) -> bool:
        return self.rng.randrange(100) < percent

    def count(self, least: int, most: int) -> int:
        return self.rng.randint(least, most)

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        return self.rng.sample(items, len(items))


class Values(Choices):
    """Expressions over the reads that ``read`` makes and the names of ``indices``."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self.lets: dict[str, Float] = {}  # of floats
        self.truths: list[str] = []
        self.whole: list[str] = []

    def read(self, kind: str, *, exact: bool = False) -> Float:
        """An element of some tensor of ``kind``."""
        raise NotImplementedError

    def index(self) -> str | None:
        """The name of some index or size."""
        raise NotImplementedError

    # ------------------------------------------------------------------ floats

    def exact(self, depth: int = 1) -> str:
        """A float that is computed without rounding."""
        if depth and self.chance(30):
            a, b = self.exact(0), self.exact(0)
            return self.among(
                (f"({a} + {b})", f"({a} - {b})", f"(0.5 * {a})", f"max({a}, {b})")
            )
        index = self.index()
        if index and self.chance(15):
            return f"({index} * 0.25)"
        return self.read("float", exact=True).text

    def scaled(self, depth: int) -> Float:
        """A float of moderate size."""
        found, factor = self.float(depth), 1.0
        while found.bound * factor > LARGEST:
            factor /= 2
        if factor == 1:
            return found
        return Float(f"({factor!r} * {found.text})", found.bound * factor)

    def unit(self, depth: int) -> str:
        """A float between -1 and 1."""
        return f"{self.among(('tanh', 'sin', 'cos', 'erf'))}({self.scaled(depth).text})"

    def float(self, depth: int) -> Float:
        if depth == 0 or self.chance(15):
            return self.leaf()
        match self.count(0, 9):
            case 0 | 1 | 2:
                return self.function(depth)
            case 3:
                a, b = self.scaled(depth - 1), self.scaled(depth - 1)
                return Float(
                    f"({self.condition(1)} ? {a.text} : {b.text})", max(a.bound, b.bound)
                )
            case 4:
                a, b = self.scaled(depth - 1), self.scaled(depth - 1)
                return Float(f"{a.text} / ({b.text} * {b.text} + 1)", a.bound)
            case 5:
                inner, kind = self.exact(), self.among(FLOATS)
                return Float(f"{kind}({inner})", LARGEST)
            case 6:
                a, b = self.scaled(depth - 1), self.scaled(depth - 1)
                return Float(f"{a.text} * {b.text}", a.bound * b.bound)
            case _:
                a, b = self.scaled(depth - 1), self.scaled(depth - 1)
                form = self.among(("({} + {})", "({} - {})", "min({}, {})", "max({}, {})"))
                return Float(form.format(a.text, b.text), a.bound + b.bound)

    def leaf(self) -> Float:
        match self.count(0, 11):
            case 0:
                return Float(self.among(LITERALS), 3)
            case 1 if index := self.index():
                return Float(f"{index} * 0.125", 64)
            case 2:
                return Float(f"float({self.integer(0)} % 16)", 16)
            case 3:
                return Float(f"float({self.condition(0)})", 1)
            case 4 if self.lets:
                name = self.among(sorted(self.lets))
                return Float(name, self.lets[name].bound)
        return self.read("float")

    def function(self, depth: int) -> Float:
        """A built-in function, or another operator on floats."""
        text = ""
        for letter in self.among(SMOOTH.split()).replace("*", " * ").replace("+", " + "):
            text += {",": ", "}.get(letter, letter)
        found = ""
        for position, letter in enumerate(text):
            if letter not in "sue" or _in_word(text, position):
                found += letter
            elif letter == "s":
                found += f"({self.scaled(depth - 1).text})"
            else:
                found += f"({self.unit(depth - 1) if letter == 'u' else self.exact()})"
        return Float(f"({found})", 32)

    # ------------------------------------------------------------------ integers and truths

    def integer(self, depth: int) -> str:
        if depth == 0 or self.chance(20):
            match self.count(0, 7):
                case 0:
                    return self.among(("3", "1", "-2", "7"))
                case 1 if index := self.index():
                    return index
                case 2:
                    kind = self.among(INTEGERS)
                    return f"{kind}({self.read('int').text})"
                case 3:
                    return f"int32({self.among(('floor', 'round', 'trunc'))}({self.exact()}))"
                case 4 if self.whole:
                    return self.among(self.whole)
            return self.read("int").text
        if self.chance(15):
            a, b = self.integer(depth - 1), self.integer(depth - 1)
            return f"({self.condition(1)} ? {a} : {b})"
        form = self.among(INTEGER.split())
        a, b = self.integer(depth - 1), self.integer(depth - 1)
        found = "".join(
            f"({a if c == 'x' else b})" if c in "xy" and not _in_word(form, k) else c
            for k, c in enumerate(form)
        )
        return f"({found})"

    def condition(self, depth: int) -> str:
        if depth and self.chance(30):
            a, b = self.condition(depth - 1), self.condition(depth - 1)
            return self.among((f"({a} && {b})", f"({a} || {b})", f"!({a})"))
        compare = self.among(("<", "<=", ">", ">=", "==", "!="))
        match self.count(0, 5):
            case 0:
                return f"({self.exact()} {compare} {self.exact()})"
            case 1:
                return f"({self.integer(0)} {compare} {self.integer(0)})"
            case 2 if index := self.index():
                return f"({index} {compare} {self.count(0, 3)})"
            case 3:
                return f"{self.among(('isnan', 'isinf'))}({self.read('float').text})"
            case 4 if self.truths:
                return self.among(self.truths)
        return self.read("bool").text


def _in_word(text: str, position: int) -> bool:
    around = text[max(position - 1, 0) : position] + text[position + 1 : position + 2]
    return any(c.isalnum() for c in around)
