"""Text to ``ast.Def``: definitions, parameters, statements and where clauses.

``parse(unparse(d)) == d`` for every definition; ``unparse`` is in ``tc.unparse``.  A statement
needs no separator: its expression ends where nothing can continue it.

Source: "The Next 700 Accelerated Layers", ACM TACO 16(4), 2019, section 3.
"""

from __future__ import annotations

import re

from tcfuse.errors import TcError
from tcfuse.tc.ast import Access, AssignKind, Comprehension, Def, Expr, Let, Param, Range
from tcfuse.tc.expression_parser import ExpressionParser
from tcfuse.tc.lexer import ASSIGNMENTS, TYPES, Cursor
from tcfuse.types import Size, TensorType

_SIZE = "a size is a number, a name, or an affine expression of names"
_TYPE = f"types are {', '.join(TYPES)}"
_CLAUSE = "a where clause: 'i in 0:N', 't = ...' or 'exists ...'"


def parse(text: str, filename: str = "<tc>") -> Def:
    """The one definition in ``text``.

    Raises:
        TcError: The text is ill-formed, or holds several definitions.
    """
    parser = _Parser(text, filename)
    definition = parser.definition()
    parser.cursor.expect("end", "the end of the text", "use parse_file for several definitions")
    return definition


def parse_file(text: str, filename: str = "<tc>") -> tuple[Def, ...]:
    """All definitions in ``text``, whose names must differ.

    Raises:
        TcError: The text is ill-formed, or a name is defined twice.
    """
    parser = _Parser(text, filename)
    found: dict[str, Def] = {}
    while not parser.cursor.at("end"):
        definition = parser.definition()
        if definition.name in found:
            raise defined_twice(definition)
        found[definition.name] = definition
    return tuple(found.values())


def parse_each(text: str, filename: str = "<tc>") -> tuple[list[Def], list[TcError]]:
    """The definitions in ``text`` that can be read, and an error for each of the others.

    After an error reading goes on at the next ``def``.
    """
    parser = _Parser(text, filename)
    cursor = parser.cursor
    found: dict[str, Def] = {}
    errors: list[TcError] = []
    while not cursor.at("end"):
        start = cursor.position
        try:
            definition = parser.definition()
            if found.setdefault(definition.name, definition) is not definition:
                errors.append(defined_twice(definition))
        except TcError as error:
            errors.append(error)
            cursor.position = max(cursor.position, start + 1)
            while cursor.token.kind not in ("def", "end"):
                cursor.next()
    return list(found.values()), errors


def defined_twice(definition: Def) -> TcError:
    """The complaint about a second definition of one name."""
    message = f"{definition.name!r} is defined twice"
    return TcError(message, definition.span, "rename one of them", code="TC23")


def parse_expr(text: str, filename: str = "<tc>") -> Expr:
    """The expression ``text``.

    Raises:
        TcError: The text is ill-formed.
    """
    cursor = Cursor(text, filename)
    expr = ExpressionParser(cursor).parse()
    cursor.expect("end", "an operator or the end of the text")
    return expr


class _Parser:
    """Recursive descent over everything but expressions."""

    def __init__(self, text: str, filename: str) -> None:
        self.cursor = Cursor(text, filename)
        self.tensors: set[str] = set()

    def definition(self) -> Def:
        """``def name(params) -> (returns) { statements }``."""
        cursor = self.cursor
        start = cursor.expect("def").start
        name = cursor.expect("name", "the name of the definition").text
        params = self.params(typed=True)
        cursor.expect("->")
        returns = self.params(typed=False)
        span = cursor.span(start)
        self.tensors = {p.name for p in (*params, *returns)}
        cursor.expect("{")
        body: list[Comprehension] = []
        while not cursor.take("}"):
            body.append(self.statement())
        return Def(name, params, returns, tuple(body), span)

    def params(self, *, typed: bool) -> tuple[Param, ...]:
        """A parenthesised list of declarations."""
        cursor = self.cursor
        cursor.expect("(")
        found: list[Param] = []
        while not cursor.at(")"):
            if found:
                cursor.expect(",", "',' or ')'")
            found.append(self.param(typed=typed))
        cursor.next()
        return tuple(found)

    def param(self, *, typed: bool) -> Param:
        """``type name``, or in the returns a ``name`` alone."""
        cursor = self.cursor
        start = cursor.token.start
        declared = None
        if typed or cursor.at("type"):
            scalar = cursor.expect("type", "a scalar type", _TYPE, "TC04").text
            declared = TensorType(TYPES[scalar], self.sizes() if cursor.take("(") else ())
        name = cursor.expect("name", "the name of a tensor").text
        return Param(name, declared, cursor.span(start))

    def sizes(self) -> tuple[Size, ...]:
        """A list of sizes and its closing bracket."""
        cursor = self.cursor
        found: list[Size] = []
        while not cursor.at(")"):
            if found:
                cursor.expect(",", "',' or ')'")
            found.append(self.size())
        cursor.next()
        return tuple(found)

    def size(self) -> Size:
        """A number or the text of an affine expression over size names."""
        cursor = self.cursor
        if cursor.token.kind not in ("number", "name", "(", "-"):
            cursor.fail("a size", _SIZE, "TC05")
        start = cursor.token.start
        ExpressionParser(cursor).parse()
        text = re.sub(r"\s+", " ", cursor.source[start : cursor.span(start).end])
        if re.search(r"[^\w\s+*()-]|\.", text):
            raise TcError(
                f"the size {text!r} is not affine", cursor.span(start), _SIZE, code="TC05"
            )
        return int(text) if text.isdecimal() else text

    def statement(self) -> Comprehension:
        """``tensor(indices) assignment expression where clauses``."""
        cursor = self.cursor
        token = cursor.expect("name", "a statement or '}'")
        start, tensor = token.start, token.text
        indices = self.indices() if cursor.take("(") else ()
        if cursor.token.kind not in ASSIGNMENTS:
            cursor.fail("an assignment", "one of = += *= min= max= +=! *=! min=! max=!", "TC03")
        assign = AssignKind(cursor.next().kind)
        value = self.expression(indices)
        # The statement's span is its head: what an error about it should underline.
        span = cursor.span(start)
        equivalent = self.equivalent(indices) if cursor.take("<=>") else None
        clauses = self.clauses(indices) if cursor.take("where") else ((), (), ())
        self.tensors.add(tensor)
        return Comprehension(tensor, indices, assign, value, *clauses, equivalent, span)

    def indices(self) -> tuple[str, ...]:
        """The plain names on the left-hand side, and the closing bracket."""
        cursor = self.cursor
        hint = "the assigned tensor takes plain index names; shift on the right-hand side"
        found: list[str] = []
        while not cursor.at(")"):
            if found:
                cursor.expect(",", "',' or ')'", hint)
            found.append(cursor.expect("name", "an index name", hint).text)
        cursor.next()
        return tuple(found)

    def expression(self, indices: tuple[str, ...]) -> Expr:
        """An expression of a statement with the left-hand side ``indices``."""
        return ExpressionParser(self.cursor, self.tensors.difference(indices)).parse()

    def equivalent(self, indices: tuple[str, ...]) -> Access:
        """The call the author claims to be equivalent: ``name(expressions)``."""
        cursor = self.cursor
        token = cursor.expect("name", "the name of an equivalent definition")
        cursor.expect("(")
        arguments: list[Expr] = []
        while not cursor.take(")"):
            if arguments:
                cursor.expect(",", "',' or ')'")
            arguments.append(self.expression(indices))
        return Access(token.text, tuple(arguments), cursor.span(token.start))

    def clauses(
        self, indices: tuple[str, ...]
    ) -> tuple[tuple[Range, ...], tuple[Let, ...], tuple[Expr, ...]]:
        """What follows ``where``."""
        cursor = self.cursor
        ranges: list[Range] = []
        lets: list[Let] = []
        exists: list[Expr] = []
        while True:
            if cursor.take("exists"):
                exists.append(self.expression(indices))
            else:
                token = cursor.expect("name", _CLAUSE)
                if cursor.take("in"):
                    low = self.expression(indices)
                    cursor.expect(":", "':' and the upper bound", "ranges are half open: 0:N")
                    high = self.expression(indices)
                    ranges.append(Range(token.text, low, high, cursor.span(token.start)))
                else:
                    cursor.expect("=", "'in' or '='")
                    value = self.expression(indices)
                    lets.append(Let(token.text, value, cursor.span(token.start)))
            if not cursor.take(","):
                return tuple(ranges), tuple(lets), tuple(exists)
