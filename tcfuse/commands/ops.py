"""``tcfuse ops``: what can be fused, how it stands with ONNX's tests, and the stub of more."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import groupby, pairwise
from typing import Any

from tcfuse import opdef
from tcfuse.commands.progress import print_lines, print_table
from tcfuse.errors import OptionError
from tcfuse.types import DType

STUB = '''\
@onnx_op("{name}", since=1, kind=Kind.ELEMENTWISE)
def {function}(call: OpCall) -> str:
    """``Y = ...``.

    Shapes:
        X, Y: any rank, equal.
    """
    (x,) = call.inputs
    assert x is not None
    point = ", ".join(INDICES[: len(x.shape)])
    return f"""
def {name}({{x}} X) -> (Y) {{
  Y({{point}}) = X({{point}})
}}
"""
'''

HEADER = ("operator", "opsets", "kind", "element types", "cases passed")
_NUMBERS = [d for d in DType if d is not DType.BOOL]
GROUPS: Mapping[str, Sequence[DType]] = {
    "floats": [d for d in _NUMBERS if d.is_float and d.bits > 8],
    "ints": [d for d in _NUMBERS if not d.is_float and d.bits >= 8],
    "small floats": [d for d in _NUMBERS if d.is_float and d.bits <= 8],
    "small ints": [d for d in _NUMBERS if not d.is_float and d.bits < 8],
}
"""Words for element types that mostly come together."""

ABOUT = """\
# Operators

What a kernel can hold; `tcfuse ops` prints the same table. *Opsets* are those that a definition
holds for. *Element types* are those of the first input that it was seen to take.
*Cases passed* are ONNX's own node cases that consist of this operator alone and ran inside one
kernel with the expected answer, of all such cases. Of all {total} cases of onnx {onnx}, also
those of several nodes and those that no kernel can hold, {equal} did. `tcfuse explain` tells
why a node of a model was left to ONNX Runtime.

Groups of element types:

{legend}

"""


def run(new: str | None, *, markdown: bool = False) -> int:
    """Print the table, or a stub; the exit status."""
    if new is not None:
        if not new.isidentifier():
            raise OptionError(f"--new {new!r} is not the name of an operator")
        print_lines(STUB.format(name=new, function=_snake(new)).splitlines())
    elif markdown:
        print_lines(page().splitlines())
    else:
        print_table(HEADER, rows(_recorded()["operators"]))
    return 0


def page() -> str:
    """``docs/operators.md``."""
    recorded = _recorded()
    legend = "\n".join(f"* {k}: {', '.join(d.tc for d in v)}" for k, v in GROUPS.items())
    lines = [_line(HEADER), _line(["---"] * len(HEADER))]
    lines += [_line(row) for row in rows(recorded["operators"])]
    return ABOUT.format(legend=legend, **recorded) + "\n".join(lines) + "\n"


def rows(recorded: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """The cells of every operator.

    Args:
        recorded: By name: the element types seen, the cases there are and those passed.
    """
    by_name = groupby(opdef.registered(), key=lambda d: (d.domain, d.op_type))
    for (domain, op_type), definitions in by_name:
        name = f"{domain}::{op_type}" if domain else op_type
        every = list(definitions)
        known = recorded.get(name, {"types": (), "cases": 0, "passed": 0})
        cases = f"{known['passed']}/{known['cases']}" if known["cases"] else "none"
        yield name, _opsets(every), every[-1].kind.value, _types(known["types"]), cases


def _recorded() -> dict[str, Any]:
    """What ONNX's cases told when they were run last."""
    text = files("op_library").joinpath("conformance.json").read_text(encoding="utf-8")
    recorded: dict[str, Any] = json.loads(text)
    return recorded


def _opsets(definitions: Sequence[opdef.OpDef]) -> str:
    """``1-12, 13+``: which opsets each definition holds for."""
    first = [d.since for d in definitions]
    ranges = [f"{a}-{b - 1}" if b - 1 > a else str(a) for a, b in pairwise(first)]
    return ", ".join([*ranges, f"{first[-1]}+"])


def _types(names: Iterable[str]) -> str:
    """Element types, with a word for groups that are complete."""
    left = list(names)
    words = []
    for word, group in GROUPS.items():
        if all(d.tc in left for d in group):
            words.append(word)
            left = [name for name in left if name not in {d.tc for d in group}]
    return ", ".join([*words, *left])


def _line(cells: Sequence[str]) -> str:
    """One line of a table in Markdown."""
    return f"| {' | '.join(cells)} |"


def _snake(name: str) -> str:
    """``LeakyRelu`` as ``leaky_relu``."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")
