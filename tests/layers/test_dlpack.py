"""Tensors of other libraries: read where they lie, and given back as what came in."""

from __future__ import annotations

import ctypes
import gc
import sys
import types
import weakref

import ml_dtypes
import numpy as np
import pytest

import tcfuse
from tcfuse.errors import InputError, TcError
from tcfuse.layers.dlpack import _Tensor, as_array
from tests.layers.definitions import TEXT


class Foreign:
    """A tensor of a library that is not NumPy."""

    def __init__(self, array: np.ndarray, device: int = 1) -> None:
        self.array, self.device = array, device

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0

    def __dlpack__(self, **arguments: object) -> object:
        return self.array.__dlpack__(**arguments)

    def __array_namespace__(self) -> object:
        return library


class Old(Foreign):
    """A producer of before version 1 of the protocol."""

    def __dlpack__(self, stream: object = None) -> object:
        return self.array.__dlpack__(stream=stream)


def from_dlpack(value: object) -> Foreign:
    return Foreign(np.from_dlpack(value))


library = types.SimpleNamespace(from_dlpack=from_dlpack)


class Bits:
    """A producer of a structure that is written here, field by field."""

    def __init__(self, data: np.ndarray, code: int, bits: int, lanes: int = 1) -> None:
        self.data, self.fields = data, (code, bits, lanes)
        self.keep: list[object] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, **_: object) -> object:
        code, bits, lanes = self.fields
        shape = (ctypes.c_int64 * self.data.ndim)(*self.data.shape)
        tensor = _Tensor(self.data.ctypes.data, 1, 0, self.data.ndim, code, bits, lanes, shape)
        self.keep += [shape, tensor]
        new = ctypes.pythonapi.PyCapsule_New
        new.restype = ctypes.py_object
        new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(tensor), b"dltensor", None)


@pytest.fixture(scope="module")
def ops() -> tcfuse.Layers:
    return tcfuse.define(TEXT, sizes={"P": 4}, quiet=True)


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


@pytest.mark.compiler
@pytest.mark.parametrize("kind", [Foreign, Old])
def test_what_came_in_comes_out(ops, kind):
    result = ops.add(kind(ones(5)), kind(ones(5)))
    assert type(result) is Foreign
    np.testing.assert_array_equal(result.array, 2 * ones(5))


@pytest.mark.compiler
def test_arrays_of_two_libraries_give_numpy(ops):
    assert type(ops.add(Foreign(ones(5)), ones(5))) is np.ndarray


@pytest.mark.compiler
def test_numbers_are_of_no_library(ops):
    (y, t) = ops.scaled(Foreign(np.ones(5, np.float16)), 2)
    assert type(y) is Foreign
    assert type(t) is np.ndarray  # bfloat16, which NumPy does not export


@pytest.mark.compiler
def test_an_element_type_the_protocol_lacks_in_numpy_comes_out_as_numpy(ops):
    x = Foreign(np.ones(5, np.float16))
    y, t = ops.scaled(x, Bits(np.array(2, ml_dtypes.bfloat16).view(np.uint16), 4, 16))
    assert (type(y), type(t)) == (np.ndarray, np.ndarray)  # two libraries
    assert t == 5
    np.testing.assert_array_equal(y, np.full(5, 2, np.float16))


@pytest.mark.compiler
def test_out_of_another_library_is_filled(ops):
    out = Foreign(np.zeros((5, 2), np.float32)[:, 0])
    assert ops.add(ones(5), ones(5), out=out) is out
    np.testing.assert_array_equal(out.array, 2 * ones(5))


@pytest.mark.compiler
def test_out_of_another_library_that_is_read_only_is_refused(ops):
    frozen = ones(5)
    frozen.flags.writeable = False
    np.testing.assert_array_equal(ops.add(Foreign(frozen), ones(5)), 2 * ones(5))
    with pytest.raises(TcError, match="the output 'C' is read-only"):
        ops.add(ones(5), ones(5), out=Foreign(frozen))


@pytest.mark.compiler
def test_memory_of_a_gpu_is_refused(ops):
    with pytest.raises(InputError, match="'B' is on a CUDA GPU; kernels are for the CPU"):
        ops.add(ones(5), Foreign(ones(5), device=2))
    with pytest.raises(InputError, match="'A' is on a device of DLPack type 99"):
        ops.add(Foreign(ones(5), device=99), ones(5))


def test_strides_and_offsets_are_read():
    whole = np.arange(24, dtype=np.int64).reshape(4, 6)
    for view in (whole[:, ::2], whole[::-1, ::-2], whole.T, whole[1:3, 2], whole[2:2]):
        found = as_array(Foreign(view), "x")
        np.testing.assert_array_equal(found, view)
        if view.size:
            assert np.shares_memory(found, whole)


@pytest.mark.parametrize(
    "dtype", [np.bool_, np.int8, np.uint16, np.int32, np.uint64, np.float16, np.float64]
)
def test_element_types(dtype):
    array = np.array([0, 1, 1], dtype)
    found = as_array(Foreign(array), "x")
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, array)


def test_bfloat16_without_strides():
    array = np.arange(6).reshape(2, 3).astype(ml_dtypes.bfloat16)
    found = as_array(Bits(array.view(np.uint16), 4, 16), "x")
    assert found.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(found, array)


@pytest.mark.parametrize(("code", "bits", "lanes"), [(5, 64, 1), (2, 32, 4), (0, 4, 1)])
def test_element_types_no_definition_takes(code, bits, lanes):
    with pytest.raises(InputError, match=f"'x' has elements of DLPack type {code}"):
        as_array(Bits(np.zeros(4), code, bits, lanes), "'x'")


def test_memory_lives_as_long_as_the_array_and_no_longer():
    class Traced(np.ndarray):
        pass

    owner = np.arange(1000.0).view(Traced)
    gone = weakref.ref(owner)
    found = as_array(Foreign(owner), "x")
    del owner
    gc.collect()
    assert gone() is not None
    np.testing.assert_array_equal(found, np.arange(1000.0))
    del found
    gc.collect()
    assert gone() is None


@pytest.mark.compiler
def test_wrong_shapes_are_refused_as_those_of_numpy(ops):
    with pytest.raises(TcError, match="dimension 0 of 'B' is 4"):
        ops.add(Foreign(ones(5)), Foreign(ones(4)))


@pytest.mark.compiler
@pytest.mark.parametrize("name", ["torch", "jax"])
def test_a_real_library(ops, name):
    pytest.importorskip(name)
    namespace = sys.modules["torch"] if name == "torch" else pytest.importorskip("jax.numpy")
    a = namespace.asarray(ones(5))
    result = ops.add(a, a)
    assert type(result) is type(a)
    np.testing.assert_array_equal(np.asarray(result), 2 * ones(5))
