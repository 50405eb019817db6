"""A kernel of several launches, planned for its shapes and run as one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tcfuse.codegen.device import device_header
from tcfuse.emulator import Finding, Program, emulate
from tcfuse.errors import InputError
from tcfuse.interface import Interface, Port
from tcfuse.targets.base import CudaPhase, CudaSource, Launch
from tcfuse.types import DType, TensorType

pytestmark = pytest.mark.compiler

TEXT = r"""#include "tcf_device.hpp"
// Sums of rows, in two stages: of every piece of 64 to the scratch, then of all pieces.
TCF_LAUNCH(64) partial_0(const float* X, float* Y, char* scratch, int32_t* fault, int64_t N,
                         int64_t M) {
  tcf::team<64> team;
  float* P = (float*)scratch;
  const int64_t pieces = (M + 63) / 64;
  for (int64_t k = blockIdx.x; k < N * pieces; k += gridDim.x) {
    const int64_t row = k / pieces, column = k % pieces * 64 + team.rank();
    const float sum = team.sum(column < M ? X[row * M + column] : 0.f);
    if (team.rank() == 0) P[k] = sum;
  }
}
TCF_LAUNCH(32) total_1(const float* X, float* Y, char* scratch, int32_t* fault, int64_t N,
                       int64_t M) {
  tcf::team<8> team;
  const float* P = (const float*)scratch;
  const int64_t pieces = (M + 63) / 64;
  for (int64_t row = blockIdx.x * 4 + team.number(); row < N; row += gridDim.x * 4) {
    float sum = 0.f;
    for (int64_t k = team.rank(); k < pieces; k += 8) sum += P[row * pieces + k];
    sum = team.sum(sum);
    if (team.rank() == 0) Y[row] = sum;
    if (sum != sum) *fault = 1;
  }
}
"""


def kernel(text: str = TEXT, **changes: object) -> CudaSource:
    f32 = DType.FLOAT32
    interface = Interface(
        (Port("X", TensorType(f32, ("N", "M"))),),
        (Port("Y", TensorType(f32, ("N",))),),
        ("N", "M"),
    )
    first = Launch("partial_0", "N * ((M + 63) / 64)", 64, blocks_per_multiprocessor=2)
    second = Launch("total_1", "(N + 3) / 4", 32)
    made = CudaSource(
        "rowsum_0",
        text,
        interface,
        (CudaPhase((first,)), CudaPhase((second,))),
        "4 * N * ((M + 63) / 64)",
    )
    return replace(made, **changes)


@pytest.fixture(params=[False, True], ids=["fast", "traced"])
def trace(request, compile_cuda):
    compile_cuda(TEXT, ("partial_0", "total_1"), request.param)
    return request.param


@pytest.mark.parametrize("shape", [(5, 300), (33, 64), (1, 1), (4, 0)])
@pytest.mark.parametrize("seed", [0, 1])
def test_two_launches(trace, shape, seed):
    x = np.random.default_rng(0).random(shape, np.float32)
    done = emulate(kernel(), [x], trace=trace, seed=seed, multiprocessors=3)
    assert [str(report) for report in done.reports] == []
    np.testing.assert_allclose(done.outputs[0], x.sum(1), rtol=1e-5)
    assert not done.fault
    grids = [run.blocks for run in done.runs]
    pieces = -(-shape[1] // 64)
    assert grids == ([min(6, shape[0] * pieces)] if pieces else []) + [-(-shape[0] // 4)]


def test_faults_are_told(trace):
    x = np.full((3, 64), np.nan, np.float32)
    done = emulate(kernel(), [x], trace=trace)
    assert done.fault
    assert done.reports == ()  # every thread may set the flag


def test_traffic(compile_cuda):
    compile_cuda(TEXT, ("partial_0", "total_1"))
    x = np.zeros((64, 640), np.float32)
    done = emulate(kernel(), [x])
    assert [b.buffer for b in done.traffic] == ["X", "Y", "scratch", "fault"]
    assert done.compulsory_bytes == x.nbytes + 64 * 4
    assert done.moved_bytes == done.compulsory_bytes + 2 * 4 * 64 * 10
    assert done.requested_bytes >= done.moved_bytes
    assert {site.buffer for run in done.runs for site in run.sites} == {
        "X",
        "Y",
        "scratch",
        "slots",
    }


@pytest.mark.parametrize(
    ("old", "new", "buffer"),
    [
        (
            "if (team.rank() == 0) P[k] = sum;",
            "if (k && team.rank() == 0) P[k] = sum;",
            "scratch",
        ),
        ("if (sum != sum)", "if (Y[row] != sum)", ""),
        ("if (sum != sum)", "if (row && Y[row - 1] != sum)", "Y"),
    ],
)
def test_what_was_never_written(compile_cuda, old, new, buffer):
    assert TEXT.count(old) == 1
    text = TEXT.replace(old, new)
    compile_cuda(text, ("partial_0", "total_1"))
    done = emulate(kernel(text), [np.zeros((4, 64), np.float32)])
    wrong = [r for r in done.reports if r.buffer == buffer]
    if not buffer:  # rank 0 wrote it, but the other threads read it with no order
        assert {r.kind for r in done.reports} & {
            Finding.UNINITIALISED,
            Finding.RACE_READ_AFTER_WRITE,
        }
        return
    assert wrong, [str(r) for r in done.reports]


@pytest.mark.parametrize("alignment", [4, 16, 256])
def test_tensors_are_aligned_as_the_plan_was_told(compile_cuda, alignment):
    """A launch that takes more for granted than its condition says is found."""
    text = TEXT.replace("X[row * M + column]", "tcf::load<float, 2>(X)[row * M + column]")
    compile_cuda(text, ("partial_0", "total_1"))
    done = emulate(kernel(text), [np.zeros((1, 2), np.float32)], alignment=alignment)
    assert [r.kind for r in done.reports] == ([Finding.MISALIGNED] if alignment < 8 else [])
    for report in done.reports:
        assert "tcf::load<float, 2>" in text.splitlines()[report.by.place.line - 1]
        inside = [device_header().splitlines()[k - 1] for k in report.by.place.inside]
        assert "read_word(" in inside[0]
        assert "tcf_emulator::read(" in inside[-1]
        lines = ", ".join(map(str, report.by.place.inside))
        assert str(report).endswith(f"; inside tcf_device.hpp:{lines}")


def test_scratch_is_aligned_whatever_tensors_are(compile_cuda):
    text = TEXT.replace("P[row * pieces + k];", "tcf::load<float, 4>(P)[row * pieces + k];")
    compile_cuda(text, ("partial_0", "total_1"))
    done = emulate(kernel(text), [np.ones((4, 2), np.float32)], alignment=4)
    assert not done.reports
    np.testing.assert_array_equal(done.outputs[0], [2, 2, 2, 2])


def test_one_barrier_that_two_lines_call(compile_cuda):
    """The waiting is done on one line of the device library: the calls are told apart."""
    text = """#include "tcf_device.hpp"
TCF_LAUNCH(64) apart(float* y, int64_t n) {
  tcf::team<64> team;
  if (threadIdx.x < n) {
    team.sync();
    y[threadIdx.x] = 1;
  } else {
    y[threadIdx.x] = 2;
    team.sync();
  }
  for (int k = 0; k < 9; k++) {
    if (k % 2) y[threadIdx.x] = k;
    team.sync();
  }
}
"""
    program = compile_cuda(text, ("apart",))
    for n in (0, 64):
        assert program.run("apart", 1, 64, 0, [np.zeros(64, np.float32), n]).reports == ()
    (report,) = program.run("apart", 1, 64, 0, [np.zeros(64, np.float32), 7]).reports
    assert report.kind is Finding.BARRIER_DIVERGENCE
    assert report.other is not None
    assert {report.by.place.line, report.other.place.line} == {5, 9}


def test_a_launch_that_stops_is_the_last(compile_cuda):
    text = TEXT.replace("P[k] = sum;", "P[-1] = sum;")
    compile_cuda(text, ("partial_0", "total_1"))
    done = emulate(kernel(text), [np.zeros((4, 64), np.float32)])
    assert [run.finished for run in done.runs] == [False]
    (report,) = done.reports
    assert (report.kind, report.buffer, report.offset) == (
        Finding.OUT_OF_BOUNDS_WRITE,
        "scratch",
        -4,
    )


def test_inputs_that_do_not_fit():
    with pytest.raises(InputError, match="'X' has 2 dimensions"):
        emulate(kernel(), [np.zeros(4, np.float32)])
    with pytest.raises(InputError, match="'X' is int32, but the kernel takes float"):
        emulate(kernel(), [np.zeros((4, 4), np.int32)])


def test_several_texts_are_one_program(compile_cuda):
    """The device library is included by each, and compiled once."""
    text = "extern __shared__ unsigned char tcf_shared[];\n" + TEXT
    other = text.replace("partial_0", "partial_2").replace("total_1", "total_3")
    symbols = ("partial_0", "total_1", "partial_2", "total_3")
    compile_cuda(TEXT, symbols[:2])  # skips where there is no compiler
    program = Program.build([text, other], symbols, trace=True)
    x = np.ones((4, 64), np.float32)
    phases = tuple(
        CudaPhase((replace(p.launches[0], symbol=s),))
        for p, s in zip(kernel().phases, symbols[2:], strict=True)
    )
    done = emulate(kernel(phases=phases), [x], program=program)
    np.testing.assert_array_equal(done.outputs[0], np.full(4, 64))
    assert {s.place.file for run in done.runs for s in run.sites} == {"kernel_1.cu"}
