"""Equal definitions have equal texts, whatever their names are."""

from __future__ import annotations

import pytest

from tcfuse.tc.ast import AssignKind
from tcfuse.tc.canonical import canonical
from tcfuse.tc.parser import parse
from tcfuse.tc.sema import check

MATMUL = """
def matmul(float(M, K) A, float(K, N) B) -> (C) {
  C(m, n) +=! A(m, k) * B(k, n)
}
"""
SAME = {
    "definition": MATMUL.replace("matmul", "mm"),
    "tensors": MATMUL.replace("A", "Left").replace("B", "Right").replace("C", "Out"),
    "indices": MATMUL.replace("m,", "row,").replace("k", "r").replace(" n)", " col)"),
    "sizes": MATMUL.replace("M", "H").replace("K", "L").replace("N", "W"),
    "space": MATMUL.replace("\n", " ").replace(", ", ","),
    "brackets": MATMUL.replace("A(m, k) * B(k, n)", "(A((m), k) * (B(k, n)))"),
    "equivalent": MATMUL.replace("B(k, n)", "B(k, n) <=> gemm(A, B)"),
}
OTHER = {
    "transposed": MATMUL.replace("C(m, n)", "C(n, m)"),
    "operator": MATMUL.replace("+=!", "max=!"),
    "type": MATMUL.replace("float(M", "double(M"),
    "square": MATMUL.replace("N", "K"),
    "reads": MATMUL.replace("B(k, n)", "A(k, n)"),
    "literal": MATMUL.replace("B(k, n)", "B(k, n) * 1"),
}


@pytest.mark.parametrize("name", SAME)
def test_names_and_space_do_not_matter(name: str) -> None:
    assert parse(SAME[name]).name
    assert canonical(parse(SAME[name])) == canonical(parse(MATMUL))


@pytest.mark.parametrize("name", OTHER)
def test_what_is_different_stays_different(name: str) -> None:
    assert canonical(parse(OTHER[name])) != canonical(parse(MATMUL))


def test_matmul(golden) -> None:
    golden(canonical(check(parse(MATMUL))), "tc")


def test_every_clause(golden) -> None:
    text = """
    def g(float(N, 2*K + 1) X, int32(N) I) -> (Y, float16(N) Z) {
      T(i) max=! X(I(i), j) where j in 0:K, t = i + 1, exists X(i, j)
      Y(j) = t * T(j) + u / K where u = t * N, t = j, j in 1:P
      Z(k) = T(k)
    }
    """
    golden(canonical(parse(text)), "tc")


def test_statements_have_their_own_indices() -> None:
    body = "Y(i) = X(i) Z({0}) = Y({0})"
    texts = [f"def f(float(N) X) -> (Y, Z) {{ {body.format(name)} }}" for name in "ij"]
    assert canonical(parse(texts[0])) == canonical(parse(texts[1]))


def test_canonical_text_is_its_own_canonical_text() -> None:
    assert canonical(parse(canonical(parse(MATMUL)))) == canonical(parse(MATMUL))


def test_checked_and_parsed_definitions_agree() -> None:
    assert canonical(check(parse(MATMUL))) == canonical(parse(MATMUL))


@pytest.mark.parametrize("kind", AssignKind)
def test_every_assignment_survives(kind: AssignKind) -> None:
    text = f"def f(float(N) X) -> (float(N) Y) {{ Y(i) {kind.value} X(i) }}"
    assert f" {kind.value} " in canonical(parse(text))
