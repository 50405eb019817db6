"""The names of one statement: indices, reduction variables, lets, and what they may not be."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import NoReturn

from tcfuse.errors import Span, TcError
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

RENAME = "rename it"
_DECLARE_IT = "declare it as a parameter, or assign it first"
SIZES_ONLY = "bounds depend on sizes only"


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
                raise TcError(f"{let.name!r} is already defined", let.span, RENAME, code="TC23")
            lets[let.name] = let
        if len(set(statement.indices)) < len(statement.indices):
            message = f"an index of {statement.tensor!r} occurs twice"
            raise TcError(message, statement.left_span, RENAME, code="TC23")
        ranged: set[str] = set()
        for r in statement.ranges:
            if r.name in lets:
                hint = "a let has a value and no range"
                raise TcError(f"{r.name!r} is not a variable", r.span, hint, code="TC24")
            if r.name in ranged:
                raise TcError(f"{r.name!r} has two ranges", r.span, "keep one", code="TC23")
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
                    raise TcError(message, node.span or r.span, SIZES_ONLY, code="TC11")
                yield node.name

    def expressions(self) -> Iterator[Expr]:
        """The value, the lets and the exists clauses."""
        yield from (*self.statement.values, *self.statement.exists)

    def place_of(self, name: str) -> Span | None:
        """Where the variable ``name`` is first used, or else the statement."""
        ranged = (r.span for r in self.statement.ranges if r.name == name)
        nodes = (n for e in self.expressions() for n in post_order(e))
        used = (n.span for n in nodes if isinstance(n, Var) and n.name == name)
        return next(used, None) or next(ranged, None) or self.statement.span

    def reads(self) -> Iterator[Access]:
        """Every read of a tensor in the value, the lets and the exists clauses."""
        for expr in self.expressions():
            yield from (node for node in post_order(expr) if isinstance(node, Access))

    def check_names(
        self,
        sizes: Collection[str],
        tensors: Collection[str],
        unwritten: Mapping[str, str],
    ) -> None:
        """Raise when a name means two things, or something that is not there is read.

        Args:
            sizes: Size names.
            tensors: Tensors that have a value.
            unwritten: Every other tensor of the definition, with what to do to read it.
        """
        statement = self.statement
        own = [(v, statement.left_span) for v in statement.indices]
        own += [(r.name, r.span) for r in statement.ranges]
        own += [(let.name, let.span) for let in statement.lets]
        for name, span in own:
            if name in sizes or name in tensors or name in unwritten:
                what = "size" if name in sizes else "tensor"
                message = f"{name!r} is already the name of a {what}"
                raise TcError(message, span, RENAME, code="TC23")
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
        unwritten: Mapping[str, str],
        hidden: Collection[str],
    ) -> None:
        """Raise when ``expr`` reads what it cannot; ``hidden`` are lets that come later."""
        for node in post_order(expr):
            if isinstance(node, Var):
                name = node.name
                if name in tensors or name in unwritten:
                    problem = f"expected a scalar but {name!r} is a tensor"
                    hint, code = f"write {name}(...)", "TC14"
                elif name in hidden:
                    problem = f"the let {name!r} is used before it is defined"
                    hint, code = "move it to the front", "TC24"
                else:
                    continue
                raise TcError(problem, node.span or self.statement.span, hint, code=code)
            if isinstance(node, Access) and node.tensor not in tensors:
                self.missing(node, unwritten)
            if isinstance(node, Access) and node.tensor == self.statement.tensor:
                self.check_own_read(node)

    def missing(self, read: Access, unwritten: Mapping[str, str]) -> NoReturn:
        """Complain about a read of something without a value."""
        name, code = read.tensor, "TC24"
        hint: str | None
        if name in self.lets or name in self.statement.indices:
            problem, hint = f"expected a tensor but {name!r} is a scalar", f"write {name}"
            code = "TC08"
        elif name in unwritten:
            problem = f"{name!r} is read before it is written"
            hint = unwritten[name]
        else:
            close = get_close_matches(name, [*BUILTINS, *unwritten], 1)
            problem = f"undefined tensor or function {name!r}"
            hint = f"did you mean {close[0]!r}?" if close else _DECLARE_IT
        raise TcError(problem, read.span or self.statement.span, hint, code=code)

    def check_own_read(self, read: Access) -> None:
        """Raise when the statement reads the tensor it has just reset."""
        if self.statement.assign.resets:
            raise TcError(
                f"{read.tensor!r} is reset and read by one statement",
                read.span or self.statement.span,
                "copy it to another tensor first",
                code="TC43",
            )

    def check_bound(self, bound: Expr, kind: Type) -> None:
        """Raise unless ``bound`` is an integer that no tensor is read for."""
        span = bound.span or self.statement.span
        if not is_integer(kind):
            message = f"expected an integer bound but found {spell(kind)}"
            raise TcError(message, span, "cast it, for example int64(...)", code="TC09")
        if self.reads_tensors(bound):
            message = "a range cannot depend on the elements of a tensor"
            raise TcError(message, span, SIZES_ONLY, code="TC11")

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
            message = f"the bound {unparse_expr(bound)} is not computed from sizes"
            raise TcError(message, bound.span or self.statement.span, SIZES_ONLY, code="TC44")
        return form.expr


def redefined(name: str, span: Span | None) -> TcError:
    """The complaint about something named like a built-in."""
    message = f"{name!r} is a built-in function"
    return TcError(message, span, "choose another name", code="TC22")


def size_and_tensor(name: str, span: Span | None) -> TcError:
    """The complaint about one name for two things."""
    return TcError(f"{name!r} is both a size and a tensor", span, RENAME, code="TC23")


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


def guarded_reads_of(scope: Scope, bounds: Mapping[str, tuple[Bounds, ...]]) -> list[Read]:
    """Every subscript in a branch of some ternary."""
    certain = {id(read.subscript) for read in reads_of(scope, bounds)}
    found = {
        id(subscript): Read(node.tensor, subscript, b)
        for expr in scope.expressions()
        for node in post_order(expr)
        if isinstance(node, Access)
        for subscript, b in zip(node.subscripts, bounds[node.tensor], strict=True)
        if id(subscript) not in certain
    }
    return list(found.values())


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
