"""Resize and Upsample agree with ONNX Runtime in every mode, by factors and to sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from tcfuse.errors import UnsupportedError
from tests.conformance.compiled import fuse_everything
from tests.op_library.test_against_onnxruntime import compare, data

pytestmark = pytest.mark.ort

COORDINATES = [
    *("half_pixel", "asymmetric", "pytorch_half_pixel", "tf_half_pixel_for_nn"),
    *("align_corners", "half_pixel_symmetric"),
]
SIZES = [(5, 7), (3, 3), (1, 12), (8, 2), (4, 6)]
FACTORS = [(2, 3), (0.5, 1.5), (0.6, 0.8), (2.5, 1), (1.3, 2)]


def factors(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def sizes(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


@pytest.mark.parametrize("places", COORDINATES)
@pytest.mark.parametrize(
    "nearest", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
)
def test_nearest_elements(run, places, nearest):
    attributes = {"coordinate_transformation_mode": places, "nearest_mode": nearest}
    for size in SIZES:
        compare(run, "Resize", 19, [data(4, 6), None, None, sizes(*size)], attributes)
    for factor in FACTORS if places != "align_corners" else FACTORS[:1]:
        compare(run, "Resize", 13, [data(4, 6), None, factors(*factor)], attributes)


@pytest.mark.parametrize("places", COORDINATES)
@pytest.mark.parametrize("smooths", [0, 1])
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_interpolation(run, mode, smooths, places):
    attributes = {"coordinate_transformation_mode": places, "mode": mode, "antialias": smooths}
    for size in SIZES:
        compare(run, "Resize", 19, [data(4, 6), None, None, sizes(*size)], attributes)
    for factor in FACTORS if places != "align_corners" else FACTORS[:1]:
        compare(run, "Resize", 18, [data(4, 6), None, factors(*factor)], attributes)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("smooths", [0, 1])
def test_elements_outside_have_no_weight(run, smooths, size):
    attributes: dict[str, Any] = {"antialias": smooths, "exclude_outside": 1, "mode": "cubic"}
    arrays = [data(4, 6), None, None, sizes(*size)]
    compare(run, "Resize", 18, arrays, {**attributes, "cubic_coeff_a": -0.5})
    if smooths:
        compare(run, "Resize", 18, arrays, {**attributes, "mode": "linear"})


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize(
    "region", [(0.1, 0.25, 0.9, 0.75), (-0.3, 0, 0.5, 1.2), (0.9, 0.8, 0.1, 0.2)]
)
def test_crops(run, region, mode):
    attributes = {
        "coordinate_transformation_mode": "tf_crop_and_resize",
        "extrapolation_value": 2.5,
        "mode": mode,
    }
    for size in SIZES:
        arrays = [data(4, 6), factors(*region), None, sizes(*size)]
        compare(run, "Resize", 13, arrays, attributes)


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
def test_aspect_ratio(run, policy):
    attributes = {"keep_aspect_ratio_policy": policy, "axes": [2, 3], "mode": "linear"}
    for size in SIZES:
        compare(run, "Resize", 18, [data(1, 2, 4, 6), None, None, sizes(*size)], attributes)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_old_opsets(run, mode):
    x, attributes = data(1, 2, 4, 5), {"mode": mode}
    enlarged, reduced = factors(1, 1, 2, 1.6), factors(1, 1, 0.5, 0.6)
    compare(run, "Upsample", 7, [x], {**attributes, "scales": enlarged.tolist()})
    compare(run, "Upsample", 9, [x, enlarged], attributes)
    for factor in (enlarged, reduced):
        compare(run, "Resize", 10, [x, factor], attributes)


@pytest.mark.parametrize("dtype", [np.float16, np.uint8, np.int8, np.int32])
def test_types(run, dtype):
    x = (10 * data(4, 6)).astype(dtype)
    compare(run, "Resize", 13, [x, None, factors(1.5, 0.6)], {"mode": "nearest"})
    if np.issubdtype(dtype, np.floating):
        compare(run, "Resize", 13, [x, None, factors(1.5, 0.6)], {"mode": "linear"})


@pytest.mark.parametrize("shape", [(7,), (2, 3, 4), (1, 2, 3, 4, 5), (1, 3, 4, 2)])
def test_ranks(run, shape):
    channels_last = len(shape) == 4
    factor = factors(*(1 if s <= 2 else 1.5 for s in shape))
    modes = ["nearest"] if len(shape) == 1 or channels_last else ["nearest", "linear"]
    for mode in modes:
        compare(run, "Resize", 13, [data(*shape), None, factor], {"mode": mode})


@pytest.mark.parametrize("places", ["half_pixel", "asymmetric", "pytorch_half_pixel"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_named_sizes_have_a_kernel(mode, places):
    text = f"""
        <ir_version: 8, opset_import: ["": 18]> f (float[N,C,H,W] x) => (float[N,C,A,B] y)
        <float[4] by = {{1., 1., 2., 3.}}> {{
            y = Resize<mode="{mode}", coordinate_transformation_mode="{places}">(x, , by)
        }}
    """
    kernel, _ = fuse_everything(onnx.parser.parse_model(text))
    assert kernel.interface.sizes


@pytest.mark.parametrize(
    ("dtype", "attributes", "text"),
    [
        ("uint8", {"mode": "linear"}, "of uint8"),
        ("float", {"mode": "lanczos"}, "in mode 'lanczos'"),
        ("float", {"nearest_mode": "even"}, "nearest_mode 'even'"),
        ("float", {"coordinate_transformation_mode": "middle"}, "'middle'"),
        ("float", {"coordinate_transformation_mode": "align_corners"}, "part of a point"),
        ("float", {"coordinate_transformation_mode": "tf_crop_and_resize"}, "of a crop"),
    ],
)
def test_what_is_refused(lower, dtype, attributes, text):
    types = [f"{dtype}(4)", None, "float(1)"]
    with pytest.raises(UnsupportedError, match=text):
        lower("Resize", types, [f"{dtype}(6)"], attributes, constants={2: [1.6]})
