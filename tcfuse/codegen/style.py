"""What a person, or a tuner, may choose about the text of a kernel."""

from __future__ import annotations

from dataclasses import dataclass

from tcfuse.mapping_options import STREAMED_BYTES


@dataclass(frozen=True, slots=True)
class Style:
    """Choices that change the text of loops and no result but by the order of sums.

    Attributes:
        accumulators: Vectors of partial results that a reduction has.
        registers: Vectors of each value in a step of a loop over lanes; 0 chooses.
        streaming: Bytes of outputs that are stored past the caches, at least; 0: none are.
        vectors: Side by side along the lanes of a register block; 0 chooses.
        reciprocals: Whether a constant divisor may become a factor.
    """

    accumulators: int = 4
    registers: int = 0
    streaming: int = STREAMED_BYTES
    vectors: int = 0
    reciprocals: bool = False
