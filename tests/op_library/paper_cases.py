"""The kernels of the papers, with sizes and inputs to run them on."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from op_library import papers
from tcfuse.tc.ast import Def
from tcfuse.tc.binding import size_value
from tcfuse.tc.checked import CheckedDef
from tcfuse.tc.parser import parse_file
from tcfuse.types import DType

DEFINITIONS: dict[str, Def] = {
    d.name: d for name in papers.names() for d in parse_file(papers.text(name), name)
}
# Three sets of sizes: even, odd, and with ones.
SIZES: dict[str, str] = {
    "tmm": "M N K: 16 32 8, 13 7 29, 1 5 1",
    "tbmm": "B N M K: 5 26 72 26, 3 7 11 5, 1 1 3 2",
    "c3": "B WX WY: 8 40 24, 5 33 7, 1 3 1",
    "mlp1": "B M N: 8 64 16, 3 37 11, 1 1 2",
    "fcrelu": "B N M: 8 16 64, 3 11 37, 1 2 1",
    "mlp3": "B N O P Q: 8 128 64 32 2, 5 13 7 3 1, 1 1 1 1 1",
    "tensordot": "N C1 C2 C3 H W: 2 6 8 2 14 14, 3 5 7 3 5 3, 1 2 1 1 1 4",
    "kronecker3": "M N0 N1 N2 D0 D1 D2: 4 8 8 8 4 4 4, 3 5 7 3 2 3 5, 1 2 1 1 1 3 1",
    "conv": "N C H W F KH KW: 2 4 14 14 4 3 3, 1 3 9 7 5 3 2, 1 1 3 4 2 3 1",
    "gconv": "N G C H W F KH KW: 2 4 4 10 10 4 3 3, 1 3 2 7 9 5 3 2, 1 1 1 3 3 1 3 3",
    "strided_conv": "N C H W F KH KW: 2 4 6 6 4 3 3, 1 3 5 4 5 4 3, 1 1 1 2 2 2 5",
    "conv_gradients": "N C H W F KH KW: 2 4 8 8 4 3 3, 2 3 9 7 5 3 2, 1 1 3 4 2 3 1",
    "masked_conv": "B C T F K: 2 4 32 8 4, 3 2 17 5 3, 1 1 5 1 1",
    "mobilenet": "N C H W F: 2 8 8 8 16, 1 5 7 9 3, 1 1 1 2 1",
    "max_pool": "N C H W: 2 3 8 8, 1 5 3 7, 1 1 1 1",
    "average_pool": "N C H W: 2 3 8 8, 1 5 3 7, 1 1 1 1",
    "wavenet": "B RES REC DIL SKIP DILATION: 1 8 64 8 16 2, 2 5 37 7 3 11, 1 1 4 2 3 6",
    "row_sum": "N K: 8 128, 7 37, 1 1",
    "row_mean": "N K: 8 128, 7 37, 1 1",
    "row_squares": "N K: 8 128, 7 37, 1 1",
    "row_variance": "N K: 8 128, 7 37, 1 1",
    "row_sums": "N K: 8 128, 7 37, 1 1",
    "row_moments": "N K: 8 128, 7 37, 1 1",
    "group_norm": "N G D H W: 2 4 4 6 6, 1 3 5 7 3, 1 1 2 1 3",
    "group_norm_moments": "N K: 8 144, 3 105, 1 6",
    "group_norm_apply": "N G D H W: 2 4 4 6 6, 1 3 5 7 3, 1 1 2 1 3",
    "layer_norm": "T B C: 7 32 64, 3 5 17, 1 1 2",
    "batch_norm": "N C H W: 4 8 6 6, 3 5 7 3, 1 1 1 2",
    "softmax_a": "N D: 8 64, 5 17, 1 1",
    "softmax_b": "N D: 8 64, 5 17, 1 1",
    "softmax_c": "N D: 8 64, 5 17, 1 1",
    "softmax_d": "N D: 8 64, 5 17, 1 1",
    "product": "N K: 8 64, 5 17, 1 1",
    "cosine_similarity": "M N D: 8 16 32, 5 7 17, 1 2 1",
    "masked_cosine": "B T D: 4 16 32, 3 7 17, 1 1 1",
    "min_distance": "NA NB D: 8 32 4, 5 17 3, 1 1 1",
    "triple_hadamard": "B D: 8 100, 5 17, 1 1",
    "concat": "M N K: 4 8 16, 3 5 7, 1 2 1",
    "lut1": "E D B L: 100 64 8 50, 17 5 3 7, 1 1 1 2",
    "lut2": "E1 D B L1 E2 L2: 100 64 8 50 60 20, 17 5 3 7 11 4, 1 1 1 2 1 1",
}
SIZES |= {
    "kronecker3_step1": "M N0 N1 N2 D2: 4 8 8 8 4, 3 5 7 3 5, 1 2 1 1 1",
    "kronecker3_step2": "M N0 N1 D2 D1: 4 8 8 4 4, 3 5 7 5 3, 1 2 1 1 3",
    "kronecker3_step3": "M N0 D1 D2 D0: 4 8 4 4 4, 3 5 3 5 2, 1 2 3 1 1",
}
POSITIONS = {"Index": "E", "Index1": "E1", "Index2": "E2", "Length": "T"}


def sizes_of(name: str) -> list[dict[str, int]]:
    names, _, rows = SIZES[name].partition(":")
    values = (map(int, row.split()) for row in rows.split(","))
    return [dict(zip(names.split(), row, strict=True)) for row in values]


def inputs_of(checked: CheckedDef, sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Inputs that the definition admits: positions inside, variances positive."""
    rng = np.random.default_rng(0)
    found: dict[str, np.ndarray] = {}
    for name in checked.inputs:
        kind = checked.tensors[name]
        shape = tuple(size_value(size, sizes) for size in kind.shape)
        if name in POSITIONS:
            lowest = int(name == "Length")
            values = rng.integers(lowest, sizes[POSITIONS[name]] + lowest, shape)
        elif kind.dtype is DType.BOOL:
            values = rng.random(shape) < 0.7
        elif "Variance" in name or name in ("Momentum", "Eps"):
            values = rng.uniform(0.1, 0.9, shape)
        else:
            values = rng.standard_normal(shape)
        found[name] = np.asarray(values).astype(kind.dtype.numpy)
    return found
