"""Knobs that change nothing are not kept as something that was found."""

from collections.abc import Sequence

import pytest

from tcfuse.cuda_options import CudaOptions
from tcfuse.mapping_options import MappingOptions
from tcfuse.tuning.candidate import Candidate
from tcfuse.tuning.plainest import default_in, plainest


def text(candidate: Candidate) -> str:
    """Depends on ``unroll``, and on whether one of two other knobs is set."""
    knobs = candidate.mapping
    return f"{knobs.unroll} {bool(knobs.tile) or knobs.skewing}"


def sources(candidates: Sequence[Candidate]) -> list[str]:
    return [text(candidate) for candidate in candidates]


@pytest.mark.parametrize(
    ("found", "plain"),
    [
        (MappingOptions(), MappingOptions()),
        (MappingOptions(unroll=4), MappingOptions(unroll=4)),
        (MappingOptions(unroll=4, block=2, hoisting=False), MappingOptions(unroll=4)),
        (MappingOptions(block=2, hoisting=False), MappingOptions()),
        (MappingOptions(tile=(8,), block=2), MappingOptions(tile=(8,))),
    ],
)
def test_what_the_kernel_does_not_depend_on_has_its_default(
    found: MappingOptions, plain: MappingOptions
):
    assert plainest(Candidate(found), text(Candidate(found)), sources) == Candidate(plain)


def test_of_two_knobs_that_say_the_same_one_stays():
    found = Candidate(MappingOptions(unroll=4, skewing=True, tile=(8,), block=2))
    plain = plainest(found, text(found), sources)
    assert text(plain) == text(found)
    assert plain.mapping in (
        MappingOptions(unroll=4, skewing=True),
        MappingOptions(unroll=4, tile=(8,)),
    )


def test_knobs_of_gpus_go_too():
    found = Candidate(MappingOptions(unroll=4), CudaOptions(team=32))
    assert default_in(found, ("cuda", "team")) == Candidate(
        MappingOptions(unroll=4), CudaOptions()
    )
    assert plainest(found, text(found), sources).cuda == CudaOptions()


def test_a_candidate_whose_kernel_nobody_knows_stays():
    found = Candidate(MappingOptions(block=2))
    assert plainest(found, "", lambda some: ["" for _ in some]) == found


def test_what_somebody_chose_stays():
    found = Candidate(MappingOptions(block=2, hoisting=False), CudaOptions(team=32))
    kept = plainest(found, text(found), sources, {"block", "cuda_team"})
    assert kept == Candidate(MappingOptions(block=2), CudaOptions(team=32))
