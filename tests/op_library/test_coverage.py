"""Which operators there are, at every opset from 7 on."""

from __future__ import annotations

import onnx
import pytest

from tcfuse import opdef
from tcfuse.opdef import Kind

OPERATORS = """
    Add Sub Mul Div Neg Abs Sign Reciprocal Sqrt Exp Log Pow Mod Max Min Sum Mean Floor Ceil
    Round Sin Cos Tan Asin Acos Atan Sinh Cosh Tanh Asinh Acosh Atanh Erf Not And Or Xor
    Equal Less Greater LessOrEqual GreaterOrEqual BitwiseAnd BitwiseOr BitwiseXor BitwiseNot
    BitShift IsNaN IsInf Where Clip Cast CastLike Relu LeakyRelu PRelu Elu Selu Celu Gelu
    HardSwish HardSigmoid Mish Softplus Softsign Sigmoid ThresholdedRelu Swish SwiGLU Shrink
    ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceSumSquare
    ReduceLogSum ReduceLogSumExp GlobalAveragePool GlobalMaxPool Softmax LogSoftmax
    LayerNormalization RMSNormalization InstanceNormalization GroupNormalization
    BatchNormalization LpNormalization MeanVarianceNormalization Transpose Slice Split
    AveragePool MaxPool LpPool GlobalLpPool LRN Resize Upsample RotaryEmbedding
    GridSample AffineGrid RoiAlign CenterCropPad
    Concat Pad Expand Tile Gather DepthToSpace SpaceToDepth DequantizeLinear QuantizeLinear
    Det Reshape Flatten Squeeze Unsqueeze Identity Dropout ArgMax ArgMin Hardmax Trilu EyeLike
    GatherElements GatherND OneHot ReverseSequence TensorScatter NegativeLogLikelihoodLoss
    SoftmaxCrossEntropyLoss
"""
CONTRACTIONS = """
    MatMul Gemm Conv ConvTranspose Einsum MatMulInteger ConvInteger QLinearMatMul QLinearConv
    Col2Im DeformConv LinearAttention CausalConvWithState
    Attention CumSum CumProd ScatterElements ScatterND TopK DFT STFT
"""
CONTRIBUTED = """
    QLinearAveragePool QLinearGlobalAveragePool
    Gelu QuickGelu FastGelu BiasGelu SimplifiedLayerNormalization SkipLayerNormalization
    SkipSimplifiedLayerNormalization QuantizeLinear DequantizeLinear RotaryEmbedding
    LinearAttention CausalConvWithState FusedMatMul TransposeMatMul FusedGemm FusedConv
    QLinearConv MatMulIntegerToFloat DynamicQuantizeMatMul MatMulNBits
    MultiHeadAttention EmbedLayerNormalization
"""


@pytest.mark.parametrize("op_type", [*OPERATORS.split(), *CONTRACTIONS.split()])
def test_defined_at_every_opset_since_7(op_type):
    schemas = onnx.defs.get_all_schemas_with_history()
    versions = {s.since_version for s in schemas if s.name == op_type and not s.domain}
    if not versions:
        pytest.skip(f"this onnx has no {op_type}")
    for opset in {max(7, version) for version in versions}:
        is_contraction = opdef.find(op_type, opset).kind is Kind.CONTRACTION
        assert is_contraction == (op_type in CONTRACTIONS.split())


@pytest.mark.parametrize("op_type", CONTRIBUTED.split())
def test_contributed_operators_are_defined(op_type):
    assert opdef.find(op_type, 1, "com.microsoft").domain == "com.microsoft"


def test_static_inputs_begin_where_attributes_became_inputs():
    assert opdef.find("ReduceSum", 12).static == frozenset()
    assert opdef.find("ReduceSum", 13).static == {1}
    assert opdef.find("ReduceMax", 17).static == frozenset()
    assert opdef.find("ReduceMax", 18).static == {1}
    assert opdef.find("Slice", 9).static == frozenset()
    assert opdef.find("Slice", 10).static == {1, 2, 3, 4}
