"""Builds a ``libcuda.so.1`` for machines without a GPU; ``fake.h`` says what it does.

A program finds it as any libcuda: by its path, or with its folder in ``LD_LIBRARY_PATH``.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import tempfile
from collections.abc import Collection
from pathlib import Path

from tcfuse.targets.compilers import find_compiler, run

HERE = Path(__file__).resolve().parent
# The process has a C library already; linking zig's would build one first, for minutes.
FLAGS = (
    "-x",
    "c",
    "-std=c11",
    "-O1",
    "-fPIC",
    "-shared",
    "-nostdlib",
    "-fvisibility=hidden",
    "-w",
)
LIBRARY = "libcuda.so.1"


def build(folder: Path, also: Collection[str] = ()) -> Path:
    """The library in a folder of its own below ``folder``, made if it is not there yet.

    Args:
        folder: A cache.
        also: Entry points that must be there for a program to start, beside those that are
            implemented; they say that they are not supported.
    """
    sources = {path.name: path.read_text() for path in sorted(HERE.glob("*.[ch]"))}
    implemented = set(re.findall(r"^API CUresult (cu\w+)\(", "".join(sources.values()), re.M))
    stubs = sorted(set(also) - implemented)
    sources["stubs.c"] = '#include "fake.h"\n' + "".join(
        f"API CUresult {name}(void) {{ return CUDA_ERROR_NOT_SUPPORTED; }}\n" for name in stubs
    )
    digest = hashlib.sha256(repr((sources, FLAGS)).encode()).hexdigest()[:16]
    library = folder / f"fake_libcuda-{digest}" / LIBRARY
    if not library.exists():
        library.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=library.parent) as name:
            made = Path(name) / LIBRARY
            for source, text in sources.items():
                (made.parent / source).write_text(text)
            files = [str(made.parent / source) for source in sources if source.endswith(".c")]
            soname = f"-Wl,-soname,{LIBRARY}"
            argv = find_compiler().argv
            run((*argv, *FLAGS, soname, *files, "-o", str(made)), {})
            made.rename(library)
    return library


def entry_points(program: Path) -> set[str]:
    """The functions of libcuda that a shared library binds when it is loaded."""
    listed = subprocess.run(
        ["nm", "-D", "--undefined-only", str(program)],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(re.findall(r"\bU (cu[A-Z]\w*)", listed.stdout))


def emulated_image(library: Path, n_parameters: int) -> bytes:
    """What ``cuModuleLoadData`` of the fake takes for the kernels of an emulator's library."""
    return f"tcf-emulated:{n_parameters}:{library}\0".encode()
