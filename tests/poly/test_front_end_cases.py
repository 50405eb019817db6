"""The front end's cases of Tensor Comprehensions: from text to statements, accesses, loops.

Copies of one to five dimensions, reductions, chains of two and three statements, every scalar
type, an input that is written, and the nests of five layers.  The original ran these and looked
at few results; here each has the instances, the dependences and the nest it must have.
"""

from __future__ import annotations

import pytest

from tcfuse.codegen.from_isl import nests
from tcfuse.codegen.kernel_ast import Guard, Instance, Loop
from tcfuse.errors import TcError
from tcfuse.poly import isl
from tcfuse.poly.dependences import compute_dependences
from tcfuse.poly.scheduling import compute_schedule
from tcfuse.poly.scop import Scop, extract_scop
from tcfuse.tc.kernel_form import kernel_form
from tcfuse.tc.parser import parse
from tcfuse.tc.sema import check
from tcfuse.types import DType

NAMES = "ijklm"


def copy_of(rank: int) -> str:
    """A copy of that many dimensions."""
    sizes = ", ".join("NMPQR"[:rank])
    indices = ", ".join(NAMES[:rank])
    return f"def f(float({sizes}) I) -> (O) {{ O({indices}) = I({indices}) }}"


COPIES = {f"copy_{rank}d": copy_of(rank) for rank in range(1, 6)}

# The text, then the loops of each statement, and which statements depend on which.
DOMAINS = {
    **{
        name: (text, {"S0": rank}, set()) for rank, (name, text) in enumerate(COPIES.items(), 1)
    },
    "reduction_1d": (
        "def f(float(N) I) -> (float O) { O() +=! I(i) }",
        {"S0_init": 0, "S0": 1},
        {("S0_init", "S0"), ("S0", "S0")},
    ),
    "reduction_2d": (
        "def f(float(N, M) I) -> (O) { O(i) +=! I(i, j) }",
        {"S0_init": 1, "S0": 2},
        {("S0_init", "S0"), ("S0", "S0")},
    ),
    "reduction_3d": (
        "def f(float(N, M, P) I) -> (O) { O(i) +=! I(i, j, k) }",
        {"S0_init": 1, "S0": 3},
        {("S0_init", "S0"), ("S0", "S0")},
    ),
    "two_statements": (
        "def f(float(N, M) I) -> (O1, O2) { O1(i, j) = I(i, j)\n O2(i, j) = O1(i, j) }",
        {"S0": 2, "S1": 2},
        {("S0", "S1")},
    ),
    "two_independent_statements": (
        "def f(float(N) I) -> (O1, O2) { O1(i) = I(i)\n O2(i) = I(i) + 1 }",
        {"S0": 1, "S1": 1},
        set(),
    ),
    "three_statements": (
        """def f(float(N, M) I) -> (O1, O2, O3) {
            O1(i, j) = I(i, j)
            O2(i, j) = O1(i, j)
            O3(i, j) = O2(i, j) + O1(i, j)
        }""",
        {"S0": 2, "S1": 2, "S2": 2},
        {("S0", "S1"), ("S0", "S2"), ("S1", "S2")},
    ),
    "two_statements_with_a_reduction": (
        "def f(float(N, M) I) -> (O1, O2) { O1(i) +=! I(i, j)\n O2(i) = O1(i) * 2 }",
        {"S0_init": 1, "S0": 2, "S1": 1},
        {("S0_init", "S0"), ("S0", "S0"), ("S0_init", "S1"), ("S0", "S1")},
    ),
    "three_statements_with_reductions": (
        """def f(float(N, M) I) -> (O1, O2, O3) {
            O1(i) +=! I(i, j)
            O2(i) max=! I(i, j)
            O3(i) = O1(i) + O2(i)
        }""",
        {"S0_init": 1, "S0": 2, "S1_init": 1, "S1": 2, "S2": 1},
        {
            *((a, b) for k in (0, 1) for a in (f"S{k}_init", f"S{k}") for b in (f"S{k}", "S2")),
        },
    ),
}

NESTS = {
    "copy": (COPIES["copy_2d"], "for { for { S0 } }"),
    "matmul": (
        "def f(float(N, K) A, float(K, M) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }",
        "for { for { S0_init; for { S0 } } }",
    ),
    "two_matmuls": (
        """def f(float(N, K) A, float(K, M) B, float(M, P) D) -> (C, E) {
            C(i, j) +=! A(i, k) * B(k, j)
            E(i, l) +=! C(i, m) * D(m, l)
        }""",
        "for { for { S0_init; for { S0 } } } for { for { S1_init; for { S1 } } }",
    ),
    "conv": (
        """def f(float(N, C, H, W) I, float(M, C, KH, KW) W1) -> (O) {
            O(n, m, h, w) +=! I(n, c, h + kh, w + kw) * W1(m, c, kh, kw)
        }""",
        "for { for { for { for { S0_init; for { for { for { S0 } } } } } } }",
    ),
    "group_conv": (
        """def f(float(N, G, C, H, W) I, float(G, F, C, KH, KW) W1) -> (O) {
            O(n, g, f, h, w) +=! I(n, g, c, h + kh, w + kw) * W1(g, f, c, kh, kw)
        }""",
        "for { for { for { for { for { S0_init; for { for { for { S0 } } } } } } } }",
    ),
}
WRITTEN_INPUT = "def f(float(N) I) -> (O) { O(i) = I(i)\n I(i) = O(i) }"


def scop_of(text: str) -> Scop:
    """The model of a definition in kernel form."""
    form = kernel_form(check(parse(text), affine=False))
    checked = check(parse(str(form.definition)), sizes=form.interface.sizes)
    return extract_scop(checked, form.interface.facts)


def shape(block: tuple[object, ...]) -> str:
    """Loops and statements without their bounds."""
    parts = []
    for node in block:
        match node:
            case Loop():
                parts.append(f"for {{ {shape(node.body)} }}")
            case Guard():
                parts.append(f"if {{ {shape((*node.then, *node.otherwise))} }}")
            case Instance():
                parts.append(node.statement)
    return "; ".join(parts)


@pytest.mark.parametrize("name", DOMAINS)
def test_instances_and_dependences(name):
    text, depths, pairs = DOMAINS[name]
    scop = scop_of(text)
    assert {s.name: len(s.iterators) for s in scop.statements} == depths
    assert compute_dependences(scop).pairs == pairs
    written = {m.get_tuple_name(isl.dim_type.in_) for m in isl.maps_of(scop.writes)}
    assert written == depths.keys(), "a statement writes nothing"


@pytest.mark.parametrize("dtype", DType, ids=lambda d: d.tc)
def test_scalar_type(dtype):
    text = f"def f({dtype.tc}(N) I) -> (O) {{ O(i) = I(i) }}"
    assert scop_of(text).checked.tensors["O"].dtype is dtype


def test_an_input_is_not_written():
    with pytest.raises(TcError, match="the input 'I' cannot be written"):
        scop_of(WRITTEN_INPUT)


@pytest.mark.parametrize("name", NESTS)
def test_nest(name):
    text, expected = NESTS[name]
    scop = scop_of(text)
    scheduled = compute_schedule(scop, compute_dependences(scop), fusion="min")
    assert " ".join(shape(block) for block in nests(scop, scheduled.tree)) == expected


def test_count(record_property):
    count = len(DOMAINS) + len(DType) + 1 + len(NESTS)
    record_property("7.4", f"7.4: {count} cases")
    assert count == 42
