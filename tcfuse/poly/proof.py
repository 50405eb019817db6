"""The proof every kernel comes with; without it none is emitted.

Claims, checked with isl for all sizes at once:

* every access that is not checked at run time lies inside its tensor;
* every element of every returned tensor is written, and no temporary's is read before;
* the final tree runs every instance once and respects every dependence (the order of a
  reduction's updates excepted, where lanes run them);
* no dependence is carried by a loop whose iterations run side by side;
* no temporary is stored in less than what lives of it at one time.

Source: "The Next 700 Accelerated Layers", section 4.2 (validity); Verdoolaege, "isl: An Integer
Set Library for the Polyhedral Model", ICMS 2010.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tcfuse.errors import UnsupportedError
from tcfuse.poly import isl
from tcfuse.poly.bounds import check_bounds
from tcfuse.poly.cells import Cells, check_cells
from tcfuse.poly.defined import check_defined
from tcfuse.poly.dependences import Dependences
from tcfuse.poly.respects import check_order
from tcfuse.poly.scop import Scop
from tcfuse.poly.tree import Domain


@dataclass(frozen=True, slots=True)
class Proof:
    """What was shown of a kernel.

    Attributes:
        accesses: Accesses shown to stay inside their tensors.
        checked_at_run_time: Accesses that depend on data or on a guard.
        outputs: Returned tensors shown to be written whole.
        dependences: Pairs of statements whose order was shown to be kept.
        parallel_loops: Loops shown to carry no dependence.
        temporaries: Contracted temporaries whose values were shown never to share a cell.
        notes: Simplifications that were made on the way.
    """

    accesses: int
    checked_at_run_time: int
    outputs: tuple[str, ...]
    dependences: int
    parallel_loops: int
    temporaries: int = 0
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        notes = "".join(f"; {note}" for note in self.notes)
        cells = f"; {self.temporaries} contracted temporaries fit" if self.temporaries else ""
        return (
            f"{self.accesses} accesses inside their tensors, "
            f"{self.checked_at_run_time} checked at run time; "
            f"{', '.join(self.outputs)} written whole; {self.dependences} dependences kept; "
            f"{self.parallel_loops} parallel loops carry none{cells}{notes}"
        )


def prove(
    scop: Scop,
    dependences: Dependences,
    tree: Domain,
    *,
    reassociate: bool = True,
    cells: Mapping[str, Cells] | None = None,
) -> Proof:
    """The proof for ``tree``, a mapped schedule of ``scop``.

    Args:
        scop: What is computed.
        dependences: What must be respected.
        tree: The tree with its marks.
        reassociate: Whether the updates of a reduction may run in another order.
        cells: The storage of the temporaries that are not stored whole.

    Raises:
        UnsupportedError: A claim does not hold; the sentence names it.
    """
    proved, at_run_time = check_bounds(scop)
    _check_coverage(scop)
    check_defined(scop)
    loops = check_order(scop, dependences, tree, reassociate=reassociate)
    fitting = check_cells(scop, dependences, tree, cells or {})
    kept = len(isl.maps_of(dependences.all))
    return Proof(proved, at_run_time, scop.checked.outputs, kept, loops, fitting)


def _check_coverage(scop: Scop) -> None:
    written = scop.writes.intersect_domain(scop.domain).range()
    head = f"[{', '.join(scop.checked.sizes)}] -> "
    for name in scop.checked.outputs:
        shape = scop.checked.tensors[name].shape
        names = [f"i{k}" for k in range(len(shape))]
        inside = " and ".join(f"0 <= {n} < {s}" for n, s in zip(names, shape, strict=True))
        element = f"T_{name}[{', '.join(names)}]"
        text = f"{head}{{ {element} : {inside or '1 = 1'} }}"
        missing = isl.union_set(scop.context, text).subtract(written)
        missing = missing.intersect_params(scop.parameters)
        if not missing.is_empty():
            raise UnsupportedError(f"not every element of {name} is written")
