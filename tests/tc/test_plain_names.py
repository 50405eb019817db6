from __future__ import annotations

import numpy as np
import pytest

from tcfuse.interface import Interface, Port
from tcfuse.tc.evaluate import evaluate
from tcfuse.tc.parser import parse
from tcfuse.tc.plain_names import plain_names
from tcfuse.tc.sema import check
from tests.targets.kernels import kernel_of

TEXT = """def f(float(SIZE, 20) X) -> (Y) {
  T(INDEX) +=! X(INDEX, LAST) * factor where factor = exp(X(INDEX, LAST))
  Y(i) = T(i) + SIZE where i in 0:SIZE
}"""
WORDS = (
    "mod",
    "not",
    "floor",
    "INFINITY",
    "new",
    "int",
    "L1",
    "c0",
    "turn",
    "first",
    "int64_t",
)


def text(size: str = "N", index: str = "j", last: str = "k") -> str:
    return TEXT.replace("SIZE", size).replace("INDEX", index).replace("LAST", last)


@pytest.mark.parametrize("word", WORDS)
def test_a_size_may_have_any_name(word: str) -> None:
    source = kernel_of(text(word)).source
    assert source.interface.sizes == (f"{word}_",)
    assert source.interface.inputs[0].type.shape == (f"{word}_", 20)
    assert f"const int64_t {word}_ = sizes[0];" in source.text
    assert f"const int64_t {word} =" not in source.text


@pytest.mark.parametrize("word", WORDS)
def test_an_index_may_have_any_name(word: str) -> None:
    assert kernel_of(text(index=word)).source.interface.sizes == ("N",)
    assert kernel_of(text(last=word)).source.interface.sizes == ("N",)


@pytest.mark.parametrize("name", ["N", "K1", "n0", "d12", "batch", "E", "n_heads", "Left"])
def test_other_names_stay(name: str) -> None:
    definition = parse(text(name))
    interface = Interface((), (), (name,))
    assert plain_names(definition, interface) == (definition, interface)


def test_the_meaning_stays() -> None:
    old = check(parse(text("mod", "or", "and")))
    port = Port("X", old.tensors["X"])
    definition, _ = plain_names(old.definition, Interface((port,), (), ("mod",)))
    x = np.random.default_rng(0).standard_normal((3, 20))
    np.testing.assert_array_equal(
        evaluate(definition, {"X": x})["Y"], evaluate(old, {"X": x})["Y"]
    )


def test_a_new_name_is_a_new_name() -> None:
    definition = parse("def f(float(mod, mod_) X) -> (Y) { Y(i) +=! X(i, j) }")
    interface = Interface(
        (),
        (),
        ("mod", "mod_", "L1"),
        (("L1", "mod * mod_"),),
        (("mod <= L1", "mod is larger than L1"),),
        ("mod <= L1",),
    )
    _, found = plain_names(definition, interface)
    assert found.sizes == ("mod__", "mod_", "L1_")
    assert found.derived == (("L1_", "mod__ * mod_"),)
    assert found.checks == (("mod__ <= L1_", "mod is larger than L1"),)
    assert found.facts == ("mod__ <= L1_",)
