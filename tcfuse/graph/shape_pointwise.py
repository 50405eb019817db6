"""Shape rules of operators that keep a shape or broadcast: one element in, one element out."""

from __future__ import annotations

from collections.abc import Sequence

import sympy

from tcfuse.graph.shape_call import Call, Scope, Shapes, UnknownShapeError, shape_rule
from tcfuse.graph.symbols import Dim, Dims, equal

SAME_SHAPE = (
    *(
        "Abs",
        "Acos",
        "Acosh",
        "Asin",
        "Asinh",
        "Atan",
        "Atanh",
        "BitCast",
        "BitwiseNot",
        "Cast",
        "CastLike",
    ),
    *("Ceil", "Celu", "Clip", "Cos", "Cosh", "CumSum", "CumProd", "Elu", "Erf", "Exp", "Floor"),
    *("Gelu", "HardSigmoid", "HardSwish", "Hardmax", "Identity", "InstanceNormalization"),
    *("GroupNormalization", "IsInf", "IsNaN", "LRN", "LeakyRelu", "Log", "LogSoftmax"),
    *("LpNormalization", "MeanVarianceNormalization", "Mish", "Neg", "Not", "PRelu"),
    *("RMSNormalization", "Reciprocal", "Relu", "Round", "Selu", "Shrink", "Sigmoid", "Sign"),
    *("Sin", "Sinh", "Softmax", "Softplus", "Softsign", "Sqrt", "Swish", "Tan", "Tanh"),
    *("ThresholdedRelu", "Trilu", "EyeLike", "RandomNormalLike", "RandomUniformLike"),
    *("Bernoulli", "QuantizeLinear", "DequantizeLinear", "ReverseSequence", "ScatterND"),
    *("Scatter", "ScatterElements", "TensorScatter", "RotaryEmbedding"),
)

BROADCAST = (
    *("Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal"),
    *("Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul"),
    *("Or", "Pow", "Sub", "Sum", "Where", "Xor"),
)


def _is_cut_of_another(dim: Dim, others: Sequence[Dim], scope: Scope) -> bool:
    """Whether ``dim`` is ``min(512, n)`` beside an ``n``: it must be that ``n``."""
    if not isinstance(dim, sympy.Min):
        return False
    limits = [a for a in dim.args if a.is_Integer]
    rest = [a for a in dim.args if not a.is_Integer]
    if len(rest) != 1 or any(limit <= 1 for limit in limits):
        return False
    for other in others:
        if other is not dim and equal(rest[0], other):
            scope.require(dim, other)
            return True
    return False


def broadcast_dim(dims: Sequence[Dim], scope: Scope) -> Dim:
    """What these sizes of one axis broadcast to.

    A constant other than 1 decides.  Two different names may be equal, or one of them 1; the
    result is then a size of its own, the same one wherever these names meet.

    Raises:
        UnknownShapeError: Two constants contradict each other; ONNX Runtime will say so.
    """
    different: list[Dim] = []
    for dim in dims:
        if dim != 1 and not any(equal(dim, other) for other in different):
            different.append(dim)
    if len(different) > 1:
        different = [d for d in different if not _is_cut_of_another(d, different, scope)]
    if not different:
        return 1
    constants = [d for d in different if isinstance(d, int)]
    if len(constants) > 1:
        raise UnknownShapeError
    if constants:
        return constants[0]
    return different[0] if len(different) == 1 else scope.common(frozenset(different))


def broadcast(shapes: Sequence[Dims], scope: Scope) -> Dims:
    """What these shapes broadcast to, as NumPy does it."""
    if all(shape == shapes[0] for shape in shapes):
        return shapes[0]
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    return tuple(broadcast_dim(axis, scope) for axis in zip(*padded, strict=True))


@shape_rule(*SAME_SHAPE)
def same_shape(call: Call) -> Shapes:
    """The shape of the first input."""
    return [call.shape(0)]


@shape_rule(*BROADCAST)
def broadcast_all(call: Call) -> Shapes:
    """All inputs broadcast; before opset 7 nothing did, and that is not read here."""
    shapes = [call.shape(k) for k in range(len(call.node.inputs))]
    return [broadcast(shapes, call.scope)]


@shape_rule("Dropout")
def dropout(call: Call) -> Shapes:
    """Output and mask have the shape of the input."""
    return [call.shape(0)] * 2


@shape_rule("BatchNormalization")
def batch_normalization(call: Call) -> Shapes:
    """Y as X; the running statistics of training mode as the ones given."""
    statistics = call.shape_or_none(3)
    return [call.shape(0), *[statistics] * 4]


@shape_rule("LayerNormalization", "SimplifiedLayerNormalization")
def layer_normalization(call: Call) -> Shapes:
    """Y as X; mean and inverse deviation with the normalised axes kept as 1."""
    x = call.shape(0)
    axis = call.axis(len(x), -1)
    statistics = x[:axis] + (1,) * (len(x) - axis)
    return [x, statistics, statistics]


@shape_rule("DynamicQuantizeLinear")
def dynamic_quantize_linear(call: Call) -> Shapes:
    """The quantized tensor, a scale and a zero point."""
    return [call.shape(0), (), ()]
