"""The names of one statement: indices, reduction variables, lets, and what they may not be."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import NoReturn

from tcfuse.errors import TcError
from tcfuse.tc.ast import (
    Access,
    Comprehension,
    Expr,
    Let,
    Select,
    Var,
    children,
    post_order,
)
from tcfuse.tc.builtins import BUILTINS
from tcfuse.tc.linear import Linear, linear_of
from tcfuse.tc.ranges import Bounds, Read
from tcfuse.tc.typing import Type, is_integer, spell
from tcfuse.tc.unparse import unparse_expr


@dataclass(frozen=True, slots=True)
class Scope:
    """A statement and the lets it defines."""

    statement: Comprehension
    lets: Mapping[str, Let]

    @classmethod
    def of(cls, statement: Comprehension) -> Scope:
        """The scope of ``statement``.

        Raises:
            TcError: An index, range or let occurs twice.
        """
        lets: dict[str, Let] = {}
        for let in statement.lets:
            if let.name in lets or let.name in statement.indices:
                raise TcError(f"{let.name!r} is already defined", let.span)
            lets[let.name] = let
        if len(set(statement.indices)) < len(statement.indices):
            raise TcError(f"an index of {statement.tensor!r} occurs twice", statement.span)
        ranged: set[str] = set()
        for r in statement.ranges:
            if r.name in lets:
                raise TcError(f"{r.name!r} is a let and has no range", r.span)
            if r.name in ranged:
                raise TcError(f"{r.name!r} has two ranges", r.span)
            ranged.add(r.name)
        return cls(statement, lets)

    def size_names(self) -> Iterator[str]:
        """The names in range bounds, which are sizes unless they are lets."""
        variables = {*self.statement.indices, *(r.name for r in self.statement.ranges)}
        for r in self.statement.ranges:
            for node in (*post_order(r.low), *post_order(r.high)):
                if not isinstance(node, Var) or node.name in self.lets:
                    continue
                if node.name in variables:
                    message = f"the index {node.name!r} cannot be used in a range"
                    raise TcError(message, node.span or r.span, "bounds depend on sizes only")
                yield node.name

    def expressions(self) -> Iterator[Expr]:
        """The value, the lets and the exists clauses."""
        yield self.statement.value
        for let in self.statement.lets:
            yield let.value
        yield from self.statement.exists

    def check_names(
        self, sizes: Collection[str], tensors: Collection[str], unwritten: Collection[str]
    ) -> None:
        """Raise when a name means two things, or something that is not there is read.

        Args:
            sizes: Size names.
            tensors: Tensors that have a value.
            unwritten: Every other tensor of the definition.
        """
        statement = self.statement
        own = [(v, statement.span) for v in statement.indices]
        own += [(r.name, r.span) for r in statement.ranges]
        own += [(let.name, let.span) for let in statement.lets]
        for name, span in own:
            if name in sizes or name in tensors or name in unwritten:
                what = "size" if name in sizes else "tensor"
                raise TcError(f"{name!r} is already the name of a {what}", span, "rename it")
        hidden = dict.fromkeys(self.lets)
        for let in statement.lets:
            self.check_reads(let.value, tensors, unwritten, hidden)
            del hidden[let.name]
        for expr in (statement.value, *statement.exists):
            self.check_reads(expr, tensors, unwritten, hidden)

    def check_reads(
        self,
        expr: Expr,
        tensors: Collection[str],
        unwritten: Collection[str],
        hidden: Collection[str],
    ) -> None:
        """Raise when ``expr`` reads what it cannot; ``hidden`` are lets that come later."""
        for node in post_order(expr):
            if isinstance(node, Var):
                name, hint = node.name, None
                if name in tensors or name in unwritten:
                    problem = f"expected a scalar but {name!r} is a tensor"
                    hint = f"write {name}(...)"
                elif name in hidden:
                    problem = f"the let {name!r} is used before it is defined"
                else:
                    continue
                raise TcError(problem, node.span or self.statement.span, hint)
            if isinstance(node, Access) and node.tensor not in tensors:
                self.missing(node, unwritten)
            if isinstance(node, Access) and node.tensor == self.statement.tensor:
                self.check_own_read(node)

    def missing(self, read: Access, unwritten: Collection[str]) -> NoReturn:
        """Complain about a read of something without a value."""
        name = read.tensor
        if name in self.lets or name in self.statement.indices:
            problem, hint = f"expected a tensor but {name!r} is a scalar", f"write {name}"
        elif name in unwritten:
            problem, hint = f"{name!r} is read before it is written", None
        else:
            close = get_close_matches(name, [*BUILTINS, *unwritten], 1)
            problem = f"undefined tensor or function {name!r}"
            hint = f"did you mean {close[0]!r}?" if close else None
        raise TcError(problem, read.span or self.statement.span, hint)

    def check_own_read(self, read: Access) -> None:
        """Raise when the statement reads the tensor it has just reset."""
        if self.statement.assign.resets:
            raise TcError(
                f"{read.tensor!r} is reset and read by one statement",
                read.span or self.statement.span,
                "copy it to another tensor first",
            )

    def check_bound(self, bound: Expr, kind: Type) -> None:
        """Raise unless ``bound`` is an integer that no tensor is read for."""
        span = bound.span or self.statement.span
        if not is_integer(kind):
            raise TcError(f"expected an integer bound but found {spell(kind)}", span)
        if self.reads_tensors(bound):
            raise TcError("a range cannot depend on the elements of a tensor", span)

    def reads_tensors(self, expr: Expr) -> bool:
        """Whether a tensor is read for ``expr``, by itself or through lets."""
        pending, seen = [expr], set[str]()
        while pending:
            for node in post_order(pending.pop()):
                if isinstance(node, Access):
                    return True
                if isinstance(node, Var) and node.name in self.lets and node.name not in seen:
                    seen.add(node.name)
                    pending.append(self.lets[node.name].value)
        return False

    def inline(self, bound: Expr) -> Expr:
        """``bound`` with lets replaced by their values, which must be affine in the sizes."""
        if not self.lets or not any(
            isinstance(n, Var) and n.name in self.lets for n in post_order(bound)
        ):
            return bound
        forms: dict[str, Linear | None] = {}
        for name, let in self.lets.items():
            forms[name] = linear_of(let.value, forms)
        form = linear_of(bound, forms)
        if form is None:
            span = bound.span or self.statement.span
            raise TcError(f"the bound {unparse_expr(bound)} is not affine in the sizes", span)
        return form.expr


def variables_of(scope: Scope, sizes: Collection[str]) -> tuple[str, ...]:
    """The indices, then every other variable in order of first appearance, ranges first."""
    statement = scope.statement
    found = dict.fromkeys(statement.indices)
    found.update(dict.fromkeys(r.name for r in statement.ranges))
    for expr in scope.expressions():
        for node in post_order(expr):
            if isinstance(node, Var) and node.name not in sizes and node.name not in scope.lets:
                found.setdefault(node.name)
    return tuple(found)


def reads_of(scope: Scope, bounds: Mapping[str, tuple[Bounds, ...]]) -> list[Read]:
    """Every subscript that is used whatever the data are: those no ternary guards."""
    found: list[Read] = []
    seen: set[int] = set()
    stack = list(scope.expressions())[::-1]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Access):
            dimensions = zip(node.subscripts, bounds[node.tensor], strict=True)
            found += [Read(node.tensor, subscript, b) for subscript, b in dimensions]
        guarded = isinstance(node, Select)
        stack.extend(children(node)[:1] if guarded else reversed(children(node)))
    return found
