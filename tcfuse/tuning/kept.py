"""What tuning found, as an object and as a file."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from tcfuse.tuning.tuned import Tuned
from tcfuse.wisdom.exchange import Collection
from tcfuse.wisdom.problem import Entry


@dataclass(frozen=True, slots=True)
class Wisdom:
    """What tuning found.  ``optimize`` knows it already; a file is for other machines.

    Attributes:
        kernels: What came of each kernel.
    """

    kernels: tuple[Tuned, ...] = field(default=(), repr=False)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The best known knobs of each kernel."""
        return tuple(k.entry for k in self.kernels if k.entry is not None)

    def save(self, path: str | Path) -> Path:
        """Write a file that ``tcfuse wisdom`` reads; what it has of others stays.

        Raises:
            InputError: It is there and holds something else, or it cannot be written.
        """
        target = Path(path)
        before = Collection.read(target) if target.exists() else Collection()
        new = {(e.problem.key, str(sorted(e.versions.items()))) for e in self.entries}
        others = [
            e
            for e in before.entries
            if (e.problem.key, str(sorted(e.versions.items()))) not in new
        ]
        Collection.of([*others, *self.entries], before.verdicts).write(target)
        return target
