"""``docs/language.md``: its definitions are right, and its tables are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tcfuse.tc.builtins import BUILTINS
from tcfuse.tc.examine import examine
from tcfuse.tc.format import format_text
from tcfuse.tc.lexer import ASSIGNMENTS, KEYWORDS, TYPES, tokenize
from tcfuse.tc.parser import parse
from tcfuse.tc.sema import check
from tcfuse.tc.unparse import unparse_expr

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "language.md"
TEXT = PAGE.read_text(encoding="utf-8")
FENCED = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
BLOCKS = [block for kind, block in FENCED if not kind]
FILES = sorted((*ROOT.glob("op_library/**/*.tc"), *ROOT.glob("docs/**/*.tc")))
MARKS = ("<!-- functions -->\n", "<!-- end -->")
NAMES = {1: "x", 2: "x, y", 3: "x, y, z", 4: "x, y, z, t"}


def functions() -> str:
    """The table of built-in functions."""
    kinds = {
        "of a number": lambda b: not (b.keeps_type or b.result or b.integer or b.bits),
        "with the type of the argument": lambda b: b.keeps_type and not b.integer,
        "of integers, with their type": lambda b: b.integer,
        "that is a `bool`": lambda b: b.result is not None,
        "of as many bits, as that type": lambda b: b.bits is not None,
    }
    lines = ["| arguments | functions |", "| --- | --- |", "| none | `inf()` `nan()` |"]
    for arity, names in NAMES.items():
        for what, belongs in kinds.items():
            found = [n for n, b in BUILTINS.items() if b.arity == arity and belongs(b)]
            if found:
                listed = " ".join(f"`{name}`" for name in sorted(found))
                lines.append(f"| `({names})` {what} | {listed} |")
    return "\n".join([*lines, ""])


def test_the_table_of_functions(request: pytest.FixtureRequest) -> None:
    before, _, rest = TEXT.partition(MARKS[0])
    table, _, after = rest.partition(MARKS[1])
    if request.config.getoption("--update-golden"):
        PAGE.write_text("".join((before, MARKS[0], functions(), MARKS[1], after)), "utf-8")
        table = functions()
    assert table == functions()


def test_there_are_definitions() -> None:
    assert len(BLOCKS) == 7
    assert FILES


@pytest.mark.parametrize("block", BLOCKS)
def test_a_definition_in_the_reference_is_right(block: str) -> None:
    findings = [str(f) for f in examine(block) if f.severity != "note"]
    allowed = 1 if "accumulate" in block else 0  # an update in place, of which it speaks
    assert len(findings) == allowed, findings
    assert format_text(block) == block


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_of_definitions_is_right_and_laid_out(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    findings = [f for f in examine(text, path.name) if f.severity != "note"]
    in_place = [f for f in findings if f.code == "TC19"]
    assert findings == in_place
    assert format_text(text, path.name) == text


def test_the_words_are_those_of_the_lexer() -> None:
    rows = dict(
        re.findall(r"^\| (keyword|operator|assignment) \| (.*) \|$", TEXT, re.MULTILINE)
    )
    listed = {
        kind: {
            t.kind for t in tokenize(" ".join(re.findall(r"`(.*?)`", row)).replace("\\", ""))
        }
        for kind, row in rows.items()
    }
    assert listed["keyword"] - {"end"} == KEYWORDS
    assert listed["assignment"] - {"end"} == ASSIGNMENTS
    assert not listed["operator"] & {"unknown", "name"}
    assert all(f"`{name}`" in TEXT for name in TYPES if not name.startswith(("int", "uint")))


def test_the_table_of_ranges() -> None:
    rows = re.findall(r"^\| `(X\(.*?)` \| `(.*?):(.*?)`", TEXT, re.MULTILINE)
    assert len(rows) == 7
    for value, low, high in rows:
        assign = "+=!" if "W" in value else "="
        text = f"def f(float(N) X, float(M) Z, float(K) W) -> (Y) {{ Y(i) {assign} {value} }}"
        found = check(parse(text), affine=False).statements[0].ranges[0]
        assert (unparse_expr(found.low), unparse_expr(found.high)) == (low, high)
