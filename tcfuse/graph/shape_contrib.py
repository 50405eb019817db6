"""Shape rules of operators outside the ONNX standard that models in circulation contain.

They have no schema here: ``shape_types`` says which element types they give.
"""

from __future__ import annotations

from tcfuse.graph.shape_call import Call, Shapes, UnknownShapeError, shape_rule


@shape_rule(
    *(f"com.microsoft::{name}" for name in ("BiasGelu", "BiasSoftmax", "FastGelu", "Gelu")),
    *("com.microsoft::QuickGelu", "com.microsoft::RotaryEmbedding"),
    *(f"ai.onnx.ml::{name}" for name in ("Binarizer", "Imputer", "Normalizer", "Scaler")),
)
def same_shape(call: Call) -> Shapes:
    """The shape of the first input."""
    return [call.shape(0)]


@shape_rule("com.microsoft::SkipLayerNormalization")
@shape_rule("com.microsoft::SkipSimplifiedLayerNormalization")
def skip_normalization(call: Call) -> Shapes:
    """The result and the sum as the input; mean and deviation with the last axis kept as 1."""
    x = call.shape(0)
    statistics = (*x[:-1], 1)
    return [x, statistics, statistics, x]


@shape_rule("com.microsoft::EmbedLayerNormalization")
def embed_layer_normalization(call: Call) -> Shapes:
    """A row of the embeddings for each word, how many words count, and the rows again."""
    ids = call.shape(0)
    y = (*ids, call.shape(2)[-1])
    return [y, ids[:1], y]


@shape_rule("com.microsoft::MatMulNBits")
def matmul_n_bits(call: Call) -> Shapes:
    """The last axis becomes the ``N`` of the packed weights."""
    n = call.attribute("N")
    if n is None:
        raise UnknownShapeError
    return [(*call.shape(0)[:-1], int(n))]
