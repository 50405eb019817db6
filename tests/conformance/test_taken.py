"""What ``tcfuse ops`` shows of operators is what ONNX's cases tell of them today."""

from __future__ import annotations

import json

import pytest

from tcfuse.errors import InputError, UnsupportedError
from tests.conformance.compiled import composed_whole
from tests.conformance.node_cases import cases
from tests.conformance.taken import RECORD, operators, own_cases, types_taken

EVERY = 8  # the sample is every eighth operator
RECORDED = json.loads(RECORD.read_text(encoding="utf-8"))["operators"]


def test_every_operator_is_recorded() -> None:
    """``python -m tests.conformance.compiled --all --record`` does it."""
    names = [f"{domain}::{name}" if domain else name for domain, name in operators()]
    assert names == list(RECORDED)


@pytest.mark.parametrize(("domain", "op_type"), operators()[::EVERY])
def test_cases_and_types_are_as_recorded(domain: str, op_type: str) -> None:
    recorded = RECORDED[f"{domain}::{op_type}" if domain else op_type]
    own = own_cases(cases()).get((domain, op_type), [])
    assert len(own) == recorded["cases"]
    assert sum(map(is_inside, own)) == recorded["passed"]
    assert [dtype.tc for dtype in types_taken(own)] == recorded["types"]


def is_inside(case: object) -> bool:
    """Whether a case becomes one definition."""
    try:
        composed_whole(case)
    except (InputError, UnsupportedError):
        return False
    return True
