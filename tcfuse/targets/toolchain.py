"""Compiling and linking, through a cache of objects.

The flags keep a kernel's effects inside it: nothing is linked in, no start-up code changes the
process (no -ffast-math, no flush-to-zero, no OpenMP), and the library stays mapped once loaded
(``-z nodelete``), as threads may still be inside it when its last session ends.
"""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from os import sched_getaffinity
from pathlib import Path

from tcfuse.errors import ToolchainError
from tcfuse.profile import COMPILER, tally, timed
from tcfuse.store import key_of, write_atomically
from tcfuse.targets.base import Compilation
from tcfuse.targets.compilers import Compiler, Level, find_compiler, run
from tcfuse.targets.object_cache import CacheContents, ObjectCache

COMMON = (
    "-ffreestanding",
    "-nostdlib",
    "-fPIC",
    "-fvisibility=hidden",
    "-fwrapv",  # integers of a Tensor Comprehension wrap
    "-fno-strict-aliasing",  # kernels reach tensors and scratch through char*
    "-fno-stack-protector",  # its support would come from a libc
    "-g0",
    "-w",
)
KERNEL = (
    "-x",
    "c++",
    "-std=c++17",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-asynchronous-unwind-tables",
)
# ONNX Runtime's allocator may throw, which must pass through the shell: it has unwind tables.
SHELL = ("-x", "c", "-std=c11", "-O2", "-fno-builtin", "-funwind-tables", "-fexceptions")
GCC = (
    "-fno-tree-loop-distribute-patterns",
    "-fcf-protection=none",
    "-fno-stack-clash-protection",
)
ZIG = ("-fno-sanitize=undefined",)

CLANG_ORDER = {
    "latency": ("-mllvm", "-misched-regpressure=false"),
    "source": ("-mllvm", "-enable-misched=false"),
}
GCC_ORDER = {
    "latency": ("-fschedule-insns", "-fno-sched-pressure"),
    "source": ("-fno-schedule-insns", "-fno-schedule-insns2"),
}
CLANG_PLACE = ("-mllvm", "-disable-machine-licm")
GCC_PLACE = ("-fno-move-loop-invariants",)
"""What a ``Compilation`` is in each compiler's words; without ``hoisting`` for the last two."""
LINK = ("-shared", "-nostdlib", "-s", "-Wl,-z,nodelete", "-Wl,-z,defs", "-Wl,--build-id=none")


@dataclass(frozen=True, slots=True)
class Unit:
    """One translation unit.

    Attributes:
        name: What messages call it.
        text: C++ of a kernel, or C of the operator shell.
        level: Instruction set to compile for.
        is_kernel: Which of the two it is.
        contract: ``-ffp-contract=``: ``fast`` lets ``a * b + c`` be one rounding, ``off`` not.
        include: Folder whose headers the text includes.
        compilation: How machine code is made of a kernel.
    """

    name: str
    text: str
    level: Level
    is_kernel: bool = True
    contract: str = "fast"
    include: Path | None = None
    compilation: Compilation = field(default_factory=Compilation)

    def __post_init__(self) -> None:
        assert self.contract in ("fast", "off"), f"contract is {self.contract!r}"


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A compiler with its cache.

    Attributes:
        cache: Where objects are kept; ``None`` compiles everything anew.
        workers: Compilers run at the same time; 0 is one a core.
    """

    compiler: Compiler
    cache: ObjectCache | None = None
    workers: int = 0

    @classmethod
    def default(cls, cache_dir: Path | None = None, compiler: str | None = None) -> Toolchain:
        """The compiler wanted or found, with a cache below ``cache_dir``.

        Raises:
            ToolchainError: There is no compiler.
        """
        cache = None if cache_dir is None else ObjectCache(cache_dir / "objects")
        return cls(find_compiler(compiler), cache)

    @timed(COMPILER)
    def compile(self, units: Sequence[Unit]) -> list[bytes]:
        """The object of each unit, from the cache or compiled, several at a time.

        Raises:
            ToolchainError: A unit does not compile.
        """
        workers = self.workers or len(sched_getaffinity(0))
        with (
            tempfile.TemporaryDirectory(prefix="tcfuse-build-") as folder,
            ThreadPoolExecutor(workers) as pool,
        ):
            jobs = [pool.submit(self._object, u, Path(folder), k) for k, u in enumerate(units)]
            try:
                made = [job.result() for job in jobs]
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise
        n_cached = sum(cached for _, cached in made)
        tally(COMPILER, made=len(made) - n_cached, cached=n_cached)
        return [data for data, _ in made]

    def provide(self, unit: Unit) -> bool:
        """Have the unit's object in the cache; whether it was not there.

        Raises:
            ToolchainError: It does not compile.
        """
        if self.cache is not None and self.cache.get(self._key(unit)) is not None:
            return False
        with tempfile.TemporaryDirectory(prefix="tcfuse-build-") as folder:
            return not self._object(unit, Path(folder), 0)[1]

    @timed(COMPILER)
    def link(self, objects: Sequence[bytes], out: Path) -> None:
        """Link objects into the shared library ``out``, which is either as before or complete.

        Raises:
            ToolchainError: A symbol is missing, which no library may supply.
        """
        with tempfile.TemporaryDirectory(prefix="tcfuse-link-") as name:
            folder = Path(name)
            paths = [folder / f"{k:04d}.o" for k in range(len(objects))]
            for path, data in zip(paths, objects, strict=True):
                path.write_bytes(data)
            made = folder / "library.so"
            self._run((*LINK, *map(str, paths), "-o", str(made)), folder)
            write_atomically(out, made.read_bytes())
            out.chmod(0o755)

    def contents(self) -> CacheContents:
        """What the cache holds."""
        return CacheContents(0, 0) if self.cache is None else self.cache.contents()

    def clear(self) -> None:
        """Empty the cache."""
        if self.cache is not None:
            self.cache.clear()

    def flags(self, unit: Unit) -> tuple[str, ...]:
        """What the compiler is told about a unit, but for file names."""
        level, kind = unit.level, self.compiler.kind
        flags = [
            *(KERNEL if unit.is_kernel else SHELL),
            *COMMON,
            f"-ffp-contract={unit.contract}",
        ]
        flags += {"gcc": GCC, "zig": ZIG}.get(kind, ())
        if unit.is_kernel:
            flags += _flags_of(unit.compilation, kind, level)
        if level.march:
            march = level.march.replace("-", "_") if kind == "zig" else level.march
            flags.append(f"-march={march}")
        if level.name == "v4":  # both compilers prefer half a register there
            flags.append("-mprefer-vector-width=512")
        flags += [f"-DTCF_LEVEL={level.number}", f"-DTCF_LANES={level.lanes}"]
        return (*flags, f"-DTCF_SUFFIX=_{level.name}")

    def _object(self, unit: Unit, folder: Path, k: int) -> tuple[bytes, bool]:
        """One unit's object, and whether it was in the cache."""
        key = self._key(unit)
        if self.cache is not None and (found := self.cache.get(key)) is not None:
            return found, True
        source = folder / f"{k:04d}" / unit.name
        source.parent.mkdir()
        source.write_text(unit.text, encoding="utf-8")
        made = source.with_name("out.o")
        include = () if unit.include is None else ("-I", str(unit.include))
        arguments = (*self.flags(unit), *include, "-c", str(source), "-o", str(made))
        try:
            self._run(arguments, folder)
        except ToolchainError as error:
            message = f"{unit.name} for {unit.level.name}: {error}"
            command = error.command.replace(str(source), str(self._keep(unit, key, source)))
            raise ToolchainError(message, command, error.output) from error
        data = made.read_bytes()
        if self.cache is not None:
            self.cache.put(key, data)
        return data, False

    def _keep(self, unit: Unit, key: str, source: Path) -> Path:
        """A copy, in the cache, of a source that fails: the command must stay runnable."""
        if self.cache is None:
            return source
        kept = self.cache.root / "failed" / key[:12] / unit.name
        try:
            write_atomically(kept, unit.text.encode())
        except OSError:
            return source
        return kept

    def _key(self, unit: Unit) -> str:
        """A digest of everything that determines the object."""
        headers = [] if unit.include is None else sorted(unit.include.glob("*.h"))
        texts = [path.read_bytes() for path in headers]
        machine = platform.machine()
        return key_of(unit.text, self.flags(unit), self.compiler, machine, unit.name, *texts)

    def _run(self, arguments: tuple[str, ...], folder: Path) -> None:
        """Run the compiler; zig gets cache folders of its own, so it shares none."""
        scopes = ("GLOBAL", "LOCAL") if self.compiler.kind == "zig" else ()
        caches = {f"ZIG_{scope}_CACHE_DIR": str(folder / "zig") for scope in scopes}
        run((*self.compiler.argv, *arguments), caches)


def _flags_of(compilation: Compilation, kind: str, level: Level) -> tuple[str, ...]:
    """A compilation in the words of one compiler."""
    order, place = (GCC_ORDER, GCC_PLACE) if kind == "gcc" else (CLANG_ORDER, CLANG_PLACE)
    instructions = compilation.instructions
    if instructions == "auto":
        # clang overrates what 16 registers spill to the first-level cache: kernels of one kind
        # in three are 3 to 20 % faster without that, few are slower, by up to 4 %.
        few = level.registers < 32
        instructions = "latency" if few and kind != "gcc" else "compiler"
    return (
        f"-O{compilation.optimization}",
        *order.get(instructions, ()),
        *(() if compilation.hoisting else place),
    )
