"""TC text laid out anew: spaces, line breaks and blank lines change, words and comments do not.

The text is cut into units (the head of a definition, each of its statements, its end), and each
unit is printed from its tokens.  A comment stays with its unit: behind it when it stood at the
end of its last line, in front of it otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from tcfuse.tc.ast import Def, Param
from tcfuse.tc.layout import lay_out
from tcfuse.tc.lexer import Token, tokenize
from tcfuse.tc.linear import linear_of_size
from tcfuse.tc.parser import parse_file
from tcfuse.types import TensorType


@dataclass(frozen=True, slots=True)
class Line:
    """A comment on a line of its own, and whether a blank line comes before it."""

    text: str
    after_blank: bool


@dataclass(slots=True)
class Unit:
    """What is printed as one; the last unit of a text has no tokens.

    Attributes:
        indent: Column it starts in.
        leading: Comments in front of it.
        after_blank: Whether a blank line comes before its first token.
        trailing: The comment behind it, if there is one.
    """

    tokens: list[Token]
    indent: int = 0
    leading: list[Line] = field(default_factory=list)
    after_blank: bool = False
    trailing: str = ""

    def lines(self) -> Iterator[str]:
        """As it is printed."""
        is_closing = bool(self.tokens) and self.tokens[0].kind == "}"
        for comment in self.leading:
            if comment.after_blank:
                yield ""
            # What stands before the closing brace belongs to the body.
            yield " " * (2 if is_closing else self.indent) + comment.text
        if not self.tokens:
            return
        if self.after_blank and not is_closing:
            yield ""
        *first, last = (" " * self.indent + line for line in lay_out(self.tokens, self.indent))
        yield from first
        yield f"{last}  {self.trailing}" if self.trailing else last


def format_text(text: str, filename: str = "<tc>") -> str:
    """``text`` laid out; formatting the result again changes nothing.

    Raises:
        TcError: It cannot be read.
    """
    definitions = parse_file(text, filename)
    units = units_of(text, definitions)
    _attach_comments(text, units)
    lines = [line for unit in units for line in unit.lines()]
    result = "\n".join([*lines, ""]).lstrip("\n")
    again = parse_file(result)
    assert list(map(_meaning, again)) == list(map(_meaning, definitions)), "the meaning changed"
    assert sorted(comments(result)) == sorted(comments(text)), "the layout lost a comment"
    return result


def _meaning(definition: Def) -> Def:
    """``definition`` with its sizes written alike: their text keeps its spaces."""

    def plain(param: Param) -> Param:
        if param.type is None:
            return param
        forms = (linear_of_size(size) for size in param.type.shape)
        pairs = zip(forms, param.type.shape, strict=True)
        shape = tuple(size if form is None else form.size for form, size in pairs)
        return replace(param, type=TensorType(param.type.dtype, shape))

    params, returns = (tuple(map(plain, p)) for p in (definition.params, definition.returns))
    return replace(definition, params=params, returns=returns)


def comments(text: str) -> list[str]:
    """The comments in ``text``, without the space at their ends."""
    return [comment.rstrip() for _, comment in _comments(text, tokenize(text))]


def units_of(text: str, definitions: Iterable[Def]) -> list[Unit]:
    """The units of ``text``, none of them with a comment yet."""
    spans = (s.span for definition in definitions for s in definition.body)
    starts = {span.start for span in spans if span is not None}
    units: list[Unit] = []
    for token in tokenize(text)[:-1]:
        if token.kind in ("def", "}"):
            units.append(Unit([]))
        elif token.start in starts:
            units.append(Unit([], 2))
        units[-1].tokens.append(token)
    return [*units, Unit([])]


def _comments(text: str, tokens: Iterable[Token]) -> Iterator[tuple[int, str]]:
    """Where each comment starts, and its text; they stand between tokens."""
    end = 0
    for token in tokens:
        for found in re.finditer(r"#[^\n]*", text[end : token.start]):
            yield end + found.start(), found[0]
        end = token.end


def _attach_comments(text: str, units: list[Unit]) -> None:
    """Give every comment to its unit, and find the blank lines."""
    found = list(_comments(text, tokenize(text)))[::-1]
    end = 0  # of what came last
    before: Unit | None = None
    for unit in units:
        start, stop = len(text), len(text)
        if unit.tokens:
            start, stop = unit.tokens[0].start, unit.tokens[-1].end
        opens = before is None or before.tokens[-1].kind == "{"
        while found and found[-1][0] < start:
            position, comment = found.pop()
            if before is not None and "\n" not in text[before.tokens[-1].end : position]:
                before.trailing = comment.rstrip()
            else:
                blank = _blank(text[end:position]) and not (opens and not unit.leading)
                unit.leading.append(Line(comment.rstrip(), blank))
            end = position + len(comment)
        unit.after_blank = _blank(text[end:start]) and not (opens and not unit.leading)
        inside: list[Line] = []
        while found and found[-1][0] < stop:
            inside.append(
                Line(found.pop()[1].rstrip(), after_blank=not inside and unit.after_blank)
            )
        if inside:
            unit.leading += inside
            unit.after_blank = False
        _separate(unit, before)
        end, before = stop, unit


def _separate(unit: Unit, before: Unit | None) -> None:
    """Have a blank line before every definition but the first."""
    if before is None or not unit.tokens or unit.tokens[0].kind != "def":
        return
    if unit.leading:
        unit.leading[0] = Line(unit.leading[0].text, after_blank=True)
    else:
        unit.after_blank = True


def _blank(gap: str) -> bool:
    """Whether there is a blank line in the space between two things."""
    return gap.count("\n") > 1
