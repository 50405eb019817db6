"""Every candidate is one normal genome, and every genome can be repaired."""

from __future__ import annotations

from dataclasses import asdict, replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcfuse.cuda_options import CudaOptions
from tcfuse.errors import OptionError
from tcfuse.knob import knobs_of
from tcfuse.mapping_options import MappingOptions
from tcfuse.tuning.candidate import Candidate
from tcfuse.tuning.space import Genome, Space, sizes_of
from tests.tuning.subjects import SCALE, subject

CPU = Space.of(subject())
SPACES = {"cpu": CPU, "cuda": Space.of(subject(target="cuda"))}


@pytest.mark.parametrize(
    ("extent", "sizes"),
    [
        (1, {1}),
        (10, {1, 2, 3, 4, 5, 8, 10, 16}),
        (72, {1, 2, 3, 4, 5, 8, 9, 16, 18, 32, 36, 64, 72, 128}),
        (35, {1, 2, 3, 4, 5, 8, 9, 16, 18, 32, 35, 64}),
        (130, {1, 2, 3, 4, 5, 8, 9, 16, 17, 32, 33, 64, 65, 128, 130, 256}),
    ],
)
def test_sizes_of_tiles_are_those_of_tensor_comprehensions(extent: int, sizes: set[int]):
    assert sizes_of(extent) == tuple(sorted(sizes))


def test_every_tuned_knob_is_searched_by_itself():
    names = {gene.name for gene in SPACES["cuda"].genes}
    knobs = [(n, known) for n, known in knobs_of(MappingOptions) if known.tuned]
    assert {gene.name for gene in SPACES["cpu"].genes} == {n for n, _ in knobs}
    tuned = {n for n, known in knobs if known.needs != "cpu"}
    tuned |= {f"cuda_{n}" for n, known in knobs_of(CudaOptions) if known.tuned}
    assert names == tuned
    assert not {"numerics", "isl_operations"} & names


def test_tiles_have_a_gene_for_each_loop_and_the_sizes_of_the_extents():
    tiles = [gene for gene in CPU.genes if gene.name == "tile"]
    assert [str(gene) for gene in tiles] == ["tile.0", "tile.1", "tile.2"]
    every = {0} | {size for extent in (64, 96, 128) for size in sizes_of(extent)}
    assert all(set(gene.values) == every for gene in tiles)


def test_unknown_extents_leave_the_declared_sizes():
    tiles = [g for g in Space.of(subject(sizes={})).genes if g.name == "tile"]
    declared = dict(knobs_of(MappingOptions))["tile"].choices
    assert set(tiles[0].values) == {0} | {size for choice in declared for size in choice}


def test_knobs_of_reductions_are_not_searched_without_one():
    names = {gene.name for gene in Space.of(subject(SCALE, {"N": 1000})).genes}
    assert not {"block", "accumulators"} & names
    assert {"block", "accumulators"} <= {gene.name for gene in CPU.genes}


def test_what_is_forced_is_no_gene():
    space = Space.of(subject(), {"tile": (8, 8), "unroll": 4})
    assert not {"tile", "unroll"} & {gene.name for gene in space.genes}
    for seed in range(5):
        drawn = space.decode(space.draw(Random(seed))).mapping
        assert (drawn.tile, drawn.unroll) == ((8, 8), 4)


@pytest.mark.parametrize(
    ("forced", "complaint"),
    [
        ({"tiles": (8,)}, "no knob 'tiles'; knobs are fusion"),
        ({"cuda_team": 8}, "no knob 'cuda_team'"),
        ({"accumulators": 3}, "accumulators is 3; it may be"),
        ({"tile": (1 << 20, 1 << 20)}, "no knobs are left to try: a tile has no more points"),
    ],
)
def test_what_cannot_be_forced_is_said(forced: dict[str, object], complaint: str):
    with pytest.raises(OptionError, match=complaint):
        Space.of(subject(), forced)


def test_the_numerics_of_the_run_are_those_of_every_candidate():
    space = Space.of(replace(subject(), numerics="strict"))
    assert space.decode(space.draw(Random(0))).mapping.numerics == "strict"
    seed = Candidate(MappingOptions(numerics="fast", unroll=4))
    assert space.decode(space.encode(seed)).mapping == MappingOptions(
        numerics="strict", unroll=4
    )


def test_values_of_seeds_join_the_choices():
    seed = Candidate(MappingOptions(tile=(7, 0, 100), unroll=3))
    with pytest.raises(OptionError, match=r"tile.0 is 7, which is not in the search space"):
        CPU.encode(seed)
    space = CPU.including([seed])
    assert space.decode(space.encode(seed)) == seed
    assert space.decode(space.default) == CPU.decode(CPU.default)
    unroll = next(gene for gene in space.genes if gene.name == "unroll")
    assert unroll.values == (1, 2, 3, 4, 8, 16, 64)


def test_what_changes_nothing_is_not_chosen():
    untiled = Candidate(MappingOptions(inner_fusion="max", separate_tiles=True))
    assert CPU.decode(CPU.encode(untiled)) == Candidate()
    tiled = Candidate(MappingOptions(tile=(8,), inner_fusion="max", separate_tiles=True))
    assert CPU.decode(CPU.encode(tiled)) == tiled
    cuda = SPACES["cuda"]
    large = Candidate(cuda=CudaOptions(team=128, block=256))
    assert cuda.decode(cuda.encode(large)) == Candidate(cuda=CudaOptions(team=128))


def test_a_tile_larger_than_the_nest_is_made_smaller():
    space = Space.of(subject(sizes={"M": 4, "K": 4, "N": 4}))
    large = space.including([Candidate(MappingOptions(tile=(16, 16, 16)))])
    genome = large.encode(Candidate(MappingOptions(tile=(16, 16, 16), unroll=2)))
    tile = large.decode(genome).mapping.tile
    assert tile == (1, 4, 16)
    assert large.decode(genome).mapping.unroll == 2


def genomes(space: Space) -> st.SearchStrategy[Genome]:
    """Any genome, forbidden ones included."""
    return st.tuples(*(st.integers(0, len(gene.values) - 1) for gene in space.genes))


@pytest.mark.parametrize("target", SPACES)
@given(data=st.data())
@settings(max_examples=60)
def test_repair_gives_a_near_genome_that_is_allowed(target: str, data: st.DataObject):
    space = SPACES[target]
    genome = data.draw(genomes(space))
    repaired = space.repair(genome)
    assert not space.broken(repaired)
    assert space.repair(repaired) == repaired
    about = {knob for rule in space.broken(genome) for knob in rule.knobs}
    changed = [g for g, a, b in zip(space.genes, genome, repaired, strict=True) if a != b]
    assert all(gene.name in about for gene in changed)
    for gene in changed:  # none of the changes is there without need
        place = space.genes.index(gene)
        less = (*repaired[:place], genome[place], *repaired[place + 1 :])
        assert space.broken(less)


@pytest.mark.parametrize("target", SPACES)
@given(data=st.data())
@settings(max_examples=60)
def test_candidates_and_normal_genomes_are_one_to_one(target: str, data: st.DataObject):
    space = SPACES[target]
    genome = space.normal(data.draw(genomes(space)))
    assert space.is_normal(genome)
    assert space.normal(genome) == genome
    candidate = space.decode(genome)
    assert space.encode(candidate) == genome
    assert Candidate.of_record(candidate.to_record()) == candidate


@given(
    st.fixed_dictionaries({n: st.sampled_from(k.choices) for n, k in knobs_of(MappingOptions)})
)
@settings(max_examples=60)
def test_any_options_can_be_seeds(values: dict[str, object]):
    seed = Candidate(MappingOptions(**values))
    space = CPU.including([seed])
    found = asdict(space.decode(space.encode(seed)).mapping)
    tiled = any(seed.mapping.tile)
    alike = {"fusion", "unroll", "block", "accumulators", "fix_sizes", "skewing"}
    alike |= {"inner_fusion", "separate_tiles"} if tiled else set()
    assert {n: found[n] for n in alike} == {n: values[n] for n in alike}


def test_neighbours_differ_in_one_choice():
    found = list(CPU.neighbours(CPU.default))
    assert len(found) == len(set(found)) > 30
    for genome in found:
        assert CPU.is_normal(genome)
        assert sum(a != b for a, b in zip(genome, CPU.default, strict=True)) == 1


def test_draws_are_normal_reach_every_value_and_follow_from_the_seed():
    random, again = Random(3), Random(3)
    drawn = [CPU.draw(random) for _ in range(600)]
    assert drawn == [CPU.draw(again) for _ in range(600)]
    assert all(map(CPU.is_normal, drawn))
    for place, gene in enumerate(CPU.genes):
        assert {genome[place] for genome in drawn} == set(range(len(gene.values)))
    untiled = sum(not CPU.decode(genome).mapping.tile for genome in drawn)
    assert 0.2 < untiled / 600 < 0.4  # a number of tiled loops from 0 to 3
