"""Copies of what contractions read, in the definition and in the tree."""

from collections.abc import Callable

from tcfuse.mapping.accumulators import with_accumulators
from tcfuse.mapping.contraction import contractions
from tcfuse.mapping.contraction_nest import place_contractions
from tcfuse.mapping.lanes import LANES
from tcfuse.mapping.order import order_members
from tcfuse.mapping.packing import Nest, with_copies
from tcfuse.mapping.storage import Memory, place_temporaries
from tcfuse.poly.dependences import compute_dependences
from tcfuse.poly.proof import prove
from tcfuse.poly.scheduling import compute_schedule
from tcfuse.poly.scop import extract_scop
from tcfuse.poly.tree import Domain, Mark, below
from tcfuse.poly.tree_isl import to_yaml
from tcfuse.tc.checked import CheckedDef
from tcfuse.tc.unparse import unparse_statement
from tests.poly.definitions import checked_of, model

Golden = Callable[[object, str], None]
TRANSPOSED = """
def f(float(128, 64) A, float(256, 64) B) -> (float(128, 256) C) {
  C(m, n) +=! A(m, k) * B(n, k)
}
"""
BATCHED = """
def f(float(9, 256, 512) A, float(9, 64, 512) B) -> (float(9, 256, 64) C) {
  C(b, m, n) +=! A(b, m, k) * B(b, n, k)
}
"""


def packed(text: str) -> tuple[CheckedDef, tuple[Nest, ...]]:
    checked = with_accumulators(checked_of(text))
    scop, _ = model(checked)
    return with_copies(checked, contractions(scop))


def test_the_copy_comes_first_and_is_read(golden: Golden):
    checked, _ = packed(TRANSPOSED)
    golden("\n".join(unparse_statement(s.comprehension) for s in checked.statements), "tc")


def test_the_copy_moves_into_the_lanes_loop(golden: Golden):
    checked, nests = packed(BATCHED)
    scop = extract_scop(checked)
    dependences = compute_dependences(scop)
    tree = order_members(scop, compute_schedule(scop, dependences).tree)
    golden(to_yaml(place_contractions(scop, dependences, tree, nests)), "tree")


def placed(text: str, fusion: str = "preserve") -> tuple[Domain, str, Memory]:
    """The tree, what was proved of it, and where the copy of ``B`` lives."""
    checked, nests = packed(text)
    scop = extract_scop(checked)
    dependences = compute_dependences(scop)
    scheduled = compute_schedule(scop, dependences, fusion=fusion)
    tree = place_contractions(scop, dependences, order_members(scop, scheduled.tree), nests)
    proof = prove(scop, dependences, tree)
    memory = place_temporaries(scop, dependences, tree)["B_packed"].memory
    return tree, str(proof), memory


def test_a_copy_inside_the_lanes_takes_one_panel():
    tree, proof, memory = placed(BATCHED)
    assert memory is Memory.ROW
    assert "dependences kept" in proof
    assert LANES in [node.name for node in below(tree) if isinstance(node, Mark)]


def test_a_copy_that_does_not_fit_stays_in_front():
    """With every loop that can be shared shared, there is no band for the reader alone."""
    _, proof, memory = placed(BATCHED, fusion="max")
    assert memory in (Memory.SHARED, Memory.ROW)
    assert "dependences kept" in proof


def test_a_half_is_copied_as_the_number_it_is_computed_with():
    checked, _ = packed(
        TRANSPOSED.replace("float(", "half(").replace("half(128, 256)", "float(128, 256)")
    )
    assert str(checked.tensors["B_packed"]) == "float(64, 256)"
