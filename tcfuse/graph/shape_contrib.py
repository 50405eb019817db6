"""Shape rules of operators outside the ONNX standard that models in circulation contain.

They have no schema here: ``shape_types`` says which element types they give.
"""

from __future__ import annotations

from tcfuse.graph.shape_call import Call, Shapes, UnknownShapeError, shape_rule
from tcfuse.graph.shape_movement import joined
from tcfuse.graph.shape_pointwise import broadcast


@shape_rule(
    *(f"com.microsoft::{name}" for name in ("BiasGelu", "BiasSoftmax", "FastGelu", "Gelu")),
    *("com.microsoft::QuickGelu", "com.microsoft::RotaryEmbedding"),
    *(f"com.microsoft::{name}" for name in ("QuantizeLinear", "DequantizeLinear")),
    *(f"com.microsoft::QLinear{name}" for name in ("LeakyRelu", "Sigmoid", "Softmax")),
    *(f"ai.onnx.ml::{name}" for name in ("Binarizer", "Imputer", "Normalizer", "Scaler")),
)
def same_shape(call: Call) -> Shapes:
    """The shape of the first input."""
    return [call.shape(0)]


@shape_rule("com.microsoft::QLinearAdd", "com.microsoft::QLinearMul")
def quantized_pair(call: Call) -> Shapes:
    """Two tensors, each followed by its scale and zero point, broadcast."""
    return [broadcast([call.shape(0), call.shape(3)], call.scope)]


@shape_rule("com.microsoft::QLinearWhere")
def quantized_where(call: Call) -> Shapes:
    """The condition and two quantized tensors broadcast."""
    return [broadcast([call.shape(k) for k in (0, 1, 4)], call.scope)]


@shape_rule("com.microsoft::QLinearConcat")
def quantized_concat(call: Call) -> Shapes:
    """Every third input from the third on, one after the other."""
    if len(call.node.inputs) < 5:
        raise UnknownShapeError
    return [joined(call, [call.shape(k) for k in range(2, len(call.node.inputs), 3)])]


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
