"""Kernels -> one shared library of ONNX Runtime operators.

The library is self-contained: the kernels, each compiled for several instruction sets, a table
that describes them, and the operator shell (``glue/``), which is plain C against our own
declaration of ONNX Runtime's ABI.  Nothing is linked, so it loads wherever ONNX Runtime does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tcfuse.debug import cache_dir, current
from tcfuse.ort.table import table
from tcfuse.targets.base import KernelSource
from tcfuse.targets.compilers import Compiler, Level, baseline, levels
from tcfuse.targets.toolchain import Toolchain, Unit

GLUE = Path(__file__).parent / "glue"


@dataclass(frozen=True, slots=True)
class CustomOpLibrary:
    """A built library.

    Attributes:
        path: The shared library.
        ops: Names of its operators, in the domain ``tcfuse``.
        digest: SHA-256 of its bytes.
        compiler: What it was built with.
    """

    path: Path
    ops: tuple[str, ...]
    digest: str
    compiler: Compiler


def build_library(
    kernels: Sequence[KernelSource],
    path: Path,
    toolchain: Toolchain | None = None,
    *,
    contract: str = "fast",
    built: Sequence[Level] | None = None,
) -> CustomOpLibrary:
    """Compile and link kernels; ``path`` is either as before or complete.

    Args:
        kernels: At least one; a name that comes twice is taken once.
        path: Where the library goes.
        toolchain: Default: the compiler found (or ``TCFUSE_CXX``) and the user's cache.
        contract: ``off`` rounds after every operation; ``fast`` may fuse a multiplication and
            an addition.
        built: Instruction sets to compile for; default: every one of this architecture.

    Raises:
        ToolchainError: There is no compiler, or it failed.
    """
    toolchain = toolchain or Toolchain.default(cache_dir(), current().cxx)
    unique = tuple({kernel.name: kernel for kernel in kernels}.values())
    chosen = tuple(built or levels())
    assert unique, "a library needs a kernel"
    assert chosen, "a library needs an instruction set"
    units = [kernel_unit(k, level, contract) for k in unique for level in chosen]
    objects = toolchain.compile([*units, *shell_units(unique, chosen)])
    toolchain.link(objects, path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return CustomOpLibrary(path, tuple(k.name for k in unique), digest, toolchain.compiler)


def kernel_unit(kernel: KernelSource, level: Level, contract: str = "fast") -> Unit:
    """A kernel's source for one instruction set."""
    name = f"{kernel.name}.cpp"
    preamble = (GLUE / "tcf_kernel.h").read_text(encoding="utf-8")
    text = f'{preamble}\n#line 1 "{name}"\n{kernel.text}'
    return Unit(name, text, level, contract=contract)


def shell_units(kernels: Sequence[KernelSource], built: Sequence[Level]) -> list[Unit]:
    """The operator shell and its table, for any machine of the architecture."""
    texts = {p.name: p.read_text(encoding="utf-8") for p in sorted(GLUE.glob("*.c"))}
    texts["table.c"] = table(kernels, built)
    return [
        Unit(name, text, baseline(), is_kernel=False, contract="off", include=GLUE)
        for name, text in texts.items()
    ]
