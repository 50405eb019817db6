"""One field of an option is its default, its choices, its key and its digest."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcfuse.commands.knobs import mapping_of
from tcfuse.cuda_options import CudaOptions
from tcfuse.errors import InputError, OptionError
from tcfuse.knob import flag_of, knob, knobs_of, table
from tcfuse.mapping_options import MappingOptions
from tcfuse.options import OptimizeOptions, parse_shapes, parse_sizes


@pytest.mark.parametrize("options", [MappingOptions, CudaOptions])
def test_every_choice_of_a_knob_is_legal(options: type):
    for name, known in knobs_of(options):
        assert getattr(options(), name) in known.choices
        for choice in known.choices:
            assert known.allows(choice)


def test_a_changed_knob_changes_the_digest():
    assert MappingOptions(tile=(8,)).digest() != MappingOptions(tile=(8, 0)).digest()
    assert MappingOptions().digest() == MappingOptions().digest()
    assert len(MappingOptions().digest()) == 8


def test_a_default_must_be_a_choice():
    with pytest.raises(AssertionError, match="not among"):
        knob(3, choices=(1, 2), unit="iterations", doc="")


def test_a_knob_refuses_what_is_not_a_choice():
    with pytest.raises(OptionError, match="accumulators is 3; it may be 1, 2, 4"):
        MappingOptions(accumulators=3)


@pytest.mark.parametrize(
    "wrong", [{"tile": (-1,)}, {"tile": [8]}, {"tile": (True,)}, {"unroll": 0}, {"skewing": 1}]
)
def test_a_rule_is_checked_with_the_type(wrong: dict[str, object]):
    with pytest.raises(OptionError, match=f"{next(iter(wrong))} is .*; it may be "):
        MappingOptions(**wrong)


KNOBS = dict(knobs_of(MappingOptions))
ANY = st.fixed_dictionaries({n: st.sampled_from(k.choices) for n, k in KNOBS.items()})


@given(ANY)
def test_json_and_flags_give_the_options_back(values: dict[str, object]):
    options = MappingOptions(**values)
    assert MappingOptions.from_json(options.to_json()) == options
    texts = {n: KNOBS[n].shown(v) for n, v in values.items()}
    texts = {n: "" if text == "none" else text for n, text in texts.items()}
    assert mapping_of(None, texts) == options


def test_a_flag_changes_what_a_file_says(tmp_path: Path):
    file = tmp_path / "knobs.json"
    file.write_text('{"tile": [32, 0], "fusion": "max"}')
    options = mapping_of(file, {"tile": "8", "unroll": None})
    assert options == MappingOptions(tile=(8,), fusion="max")
    with pytest.raises(InputError, match="nothing"):
        mapping_of(tmp_path / "nothing.json", {})


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[1]", "not an object"),
        ("{", "are not JSON"),
        ('{"tiles": [1]}', "no knob 'tiles'; knobs are fusion"),
        ('{"tile": [-1]}', "sizes of 0 to 2"),
        ('{"tile": 8}', "sizes of 0 to 2"),
    ],
)
def test_wrong_json_says_what_is_right(text: str, complaint: str):
    with pytest.raises(OptionError, match=complaint):
        MappingOptions.from_json(text)


@pytest.mark.parametrize(("name", "text"), [("tile", "8,x"), ("unroll", "much")])
def test_a_wrong_flag_says_what_is_right(name: str, text: str):
    with pytest.raises(OptionError, match=f"--{name} {text}: it may be"):
        mapping_of(None, {name: text})


def test_a_flag_has_the_name_of_its_knob():
    assert flag_of("separate_tiles", KNOBS["separate_tiles"]) == (
        "--separate-tiles/--no-separate-tiles"
    )
    assert flag_of("tile", KNOBS["tile"]) == "--tile"


def test_the_documented_table_is_that_of_the_fields(request: pytest.FixtureRequest):
    path = Path(__file__).parents[1] / "docs" / "options.md"
    head, _, rest = path.read_text(encoding="utf-8").partition("| flag")
    between = rest[rest.index("\n## ") :].partition("| flag")[0]
    made = head + table(MappingOptions) + between + table(CudaOptions, "cuda_")
    if request.config.getoption("--update-golden"):
        path.write_text(made, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == made


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"target": "metal"}, "no target 'metal'; targets are cpu, cuda, auto, cpu,cuda"),
        ({"target": "cpu,auto"}, "auto chooses targets, name none with it"),
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
    assert parse_sizes("--dim", ["N=8", "batch_size=1"]) == {"N": 8, "batch_size": 1}
    assert parse_shapes(["x:1,3", "a:b:2", "scalar:"]) == {
        "x": (1, 3),
        "a:b": (2,),
        "scalar": (),
    }


@pytest.mark.parametrize("text", ["N", "N=", "=3", "N=x", "N=-1", "N=1.5"])
def test_a_bad_size_is_refused(text: str):
    with pytest.raises(OptionError, match="is not NAME=NUMBER"):
        parse_sizes("--dim", [text])


@pytest.mark.parametrize("text", ["x", ":1,2", "x:1,,2", "x:a", "x:-1"])
def test_a_bad_shape_is_refused(text: str):
    with pytest.raises(OptionError, match="is not NAME:SIZES"):
        parse_shapes([text])
