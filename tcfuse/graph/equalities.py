"""Sizes the model forces to be equal: a valid run proves them so.

A matrix product needs equal inner sizes, and ``x[:, :n]`` of 512 rows added to ``n`` rows only
works when ``min(512, n)`` is ``n``.  Only names that inference made up, and such minima, are
replaced; two sizes that both have names of the model keep them.
"""

from __future__ import annotations

import sympy

from tcfuse.graph.symbols import Dim, Dims, equal, number

_ROUNDS = 8


class Equalities:
    """What may be replaced by what."""

    def __init__(self) -> None:
        self._replacements: dict[sympy.Expr, sympy.Expr] = {}
        self._made_up: set[Dim] = set()

    def __bool__(self) -> bool:
        return bool(self._replacements)

    def allow(self, size: Dim) -> None:
        """Let ``size``, a name inference made up, be replaced."""
        self._made_up.add(size)

    def require(self, a: Dim, b: Dim) -> None:
        """Note that ``a`` and ``b`` are equal, as far as one may replace the other."""
        a, b = self.resolve(a), self.resolve(b)
        if equal(a, b):
            return
        for old, new in ((b, a), (a, b)):
            if isinstance(old, int) or not (old in self._made_up or isinstance(old, sympy.Min)):
                continue
            if old in self._made_up and old in sympy.sympify(new).free_symbols:
                continue
            self._replacements[old] = sympy.sympify(new)
            return

    def resolve(self, dim: Dim) -> Dim:
        """``dim`` with everything replaced that may be."""
        if isinstance(dim, int) or not self._replacements:
            return dim
        for _ in range(_ROUNDS):
            new = dim.xreplace(self._replacements)
            if new == dim:
                break
            dim = new
        return number(dim)

    def resolve_all(self, shape: Dims) -> Dims:
        """Each size of ``shape`` resolved."""
        return tuple(self.resolve(d) for d in shape) if self._replacements else shape
