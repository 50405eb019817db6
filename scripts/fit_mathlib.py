"""Fit the polynomials of ``tcfuse/codegen/mathlib``: minimax, by Remez's exchange in mpmath.

``python scripts/fit_mathlib.py [part of a name]...`` prints each polynomial's coefficients, the
highest degree first, and the error of the function that is made of it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import mpmath as mp
from mpmath import mpf

Function = Callable[[mpf], mpf]
GRID = 300
TINY = mpf(10) ** -10
mp.mp.dps = 50
LN2 = mp.log(2)
QUARTER = mp.pi / 4


@dataclass(frozen=True)
class Fit:
    """A polynomial for ``function`` on [low, high], its error weighed by ``unit``."""

    name: str
    function: Function
    unit: Function
    low: mpf
    high: mpf
    degrees: tuple[int, ...]


def remez(fit: Fit, degree: int) -> tuple[list[mpf], mpf]:
    """Coefficients, the lowest degree first, and the largest error in units."""
    count, middle, half = degree + 1, (fit.low + fit.high) / 2, (fit.high - fit.low) / 2
    points = [middle - half * mp.cos(mp.pi * (2 * i + 1) / (2 * GRID)) for i in range(GRID)]
    values = [fit.function(x) for x in points]
    units = [fit.unit(x) for x in points]
    chosen = [round(i * (GRID - 1) / count) for i in range(count + 1)]
    coefficients: list[mpf] = []
    errors: list[mpf] = []
    for _ in range(12):
        system = mp.matrix(count + 1, count + 1)
        for row, i in enumerate(chosen):
            for k in range(count):
                system[row, k] = points[i] ** k
            system[row, count] = (-1) ** row * units[i]
        solved = mp.lu_solve(system, mp.matrix([values[i] for i in chosen]))
        coefficients = [solved[k] for k in range(count)]
        errors = [
            (v - mp.polyval(coefficients[::-1], x)) / u
            for x, v, u in zip(points, values, units, strict=True)
        ]
        peaks = alternation(errors, count + 1)
        if len(peaks) <= count or peaks == chosen:
            break
        chosen = peaks
    return coefficients, max(abs(e) for e in errors)


def alternation(errors: list[mpf], wanted: int) -> list[int]:
    """The peak of each run of one sign, without the lower ends beyond those wanted."""
    peaks: list[int] = []
    for i, error in enumerate(errors):
        if peaks and (error >= 0) == (errors[peaks[-1]] >= 0):
            if abs(error) > abs(errors[peaks[-1]]):
                peaks[-1] = i
        else:
            peaks.append(i)
    while len(peaks) > wanted:
        peaks.pop(0 if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]) else -1)
    return peaks


def quotient(f: Function, linear: mpf, high: mpf, degrees: tuple[int, int]) -> list[list[mpf]]:
    """Give p and q, by z = x^2: f(x) = x (linear + p / q), q(0) = 1, with the slope of f at 0.

    Remez's exchange; the levelled error is multiplied by q: there, that of the last round.
    """
    above, below = degrees
    count, first = above + below, mp.diff(f, 0) - linear
    xs = [high * mp.sin(mp.pi * (2 * i + 1) / (4 * GRID)) for i in range(GRID)]
    ratios = [f(x) / x for x in xs]
    chosen = [round(i * (GRID - 1) / count) for i in range(count + 1)]
    best: tuple[mpf, list[list[mpf]]] = (mp.inf, [])
    level = mpf(0)
    for _ in range(30):
        for _ in range(8):
            system, right = mp.matrix(count + 1, count + 1), mp.matrix(count + 1, 1)
            for row, i in enumerate(chosen):
                z, sign = xs[i] ** 2, (-1) ** row
                value = ratios[i] * (1 + sign * level) - linear
                for k in range(above):
                    system[row, k] = z ** (k + 1)
                for k in range(below):
                    system[row, above + k] = -value * z ** (k + 1)
                system[row, count] = -sign * ratios[i]
                right[row] = ratios[i] - linear - first
            solved = mp.lu_solve(system, right)
            level = solved[count]
        p = [first, *(solved[k] for k in range(above))]
        q = [mpf(1), *(solved[above + k] for k in range(below))]
        errors = [
            (linear + mp.polyval(p[::-1], x * x) / mp.polyval(q[::-1], x * x)) / ratio - 1
            for x, ratio in zip(xs, ratios, strict=True)
        ]
        worst = max(map(abs, errors))
        if worst < best[0]:  # exchanges need not end for a quotient
            best = worst, [p, q]
        peaks = alternation(errors, count + 1)
        if len(peaks) <= count or peaks == chosen:
            break
        chosen = peaks
    print(f"quotient, degrees {degrees}: 2^{float(mp.log(best[0], 2)):.1f}")
    return best[1]


def odd(name: str, f: Function, high: mpf, degrees: tuple[int, ...]) -> Fit:
    """f(x) = x + x^3 q(x^2), relative to f."""
    factor: Function = lambda z: f(mp.sqrt(z)) / mp.sqrt(z)  # noqa: E731
    return Fit(
        name, lambda z: (factor(z) - 1) / z, lambda z: factor(z) / z, TINY, high**2, degrees
    )


def by_square(
    name: str, f: Function, unit: Function, high: mpf, degrees: tuple[int, ...]
) -> Fit:
    """A function of z = x^2 given by x."""
    return Fit(
        name, lambda z: f(mp.sqrt(z)), lambda z: unit(mp.sqrt(z)), TINY, mpf(high), degrees
    )


def scaled_erfc(name: str, k: mpf, low: mpf, high: mpf, degree: int) -> Fit:
    """(1 + 2x) e^(x^2) erfc(x) by t = (x - k) / (x + k)."""

    def value(t: mpf) -> mpf:
        x = k * (1 + t) / (1 - t)
        return mp.erfc(x) * mp.exp(x * x) * (1 + 2 * x)

    return Fit(name, value, value, (low - k) / (low + k), (high - k) / (high + k), (degree,))


def bessel_far(n: int) -> tuple[Fit, Fit]:
    """Give p and x q of order n, by 1 / x^2 from 8 on."""

    def part(w: mpf, second: bool) -> mpf:
        x = 1 / mp.sqrt(w)
        a, j, y = x - (2 * n + 1) * QUARTER, mp.besselj(n, x), mp.bessely(n, x)
        value = y * mp.cos(a) - j * mp.sin(a) if second else j * mp.cos(a) + y * mp.sin(a)
        return mp.sqrt(mp.pi * x / 2) * value * (x if second else 1)

    ends = (mpf(10) ** -8, mpf(1) / 64)
    return (
        Fit(f"bessel p{n}", lambda w: part(w, False), lambda w: mpf(1), *ends, (11,)),
        Fit(f"bessel q{n}", lambda w: part(w, True), lambda w: mpf(4), *ends, (10,)),
    )


def rest_of_y(n: int, x: mpf) -> mpf:
    """What y_n has beside its logarithm and its pole, by x^n."""
    logarithm = mp.log(x) * mp.besselj(n, x) - (1 / x if n else 0)
    return (mp.bessely(n, x) - 2 / mp.pi * logarithm) / x**n


def bessel_near(name: str, f: Function, degree: int) -> Fit:
    """By t = x^2 / 32 - 1 up to 8, absolute."""
    value: Function = lambda t: f(mp.sqrt(32 * (t + 1)))  # noqa: E731
    return Fit(name, value, lambda t: mpf(1), mpf(-1), mpf(1), (degree,))


def log_tail(f: mpf) -> mpf:
    """(log(1 + f) - f + f^2 / 2) / f^3."""
    return (mp.log(1 + f) - f + f * f / 2) / f**3


def stirling(x: mpf) -> mpf:
    """What Stirling's formula lacks of log gamma, times x."""
    main = (x - mpf(1) / 2) * mp.log(x) - x + mp.log(2 * mp.pi) / 2
    return (mp.loggamma(x) - main) * x


def one(x: mpf) -> mpf:
    """Count the error as it is."""
    return mpf(1)


def fits() -> list[Fit]:
    """Every polynomial of the library; two degrees are for floats and doubles."""
    root, h, s = mp.sqrt(2), LN2 / 2 * mpf("1.001"), mp.sqrt(2) - 1
    z_log = ((root - 1) / (root + 1)) ** 2
    atanh_2: Function = lambda x: 2 * mp.atanh(x)  # noqa: E731
    quarter = QUARTER * mp.sqrt(mpf("1.02"))
    sine = mp.pi / 2 * mp.sqrt(mpf("1.012"))
    middle = mpf("2.46")
    i_far = [
        (n, lambda u, n=n: mp.besseli(n, 1 / u) * mp.exp(-1 / u) / mp.sqrt(u)) for n in (0, 1)
    ]
    i_near = [(n, lambda x, n=n: mp.besseli(n, x) / x**n) for n in (0, 1)]
    return [
        Fit("expm1_factor", lambda r: (mp.expm1(r) - r) / r**2,
            lambda r: abs(mp.expm1(r)) / r**2, -h, h, (4, 9)),
        Fit("exp in tanh", lambda r: mp.expm1(r) / r, lambda r: mp.exp(r) / abs(r),
            -LN2 / 2, LN2 / 2, (4,)),
        Fit("2^r in pow", lambda r: (2**r - 1) / r, lambda r: 2**r / abs(r),
            mpf(-0.5), mpf(0.5), (5,)),
        Fit("log float", log_tail, lambda f: mp.log(1 + f) / f**3,
            1 / root - 1, root - 1, (7,)),
        by_square("log double", lambda x: (atanh_2(x) - 2 * x) / x**3,
                  lambda x: atanh_2(x) / x**3, z_log, (6,)),
        by_square("log2 in pow", lambda x: atanh_2(x) / x / LN2, lambda x: atanh_2(x) / x / LN2,
                  z_log, (4,)),
        by_square("log twin", lambda x: (atanh_2(x) - 2 * x - 2 * x**3 / 3) / x**5,
                  lambda x: atanh_2(x) / x**5, z_log, (6,)),
        odd("sin", mp.sin, sine, (3, 7)),
        by_square("cos", lambda x: (mp.cos(x) - 1 + x * x / 2) / x**4,
                  lambda x: mp.cos(x) / x**4, quarter**2, (2, 6)),
        odd("atan float", mp.atan, mpf(1), (8,)),
        odd("atan double", mp.atan, s * mp.sqrt(mpf("1.001")), (11,)),
        odd("asin", mp.asin, mpf(0.5), (4, 12)),
        odd("tanh", mp.tanh, mpf("0.6"), (4,)),
        by_square("erf", lambda x: mp.erf(x) / x, lambda x: mp.erf(x) / x, 1, (6, 13)),
        Fit("erfc in erf", lambda t: mp.erfc(t + middle), lambda t: mp.erf(t + middle),
            1 - middle, mpf("3.92") - middle, (12,)),
        scaled_erfc("erfcx float", mpf(2.5), mpf("0.45"), mpf("10.2"), 9),
        scaled_erfc("erfcx double", mpf(3), mpf("0.48"), mpf("27.5"), 22),
        Fit("lgamma_two", lambda u: mp.loggamma(2 + u) / u,
            lambda u: abs(mp.loggamma(2 + u) / u), mpf(-0.5), mpf(0.5), (18,)),
        Fit("stirling", lambda w: stirling(1 / mp.sqrt(w)), one, TINY, 1 / mpf(5.5) ** 2, (9,)),
        Fit("cbrt", mp.cbrt, mp.cbrt, 1 / root, 4 * root, (4,)),
        bessel_near("j0", lambda x: mp.besselj(0, x), 15),
        bessel_near("j1", lambda x: mp.besselj(1, x) / x, 14),
        bessel_near("y0", lambda x: rest_of_y(0, x), 16),
        bessel_near("y1", lambda x: rest_of_y(1, x), 15),
        by_square("j0 below 2", lambda x: (mp.besselj(0, x) - 1) / x**2, lambda x: x**-2,
                  4, (8,)),
        by_square("y0 below 2", lambda x: rest_of_y(0, x), one, 4, (9,)),
        *bessel_far(0),
        *bessel_far(1),
        *(by_square(f"i{n}", f, f, 64, (16 - n,)) for n, f in i_near),
        *(Fit(f"i{n} far", f, f, 1 / mpf(725), mpf(1) / 8, (22,)) for n, f in i_far),
    ]  # fmt: skip


def main() -> None:
    """Print the fits whose names contain an argument, or all of them."""
    for fit in fits():
        if sys.argv[1:] and not any(part in fit.name for part in sys.argv[1:]):
            continue
        for degree in fit.degrees:
            coefficients, error = remez(fit, degree)
            print(f"{fit.name}, degree {degree}: 2^{float(mp.log(error, 2)):.1f}")
            print("  " + ", ".join(mp.nstr(c, 19) for c in reversed(coefficients)))
    if not sys.argv[1:] or "erf" in sys.argv[1:]:
        for part in quotient(mp.erf, mpf(0.25), mpf("3.95"), (6, 5)):
            print("  " + ", ".join(mp.nstr(mpf("0.8125") * c, 12) for c in reversed(part)))


if __name__ == "__main__":
    main()
