"""Transposes get their lanes outside the loop along which memory is contiguous."""

from tcfuse.mapping.access import touches
from tcfuse.mapping.lanes import choose_lanes
from tcfuse.mapping.order import order_members
from tcfuse.mapping.tiling import TILE, tile_transposes
from tcfuse.poly.dependences import compute_dependences
from tcfuse.poly.scheduling import compute_schedule
from tcfuse.poly.scop import extract_scop
from tcfuse.poly.tree import Band, Mark, below
from tcfuse.poly.tree_isl import to_yaml
from tcfuse.tc.parser import parse
from tcfuse.tc.sema import check

TRANSPOSE = """
def f(float(8, 512, 256) X, float(512) B) -> (float(8, 256, 512) Y) {
  Y(i, j, k) = X(i, k, j) + B(k) where i in 0:8, j in 0:256, k in 0:512
}
"""


def mapped(text):
    scop = extract_scop(check(parse(text)))
    dependences = compute_dependences(scop)
    tree = order_members(scop, compute_schedule(scop, dependences).tree)
    return scop, tile_transposes(scop, choose_lanes(scop, dependences, tree))


def test_lanes_write_contiguously_and_the_other_loop_is_inside_and_tiled():
    scop, tree = mapped(TRANSPOSE)
    (lanes,) = [n.child for n in below(tree) if isinstance(n, Mark)]
    assert isinstance(lanes, Band)
    assert isinstance(lanes.child, Band)
    assert "(k)" in str(lanes.schedule)
    assert "(j)" in str(lanes.child.schedule)
    assert f"floor((j)/{TILE})" in to_yaml(tree)
    write = next(t for t in touches(scop, scop.statements[0]) if t.is_write)
    stride = write.offset.stride("k")
    assert stride is not None
    assert stride.number == 1


def test_a_copy_in_order_is_left_alone():
    text = TRANSPOSE.replace("X(i, k, j)", "X(i, j, k)").replace(
        "float(8, 512, 256) X", "float(8, 256, 512) X"
    )
    _, tree = mapped(text)
    assert "floor" not in to_yaml(tree)


def test_statements_that_stride_alike_are_turned_together():
    text = """def f(float(16, 784) X) -> (float(784, 32) Y) {
      Y(j, k) = X(k, j) where j in 0:784, k in 0:16
      Y(j, k) = 0.0 where j in 0:784, k in 16:32
    }"""
    _, tree = mapped(text)
    assert f"floor((k)/{TILE})" in to_yaml(tree)
