"""The table of operators, and the page of the documentation that prints it."""

from __future__ import annotations

from pathlib import Path

from tcfuse.commands.ops import page, rows

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_of_operators_is_current():
    """``tcfuse ops --markdown > docs/operators.md`` writes it."""
    assert (DOCS / "operators.md").read_text(encoding="utf-8") == page()


def test_a_row_names_opsets_types_and_cases():
    floats = ["float16", "bfloat16", "float", "double"]
    recorded = {"Softmax": {"types": [*floats, "int8"], "cases": 7, "passed": 6}}
    table = {row[0]: row[1:] for row in rows(recorded)}
    assert table["Softmax"] == ("1-12, 13+", "reduction", "floats, int8", "6/7")
    assert table["Abs"] == ("6+", "elementwise", "", "none")
