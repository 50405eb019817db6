"""Launches planned in Python are those that the compiled table computes."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tcfuse.codegen.prelude import kernel_prelude
from tcfuse.errors import InputError, UnsupportedError
from tcfuse.ort.direct import DirectBuild, DirectKernel
from tcfuse.targets.base import (
    CudaPhase,
    CudaSource,
    Interface,
    KernelSource,
    Launch,
    Phase,
    Port,
)
from tcfuse.targets.c_expression import evaluate
from tcfuse.targets.geometry import CudaPlan, Step, bind, plan
from tcfuse.types import DType, Size, TensorType

OFFSET = 1 << 40  # keeps what stands for a dimension positive
N_EXPRESSIONS = 60


def port(name: str, *shape: Size) -> Port:
    return Port(name, TensorType(DType.FLOAT32, shape))


def random_expression(draw: random.Random, names: tuple[str, ...], depth: int = 3) -> str:
    """C text of every construct that launches may use."""
    if depth == 0 or draw.random() < 0.1:
        return draw.choice([*names, str(draw.randrange(8))])

    def part() -> str:
        return random_expression(draw, names, depth - 1)

    kind = draw.randrange(12)
    if kind < 5:
        return f"({part()} {draw.choice('+-*/%')} {part()})"
    if kind < 7:
        function = draw.choice(["tcf_min", "tcf_max", "tcf_floor_div"])
        return f"{function}({part()}, {positive(part())})"
    if kind < 9:
        comparison = draw.choice(["<", "<=", ">", ">=", "==", "!="])
        return f"({part()} {comparison} {part()} ? {part()} : {part()})"
    if kind < 11:
        return f"({part()} {draw.choice(['&&', '||'])} !({part()}))"
    return f"-({part()})"


def positive(text: str) -> str:
    return f"tcf_max({text}, 1)"


def interface() -> Interface:
    draw = random.Random(7)
    sizes = ("n0", "n1", "n2", "n3")
    dims = tuple(f"{OFFSET} + {random_expression(draw, sizes)}" for _ in range(N_EXPRESSIONS))
    return Interface(
        (port("A", "n0 + n1", "n0", 3), port("B", "n1", "n0"), port("C", "2*n1 + n2")),
        (port("Y", *dims), port("Z", "n0 - 1")),
        sizes,
        derived=(("n2", "n0 / n1 + 1"), ("n3", "tcf_floor_div(n0 - 5, tcf_nonzero(n2))")),
        checks=(("n1 != 7 && n0 % 5 != 4", "n1 is 7, or n0 is 4 modulo 5"),),
    )


@pytest.fixture(scope="module")
def compiled() -> DirectKernel:
    parameters = "char* const*, const int64_t*, char*, char*, int64_t, int64_t, int32_t*"
    text = f"{kernel_prelude()}\nTCF_KERNEL(nothing)({parameters}) {{}}\n"
    kernel = KernelSource(
        "nothing", text, interface(), (Phase("nothing", "1", "1"),), "n0 * n2 * 100", "1"
    )
    return DirectBuild(kernel).load()[0]


SIZES = st.integers(0, 9)


def shapes_of(n0: int, n1: int, last: int | None) -> tuple[tuple[int, ...], ...]:
    """Shapes that fit, but for the last dimension if it is given."""
    n2 = n0 // (n1 or 1) + 1
    return ((n0 + n1, n0, 3), (n1, n0), (2 * n1 + n2 if last is None else last,))


@pytest.mark.compiler
@settings(max_examples=200, deadline=None)
@given(SIZES, SIZES, st.none() | st.integers(0, 20))
@example(9, 7, None)
@example(3, 0, None)
@example(0, 2, None)
def test_as_in_the_compiled_table(
    compiled: DirectKernel, n0: int, n1: int, last: int | None
) -> None:
    shapes = shapes_of(n0, n1, last)
    dims = [n for shape in shapes for n in shape]
    source = source_of(interface(), scratch="n0 * n2 * 100")
    found = compiled.plan(dims)
    if found is None:
        with pytest.raises(InputError) as refused:
            plan(source, shapes)
        assert str(refused.value) == compiled.complaint(dims)
        return
    ours = plan(source, shapes)
    assert ours.output_shapes == found.shapes
    assert ours.scratch_bytes == found.shared_bytes


@pytest.mark.compiler
def test_every_outcome_was_compared(compiled: DirectKernel) -> None:
    outcomes = {
        compiled.plan([n for s in shapes_of(n0, n1, last) for n in s]) is None
        for n0, n1, last in [(3, 2, None), (3, 2, 1)]
    }
    assert outcomes == {True, False}


def source_of(
    interface: Interface, phases: tuple[CudaPhase, ...] = (), scratch: str = "0"
) -> CudaSource:
    return CudaSource("k", "", interface, phases, scratch)


ROWS = Interface((port("X", "N", "M"),), (port("Y", "N", "M"),), ("N", "M"))
PHASES = (
    CudaPhase(
        (
            Launch("wide", "N", 256, "4 * M", "tcf_alignment % 16 == 0 && M % 4 == 0"),
            Launch("long", "N * 2", 128, "8 * M", "8 * M <= tcf_shared_limit", 4),
            Launch("any", "(N + 7) / 8", 32, blocks_per_multiprocessor=2),
        )
    ),
    CudaPhase((Launch("tail", "N - 4", 64),)),
)


def planned(n: int, m: int, **device: int) -> CudaPlan:
    return plan(source_of(ROWS, PHASES), ((n, m),), **device)


def steps(*given: tuple[str, int, int, int]) -> tuple[Step, ...]:
    return tuple(Step(*step) for step in given)


def test_the_first_launch_that_can_be_used_is() -> None:
    assert planned(10, 8).steps == steps(("wide", 10, 256, 32), ("tail", 6, 64, 0))
    assert planned(10, 8, alignment=8).steps[0] == Step("long", 20, 128, 64)
    assert planned(10, 8, alignment=8, shared_limit=63).steps[0] == Step("any", 2, 32, 0)


def test_launches_without_work_are_left_out() -> None:
    assert [step.symbol for step in planned(4, 8).steps] == ["wide"]
    assert planned(0, 8).steps == ()


def test_blocks_are_bounded_by_what_runs_at_once() -> None:
    assert planned(1000, 7, multiprocessors=10).steps[0] == Step("long", 40, 128, 56)
    assert planned(10**9, 8, multiprocessors=10).steps[0].grid == 10**9
    assert planned(1 << 40, 8).steps[0].grid == (1 << 31) - 1


def test_sizes_are_in_the_order_of_parameters() -> None:
    found = bind(interface(), shapes_of(8, 2, None))
    assert list(found.items()) == [("n0", 8), ("n1", 2), ("n2", 5), ("n3", 0)]


def refused() -> Iterator[tuple[str, tuple[tuple[int, ...], ...], str]]:
    yield "inputs", ((2, 3), (1,)), "the kernel has 1 inputs, but 2 are given"
    yield "rank", ((2,),), "'X' has 2 dimensions, but 1 are given"


@pytest.mark.parametrize(
    ("shapes", "why"), [c[1:] for c in refused()], ids=[c[0] for c in refused()]
)
def test_other_shapes_are_refused(shapes: tuple[tuple[int, ...], ...], why: str) -> None:
    with pytest.raises(InputError, match=why):
        plan(source_of(ROWS, PHASES), shapes)


def test_scratch_beyond_all_memory_is_refused() -> None:
    with pytest.raises(InputError, match="more memory than there is"):
        plan(source_of(ROWS, PHASES, "N * M * 8"), ((1 << 30, 1 << 30),))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-7 / 2", -3),
        ("-7 % 2", -1),
        ("7 / -2", -3),
        ("5 / 0", 5),
        ("5 % 0", 0),
        ("tcf_floor_div(-7, 2)", -4),
        ("1 || 1 / 0", 1),
        ("0 ? 1 : 2 ? 3 : 4", 3),
    ],
)
def test_arithmetic_is_that_of_c(text: str, value: int) -> None:
    assert evaluate(text, {}) == value


@pytest.mark.parametrize(
    "text", ["__import__('os')", "N", "exp(2)", "1.5", "A(1)", "tcf_min(1)", "2 +", "1; 2"]
)
def test_nothing_else_is_evaluated(text: str) -> None:
    with pytest.raises(UnsupportedError, match="cannot evaluate"):
        evaluate(text, {})
