"""Candidates that crash, hang, eat memory or lie cost one outcome each; good ones are timed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tcfuse.interface import Interface, Port
from tcfuse.mapping_options import MappingOptions
from tcfuse.targets.base import KernelSource, Phase
from tcfuse.tuning.candidate import Candidate, Outcome, Subject
from tcfuse.tuning.measure import LocalEvaluator
from tcfuse.tuning.racing import Race
from tcfuse.types import DType, TensorType

pytestmark = pytest.mark.compiler

TEXT = "def f(float(N) X) -> (float(N) Y) {\n  Y(i) = X(i) * 2 where i in 0:N\n}\n"
VECTOR = TensorType(DType.FLOAT32, ("N",))
INTERFACE = Interface((Port("X", VECTOR),), (Port("Y", VECTOR),), ("N",))
SUBJECT = Subject("f", TEXT, INTERFACE, {"N": 5000})
GOOD = "for (int64_t i = 0; i < n; i++) y[i] = x[i] * 2;"
SYSCALL = """
static long call(long number, long a, long b, long c) {
  long result;
  asm volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c),
               "r"(0L) : "rcx", "r11", "memory");
  return result;
}
"""
PLANTED = {
    "right": GOOD,
    "slower": f'for (int k = 0; k < 40; k++) {{ {GOOD} asm volatile("" ::: "memory"); }}',
    "sleeps": "for (;;) call(34, 0, 0, 0);",
    "endless": 'for (;;) asm volatile("");',
    "segmentation fault": "*(volatile int*)8 = 1;",
    "abort": "__builtin_trap();",
    "wrong": f"{GOOD} if (n > 100) y[77] += 1;",
    "unwritten": "for (int64_t i = 0; i + 1 < n; i++) y[i] = x[i] * 2;",
    "past the end": f"{GOOD} y[n] = 1;",
    "far past the end": f"{GOOD} y[n + 5000] = 1;",
    "before": f"{GOOD} y[-1] = 1;",
    "reads past the end": f"{GOOD} y[0] = y[0] + 0 * ((volatile float*)x)[n];",
    "input": f"{GOOD} ((float*)x)[3] = 1;",
    "scratch": f"{GOOD} shared[64] = 1;",
    "maps": f"{GOOD} long at = call(9, 0, 100L << 30, 3); ((char*)at)[0] = 1;",
    "prints": f'{GOOD} call(1, 1, (long)"noise\\n", 6); call(1, 2, (long)"noise\\n", 6);',
    "forks": f"{GOOD} if (call(57, 0, 0, 0) == 0) for (;;) call(34, 0, 0, 0);",
    "leaves": "call(231, 3, 0, 0);",
    "kills its group": "call(62, 0, 9, 0);",
    "stack": "volatile char big[1 << 26]; for (long k = 0; k < (1 << 26); k += 99) big[k] = 1;",
}
"""Bodies of kernels by name; ``call`` is a system call of x86-64."""


def kernel(body: str, shared: str = "0") -> KernelSource:
    """A kernel for ``SUBJECT`` of hand-written C++."""
    text = f"""{SYSCALL}
    TCF_KERNEL(planted_0)(char* const* tensors, const int64_t* sizes, char* shared,
        char* local, int64_t begin, int64_t end, int32_t* fault) {{
      const int64_t n = sizes[0];
      const float* x = (const float*)tensors[0];
      float* y = (float*)tensors[1];
      {body}
    }}"""
    return KernelSource("planted", text, INTERFACE, (Phase("planted_0", "1", "0"),), shared)


def candidate(number: int) -> Candidate:
    """Something that stands for the planted kernel of that number."""
    return Candidate(MappingOptions(isl_operations=number + 1))


def measured(
    bodies: list[str], shared: str = "0", subject: Subject = SUBJECT, **named
) -> list[Outcome]:
    """Outcomes of planted kernels, in order."""
    kernels = {candidate(k): kernel(body, shared) for k, body in enumerate(bodies)}
    evaluator = LocalEvaluator(
        compile=lambda _, c: kernels.get(c, kernel(GOOD)), race=Race(budget_s=0.05), **named
    )
    try:
        found = dict(evaluator.evaluate(subject, list(kernels), Candidate()))
    finally:
        evaluator.close()
    return [found[c] for c in kernels]


FATES = {
    "sleeps": ("timeout", "still checking after"),
    "endless": ("timeout", "checking"),
    "segmentation fault": ("crashed", "signal 11"),
    "abort": ("crashed", "signal 4"),
    "wrong": ("wrong", "Y of N=5000: error"),
    "unwritten": ("wrong", "nan instead of"),
    "past the end": ("crashed", "writes out of bounds: just past the end of output Y"),
    "far past the end": (
        "crashed",
        "writes out of bounds: 20000 bytes past the end of output Y",
    ),
    "before": ("wrong", "writes out of bounds, next to output Y"),
    "reads past the end": ("crashed", "reads out of bounds: just past the end of input 0"),
    "input": ("crashed", "writes byte 12 of input 0"),
    "maps": ("crashed", "signal 11"),
    "leaves": ("crashed", "ended with status 3 while checking"),
    "stack": ("crashed", "signal 11"),
}


def test_each_bad_candidate_costs_one_outcome_and_the_next_is_measured():
    *bad, good = measured([*(PLANTED[name] for name in FATES), PLANTED["slower"]])
    for (name, (status, detail)), outcome in zip(FATES.items(), bad, strict=True):
        assert outcome.status == status, f"{name}: {outcome}"
        assert detail in outcome.detail, f"{name}: {outcome}"
        assert outcome.fitness == 0.0
    assert good.status == "slow"
    assert good.speedup < 0.6


def test_what_prints_forks_or_kills_its_group_is_measured_or_reported():
    printing, forking, killing, right = measured(
        [PLANTED[name] for name in ("prints", "forks", "kills its group", "right")]
    )
    assert all(found.speedup for found in (printing, forking, right))
    assert killing.status == "memory"


def test_scratch_is_guarded_and_bounded():
    [past] = measured([PLANTED["scratch"]], shared="64")
    assert "just past the end of scratch" in past.detail
    [much] = measured([GOOD], shared="((int64_t)100 << 30)")
    assert (much.status, much.detail) == ("memory", "100.0 GiB of scratch, of 2.0")


def test_equal_texts_are_measured_once_and_the_default_is_as_fast_as_itself():
    default, other, same = measured([GOOD, PLANTED["slower"], PLANTED["slower"]])
    assert default.speedup == 1.0
    assert other.source != default.source
    assert (same.source, same.micros) == (other.source, other.micros)


def test_kernels_run_in_parts_on_threads():
    parts = """for (int64_t i = begin; i < end; i++) y[i] = x[i] * 2;"""
    whole = f"if (begin == 0) {GOOD}"
    torn = "for (int64_t i = begin + (begin > 0); i < end; i++) y[i] = x[i] * 2;"
    phase = Phase("planted_0", "N", "1000000")
    kernels = {
        candidate(k): replace(kernel(body), phases=(phase,))
        for k, body in enumerate((parts, whole, torn))
    }
    evaluator = LocalEvaluator(
        compile=lambda _, c: kernels.get(c, kernel(GOOD)), race=Race(budget_s=0.05)
    )
    try:
        found = evaluator.evaluate(replace(SUBJECT, threads=2), list(kernels), Candidate())
        outcomes = dict(found)
    finally:
        evaluator.close()
    statuses = [outcomes[c].status for c in kernels]
    assert statuses[0] in ("ok", "slow")
    assert statuses[2] == "wrong"
    assert outcomes[candidate(1)].speedup


def test_what_was_measured_is_confirmed_beside_each_other():
    bodies = (PLANTED["wrong"], GOOD, PLANTED["slower"])
    kernels = {candidate(k): kernel(body) for k, body in enumerate(bodies)}
    evaluator = LocalEvaluator(compile=lambda _, c: kernels.get(c, kernel(GOOD)))
    try:
        found = dict(evaluator.confirm(SUBJECT, list(kernels), Race(0.2, most=20, promoted=20)))
    finally:
        evaluator.close()
    assert [found[c].status for c in kernels] == ["wrong", "ok", "slow"]
    assert found[candidate(2)].speedup < 0.6
