"""The search space of one kernel: a finite list of values for each knob that may matter to it.

A candidate is written as a *genome*: for each gene the index of its value.  Everything follows
from what the knobs declare (``knob.Knob``) and from the extents of the definition's loops, so a
new knob is searched without a line here.  A knob with a number per loop is one gene for each
loop.  What is forced by a user is no gene at all.

Equal candidates have one genome, the *normal* one: a knob that changes nothing beside the
others has its default, and what ``rules`` forbid is repaired, never drawn again.

Source: Tensor Comprehensions' tuner, whose ranges of tile sizes these are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from math import prod
from random import Random
from typing import Any, TypeAlias

from tcfuse.cuda_options import CudaOptions
from tcfuse.errors import OptionError
from tcfuse.knob import Knob, knobs_of
from tcfuse.mapping_options import MappingOptions
from tcfuse.tuning.candidate import Candidate, Subject
from tcfuse.tuning.rules import RULES, Rule
from tcfuse.tuning.traits import Traits

Genome: TypeAlias = tuple[int, ...]
Values: TypeAlias = dict[str, Any]

CUDA = "cuda_"  # begins the names of knobs of GPUs, as in flags


def sizes_of(extent: int) -> tuple[int, ...]:
    """Tile sizes worth trying on a loop: powers of two up to the next one, and its parts.

    >>> sizes_of(10)
    (1, 2, 3, 4, 5, 8, 10, 16)
    """
    powers = {1 << k for k in range(max(extent - 1, 0).bit_length() + 1)}
    return tuple(sorted(powers | {-(-extent // power) for power in powers}))


@dataclass(frozen=True, slots=True)
class Gene:
    """One choice.

    Attributes:
        name: Of its knob; a GPU's begins with ``cuda_``.
        values: What may be chosen, in order.
        default: Index of what is chosen where it does not matter.
        loop: Of a knob with a number per loop: which of the loops, from outside.
        knob: What the field declares.
    """

    name: str
    values: tuple[Any, ...]
    default: int
    loop: int | None
    knob: Knob

    @property
    def ordered(self) -> bool:
        """Whether near values are alike."""
        return not isinstance(self.values[0], str) and self.values == tuple(sorted(self.values))

    def __str__(self) -> str:
        return self.name if self.loop is None else f"{self.name}.{self.loop}"


@dataclass(frozen=True)
class Space:
    """Every candidate for one subject.

    Attributes:
        genes: What is chosen, in the order of the knobs' declarations.
        base: Everything that is not; its other values are the defaults.
        points: Iterations of the largest nest; 0 where they are not known.
    """

    genes: tuple[Gene, ...]
    base: Candidate
    points: int = 0

    @classmethod
    def of(cls, subject: Subject, forced: Mapping[str, Any] | None = None) -> Space:
        """The space of a subject.

        Args:
            subject: What is tuned.
            forced: Values that are not searched, by knob; a GPU's begin with ``cuda_``.

        Raises:
            OptionError: A forced knob or value is not known, or rules forbid what is forced.
        """
        traits, fixed = Traits.of(subject), dict(forced or {})
        base = _base(subject, fixed)
        genes: list[Gene] = []
        for name, known in _knobs(base):
            if name in fixed or not known.tuned or known.needs not in traits.has:
                continue
            genes += _genes(name, known, traits)
        made = cls(tuple(genes), base, traits.points)
        made.normal(made.default)  # raises where nothing is allowed
        return made

    def including(self, candidates: Iterable[Candidate]) -> Space:
        """The space with the values of some candidates among its choices."""
        genes = self.genes
        for candidate in candidates:
            values = _values(candidate)
            genes = tuple(_joined(gene, _of_gene(gene, values)) for gene in genes)
        return replace(self, genes=genes)

    @cached_property
    def default(self) -> Genome:
        """What nobody chose."""
        return tuple(gene.default for gene in self.genes)

    @property
    def size(self) -> int:
        """Number of genomes, equal and forbidden ones included."""
        return prod(len(gene.values) for gene in self.genes)

    def decode(self, genome: Genome) -> Candidate:
        """The candidate that a genome writes."""
        chosen: Values = {}
        for gene, index in zip(self.genes, genome, strict=True):
            value = gene.values[index]
            chosen[gene.name] = (
                value if gene.loop is None else (*chosen.get(gene.name, ()), value)
            )
        for gene in self.genes:
            if gene.loop == 0:
                chosen[gene.name] = _stripped(chosen[gene.name])
        return _candidate(self.base, chosen)

    def encode(self, candidate: Candidate) -> Genome:
        """The normal genome of a candidate; what is forced or not searched is not looked at.

        Raises:
            OptionError: A value is not among the choices; ``including`` makes it one.
        """
        values, genome = _values(candidate), []
        for gene in self.genes:
            value = _of_gene(gene, values)
            if value not in gene.values:
                raise OptionError(f"{gene} is {value!r}, which is not in the search space")
            genome.append(gene.values.index(value))
        return self.normal(tuple(genome))

    def broken(self, genome: Genome) -> dict[Rule, float]:
        """The rules that a genome breaks, and how far."""
        candidate = self.decode(genome)
        excess = {rule: rule.excess(candidate, self.points) for rule in RULES}
        return {rule: far for rule, far in excess.items() if far > 0}

    def is_normal(self, genome: Genome) -> bool:
        """Whether a genome is allowed and the one of its candidate."""
        return self._reduced(genome) == genome and not self.broken(genome)

    def normal(self, genome: Genome) -> Genome:
        """The genome, repaired where it is not allowed, without choices that change nothing."""
        return self._reduced(self.repair(self._reduced(genome)))

    def repair(self, genome: Genome) -> Genome:
        """A near genome that is allowed: few genes changed, and those little.

        Only genes of rules that are broken change, one after the other: one that mends all, by
        the least that does; while there is none, the one that mends most.

        Raises:
            OptionError: There is none, because of what is forced.
        """
        mended = genome
        while broken := self.broken(mended):
            least = sum(broken.values())
            knobs = {knob for rule in broken for knob in rule.knobs}
            tried = [
                (sum(self.broken(changed).values()), _distance(mended, changed), changed)
                for place, gene in enumerate(self.genes)
                if gene.name in knobs and mended[place] == genome[place]
                for changed in self._changed(mended, place)
            ]
            far, _, mended = min(tried, default=(least, 0, mended))
            if far >= least:
                raise OptionError(f"no knobs are left to try: {next(iter(broken)).says}")
        return mended

    def draw(self, random: Random) -> Genome:
        """Any genome: every value of a knob is as likely as another.

        Of a knob with a number per loop it is first drawn how many loops have one.
        """
        genome = [random.randrange(len(gene.values)) for gene in self.genes]
        for name in dict.fromkeys(gene.name for gene in self.genes if gene.loop is not None):
            places = [i for i, gene in enumerate(self.genes) if gene.name == name]
            for place in places[random.randint(0, len(places)) :]:
                genome[place] = self.genes[place].default
        return self.normal(tuple(genome))

    def neighbours(self, genome: Genome) -> Iterator[Genome]:
        """Every other genome that differs in one gene, knob by knob, those near first."""
        seen = {genome}
        for place in range(len(self.genes)):
            changed = self._changed(genome, place)
            for other in map(self.normal, sorted(changed, key=lambda g: _distance(genome, g))):
                if other not in seen:
                    seen.add(other)
                    yield other

    def _changed(self, genome: Genome, place: int) -> Iterator[Genome]:
        """Every genome that differs in one gene."""
        for index in range(len(self.genes[place].values)):
            if index != genome[place]:
                yield (*genome[:place], index, *genome[place + 1 :])

    def _reduced(self, genome: Genome) -> Genome:
        """The genome with the default wherever a choice does not matter."""
        while True:
            candidate = self.decode(genome)
            reduced = tuple(
                index if gene.knob.matters(_options(candidate, gene.name)) else gene.default
                for gene, index in zip(self.genes, genome, strict=True)
            )
            if reduced == genome:
                return genome
            genome = reduced


def _knobs(base: Candidate) -> Iterator[tuple[str, Knob]]:
    """Every knob of a candidate by its name in a space."""
    yield from knobs_of(MappingOptions)
    if base.cuda is not None:
        yield from ((CUDA + name, known) for name, known in knobs_of(CudaOptions))


def _options(candidate: Candidate, name: str) -> Any:
    """The options that have the knob called ``name`` in a space."""
    return candidate.cuda if name.startswith(CUDA) else candidate.mapping


def _base(subject: Subject, forced: Mapping[str, Any]) -> Candidate:
    """The default candidate with what is forced."""
    cuda = CudaOptions() if subject.target == "cuda" else None
    default = Candidate(MappingOptions(numerics=subject.numerics), cuda)
    known = dict(_knobs(default))
    for name in forced:
        if name not in known:
            raise OptionError(f"no knob {name!r}; knobs are {', '.join(known)}")
    return _candidate(default, forced)


def _candidate(base: Candidate, chosen: Mapping[str, Any]) -> Candidate:
    """``base`` with other values."""
    mapping = {name: value for name, value in chosen.items() if not name.startswith(CUDA)}
    cuda = {n.removeprefix(CUDA): value for n, value in chosen.items() if n.startswith(CUDA)}
    return Candidate(replace(base.mapping, **mapping), base.cuda and replace(base.cuda, **cuda))


def _values(candidate: Candidate) -> Values:
    """Every value by its name in a space; the defaults of GPUs' where it has none."""
    cuda = asdict(candidate.cuda or CudaOptions())
    return asdict(candidate.mapping) | {CUDA + name: value for name, value in cuda.items()}


def _genes(name: str, known: Knob, traits: Traits) -> Iterator[Gene]:
    """The genes of a knob; none where there is nothing to choose."""
    if known.per_loop:
        listed = {size for choice in known.choices for size in choice}
        sizes = {size for extent in traits.extents for size in sizes_of(extent)} or listed
        for loop in range(traits.depth if sizes - {0} else 0):
            yield Gene(name, tuple(sorted({0} | sizes)), 0, loop, known)
    elif len(known.choices) > 1:
        yield Gene(name, known.choices, known.choices.index(known.default), None, known)


def _of_gene(gene: Gene, values: Mapping[str, Any]) -> Any:
    """What a gene's value is where the knobs have those."""
    value = values[gene.name]
    if gene.loop is None:
        return value
    return value[gene.loop] if gene.loop < len(value) else 0


def _joined(gene: Gene, value: Any) -> Gene:
    """The gene with one more value, in its place if the values are in order."""
    if value in gene.values:
        return gene
    values = (*gene.values, value)
    if gene.ordered:
        values = tuple(sorted(values))
    default = values.index(gene.values[gene.default])
    return replace(gene, values=values, default=default)


def _stripped(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """The numbers without zeros at the end, which say nothing."""
    kept = len(sizes)
    while kept and not sizes[kept - 1]:
        kept -= 1
    return sizes[:kept]


def _distance(genome: Genome, other: Genome) -> int:
    return sum(abs(a - b) for a, b in zip(genome, other, strict=True))
