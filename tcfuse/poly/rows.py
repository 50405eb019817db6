"""What a member of a band means for one statement."""

from __future__ import annotations

from collections.abc import Iterator

from tcfuse.poly import isl
from tcfuse.poly.scop import Statement
from tcfuse.poly.tree import Band, Tree, below


def iterator_of(band: Band, position: int, statement: Statement) -> str | None:
    """The iterator a member follows for ``statement``; ``None`` if it is not exactly one."""
    found: list[str | None] = []
    for piece in isl.pieces_of(band.schedule.get_union_pw_aff(position)):
        if piece.get_domain_space().get_tuple_name(isl.dim_type.set) != statement.name:
            continue
        affs = [aff for _, aff in piece.get_pieces()]
        used = _coefficients(affs[0]) if len(affs) == 1 else {}
        plain = list(used.values()) in ([1], [-1]) and not _has_floor(affs[0])
        found.append(statement.iterators[next(iter(used))] if plain else None)
    return found[0] if len(found) == 1 else None


def determines(band: Band, statement: Statement, iterator: str) -> bool:
    """Whether an iteration of ``band`` leaves less than all values of an iterator."""
    position = statement.iterators.index(iterator)
    return any(
        piece.involves_dims(isl.dim_type.in_, position, 1)
        for k in range(band.depth)
        for piece in isl.pieces_of(band.schedule.get_union_pw_aff(k))
        if piece.get_domain_space().get_tuple_name(isl.dim_type.set) == statement.name
    )


def follows_sums(tree: Tree) -> bool:
    """Whether some loop follows several iterators of a statement at once."""
    return any(len(c) > 1 for band in _bands(tree) for row in _rows(band) for c in row)


def runs_backwards(tree: Tree) -> bool:
    """Whether some loop runs against an iterator that it follows."""
    return any(_is_negative(row) for band in _bands(tree) for row in _rows(band))


def is_backward(band: Band, position: int) -> bool:
    """Whether every iterator that a member follows is followed against its direction."""
    row = [c for c in _rows(band)[position] if c]
    return bool(row) and all(value < 0 for c in row for value in c.values())


def _is_negative(row: list[dict[int, int]]) -> bool:
    return any(value < 0 for c in row for value in c.values())


def _bands(tree: Tree) -> Iterator[Band]:
    return (node for node in below(tree) if isinstance(node, Band))


def _rows(band: Band) -> list[list[dict[int, int]]]:
    """For each member and each of its expressions, the coefficients that are not zero."""
    return [
        [
            _coefficients(aff)
            for piece in isl.pieces_of(band.schedule.get_union_pw_aff(k))
            for _, aff in piece.get_pieces()
        ]
        for k in range(band.depth)
    ]


def _coefficients(aff: isl.Aff) -> dict[int, int]:
    """The coefficients of the iterators, by position, that are not zero."""
    total = {
        k: int(aff.get_coefficient_val(isl.dim_type.in_, k).to_python())
        for k in range(aff.dim(isl.dim_type.in_))
    }
    return {k: value for k, value in total.items() if value}


def _has_floor(aff: isl.Aff) -> bool:
    return any(
        not aff.get_coefficient_val(isl.dim_type.div, k).is_zero()
        for k in range(aff.dim(isl.dim_type.div))
    )
