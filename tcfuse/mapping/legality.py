"""Which loops may run their iterations side by side, asked of isl."""

from __future__ import annotations

from collections.abc import Sequence

from tcfuse.poly import isl


def among(relation: isl.UnionMap, domain: isl.UnionSet) -> isl.UnionMap:
    """The pairs both of whose instances lie in ``domain``."""
    return relation.intersect_domain(domain).intersect_range(domain)


def inside(relation: isl.UnionMap, outer: Sequence[isl.MultiUnionPwAff]) -> isl.UnionMap:
    """The pairs that fall into one iteration of every loop of ``outer``."""
    for schedule in outer:
        relation = relation.eq_at_multi_union_pw_aff(schedule)
    return relation


def carries_nothing(relation: isl.UnionMap, schedule: isl.MultiUnionPwAff) -> bool:
    """Whether both instances of every pair get the same value of ``schedule``."""
    if relation.is_empty():
        return True
    return bool(relation.subtract(relation.eq_at_multi_union_pw_aff(schedule)).is_empty())
