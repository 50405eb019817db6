"""The kernels of the Tensor Comprehensions papers, as definitions ready to build.

Each file holds one kernel, as one ``def`` or as several where the papers compare forms.
Sources: arXiv 1802.04730 and ACM TACO 16(4), 2019; sizes and references are in the files.
"""

from __future__ import annotations

from importlib.resources import files

_SUFFIX = ".tc"


def names() -> tuple[str, ...]:
    """Every kernel, by name."""
    found = (entry.name for entry in files(__name__).iterdir())
    return tuple(sorted(n.removesuffix(_SUFFIX) for n in found if n.endswith(_SUFFIX)))


def text(name: str) -> str:
    """The text of a kernel's file.

    Raises:
        KeyError: There is no such kernel.
    """
    if name not in names():
        raise KeyError(f"no paper kernel {name!r}; there are {', '.join(names())}")
    return files(__name__).joinpath(f"{name}{_SUFFIX}").read_text(encoding="utf-8")
