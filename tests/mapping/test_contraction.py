"""Which loop of a contraction gets lanes, which gets rows, and what is packed."""

import pytest

from tcfuse.mapping.contraction import contractions
from tests.poly.definitions import checked_of, model

PRODUCT = (
    "def f(float({M}, {K}) A, float({K}, {N}) B) -> (C) {{ C(m, n) +=! A(m, k) * B(k, n) }}"
)
TRANSPOSED = (
    "def f(float({M}, {K}) A, float({N}, {K}) B) -> (C) {{ C(m, n) +=! A(m, k) * B(n, k) }}"
)
CHANNELS = """
def f(float({N}, {L}, 8, 28, 28) I, float({N}, 8, 2, 28, 28) J) -> (O) {{
  O(n, a, b, h, w) +=! I(n, a, c, h, w) * J(n, c, b, h, w)
}}
"""
CONVOLUTION = """
def f(float(8, {C}, {H}, {H}) I, float({F}, {C}, 3, 3) W) -> (O) {{
  O(n, f, h, w) +=! I(n, c, h + kh, w + kw) * W(f, c, kh, kw)
}}
"""


def chosen(text: str, **sizes: object) -> tuple[str, str, tuple[str, ...]] | None:
    """Lanes, rows and packed tensors of the only update."""
    scop, _ = model(checked_of(text.format(**sizes)))
    found = list(contractions(scop).values())
    if not found:
        return None
    (one,) = found
    return one.lanes, one.rows, tuple(a.tensor for a in one.packed)


@pytest.mark.parametrize(
    ("text", "sizes", "expected"),
    [
        (PRODUCT, {"M": 26, "K": 72, "N": 26}, ("n", "m", ())),
        (PRODUCT, {"M": 512, "K": 512, "N": 512}, ("n", "m", ("B",))),
        (PRODUCT, {"M": 128, "K": 64, "N": 66}, ("n", "m", ("B",))),
        (PRODUCT, {"M": 128, "K": 64, "N": 128}, ("n", "m", ("B",))),
        (PRODUCT, {"M": 32, "K": 64, "N": 4000}, ("n", "m", ())),
        (CHANNELS, {"N": 32, "L": 512}, ("w", "b", ())),
        (CHANNELS, {"N": 1, "L": 16}, ("w", "a", ())),
        (TRANSPOSED, {"M": 1024, "K": 256, "N": 128}, ("n", "m", ("B",))),
        (TRANSPOSED, {"M": 128, "K": 1024, "N": 1024}, ("m", "n", ("A",))),
        (TRANSPOSED, {"M": "M", "K": "K", "N": "N"}, ("n", "m", ("B",))),
        (CONVOLUTION, {"C": 4, "F": 4, "H": 56}, ("w", "f", ())),
        (CONVOLUTION, {"C": 32, "F": 32, "H": 7}, ("f", "n", ("W",))),
    ],
    ids=[
        "small",
        "far rows",
        "vectors across lines",
        "few sets of the cache",
        "rows apart",
        "read from memory once",
        "read from caches",
        "transposed",
        "less to copy",
        "symbolic",
        "wide images",
        "many channels",
    ],
)
def test_the_loops_with_the_fewest_cycles_are_chosen(text, sizes, expected):
    assert chosen(text, **sizes) == expected


def test_other_ways_follow_by_rank():
    """Each is another one, the last stands for all beyond, and cycles never fall."""
    scop, _ = model(checked_of(CONVOLUTION.format(C=16, F=16, H=14)))
    (update,) = contractions(scop)
    ways = [contractions(scop, rank=rank)[update] for rank in range(64)]
    last = ways.index(ways[-1])
    assert len(set(ways[: last + 1])) == last + 1 > 3
    assert ways[last:] == [ways[-1]] * (64 - last)
    assert [w.cycles for w in ways[1:]] == sorted(w.cycles for w in ways[1:])


@pytest.mark.parametrize(
    "text",
    [
        "def f(float(M, K) A) -> (C) {{ C(m) +=! A(m, k) }}",
        "def f(float(M, K) A, float(K) B) -> (C) {{ C(m) +=! A(m, k) * B(k) }}",
        "def f(float(M, N, K) A) -> (C) {{ C(m, n) max=! A(m, n, k) }}",
        "def f(float(E, D) T, int32(B, L) I) -> (C) {{ C(b, d) +=! T(I(b, l), d) }}",
    ],
    ids=["sum", "matrix by vector", "maximum", "lookup"],
)
def test_where_nothing_is_shared_there_is_no_contraction(text: str):
    assert chosen(text) is None


def test_what_the_definition_computes_itself_is_not_packed():
    text = """
def f(float(512, 512) A, float(512, 512) B) -> (C) {{
  T(k, n) = B(n, k) + 1
  C(m, n) +=! A(m, k) * T(k, n)
}}
"""
    found = chosen(text)
    assert found is None or "T" not in found[2]
