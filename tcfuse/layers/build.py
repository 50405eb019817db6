"""A file of definitions to a library of ONNX operators, with a page and models about it.

Everything is made in a folder beside the target and moved into place at the end, so that a
build that fails leaves what was there before.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tcfuse.debug import cache_dir, current
from tcfuse.errors import InputError, OptionError, TcfuseError
from tcfuse.kernels import CompiledKernel
from tcfuse.layers.compiling import Settings, compile_definition, contract_of
from tcfuse.layers.layer import Layer
from tcfuse.layers.model import is_model_of, model_of
from tcfuse.layers.operator import Operator
from tcfuse.layers.page import page
from tcfuse.layers.sample import largest_error
from tcfuse.mapping_options import MappingOptions
from tcfuse.ort.library import build_library
from tcfuse.ort.operators import Naming
from tcfuse.ort.writer import write_model
from tcfuse.targets.base import KernelSource
from tcfuse.targets.toolchain import Toolchain
from tcfuse.tc.checked import CheckedDef

Show = Callable[[str], None]
TAKEN_DOMAINS = ("ai.onnx", "com.microsoft")


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """What a library is made of.

    Attributes:
        domain: Of the operators; default: ``tcfuse.`` and the name of the library.
        prefix: What stands before the name of each operator.
        names: Names of operators by definition, where they differ.
        mapping: Knobs of every kernel.
        sizes: Numbers for sizes, by name.
        keep_going: Leave out what does not compile.
        verify: Run every kernel beside its definition.
    """

    domain: str | None = None
    prefix: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    mapping: MappingOptions = field(default_factory=MappingOptions)
    sizes: Mapping[str, int] = field(default_factory=dict)
    keep_going: bool = False
    verify: bool = False


@dataclass(frozen=True, slots=True)
class Built:
    """What a build left behind.

    Attributes:
        library: The shared library.
        page: What documents it.
        models: A model of each operator.
        operators: What the library holds.
        failed: For each definition that was left out, the reason.
        errors: For each operator the largest error against the definition in float64, relative
            to the largest value, where that was measured.
    """

    library: Path
    page: Path
    models: tuple[Path, ...]
    operators: tuple[Operator, ...]
    failed: Mapping[str, str]
    errors: Mapping[str, float | None]


def build_layers(
    definitions: Sequence[CheckedDef],
    target: Path,
    options: BuildOptions | None = None,
    show: Show = lambda text: None,
) -> Built:
    """Write ``TARGET.so``, ``TARGET.md`` and ``TARGET/NAME.onnx`` for each definition.

    Args:
        definitions: Checked with ``affine=False``, their names all different.
        target: Where, without a suffix.
        options: Names, knobs.
        show: Told what is being done.

    Raises:
        UnsupportedError: A definition is beyond the compiler.
        OptionError: A name is no name, or is given to two operators.
        ToolchainError: There is no compiler, or it failed.
        InputError: The folder cannot be written, or ONNX Runtime does not load what was made.
    """
    options = options or BuildOptions()
    names = operator_names([c.definition.name for c in definitions], options)
    domain = operator_domain(target.name, options)
    kernels, failed = _compile(definitions, options, show)
    if not kernels:
        reasons = "; ".join(failed.values()) or "there is no definition"
        raise InputError(f"nothing to build: {reasons}")
    operators = tuple(
        Operator(names[c.definition.name], domain, c, kernels[c.definition.name])
        for c in definitions
        if c.definition.name in kernels
    )
    errors = {o.name: _error(o, options, show) for o in operators if options.verify}
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".tcfuse-") as folder:
            _write(operators, Path(folder), target.name, options, show)
            models = _move(Path(folder), target, operators)
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{target}: cannot be written: {reason}") from None
    library, document = _with(target, ".so"), _with(target, ".md")
    return Built(library, document, models, operators, failed, errors)


def operator_domain(target: str, options: BuildOptions) -> str:
    """The domain of the operators; it may not be one in which ONNX Runtime has its own.

    Raises:
        OptionError: It is no domain, or taken.
    """
    domain = options.domain
    if domain is None:
        return f"tcfuse.{re.sub('[^A-Za-z0-9_.-]', '_', target)}"
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", domain):
        raise OptionError(f"{domain!r} is no domain; letters, digits and . _ - make one")
    if domain.startswith(TAKEN_DOMAINS):
        raise OptionError(f"the domain {domain} has operators already; choose another")
    return domain


def operator_names(definitions: Sequence[str], options: BuildOptions) -> dict[str, str]:
    """The operator's name for each definition.

    Raises:
        OptionError: A definition is not there, or a name is no name or given twice.
    """
    for old, new in options.names.items():
        if old not in definitions:
            known = ", ".join(definitions)
            raise OptionError(f"--name {old}={new}: definitions are {known}")
    names = {d: options.names.get(d, f"{options.prefix}{d}") for d in definitions}
    for definition, name in names.items():
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise OptionError(f"{name!r}, of {definition}, is no name of an operator")
        others = [d for d, n in names.items() if n == name and d != definition]
        if others:
            raise OptionError(f"{definition} and {others[0]} would both be called {name}")
    return names


def _compile(
    definitions: Sequence[CheckedDef], options: BuildOptions, show: Show
) -> tuple[dict[str, CompiledKernel[KernelSource]], dict[str, str]]:
    """Kernels by definition, and reasons for those that have none."""
    kernels: dict[str, CompiledKernel[KernelSource]] = {}
    failed: dict[str, str] = {}
    for count, checked in enumerate(definitions, 1):
        name = checked.definition.name
        show(f"compiling {name}, {count} of {len(definitions)}")
        try:
            kernels[name] = compile_definition(checked, options.mapping, options.sizes)
        except TcfuseError as error:
            if not options.keep_going:
                raise
            failed[name] = str(error)
    return kernels, failed


def _error(operator: Operator, options: BuildOptions, show: Show) -> float | None:
    """How far the kernel is from the definition."""
    show(f"running {operator.name}")
    settings = Settings(options.mapping, quiet=True, sizes=options.sizes)
    return largest_error(Layer(operator.checked, settings))


def _write(
    operators: Sequence[Operator],
    folder: Path,
    name: str,
    options: BuildOptions,
    show: Show,
) -> None:
    """Everything, below ``folder``."""
    library = folder / f"{name}.so"
    show("linking")
    build_library(
        [operator.kernel.source for operator in operators],
        library,
        Toolchain.default(cache_dir(), current().cxx),
        contract=contract_of(options.mapping),
        naming=Naming(
            operators[0].domain,
            {operator.kernel.name: operator.name for operator in operators},
            ports=True,
        ),
    )
    (folder / f"{name}.md").write_text(page(operators, name), encoding="utf-8")
    models = folder / name
    models.mkdir()
    for operator in operators:
        show(f"checking {operator.name}")
        model = model_of(operator)
        write_model(model, models / f"{operator.name}.onnx")
        _check(models / f"{operator.name}.onnx", library)


def _check(model: Path, library: Path) -> None:
    """Load a model in ONNX Runtime, where there is one."""
    from tcfuse.ort.inference import open_session, ort_errors, runtime

    try:
        runtime()
    except InputError:
        return
    try:
        open_session(model, library)
    except ort_errors() as error:
        raise InputError(f"{model.name}: ONNX Runtime does not load it: {error}") from None


def _move(folder: Path, target: Path, operators: Sequence[Operator]) -> tuple[Path, ...]:
    """Move everything into place, and delete models of operators that are no more."""
    target.mkdir(exist_ok=True)
    for suffix in (".so", ".md"):
        _with(folder / target.name, suffix).replace(_with(target, suffix))
    models = tuple(target / f"{operator.name}.onnx" for operator in operators)
    for model in models:
        (folder / target.name / model.name).replace(model)
    for other in sorted(target.glob("*.onnx")):
        if other not in models and is_model_of(other, operators[0].domain):
            other.unlink()
    return models


def _with(path: Path, suffix: str) -> Path:
    """``path`` with something after its name, which may have dots."""
    return path.with_name(path.name + suffix)
