"""Pieces of generated C: expressions that never trap, arrays, literals, names in scope."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from tcfuse.types import Size


def guarded(expression: Size) -> str:
    """A C expression that divides by one instead of zero, so that no empty dimension traps."""
    text = str(expression)
    pieces: list[str] = []
    done = 0
    for match in re.finditer(r"[/%]\s*", text):
        if match.start() < done:  # inside a divisor, which is guarded as a whole
            continue
        end = _operand_end(text, match.end())
        divisor = guarded(text[match.end() : end])
        known = divisor.isdigit() and int(divisor) != 0
        pieces += [text[done : match.end()], divisor if known else f"tcf_nonzero({divisor})"]
        done = end
    return "".join((*pieces, text[done:]))


def _operand_end(text: str, start: int) -> int:
    """Where the name, number, call or parenthesis at ``start`` ends."""
    name = re.compile(r"[-+]?\w*").match(text, start)
    end = start if name is None else name.end()
    depth = 0
    for place in range(end, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return place + 1 if text[place] == ")" else end
    return end


def declare(names: Sequence[str], used: Iterable[str]) -> Iterator[str]:
    """Lines that bring the sizes that are used into scope under their names."""
    for name in used:
        if name in names:  # else it is a function
            yield f"  const int64_t {name} = tcf_sizes[{names.index(name)}];"


def array(declaration: str, values: Iterable[str]) -> str:
    """A static array; C has no empty ones."""
    return f"static {declaration} = {{{', '.join(values) or '0'}}};"


def quote(text: str) -> str:
    """A C string literal."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'"{escaped}"'
