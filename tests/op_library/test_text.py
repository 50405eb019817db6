"""What definitions look like: one golden file for each way of writing one."""

from __future__ import annotations

FAR = 2**63 - 1


def test_add_broadcasts(lower, golden):
    golden(lower("Add", ["float(N, 1)", "float(3)"], ["float(N, 3)"]), "tc")


def test_integer_division_truncates(lower, golden):
    golden(lower("Div", ["int32(N)", "int32"], ["int32(N)"]), "tc")


def test_power_of_two(lower, golden):
    golden(lower("Pow", ["float(N)", "float"], ["float(N)"], constants={1: 2.0}), "tc")


def test_bias_gelu(lower, golden):
    types = ["float(N, 768)", "float(768)"]
    golden(lower("BiasGelu", types, types[:1], domain="com.microsoft", opset=1), "tc")


def test_clip_without_minimum(lower, golden):
    golden(lower("Clip", ["float16(N)", None, "float16"], ["float16(N)"]), "tc")


def test_cast_to_int8(lower, golden):
    golden(lower("Cast", ["float(N)"], ["int8(N)"], {"to": 3}), "tc")


def test_softmax(lower, golden):
    golden(lower("Softmax", ["float(2, 3, 4)"], ["float(2, 3, 4)"], {"axis": 1}), "tc")


def test_softmax_before_opset_13(lower, golden):
    golden(lower("Softmax", ["float(N, 3, 4)"], ["float(N, 3, 4)"], opset=12), "tc")


def test_layer_normalization(lower, golden):
    inputs = ["float16(N, S, 768)", "float16(768)", "float16(768)"]
    golden(lower("LayerNormalization", inputs, [inputs[0], "float(N, S, 1)"]), "tc")


def test_skip_layer_normalization(lower, golden):
    x, row = "float(N, S, 8)", "float(8)"
    text = lower(
        "SkipLayerNormalization",
        [x, x, row, row, row],
        [x, None, None, x],
        domain="com.microsoft",
        opset=1,
    )
    golden(text, "tc")


def test_group_normalization(lower, golden):
    inputs = ["float(N, 32, H, W)", "float(32)", "float(32)"]
    golden(lower("GroupNormalization", inputs, inputs[:1], {"num_groups": 8}), "tc")


def test_reduce_mean_keeps_dimensions(lower, golden):
    types = ["float16(N, S, 768)"], ["float16(N, 1, 768)"]
    golden(lower("ReduceMean", *types, {"axes": [1]}, opset=13), "tc")


def test_reduce_log_sum_exp(lower, golden):
    types = ["float(N, S)", "int64(1)"], ["float(N)"]
    golden(lower("ReduceLogSumExp", *types, {"keepdims": 0}, constants={1: [-1]}), "tc")


def test_slice_backwards(lower, golden):
    vector = "int64(1)"
    text = lower(
        "Slice",
        ["float(N, 8)", vector, vector, vector, vector],
        ["float(N, 4)"],
        constants={1: [-1], 2: [-FAR], 3: [1], 4: [-2]},
    )
    golden(text, "tc")


def test_split_symbolic(lower, golden):
    types = ["float(2*H, 3)"], ["float(H, 3)", "float(H, 3)"]
    golden(lower("Split", *types, {"num_outputs": 2}), "tc")


def test_concat(lower, golden):
    types = ["float(P, 3)", "float(S, 3)", "float(1, 3)"], ["float(P + S + 1, 3)"]
    golden(lower("Concat", *types, {"axis": 0}), "tc")


def test_pad_with_a_constant(lower, golden):
    types = ["float(N, 5)", "int64(4)", "float"], ["float(N + 1, 8)"]
    golden(lower("Pad", *types, constants={1: [1, 1, 0, 2]}), "tc")


def test_pad_by_reflection(lower, golden):
    types = ["float(N, 5)", "int64(4)"], ["float(N, 8)"]
    golden(lower("Pad", *types, {"mode": "reflect"}, constants={1: [0, 1, 0, 2]}), "tc")


def test_gather(lower, golden):
    types = ["float(V, 5)", "int64(N, S)"], ["float(N, S, 5)"]
    golden(lower("Gather", *types), "tc")


def test_reshape(lower, golden):
    types = ["float(N, 2, 6)", "int64(3)"], ["float(N, 3, 4)"]
    golden(lower("Reshape", *types), "tc")


def test_dequantize_per_axis(lower, golden):
    types = ["int8(N, 8)", "float(8)", "int8(8)"], ["float(N, 8)"]
    golden(lower("DequantizeLinear", *types), "tc")


def test_matmul_of_batches(lower, golden):
    inputs = ["float(N, 1, S, 64)", "float(12, 64, T)"]
    golden(lower("MatMul", inputs, ["float(N, 12, S, T)"]), "tc")


def test_gemm(lower, golden):
    inputs = ["float16(N, 8)", "float16(4, 8)", "float16(4)"]
    attributes = {"transB": 1, "alpha": 0.5}
    golden(lower("Gemm", inputs, ["float16(N, 4)"], attributes), "tc")


def test_convolution_of_groups(lower, golden):
    inputs = ["float(N, 8, H, 9)", "float(4, 2, 3, 3)", "float(4)"]
    attributes = {"group": 4, "pads": [1, 1, 1, 0], "strides": [1, 2]}
    golden(lower("Conv", inputs, ["float(N, 4, H, 4)"], attributes), "tc")


def test_transposed_convolution(lower, golden):
    inputs = ["float(N, 4, 5)", "float(4, 2, 3)"]
    golden(lower("ConvTranspose", inputs, ["float(N, 2, 11)"], {"strides": [2]}), "tc")


def test_quantized_product(lower, golden):
    scale, zero = "float", "uint8"
    inputs = ["uint8(N, 8)", scale, zero, "int8(8, 4)", "float(4)", "int8(4)", scale, zero]
    golden(lower("QLinearMatMul", inputs, ["uint8(N, 4)"]), "tc")


def test_einsum_of_three(lower, golden):
    inputs = ["float(I, J)", "float(J, K)", "float(K)"]
    golden(lower("Einsum", inputs, ["float(I)"], {"equation": "ij,jk,k->i"}), "tc")
