"""What a member of a band means for one statement."""

from __future__ import annotations

from tcfuse.poly import isl
from tcfuse.poly.scop import Statement
from tcfuse.poly.tree import Band


def iterator_of(band: Band, position: int, statement: Statement) -> str | None:
    """The iterator a member follows for ``statement``; ``None`` if it is not exactly one."""
    found: list[str | None] = []

    def visit(piece: isl.PwAff) -> None:
        if piece.get_domain_space().get_tuple_name(isl.dim_type.set) != statement.name:
            return
        used = [
            name
            for k, name in enumerate(statement.iterators)
            if piece.involves_dims(isl.dim_type.in_, k, 1)
        ]
        found.append(used[0] if len(used) == 1 else None)

    band.schedule.get_union_pw_aff(position).foreach_pw_aff(visit)
    return found[0] if len(found) == 1 else None
