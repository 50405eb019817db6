"""Random definitions: text, ranges and values, against plain loops.

A hundred by default; ``--hypothesis-profile nightly`` takes two thousand.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tcfuse.errors import TcError
from tcfuse.tc.binding import number, size_value
from tcfuse.tc.canonical import canonical
from tcfuse.tc.checked import CheckedDef
from tcfuse.tc.evaluate import evaluate
from tcfuse.tc.examine import examine
from tcfuse.tc.format import format_text
from tcfuse.tc.parser import parse, parse_expr
from tcfuse.tc.sema import check
from tcfuse.tc.unparse import unparse
from tests.tc.grammar import definitions
from tests.tc.loops import run

# What a random definition may be refused for; all else is a mistake of the grammar or of ours.
REFUSED = {"TC17", "TC26", "TC27", "TC28", "TC29", "TC30", "TC43", "TC45", "TC47"}
random = settings(
    deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
)


def accepted(text: str) -> CheckedDef:
    """The definition, checked; others are drawn when it is refused."""
    errors = {f.code for f in examine(text) if f.severity == "error"}
    assert errors <= REFUSED
    if errors:
        with pytest.raises(TcError) as error:
            check(parse(text), affine=False)
        assert error.value.code in errors
    assume(not errors)
    return check(parse(text), affine=False)


@random
@given(definitions())
def test_text(text: str) -> None:
    definition = parse(text)
    assert parse(unparse(definition)) == definition
    once = format_text(text)
    assert parse(once) == definition
    assert format_text(once) == once
    assert canonical(definition) == canonical(parse(once))


@random
@given(definitions(), st.integers(0, 5), st.integers(0, 5), st.integers(0, 1 << 30))
def test_ranges_and_values(text: str, n: int, m: int, seed: int) -> None:
    """No read of any point leaves its tensor, and every element is what loops make of it."""
    checked = accepted(text)
    sizes = {"N": n, "M": m}
    rng = np.random.default_rng(seed)
    arrays = {
        "A": rng.normal(size=(n, m)),
        "B": rng.normal(size=n),
        "I": rng.integers(0, max(n, 1), m).astype(np.int32),
        "S": rng.normal(size=()),
    }
    found, code = None, ""
    try:
        found = evaluate(checked, arrays)
    except TcError as error:
        code = error.code
    holds = all(number(condition, sizes) for condition in checked.preconditions)
    assert (code == "TC30") == (not holds)
    assert code in ("", "TC30", "TC45", "TC47")
    assume(found is not None)
    assert found is not None
    bounds, ranges = {}, []
    for name in checked.outputs:
        shape = [size_value(size, sizes) for size in checked.tensors[name].shape]
        zeros = (parse_expr("0"),) * len(shape)
        lows = [number(low, sizes) for low in checked.origins.get(name, zeros)]
        bounds[name] = tuple(zip(lows, shape, strict=True))
    for statement in checked.statements:
        ends = ((r.name, number(r.low, sizes), number(r.high, sizes)) for r in statement.ranges)
        ranges.append({v: (low, high) for v, low, high in ends})
    expected = run(checked.definition, arrays, sizes, bounds, {}, ranges)
    for name in checked.outputs:
        assert found[name].shape == tuple(extent for _, extent in bounds[name])
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-9, atol=1e-12)
