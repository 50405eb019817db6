"""The tokens of one statement, or of the head of a definition, as lines of text.

Literals, names and brackets come out as they were written; only the space between them is new.
What is short enough has the spaces of ``tc.unparse``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tcfuse.tc.expression_parser import PRECEDENCE
from tcfuse.tc.lexer import Token
from tcfuse.tc.unparse import WIDTH

_OPERAND_ENDS = frozenset(("name", "number", "true", "false", ")"))
_BINDS = {**PRECEDENCE, "?": 1, ":": 1, "->": 0, "<=>": 0}
_INDENT = "    "
_WHERE = "  where "
_DEEPEST_COLUMN = 40  # lists that start further to the right go on like expressions
_DEEPEST = 20  # brackets beyond are broken like this one
_CALLED = frozenset(("name", "type", "min", "max"))


@dataclass(frozen=True, slots=True)
class Word:
    """A token and what comes before it.

    Attributes:
        spaced: Whether a space does, when it is not the first of its line.
        level: Where a line may end before it, how tightly what it joins is bound: lines end
            where the level is low.  ``None`` where no line may end.
    """

    token: Token
    spaced: bool
    level: int | None


def lay_out(tokens: Sequence[Token], indent: int) -> list[str]:
    """The lines of a unit that starts in column ``indent``, without that indentation."""
    words = _words(tokens)
    width = WIDTH - indent
    line = _join(words)
    if len(line) <= width:
        return [line]
    if tokens[0].kind == "def":
        column = line.index("(") + 1
        return _fill(words, width, " " * column if column <= _DEEPEST_COLUMN else _INDENT)
    head, *clauses = _clauses(words)
    lines = _fill(head, width, _INDENT)
    for position, clause in enumerate(_together(clauses, width - len(_WHERE))):
        filled = _fill(clause, width - len(_WHERE) - 1, _INDENT)
        starts = [
            _WHERE if position == 0 else " " * len(_WHERE),
            *[" " * len(_WHERE)] * len(filled),
        ]
        if position:
            lines[-1] += ","
        lines += [start + part for start, part in zip(starts, filled, strict=False)]
    return lines


def _together(clauses: Sequence[Sequence[Word]], width: int) -> list[Sequence[Word]]:
    """All clauses as one when they fit on a line."""
    commas = [[Word(Token(",", ",", 0), False, None), *clause] for clause in clauses[1:]]
    joined = [*clauses[0], *(word for clause in commas for word in clause)] if clauses else []
    return [joined] if clauses and len(_join(joined)) <= width else list(clauses)


def _words(tokens: Sequence[Token]) -> list[Word]:
    """The tokens and the space between them."""
    found: list[Word] = []
    questions = [0]  # those still open, for each bracket
    before = Token("", "", 0)
    tight = True  # whether the token before wants no space after it
    for token in tokens:
        kind = token.kind
        unary = kind == "!" or (kind == "-" and before.kind not in _OPERAND_ENDS)
        bound = kind == ":" and not questions[-1]
        if kind in ("(", ")"):
            questions = [*questions, 0] if kind == "(" else questions[:-1]
        elif kind in ("?", ":") and not bound:
            questions[-1] += 1 if kind == "?" else -1
        # 2*h may be written so: it is one term.
        factor = kind == "*" and before.kind == "number" and before.end == token.start
        attached = kind in (",", ")") or bound or (kind == "(" and before.kind in _CALLED)
        binds = None if unary or bound else _BINDS.get(kind)
        if before.kind == ",":
            binds = 0
        depth = min(len(questions), _DEEPEST)
        level = None if binds is None else 10 * depth + binds
        found.append(Word(token, not (tight or attached or factor), None if factor else level))
        tight = unary or bound or kind == "(" or factor
        before = token
    return found


def _clauses(words: Sequence[Word]) -> list[list[Word]]:
    """The part before ``where``, then each clause without its comma."""
    found: list[list[Word]] = [[]]
    depth = 0
    for word in words:
        kind = word.token.kind
        depth += (kind == "(") - (kind == ")")
        if kind == "," and not depth and len(found) > 1:
            found.append([])
            continue
        if kind == "where":
            found.append([])
            continue
        found[-1].append(word)
    return found


def _fill(words: Sequence[Word], width: int, indent: str) -> list[str]:
    """As many words on each line as fit, all lines but the first indented."""
    lines = [""]
    for chunk in _chunks(words, width - len(indent)):
        text = _join(chunk)
        space = " " if chunk[0].spaced and lines[-1].strip() else ""
        if lines[-1].strip() and len(lines[-1]) + len(space) + len(text) > width:
            lines.append(_INDENT if chunk[0].token.kind == "->" else indent)
            space = ""
        lines[-1] += space + text
    return lines


def _chunks(words: Sequence[Word], width: int) -> Iterator[Sequence[Word]]:
    """Parts to keep on one line: whole operands where they fit, else what they consist of."""
    levels = [word.level for word in words[1:] if word.level is not None]
    if not levels or len(_join(words)) <= width:
        yield words
        return
    start = 0
    for end in range(1, len(words) + 1):
        if end == len(words) or words[end].level == min(levels):
            yield from _chunks(words[start:end], width)
            start = end


def _join(words: Sequence[Word]) -> str:
    """The words on one line."""
    parts = (f"{' ' * (w.spaced and k > 0)}{w.token.text}" for k, w in enumerate(words))
    return "".join(parts)
