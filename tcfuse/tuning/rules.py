"""What may not be chosen together: the one place where combinations of knobs are forbidden.

Every combination is legal code: what a kernel cannot have is left out, and proved.  The rules
keep the search from candidates that are known to be of no use, and from those that a device
would refuse.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log, prod

from tcfuse.tuning.candidate import Candidate

ROW_BYTES = 512  # of 255 registers of four bytes


@dataclass(frozen=True, slots=True)
class Rule:
    """A condition on several knobs, which matter whatever else is chosen.

    Attributes:
        says: The rule in words.
        knobs: Whom it is about, as a space names them.
        excess: How far a candidate breaks it, where the largest nest has so many points (0:
            not known); 0 or less if it obeys.
    """

    says: str
    knobs: tuple[str, ...]
    excess: Callable[[Candidate, int], float]


def _of_tiles(candidate: Candidate, points: int) -> float:
    volume = prod(size for size in candidate.mapping.tile if size)
    return log(volume / points) if points else 0.0


def _of_rows(candidate: Candidate, _: int) -> float:
    cuda = candidate.cuda
    return cuda.row_groups * cuda.vector_bytes / ROW_BYTES - 1 if cuda else 0.0


RULES = (
    Rule("a tile has no more points than what is tiled", ("tile",), _of_tiles),
    Rule(
        "the rows of a thread fit into its registers",
        ("cuda_row_groups", "cuda_vector_bytes"),
        _of_rows,
    ),
)
