from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tcfuse.cuda_options import CudaOptions
from tcfuse.errors import UnsupportedError
from tcfuse.mapping_options import MappingOptions
from tcfuse.targets.cuda import compile_kernel
from tests.poly.definitions import ALL, COLUMN_SUM, LAYER_NORM, ROW_SUM
from tests.targets.cuda_kernels import cuda_kernel_of, instances, plain_text
from tests.targets.kernels import checked_of, interface_of

Golden = Callable[[object, str], None]
SOFTMAX = """def softmax(float(n0, n1) X) -> (float(n0, n1) Y) {
  M(i) max=! X(i, j) where i in 0:n0, j in 0:n1
  E(i, j) = exp(X(i, j) - M(i)) where i in 0:n0, j in 0:n1
  S(i) +=! E(i, j) where i in 0:n0, j in 0:n1
  Y(i, j) = E(i, j) / S(i) where i in 0:n0, j in 0:n1
}"""
SCALE = """def scale(float({0}) X) -> (float({0}) Y) {{ Y({1}) = X({1}) * 2.0 }}"""


def test_a_layer_norm_keeps_its_row_in_registers(golden: Golden) -> None:
    golden(plain_text(cuda_kernel_of(LAYER_NORM)), "cu")


def test_an_elementwise_definition_is_flat(golden: Golden) -> None:
    text = """def act(float(8, 96) X, float(96) B) -> (float(8, 96) Y) {
      Y(i, j) = fmax(X(i, j) + B(j), 0.0)
    }"""
    golden(plain_text(cuda_kernel_of(text)), "cu")


def test_columns_are_summed_by_a_thread_each(golden: Golden) -> None:
    golden(plain_text(cuda_kernel_of(COLUMN_SUM, split=1)), "cu")


@pytest.mark.parametrize("name", ALL)
def test_every_definition_ends_with_a_launch_that_always_holds(name: str) -> None:
    source = cuda_kernel_of(ALL[name]).source
    assert source.phases
    for phase in source.phases:
        assert phase.launches[-1].when == "1"
        for launch in phase.launches[:-1]:
            assert launch.when != "1"
            assert f"{launch.symbol}(" in source.text


@pytest.mark.parametrize(
    ("length", "team", "groups"), [(64, 16, 1), (256, 32, 2), (768, 64, 3), (4096, 256, 4)]
)
def test_teams_are_as_large_as_rows_need(length: int, team: int, groups: int) -> None:
    text = SOFTMAX.replace("n0", "32").replace("n1", str(length))
    first, *_ = instances(cuda_kernel_of(text))
    assert first == f"int, {team}, 4, {groups}, 0"


@pytest.mark.parametrize(
    ("length", "team"), [("16", 32), ("1000", 256), ("9000", 512), ("K", 512)]
)
def test_a_team_that_is_alone_has_many_threads(length: str, team: int) -> None:
    text = f"def f(float({length}) X) -> (float Y) {{ Y +=! X(k) }}"
    first, *_ = instances(cuda_kernel_of(text, split=1))
    assert int(first.split(", ")[1]) == team


@pytest.mark.parametrize("block", [0, 512])
def test_a_team_of_several_warps_is_a_block(block: int) -> None:
    text = SOFTMAX.replace("n0", "4096").replace("n1", "1024")
    kernel = cuda_kernel_of(text, block=block)
    teams = [int(arguments.split(", ")[1]) for arguments in instances(kernel)]
    assert teams == [64, 256]
    assert [la.block for phase in kernel.source.phases for la in phase.launches] == teams


GROUP_NORM = """def norm(float(4, 16, 12, 12) X, float(16) G) -> (float(4, 16, 12, 12) Y) {
  S(n) +=! X(n, c, h, w)
  V(n) +=! t * t where t = X(n, c, h, w) - S(n) / 2304
  Y(n, c, h, w) = (X(n, c, h, w) - S(n) / 2304) * rsqrt(V(n) / 2304 + 0.00001) * G(c)
}"""


def test_threads_share_loops_around_short_ones(golden: Golden) -> None:
    kernel = cuda_kernel_of(GROUP_NORM)
    assert instances(kernel)[0] == "int, 256, 4, 3, 0"
    golden(plain_text(kernel), "cu")


def test_rows_too_long_for_registers_are_shared() -> None:
    text = SOFTMAX.replace("n0", "256").replace("n1", "100000")
    kernel = cuda_kernel_of(text)
    assert instances(kernel)[0] == "int, 1024, 4, 0, 1"
    assert "tcf_shared_limit" in kernel.source.launches[0].when
    assert instances(kernel)[-1].endswith("0, 2"), "the last way is global memory"
    assert kernel.source.scratch_bytes != "0"


def test_unknown_sizes_have_a_way_for_every_length() -> None:
    kernel = cuda_kernel_of(SOFTMAX)
    teams = [int(text.split(", ")[1]) for text in instances(kernel)]
    assert teams[:3] == [32, 256, 1024]
    assert all("n1 % 4 == 0" in launch.when for launch in kernel.source.launches[:3])
    assert instances(kernel)[-1].startswith("int64_t")


@pytest.mark.parametrize(
    ("sizes", "names", "lanes"),
    [
        ("4096", "i", 4),
        ("100, 48", "i, j", 4),
        ("100, 50", "i, j", 2),
        ("100, 51", "i, j", 1),
        ("3", "i", 2),
    ],
)
def test_vectors_divide_what_rows_are_apart(sizes: str, names: str, lanes: int) -> None:
    first, *_ = instances(cuda_kernel_of(SCALE.format(sizes, names)))
    assert first.split(", ")[2] == str(lanes)


def test_shifted_reads_are_no_vectors() -> None:
    text = """def shift(float(100) X) -> (float(96) Y) {
      Y(i) = X(i) + X(i + 1) where i in 0:96
    }"""
    assert instances(cuda_kernel_of(text)) == ["int, 1, 1, 0, 0"]


def test_a_long_sum_has_two_phases() -> None:
    total = "def total(float(1000000) X) -> (float() Y) { Y() +=! X(i) }"
    assert len(cuda_kernel_of(total).source.phases) > 1
    assert len(cuda_kernel_of(total, split=1).source.phases) == 1
    strict = MappingOptions(numerics="strict")
    assert len(cuda_kernel_of(total, strict).source.phases) == 1


def test_more_than_two_billion_elements_have_long_indices() -> None:
    first, *_ = instances(cuda_kernel_of(SCALE.format("60000, 50000", "i, j")))
    assert first.startswith("int64_t")


@pytest.mark.parametrize("tile", [(), (4, 32, 2), (32, 32, 32)])
def test_launches_depend_on_sizes_alone(tile: tuple[int, ...]) -> None:
    product = """def mm(float(n0, n1) A, float(n1, n2) B) -> (float(n0, n2) C) {
      C(i, j) +=! A(i, k) * B(k, j) where i in 0:n0, j in 0:n2, k in 0:n1
    }"""
    source = cuda_kernel_of(product, MappingOptions(tile=tile)).source
    for launch in source.launches:
        text = f"{launch.when} {launch.grid} {launch.shared_bytes}"
        names = {n for n in re.findall(r"[A-Za-z_]\w*", text) if not n.startswith("tcf_")}
        assert names <= {"n0", "n1", "n2"}, launch


def test_scratch_of_more_than_two_gigabytes_is_addressed_in_64_bits() -> None:
    text = """def f(float(N, K) X) -> (float(N, K) Y) {
      T(i, j) = exp(X(i, j)) where i in 0:N, j in 0:K
      S(j) +=! T(i, j) where i in 0:N, j in 0:K
      U(i, j) = T(i, j) / S(j) where i in 0:N, j in 0:K
      V(i) +=! U(i, j) where i in 0:N, j in 0:K
      Y(i, j) = U(i, j) / V(i) where i in 0:N, j in 0:K
    }"""
    places = re.findall(r"\(scratch \+ (.*)\);", cuda_kernel_of(text).source.text)
    assert len(set(places)) > 1, "several temporaries are kept whole"
    for place in places:
        assert not re.search(r"(?<!size_)\b[NK]\b", place), place


def test_knobs_say_the_team_and_the_block() -> None:
    kernel = cuda_kernel_of(ROW_SUM, team=8, block=512)
    assert {text.split(", ")[1] for text in instances(kernel)} == {"8"}
    assert {launch.block for launch in kernel.source.launches} == {512}


def test_blocks_of_teams_stay_for_more_work() -> None:
    (launch, *_) = cuda_kernel_of(ROW_SUM, split=1).source.launches
    assert launch.blocks_per_multiprocessor == 4 * 2048 // launch.block
    (launch, *_) = cuda_kernel_of(ROW_SUM, split=1, waves=0).source.launches
    assert launch.blocks_per_multiprocessor == 0


def test_functions_have_no_more_parameters_than_cuda_has() -> None:
    many = ", ".join(f"float(8) X{k}" for k in range(600))
    body = " + ".join(f"X{k}(i)" for k in range(600))
    with pytest.raises(UnsupportedError, match="parameters are more than CUDA has"):
        cuda_kernel_of(f"def many({many}) -> (float(8) Y) {{ Y(i) = {body} }}")


def test_the_proof_says_that_sizes_were_ignored() -> None:
    checked = checked_of(SOFTMAX)
    never = MappingOptions(fix_sizes="never")
    made = compile_kernel(checked, interface_of(checked), "k", never, CudaOptions(), {"n0": 4})
    assert "fixed sizes ignored: fix_sizes is never" in str(made.proof)


def test_equal_definitions_give_equal_text() -> None:
    one, other = cuda_kernel_of(LAYER_NORM).source, cuda_kernel_of(LAYER_NORM).source
    assert one == other
    assert re.fullmatch(r"k_[0-9a-f]{8}", one.name)
    assert cuda_kernel_of(LAYER_NORM, team=32).source.name != one.name
