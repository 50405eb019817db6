"""Sizes used as numbers, written with the names that the tensors of a definition show.

The mean over ``H`` and ``W`` divides by ``H * W``.  Where the two dimensions were merged into
one of size ``n``, neither name is the size of anything any more, and the divisor is ``n``.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import sympy

from tcfuse.errors import UnsupportedError
from tcfuse.tc.affine import Affine
from tcfuse.tc.ast import Binary, Const, Expr, Unary, Var
from tcfuse.tc.draft import Draft
from tcfuse.tc.pool import Pool, children, variables
from tcfuse.tc.sizes import Sizes
from tcfuse.types import size_names


def with_visible_sizes(draft: Draft, pool: Pool, sizes: Sizes) -> Draft:
    """``draft`` with values that use no other size names than its parameters and returns.

    Raises:
        UnsupportedError: A value needs a size that no dimension has.
    """
    shown = (draft.tensors[name].shape for name in (*draft.inputs, *draft.outputs))
    visible = size_names(size for shape in shown for size in shape)
    if set(sizes.names) <= set(visible):
        return draft
    writer = _Writer(pool, sizes, visible)
    body = []
    for statement in draft.body:
        value = pool.rewrite(statement.value, writer, {})
        indices = {r.name for r in statement.ranges}
        hidden = variables((value,)) - indices - set(visible)
        if hidden:
            raise UnsupportedError("a size that no dimension shows is used as a number")
        body.append(replace(statement, value=value))
    return replace(draft, body=tuple(body))


class _Writer:
    """A rule that writes each number computed from sizes with visible names."""

    def __init__(self, pool: Pool, sizes: Sizes, visible: Collection[str]) -> None:
        self.pool, self.sizes, self.visible = pool, sizes, visible
        self.meanings: dict[int, sympy.Expr] = {}

    def __call__(self, node: Expr) -> Expr:
        meaning = self._meaning(node)
        if meaning is None:
            return node
        found = node
        if not variables((node,)) <= set(self.visible):
            found = self.pool.add(self._written(meaning) or node)
        self.meanings[id(found)] = meaning
        return found

    def _meaning(self, node: Expr) -> sympy.Expr | None:
        """The number ``node`` stands for, if it is computed from sizes alone."""
        if isinstance(node, Var):
            return self.sizes.value(node.name) if node.name in self.sizes.names else None
        if isinstance(node, Const):
            plain = isinstance(node.value, int) and not isinstance(node.value, bool)
            return sympy.Integer(node.value) if plain else None
        operands = [m for c in children(node) if (m := self.meanings.get(id(c))) is not None]
        if not operands or len(operands) != len(children(node)):
            return None
        first, last = operands[0], operands[-1]
        match node:
            case Unary("-"):
                return -first
            case Binary("+"):
                return sympy.expand(first + last)
            case Binary("-"):
                return sympy.expand(first - last)
            case Binary("*"):
                return sympy.expand(first * last)
            case _:
                return None

    def _written(self, meaning: sympy.Expr) -> Expr | None:
        """``meaning`` over visible names, as a size or as a product of sizes."""
        try:
            size = self.sizes.size(meaning)
        except UnsupportedError:
            return None
        if set(size_names([size])) <= set(self.visible):
            return Affine.from_size(size).expr()
        rest, factors = meaning, list[str]()
        for name in sorted(self.visible, key=lambda n: (-len(self._symbols(n)), n)):
            while (quotient := self.sizes.quotient(self.sizes.size(rest), name)) is not None:
                rest = self.sizes.value(quotient)
                factors.append(name)
        if not rest.is_Integer:
            return None
        result: Expr = Var(factors[0])
        for name in factors[1:]:
            result = Binary("*", result, Var(name))
        return result if rest == 1 else Binary("*", result, Const(int(rest)))

    def _symbols(self, name: str) -> tuple[sympy.Symbol, ...]:
        return tuple(self.sizes.value(name).free_symbols)
