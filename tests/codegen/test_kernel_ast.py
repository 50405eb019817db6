from __future__ import annotations

from tcfuse.codegen.kernel_ast import Guard, Instance, Loop, instances, loops
from tcfuse.poly.polynomial import Polynomial

HERE = Polynomial.factor("i")
ZERO, EIGHT = Polynomial(), Polynomial.constant(8)


def test_walks_are_in_order() -> None:
    first, second, third = (Instance(f"S{k}", (HERE,)) for k in range(3))
    inner = Loop("j", ZERO, EIGHT, (second,), lanes=True)
    other = Loop("k", ZERO, EIGHT, (third,))
    outer = Loop("i", ZERO, EIGHT, (first, Guard("i < 3", (inner,), (other,))), parallel=True)
    assert instances((outer,)) == [first, second, third]
    assert loops((outer,)) == [outer, inner, other]
    assert loops((first,)) == []
