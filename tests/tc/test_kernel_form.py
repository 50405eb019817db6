"""Definitions in the form that kernels are made of, and the signatures that go with them."""

import pytest

from tcfuse.errors import TcError
from tcfuse.tc.kernel_form import KernelForm, kernel_form
from tcfuse.tc.parser import parse
from tcfuse.tc.sema import check

FORMS = {
    "copy": "def f(float(N) I) -> (O) { O(i) = I(i) }",
    "shifted": "def f(float(N) I) -> (O) { O(i) = I(i - 1) }",
    "shifted_chain": """def f(float(W) X, float(K) w) -> (P, T) {
        P(i) = X(i - 4)
        T(i) +=! P(3*i + k) * w(k)
    }""",
    "index_as_value": """def f(float(N) I) -> (O) {
        O(i) = I(i) * i + t where i in 3:N, t = i / 2
    }""",
    "pairs": "def f(float(N) I) -> (O) { O(i) = I(2*i) + I(2*i + 1) }",
    "shortest": "def f(float(A) X, float(B) Y) -> (O) { O(i) = X(i) + Y(i) }",
    "shortest_of_differences": """def f(float(N) X, float(M) Y, float(K) w) -> (O) {
        O(i) +=! X(i + k) * Y(i) * w(k)
    }""",
    "rotated": "def f(float(N, M) A) -> (O) { O(i, j) = A(10 + i - j, i + j) where i in 0:10 }",
    "precondition": """def f(float(N) B, float(M) C, float(K) D) -> (A) {
        A(i) +=! B(i) * C(i + j) * D(j)
    }""",
    "solved_size": "def f(float(2*N + 1) X) -> (float(N) O) { O(i) = X(2*i + 1) }",
    "dividing_by_a_size": """def f(float(N) X, float(K) Y) -> (float(4) O) {
        O(i) +=! X(k) + Y(0) where i in 0:4, k in 0:N / K
    }""",
    "product": """def f(float(N, K) X) -> (float O) {
        O() +=! X(0, 0) where k in 0:(N - 1)*(K + 2)
    }""",
    "parts": """def f(float(N) X) -> (float(N) O) {
        O(i) = X(i) where i in 0:4
        O(i) = X(i) + 1 where i in 4:N
    }""",
    "own_neighbours": """def f(float(N) X) -> (O) {
        O(i) = X(i)
        O(i) = O(i) + O(i + 1) where i in 0:N - 1
        O(i) = O(i) + 1
    }""",
    "exists": "def f(float(N) X) -> (O) { O(i) = 3.0 where exists X(i) }",
    "guarded": "def f(float(N) X) -> (O) { O(i) = i > 0 ? X(i - 1) : 0.0 where i in 0:N + 1 }",
    "indirect": """def f(float(E, D) LUT, int32(B, L) I) -> (O) {
        O(b, d) +=! LUT(I(b, l), d)
    }""",
    "redefined": """def f(float(N, D) I) -> (O, tmp) {
        tmp(n) max=! I(n, d)
        O(n, d) = exp(I(n, d) - tmp(n))
        tmp(n) +=! O(n, d)
        O(n, d) = O(n, d) / tmp(n)
    }""",
    "part_reset": """def f(int8(N, M) X) -> (int8(N) O) {
        O(i) = X(i, 0)
        O(i) max=! X(i, j) where i in 1:N
    }""",
    "added_to_a_buffer": "def f(float(N, M) X) -> (float(N) O) { O(i) += X(i, j) }",
    "step_of_a_buffer": "def f(float(N) G) -> (float(N) W) { W(i) = W(i) - 0.1 * G(i) }",
    "narrow_versions": """def f(int8(N) X) -> (int32(N) O) {
        O(i) = X(i)
        O(i) = O(i) * O(N - 1 - i) where i in 0:N
    }""",
    "no_inputs": "def f() -> (O) { O(i, j) = 3 where i in 4:8, j in 3:20 }",
}


def form_of(text: str) -> KernelForm:
    return kernel_form(check(parse(text), affine=False))


def shown(form: KernelForm) -> str:
    """The text, then the signature."""
    interface = form.interface
    lines = [str(form.definition)]
    lines += [f"in {port.name}: {port.type}" for port in interface.inputs]
    lines += [f"out {port.name}: {port.type}" for port in interface.outputs]
    lines += [f"sizes {', '.join(interface.sizes)}"]
    lines += [f"{name} = {value}" for name, value in interface.derived]
    lines += [f"check {condition}: {sentence}" for condition, sentence in interface.checks]
    lines += [f"fact {fact}" for fact in interface.facts]
    return "\n".join(lines)


@pytest.mark.parametrize("name", FORMS)
def test_form(name, golden):
    golden(shown(form_of(FORMS[name])), "tc")


@pytest.mark.parametrize("name", FORMS)
def test_the_text_is_affine_and_of_the_types_the_ports_say(name):
    form = form_of(FORMS[name])
    checked = check(parse(str(form.definition)), sizes=form.interface.sizes)
    assert not checked.origins
    for port in form.interface.outputs:
        assert checked.tensors[port.name] == port.type
    assert set(checked.sizes) == set(form.interface.sizes)


def test_a_form_is_its_own_form():
    once = form_of(FORMS["own_neighbours"])
    assert form_of(str(once.definition)).interface == once.interface


def test_copies_have_indices_of_their_own():
    form = form_of("def f(float(i0, i1) X) -> (float(i0, i1) O) { O(i, j) += X(i, j) }")
    assert "O(i0_, i1_) = O_in(i0_, i1_)" in str(form.definition)
    check(parse(str(form.definition)), sizes=form.interface.sizes)


def test_a_size_no_input_gives_is_refused():
    text = "def f(float(N) X) -> (float(M) O) { O(i) = X(0) where i in 0:M }"
    with pytest.raises(TcError, match="no input gives the size 'M'"):
        form_of(text)


def test_a_dimension_that_gives_two_sizes_is_refused():
    text = "def f(float(N + M) X) -> (O) { O(i) = X(i) where i in 0:N + M }"
    with pytest.raises(TcError, match="does not say what M and N are"):
        form_of(text)


def test_numbers_beyond_int64_are_refused():
    text = f"def f(float(N) X) -> (O) {{ O(i) = X(0) where i in 0:{10**30} }}"
    with pytest.raises(TcError, match="too large"):
        form_of(text)


def test_a_range_that_always_leaves_its_tensor_is_refused():
    text = """def f(float(N) X) -> (float(4) O) {
        O(i) = X(0) where i in 0:4
        O(i) = X(0) where i in -1:3
    }"""
    with pytest.raises(TcError, match="outside"):
        form_of(text)
