"""Which storage of temporaries the proof accepts."""

from tcfuse.mapping_options import MappingOptions
from tests.targets.kernels import kernel_of

MIRRORED = """def f(float(N, M) X) -> (float(N, M) Y) {
  t(i, j) = X(i, j) * 2 where i in 0:N, j in 0:M
  Y(i, j) = t(i, j) - t(i, M - j - 1) where i in 0:N, j in 0:M
}"""


def test_an_instance_may_read_two_elements_of_a_row():
    kernel = kernel_of(MIRRORED, MappingOptions(fusion="max"))
    assert "t: row buffer, dimensions [1]" in kernel.mapped
