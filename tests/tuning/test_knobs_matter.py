"""A knob that is tuned reaches the code: there is a definition whose kernel depends on it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tcfuse.errors import UnsupportedError
from tcfuse.knob import knobs_of
from tcfuse.mapping_options import MappingOptions
from tcfuse.targets.cpu import compile_kernel
from tcfuse.tuning.building import digest_of
from tests.conformance.option_seeds import BUGS
from tests.poly.test_skewing import HEAT
from tests.targets.kernels import checked_of, interface_of

TEXTS = {
    "chain": """
def f(float(64, 4096) X) -> (float(64, 4096) Y, float(64) S) {
  T(i, j) = X(i, j) * 2 where i in 0:64, j in 0:4096
  E(i, j) = exp(T(i, j)) where i in 0:64, j in 0:4096
  S(i) +=! E(i, j) where i in 0:64, j in 0:4096
  Y(i, j) = E(i, j) / S(i) where i in 0:64, j in 0:4096
}""",
    "product": """
def f(float(96, 64) A, float(64, 80) B) -> (float(96, 80) C) {
  C(m, n) +=! A(m, k) * B(k, n) where m in 0:96, n in 0:80, k in 0:64
}""",
    "far rows": """
def f(float(96, 256) A, float(256, 128) B) -> (float(96, 128) C) {
  C(m, n) +=! A(m, k) * B(k, n) where m in 0:96, n in 0:128, k in 0:256
}""",
    "large": """
def f(float(4096, 4096) X) -> (float(4096, 4096) Y) {
  Y(i, j) = exp(X(i, j)) where i in 0:4096, j in 0:4096
}""",
    "recurrence": HEAT,
    "turned": BUGS["turned"],
    "named": "def f(float(N, M) X) -> (float(N, M) Y) { Y(i, j) = X(i, j) + 1 }",
}
BASES = (
    MappingOptions(),
    MappingOptions(tile=(8, 32)),
    MappingOptions(tile=(8, 32), skewing=True),
    MappingOptions(fusion="max", inner_fusion="max"),
    MappingOptions(fusion="max", inner_fusion="max", tile=(8, 8)),
)


def digest(name: str, options: MappingOptions) -> str:
    checked = checked_of(TEXTS[name])
    fixed = {"N": 64, "M": 48} if name == "named" else None
    try:
        return digest_of(
            compile_kernel(checked, interface_of(checked), "k", options, fixed).source
        )
    except UnsupportedError as error:
        return str(error)


@pytest.mark.parametrize("knob", [name for name, k in knobs_of(MappingOptions) if k.tuned])
def test_a_tuned_knob_changes_some_kernel(knob: str):
    for base in BASES:
        for name in TEXTS:
            usual = digest(name, base)
            for choice in dict(knobs_of(MappingOptions))[knob].choices:
                if choice != getattr(base, knob) and usual != digest(
                    name, replace(base, **{knob: choice})
                ):
                    return
    pytest.fail(f"no kernel depends on {knob}")
