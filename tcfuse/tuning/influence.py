"""Which genes change a kernel at all, learned from the texts of the kernels that were tried.

Most knobs do nothing for most kernels.  Genomes that have one text show that the genes they
differ in do nothing there; genomes that differ in one gene alone and in their texts show that
it does something.
"""

from __future__ import annotations

from collections.abc import Mapping

from tcfuse.tuning.space import Genome


def influence(sources: Mapping[Genome, str], n_genes: int) -> list[float]:
    """For each gene how likely a change of it changes the text, relative to their mean.

    Args:
        sources: The text, or a digest of it, of each genome that is known.
        n_genes: Genes of a genome.
    """
    changed, idle = [0] * n_genes, [0] * n_genes
    for place in range(n_genes):
        alike: dict[Genome, set[str]] = {}
        for genome, source in sources.items():
            others = (*genome[:place], *genome[place + 1 :])
            alike.setdefault(others, set()).add(source)
        changed[place] = sum(len(texts) - 1 for texts in alike.values())
    first: dict[str, Genome] = {}
    for genome, source in sorted(sources.items()):
        known = first.setdefault(source, genome)
        for place in range(n_genes):
            idle[place] += genome[place] != known[place]
    # as if each gene had been seen to change the text once and to leave it once
    likely = [(1 + c) / (2 + c + i) for c, i in zip(changed, idle, strict=True)]
    mean = sum(likely) / max(n_genes, 1)
    return [each / mean for each in likely]
