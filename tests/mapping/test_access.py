from __future__ import annotations

from tcfuse.mapping.access import touches
from tests.poly.definitions import GATHER, PAD, SOFTMAX_OUTER, model


def offsets(text: str, statement: str) -> dict[str, str]:
    scop, _ = model(text)
    found = touches(scop, scop.statement(statement))
    return {f"{'write' if t.is_write else 'read'} {t.tensor}": str(t.offset) for t in found}


def test_offsets_are_row_major() -> None:
    assert offsets(SOFTMAX_OUTER, "S1") == {
        "write E": "6400 * i + 100 * j + k",
        "read X": "6400 * i + 100 * j + k",
        "read M": "100 * i + k",
    }
    assert offsets(PAD, "S0") == {"write Y": "12 * i + j", "read X": "9 * i + j - 2"}


def test_what_depends_on_data_names_its_iterators() -> None:
    scop, _ = model(GATHER)
    (x,) = [t for t in touches(scop, scop.statement("S0")) if t.tensor == "X"]
    assert str(x.offset) == "64 * data(i) + j"
    assert x.offset.stride("i") is None
    assert str(x.offset.stride("j")) == "1"


def test_lets_are_seen_through() -> None:
    scop, _ = model("""def f(float(n0, 64) X, int64(n1) I) -> (float(n1, 64) Y) {
      Y(i, j) = X(p, j) where i in 0:n1, j in 0:64, q = I(i), p = q + 1
    }""")
    (x,) = [t for t in touches(scop, scop.statement("S0")) if t.tensor == "X"]
    assert str(x.offset) == "64 * data(i) + j"
    assert x.offset.mentions("i")


def test_an_initialisation_touches_its_target_only() -> None:
    assert offsets(SOFTMAX_OUTER, "S0_init") == {"write M": "100 * i + k"}
