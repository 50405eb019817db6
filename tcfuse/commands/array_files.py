"""Arrays from and to ``.npy`` and ``.npz`` files, as a command line names them.

Nothing in a file is executed: pickled objects are refused.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from tcfuse.errors import InputError, OptionError
from tcfuse.layers.sample import random_array
from tcfuse.store import write_file
from tcfuse.tc.checked import CheckedDef
from tcfuse.types import DType, TensorType

RANDOM = "random:"
EXAMPLES = "for example X=x.npy, X=all.npz:x, X=random:4,8 or all.npz"


def read_arrays(texts: Sequence[str], checked: CheckedDef, seed: int) -> dict[str, np.ndarray]:
    """The arrays that a definition needs, by name.

    Args:
        texts: ``X=x.npy``, ``X=all.npz:x``, ``X=random:4,8``, ``X=3`` or ``all.npz``.
        checked: The definition.
        seed: Of random arrays.

    Raises:
        InputError: A file cannot be read, or an input is missing.
        OptionError: A text is none of these, or names what the definition does not have.
    """
    needed = (*checked.inputs, *checked.inout)
    rng = np.random.default_rng(seed)
    found: dict[str, np.ndarray] = {}
    named: dict[str, np.ndarray] = {}
    for text in texts:
        name, equals, source = text.partition("=")
        if not equals:
            found |= {n: a for n, a in _archive(Path(text)).items() if n in needed}
        elif name not in needed:
            raise OptionError(f"-i {text}: no input {name!r}; inputs are {', '.join(needed)}")
        elif not source or name in named:
            what = f"the input {name} is given twice" if source else f"no file for {name}"
            raise OptionError(f"-i {text}: {what}; use {EXAMPLES}")
        else:
            named[name] = _array(source, checked.tensors[name], rng)
    found |= named  # one that is named is not the archive's
    missing = [name for name in needed if name not in found]
    if missing:
        name = missing[0]
        kind = checked.tensors[name]
        raise InputError(f"nothing is given for the input {kind} {name}; use -i, {EXAMPLES}")
    return found


def _array(source: str, declared: TensorType, rng: np.random.Generator) -> np.ndarray:
    """One array; a number takes the declared type."""
    if source.startswith(RANDOM) or source == RANDOM.rstrip(":"):
        return _random(source.removeprefix(RANDOM.rstrip(":")).lstrip(":"), declared.dtype, rng)
    try:
        number = float(source) if declared.dtype.is_float else int(source)
        return np.array(number, declared.dtype.numpy)
    except ValueError:
        pass
    except OverflowError:
        raise OptionError(f"-i: no {declared.dtype.tc} holds {source}") from None
    path, colon, member = source.rpartition(":")
    if colon and path.endswith(".npz"):
        arrays = _archive(Path(path))
        if member not in arrays:
            raise InputError(f"{path}: no array {member!r}; it holds {', '.join(arrays)}")
        return arrays[member]
    loaded = _load(Path(source))
    if not isinstance(loaded, np.ndarray):
        raise InputError(f"{source}: an archive; say which array with {source}:NAME")
    return loaded


def _random(sizes: str, dtype: DType, rng: np.random.Generator) -> np.ndarray:
    """Random values of a shape that is written ``4,8``."""
    parts = [part.strip() for part in sizes.split(",")] if sizes else []
    if not all(part.isdigit() for part in parts):
        raise OptionError(f"-i random:{sizes} is not a list of sizes, for example random:4,8")
    try:
        return random_array(TensorType(dtype, tuple(map(int, parts))), {}, rng)
    except (MemoryError, ValueError) as error:
        raise OptionError(f"-i random:{sizes}: {error}") from None


def _archive(path: Path) -> dict[str, np.ndarray]:
    """Every array of a ``.npz`` file."""
    loaded = _load(path)
    if isinstance(loaded, np.ndarray):
        raise OptionError(f"-i {path} does not say which input it is; write NAME={path}")
    return loaded


def _load(path: Path) -> np.ndarray | dict[str, np.ndarray]:
    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return loaded
        with loaded:
            return {name: loaded[name] for name in loaded.files}
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        reason = " ".join(str(error).split())
        if "pickle" in reason:
            reason = "it holds no plain numbers, and what it may hold would be executed"
        raise InputError(f"{path}: is no .npy or .npz file: {reason}") from None


def targets_of(texts: Sequence[str], outputs: Sequence[str]) -> dict[str, Path]:
    """Where each output goes, by name; the empty name is an archive of all.

    Raises:
        OptionError: A text is neither ``Y=y.npy`` nor a ``.npz`` file.
    """
    found: dict[str, Path] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        archive = not equals and text.endswith(".npz")
        if not equals:
            name, path = "" if archive or len(outputs) > 1 else outputs[0], text
        if not path or not (archive or name in outputs):
            known = ", ".join(outputs)
            raise OptionError(f"-o {text}: write NAME=FILE.npy; outputs are {known}")
        if name in found:
            raise OptionError(
                f"-o {text}: {name or 'the archive'} goes to {found[name]} already"
            )
        found[name] = Path(path)
    return found


def write_outputs(files: Mapping[str, Path], outputs: Mapping[str, np.ndarray]) -> None:
    """Write the outputs, each file whole or not at all.

    Raises:
        InputError: A file cannot be written.
    """
    for name, path in files.items():
        data = io.BytesIO()
        if name:
            np.save(data, outputs[name], allow_pickle=False)
        else:
            np.savez(data, **dict(outputs))  # type: ignore[arg-type]  # of its keyword arguments
        write_file(path, data.getvalue())
