"""One field of an option is its default, its choices, its key and its digest."""

from __future__ import annotations

import pytest

from tcfuse.errors import OptionError
from tcfuse.options import (
    MappingOptions,
    OptimizeOptions,
    knob,
    parse_dims,
    parse_shapes,
    search_space,
)


def test_the_search_space_holds_every_default():
    default = MappingOptions()
    for name, choices in search_space().items():
        assert getattr(default, name) in choices


def test_a_changed_knob_changes_the_digest():
    assert MappingOptions(unroll=1).digest() != MappingOptions(unroll=2).digest()
    assert MappingOptions().digest() == MappingOptions().digest()
    assert len(MappingOptions().digest()) == 8


def test_a_default_must_be_a_choice():
    with pytest.raises(AssertionError, match="not among"):
        knob(3, choices=(1, 2), unit="iterations", doc="")


def test_a_knob_refuses_what_is_not_a_choice():
    with pytest.raises(OptionError, match="unroll is 3; it may be 1, 2, 4"):
        MappingOptions(unroll=3)


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"target": "metal"}, "no target 'metal'; targets are cpu"),
        ({"numerics": "sloppy"}, "values of numerics are strict, default, fast"),
        ({"gates": True}, "no option 'gates'; options are target"),
        ({"dim": {"N": -1}}, "a size is not negative"),
    ],
)
def test_a_wrong_option_says_what_is_right(values: dict[str, object], complaint: str):
    with pytest.raises(OptionError, match=complaint):
        OptimizeOptions.of(**values)


def test_numerics_reach_the_kernels():
    assert OptimizeOptions.of(numerics="strict").mapping.numerics == "strict"


def test_sizes_are_parsed():
    assert parse_dims(["N=8", "batch_size=1"]) == {"N": 8, "batch_size": 1}
    assert parse_shapes(["x:1,3", "a:b:2", "scalar:"]) == {
        "x": (1, 3),
        "a:b": (2,),
        "scalar": (),
    }


@pytest.mark.parametrize("text", ["N", "N=", "=3", "N=x", "N=-1", "N=1.5"])
def test_a_bad_size_is_refused(text: str):
    with pytest.raises(OptionError, match="is not NAME=NUMBER"):
        parse_dims([text])


@pytest.mark.parametrize("text", ["x", ":1,2", "x:1,,2", "x:a", "x:-1"])
def test_a_bad_shape_is_refused(text: str):
    with pytest.raises(OptionError, match="is not NAME:SIZES"):
        parse_shapes([text])
