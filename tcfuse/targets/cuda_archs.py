"""Architectures of NVIDIA's GPUs: which to compile for, and what runs where.

Machine code for one architecture runs on GPUs of the same major and the same or a higher minor
number, and PTX on every GPU of the same or a higher number (CUDA C++ Programming Guide,
"Binary Compatibility" and "PTX Compatibility").
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tcfuse.errors import OptionError

# As few as run everywhere from sm_80 on, because each adds its time to every build: sm_86 and
# sm_89 run sm_80's code, and GPUs after sm_90 compile its PTX when they load it.
DEFAULT = (80, 90)


def arch_name(number: int) -> str:
    """``sm_90`` for 90."""
    return f"sm_{number}"


def arch_number(name: str) -> int:
    """90 for ``sm_90``."""
    return int(name.removeprefix("sm_"))


def default_archs(supported: Iterable[int]) -> tuple[str, ...]:
    """What is compiled for when nobody says: the common ones of those supported."""
    known = sorted(supported)
    return tuple(map(arch_name, [n for n in DEFAULT if n in known] or known[:1]))


def parse_archs(text: str, supported: Iterable[int]) -> tuple[str, ...]:
    """The architectures of ``--cuda-arch sm_80,sm_90``, ascending, each once.

    Raises:
        OptionError: One is not supported; the sentence names those that are.
    """
    known = {arch_name(n): n for n in supported}
    wanted = [part.strip() for part in text.split(",")]
    for name in wanted:
        if name not in known:
            names = ", ".join(sorted(known, key=known.__getitem__))
            raise OptionError(f"--cuda-arch {text}: no architecture {name!r}, only {names}")
    return tuple(sorted(set(wanted), key=known.__getitem__))


def newest(archs: Sequence[str]) -> str:
    """The one whose PTX newer GPUs can compile."""
    return max(archs, key=arch_number)
