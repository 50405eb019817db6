"""External data: found, checked and bound to its folder before anything reads it.

A model may name any file for its weights.  Only plain files inside the folder of the model are
accepted: no absolute path, no way out through ``..`` or a link, no file that is shorter than
the tensors in it.  The data itself is mapped into memory by onnx-ir when it is first read.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

import onnx_ir as ir

from tcfuse.errors import InputError


def tensors(model: ir.Model) -> Iterator[ir.TensorProtocol]:
    """Every tensor of the model: initializers and attributes, in bodies and functions too."""
    for graph in model.graphs():
        for value in graph.initializers.values():
            if value.const_value is not None:
                yield value.const_value
    containers: list[ir.Graph | ir.Function] = [model.graph, *model.functions.values()]
    for container in containers:
        for node in container.all_nodes():
            for attribute in node.attributes.values():
                if attribute.is_ref():
                    continue
                if attribute.type is ir.AttributeType.TENSOR:
                    yield attribute.value
                elif attribute.type is ir.AttributeType.TENSORS:
                    yield from attribute.value


def bind(everything: Iterable[ir.TensorProtocol], folder: Path | None, name: str) -> None:
    """Bind external tensors to ``folder`` and check that their data is there.

    Args:
        everything: The tensors of a model; external ones not bound yet are bound in place.
        folder: Where the model file lies; ``None`` when it is not known.
        name: What to call the model in an error.

    Raises:
        InputError: Data is missing, too short, or outside the folder.
    """
    checked: dict[str, int] = {}
    for tensor in everything:
        if not isinstance(tensor, ir.ExternalTensor):
            continue
        if folder is not None:
            tensor.base_dir = str(folder)
        if not tensor.base_dir:
            raise InputError(
                f"{name}: the data of tensor {tensor.name!r} is in the file "
                f"'{tensor.location}'; give the path of the model instead of the model"
            )
        location = str(tensor.location)
        if location not in checked:
            checked[location] = _size_of(Path(tensor.base_dir), location, tensor.name, name)
        _check_range(tensor, checked[location], name)


def _size_of(folder: Path, location: str, tensor: str | None, name: str) -> int:
    """Bytes in the data file ``location``, which lies in ``folder``."""
    where = f"{name}: the external data of tensor {tensor!r}, '{location}',"
    if not location or "\0" in location:
        raise InputError(f"{where} is not the name of a file")
    if Path(location).is_absolute() or location.startswith(("/", "\\")):
        raise InputError(f"{where} is an absolute path; put the file next to the model")
    root = Path(os.path.realpath(folder))
    path = Path(os.path.normpath(folder.absolute() / location))
    if not path.is_relative_to(Path(os.path.normpath(folder.absolute()))):
        raise InputError(
            f"{where} is outside the folder of the model; put it next to the model"
        )
    real = Path(os.path.realpath(path))
    if not real.is_relative_to(root):
        raise InputError(
            f"{where} is a link to a file outside the folder of the model; "
            "put a copy next to the model"
        )
    try:
        status = real.stat()
    except OSError:
        raise InputError(f"{where} is missing; it belongs in {folder}") from None
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{where} is not a file")
    if status.st_nlink > 1:
        raise InputError(f"{where} has several hard links; put a copy next to the model")
    return status.st_size


def _check_range(tensor: ir.ExternalTensor, file_bytes: int, name: str) -> None:
    """Raise unless the bytes of ``tensor`` are inside its file."""
    where = f"{name}: tensor {tensor.name!r}"
    if any(d < 0 for d in tensor.shape.numpy()):
        raise InputError(f"{where} has a negative size; export the model again")
    offset, needed = tensor.offset or 0, tensor.nbytes
    if tensor.length is not None and tensor.length != needed:
        raise InputError(
            f"{where} needs {needed} bytes but {tensor.length} are given as its length; "
            "export the model again"
        )
    if offset < 0 or offset + needed > file_bytes:
        raise InputError(
            f"{where} ends at byte {offset + needed} of '{tensor.location}', which has "
            f"{file_bytes}; the file is incomplete, get it again"
        )
