"""Operators that read at places from data agree with ONNX Runtime, far outside as well."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from tcfuse.errors import UnsupportedError
from tcfuse.types import DType, TensorType
from tests.conformance.compiled import fuse_everything
from tests.op_library.test_against_onnxruntime import compare, data, whole

pytestmark = pytest.mark.ort

REGIONS = np.array([[0, 0, 4, 4], [1, 2, 5.5, 5], [-2, 3, 0.5, 9]], np.float32)


@pytest.mark.parametrize("aligned", [0, 1])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_grids(run, mode, padding, aligned):
    attributes = {"mode": mode, "padding_mode": padding, "align_corners": aligned}
    for shape in [(2, 3, 4, 5), (1, 2, 1, 3)]:
        grid = 1.5 * data(shape[0], 5, 6, 2)
        if padding == "reflection" and 1 in shape[2:] and aligned:
            continue  # ONNX Runtime divides by zero
        compare(run, "GridSample", 20, [data(*shape), grid], attributes)
    if mode != "cubic":
        x, grid = data(2, 3, 3, 4, 5), 1.5 * data(2, 2, 3, 4, 3)
        compare(run, "GridSample", 20, [x, grid], attributes)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_places_that_overflow_are_outside(run, mode):
    grid = np.full((1, 1, 2, 2), 3e38, np.float32)
    grid[..., 1, :] = -np.inf
    y = TensorType(DType.FLOAT32, (1, 2, 1, 2))
    x = [data(1, 2, 3, 4), grid]
    assert not np.any(run("GridSample", x, [y], {"mode": mode}, opset=20)[0])


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_grids_of_opset_16(run, mode):
    compare(run, "GridSample", 16, [data(1, 2, 3, 4), data(1, 5, 6, 2)], {"mode": mode})


@pytest.mark.parametrize("aligned", [0, 1])
@pytest.mark.parametrize("size", [(2, 1, 3, 4), (2, 1, 2, 3, 4)])
def test_affine_grids(run, size, aligned):
    theta = data(2, len(size) - 2, len(size) - 1)
    compare(run, "AffineGrid", 20, [theta, whole(*size)], {"align_corners": aligned})


def test_affine_grid_of_one_element_is_refused_when_corners_are_aligned(lower):
    types, attributes = ["float(1, 2, 3)", "int64(4)"], {"align_corners": 1}
    with pytest.raises(UnsupportedError, match="of 1 elements"):
        lower("AffineGrid", types, ["float(1, 1, 4, 2)"], attributes)


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize(
    ("opset", "attributes"),
    [
        (10, {}),
        (16, {"coordinate_transformation_mode": "output_half_pixel"}),
        (16, {"coordinate_transformation_mode": "half_pixel", "spatial_scale": 0.7}),
    ],
)
def test_regions(run, opset, attributes, mode):
    attributes = {**attributes, "mode": mode, "output_height": 2, "output_width": 3}
    arrays = [data(2, 3, 6, 7), REGIONS, whole(0, 1, 1)]
    compare(run, "RoiAlign", opset, arrays, {**attributes, "sampling_ratio": 2})


def test_regions_with_as_many_points_as_they_are_large_are_refused(lower):
    types = ["float(1, 1, 6, 6)", "float(2, 4)", "int64(2)"]
    with pytest.raises(UnsupportedError, match="as many points"):
        lower("RoiAlign", types, ["float(2, 1, 1, 1)"])


@pytest.mark.parametrize("shape", [(3, 9), (6, 4), (5, 5), (7, 2)])
def test_centers(run, shape):
    compare(run, "CenterCropPad", 18, [data(5, 6), whole(*shape)])
    compare(run, "CenterCropPad", 18, [data(5, 6), whole(shape[0])], {"axes": [-1]})


def test_unpooling_keeps_the_last_of_several_elements(run):
    x, places = data(1, 2, 2, 2), whole(5, 7, 13, 5, 16, 16, 30, 31).reshape(1, 2, 2, 2)
    compare(run, "MaxUnpool", 11, [x, places], {"kernel_shape": [2, 2], "strides": [2, 2]})


@pytest.mark.parametrize("padding", ["zeros", "border"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_named_sizes_have_a_kernel(mode, padding):
    text = f"""
        <ir_version: 8, opset_import: ["": 20]>
        f (float[N,C,H,W] x, float[N,A,B,2] grid) => (float[N,C,A,B] y) {{
            y = GridSample<mode="{mode}", padding_mode="{padding}">(x, grid)
        }}
    """
    kernel, _ = fuse_everything(onnx.parser.parse_model(text))
    assert kernel.interface.sizes
