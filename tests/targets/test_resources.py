"""What the compiler's log and its results say of kernel functions."""

from __future__ import annotations

from tcfuse.targets.cubin import Cubin, CubinKernel
from tcfuse.targets.ptx import Ptx
from tcfuse.targets.resources import Resources, resources, spills

LOG = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'first' for 'sm_90'
ptxas info    : Function properties for first
ptxas         .     16 bytes stack frame, 24 bytes spill stores, 48 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 16 bytes cumulative stack size
ptxas info    : Compiling entry function 'other' for 'sm_90'
ptxas info    : Function properties for other
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers
ptxas info    : Function properties for _Z4helpPf
ptxas         .     8 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads
"""
TEXT = """
.version 9.0
.target sm_90
.address_size 64
.func _Z4helpPf(
	.param .b64 _Z4helpPf_param_0
)
{
	ld.global.v2.f32 {%f1, %f2}, [%rd1];
	ret;
}
.visible .entry first(
	.param .u64 first_param_0
)
{
	{ // callseq 0, 0
	.param .b64 param0;
	st.param.b64 [param0+0], %rd1;
	call.uni
	_Z4helpPf,
	(
	param0
	);
	} // callseq 0
	st.global.f32 [%rd1], %f1;
	ret;
}
.visible .entry other()
{
	ret;
}
"""


def test_spills_are_those_of_each_function() -> None:
    assert spills(LOG) == {"first": (24, 48), "other": (0, 0), "_Z4helpPf": (4, 8)}


def test_a_kernel_has_what_it_calls() -> None:
    kernels = {"first": CubinKernel(40, 16, 32, 640), "other": CubinKernel(8, 0, 0, 128)}
    assert resources(Cubin(90, kernels), Ptx.parse(TEXT), LOG) == {
        "first": Resources(40, 28, 56, 16, 32, 640, 8, 4),
        "other": Resources(8, 0, 0, 0, 0, 128, 0, 0),
    }
