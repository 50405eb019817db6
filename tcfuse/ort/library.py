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
from tcfuse.ort.images import ImageData
from tcfuse.ort.operators import Naming, Operator, as_operators
from tcfuse.ort.table import table
from tcfuse.targets.base import KernelSource
from tcfuse.targets.compilers import Compiler, Level, baseline, levels
from tcfuse.targets.toolchain import Toolchain, Unit

GLUE = Path(__file__).parent / "glue"
OPERATORS = ("tcf_call.c", "tcf_infer.c", "tcf_node.c", "tcf_register.c", "tcf_run.c")
CUDA = ("tcf_cuda.c", "tcf_cuda_driver.c", "tcf_cuda_module.c")
DIRECT = ("tcf_direct.c",)
ALWAYS = ("tcf_memory.c",)


@dataclass(frozen=True, slots=True)
class CustomOpLibrary:
    """A built library.

    Attributes:
        path: The shared library.
        ops: Names of its operators.
        digest: SHA-256 of its bytes.
        compiler: What it was built with.
        domain: The domain of its operators.
    """

    path: Path
    ops: tuple[str, ...]
    digest: str
    compiler: Compiler
    domain: str = "tcfuse"


def build_library(
    kernels: Sequence[KernelSource | Operator],
    path: Path,
    toolchain: Toolchain | None = None,
    *,
    contract: str = "fast",
    built: Sequence[Level] | None = None,
    naming: Naming | None = None,
    shell: Sequence[str] = OPERATORS,
    block: int = 0,
) -> CustomOpLibrary:
    """Compile and link kernels; ``path`` is either as before or complete.

    Args:
        kernels: At least one operator, or its kernel for the CPU; a name that comes twice is
            taken once.
        path: Where the library goes.
        toolchain: Default: the compiler found (or ``TCFUSE_CXX``) and the user's cache.
        contract: ``off`` rounds after every operation; ``fast`` may fuse a multiplication and
            an addition.
        built: Instruction sets to compile for; default: every one of this architecture.
        naming: What the operators are called; default: as their kernels, in ``tcfuse``.
        shell: How kernels are called: ``OPERATORS`` of ONNX Runtime, or ``DIRECT``.
        block: Channels in a block of the layout that the kernels work on, which must then be
            that of the machine; 0 for plain tensors.

    Raises:
        ToolchainError: There is no compiler, or it failed.
    """
    toolchain = toolchain or Toolchain.default(cache_dir(), current().cxx)
    operators = as_operators(kernels)
    chosen = tuple(built or levels())
    assert operators, "a library needs a kernel"
    assert chosen, "a library needs an instruction set"
    cpu = [operator.cpu for operator in operators if operator.cpu is not None]
    units = [kernel_unit(kernel, level, contract) for kernel in cpu for level in chosen]
    naming, images = naming or Naming(), image_data(operators)
    units += shell_units(operators, chosen, naming, shell, images, block)
    objects = toolchain.compile(units)
    if images is not None:
        objects.append(images.object())
    toolchain.link(objects, path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    ops = tuple(naming.operator(operator.name) for operator in operators)
    return CustomOpLibrary(path, ops, digest, toolchain.compiler, naming.domain)


def image_data(operators: Sequence[Operator]) -> ImageData | None:
    """The code for GPUs of all operators; ``None`` when there is none."""
    cuda = [operator.cuda for operator in operators if operator.cuda is not None]
    return ImageData.of(image for kernel in cuda for image in kernel.images) if cuda else None


def kernel_unit(kernel: KernelSource, level: Level, contract: str = "fast") -> Unit:
    """A kernel's source for one instruction set."""
    name = f"{kernel.name}.cpp"
    preamble = (GLUE / "tcf_kernel.h").read_text(encoding="utf-8")
    text = f'{preamble}\n#line 1 "{name}"\n{kernel.text}'
    return Unit(name, text, level, contract=contract, compilation=kernel.compilation)


def shell_units(
    kernels: Sequence[KernelSource | Operator],
    built: Sequence[Level],
    naming: Naming | None = None,
    shell: Sequence[str] = OPERATORS,
    images: ImageData | None = None,
    block: int = 0,
) -> list[Unit]:
    """The shell around kernels and its table, for any machine of the architecture."""
    names = (*shell, *(CUDA if images is not None else ()), *ALWAYS)
    texts = {name: (GLUE / name).read_text(encoding="utf-8") for name in names}
    texts["table.c"] = table(as_operators(kernels), built, naming, images, block)
    return [shell_unit(name, text) for name, text in texts.items()]


def constant_units() -> list[Unit]:
    """Those units of every library of operators that are the same in all."""
    names = (*OPERATORS, *ALWAYS)
    return [shell_unit(name, (GLUE / name).read_text(encoding="utf-8")) for name in names]


def shell_unit(name: str, text: str) -> Unit:
    """C that is not a kernel, for any machine of the architecture."""
    return Unit(name, text, baseline(), is_kernel=False, contract="off", include=GLUE)
