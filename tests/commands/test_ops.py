"""The table of operators."""

from __future__ import annotations

from tcfuse.commands.ops import rows


def test_a_row_names_opsets_types_and_cases():
    floats = ["float16", "bfloat16", "float", "double"]
    recorded = {"Softmax": {"types": [*floats, "int8"], "cases": 7, "passed": 6}}
    table = {row[0]: row[1:] for row in rows(recorded)}
    assert table["Softmax"] == ("1-12, 13+", "reduction", "floats int8", "6/7")
    assert table["Abs"] == ("6+", "elementwise", "", "none")
