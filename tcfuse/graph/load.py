"""Loading: a file or model in, an ``ir.Model`` with symbolic shapes and folded constants out.

The original is never changed, nothing in it is executed, and what is wrong with it is said in
one sentence before any other stage sees it.  Operators keep the opset of the file: definitions
are chosen by opset, so there is no version conversion.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from pathlib import Path

import google.protobuf.message
import numpy as np
import onnx
import onnx_ir as ir

from tcfuse.errors import InputError
from tcfuse.graph.channels_last import turn_channels
from tcfuse.graph.constants import constant_value
from tcfuse.graph.external_data import bind, tensors
from tcfuse.graph.folding import Folder
from tcfuse.graph.previews import write_out_previews
from tcfuse.graph.quantized import own_dequantizers
from tcfuse.graph.shapes import infer_shapes
from tcfuse.graph.signatures import check_signatures, end_inputs
from tcfuse.graph.unrolling import Unroller
from tcfuse.graph.validity import check_attributes, check_graph
from tcfuse.graph.weights import ModelFile
from tcfuse.profile import timed

__all__ = ["constant_value", "load_model"]

_LARGEST_FILE_BYTES = (1 << 31) - 1  # of a protobuf message
_IN_MEMORY = "the model"


@timed("load")
def load_model(source: str | Path | onnx.ModelProto | ir.Model) -> ir.Model:
    """A copy of ``source`` with the types and shapes of all values, and constants folded.

    Each node that reads a dequantized value gets a DequantizeLinear of its own.
    Large tensors are shared with the original or mapped from its files, never copied.

    Raises:
        InputError: The file or model cannot be used; the text says why and what to do.
    """
    if isinstance(source, ir.Model):
        name, folder, model = _IN_MEMORY, None, _cloned(source)
        _check_versions(model, name)
    elif isinstance(source, onnx.ModelProto):
        name, folder = _IN_MEMORY, None
        model = _deserialized(source, name)
    else:
        name, folder = str(source), Path(source).parent.absolute()
        model = _read(Path(source))
    check_signatures(model, name)
    _keep_old_constants(model)
    end_inputs(model)
    everything = list(tensors(model))
    _check_inline_data(everything, name)
    bind(everything, folder, name)
    fold = Folder(model)
    infer_shapes(model, after_node=fold)
    while write_out_previews(model):
        infer_shapes(model, after_node=fold)
    unroller = Unroller(model)
    while unroller.unroll():
        infer_shapes(model, after_node=fold)
    own_dequantizers(model)
    turn_channels(model)
    return model


def _keep_old_constants(model: ir.Model) -> None:
    """Take initializers out of the inputs, where the format of the file has them there.

    Before IR version 4 every initializer had to be an input too, and nobody could feed another
    value: ONNX Runtime takes them as constants.
    """
    constants = set(model.graph.initializers.values())
    if model.ir_version < 4 and constants & set(model.graph.inputs):
        model.graph.inputs[:] = [v for v in model.graph.inputs if v not in constants]
        model.ir_version = 4


def read_model(path: Path) -> ir.Model:
    """The model in a file, as it is there; large weights stay there until they are needed.

    Raises:
        InputError: It cannot be read, or is no model.
    """
    model = _read(path)
    bind(list(tensors(model)), path.parent.absolute(), str(path))
    return model


def _read(path: Path) -> ir.Model:
    """The same, the files of its external data not looked for yet."""
    try:
        if path.is_dir():
            raise InputError(f"{path} is a folder; give the .onnx file in it")
        if not path.is_file():
            problem = "is not a plain file" if path.exists() else "does not exist"
            raise InputError(f"{path} {problem}; give the path of an .onnx file")
        if path.stat().st_size > _LARGEST_FILE_BYTES:
            raise InputError(
                f"{path} is larger than 2 GiB, which no ONNX file can be; save the model with "
                "external data"
            )
        found = ModelFile.read(path)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no path"
        raise InputError(f"{path} cannot be read: {reason}") from None
    data = found.message
    if not data:
        raise InputError(f"{path} is empty; get the file again")
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(data)
    except (google.protobuf.message.DecodeError, RuntimeError):
        raise InputError(f"{path} is not a valid ONNX model: {_guess(data)}") from None
    model = _deserialized(proto, str(path))
    found.put_back(model)
    return model


def _guess(data: bytes) -> str:
    """What a file that cannot be parsed may be, and what to do."""
    head = data[:512]
    if head.startswith(b"version https://git-lfs"):
        return "it is a Git LFS pointer; fetch the file itself with 'git lfs pull'"
    if head.lstrip()[:1] == b"<":
        return "it is a web page; download the file itself"
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError:
        return "it cannot be parsed and may be truncated; get the file again"
    if text.isprintable() or all(c.isprintable() or c in "\r\n\t" for c in text):
        return "it is a text file; get the binary .onnx file"
    return "it cannot be parsed and may be truncated; get the file again"


def _cloned(source: ir.Model) -> ir.Model:
    """A copy of ``source`` that shares its tensors."""
    defined = {id(v) for graph in source.graphs() for v in graph.inputs}
    for graph in source.graphs():
        defined |= {id(v) for v in graph.initializers.values()}
    for node in source.graph.all_nodes():
        for value in node.inputs:
            if value is not None and value.producer() is None and id(value) not in defined:
                raise InputError(
                    f"{_IN_MEMORY}: a {node.op_type} node uses the value {value.name!r}, "
                    "which nothing defines"
                )
    try:
        return source.clone()
    except RuntimeError:
        raise InputError(
            f"{_IN_MEMORY}: the nodes are not in topological order or the graph is cyclic; "
            "call 'model.graph.sort()', which tells"
        ) from None


def _deserialized(proto: onnx.ModelProto, name: str) -> ir.Model:
    """The model of a message, once that is known to be one."""
    if not proto.HasField("graph") or not proto.ir_version:
        raise InputError(
            f"{name} is not a valid ONNX model: it has no graph or no IR version; the file may "
            "be truncated, get it again"
        )
    if not proto.opset_import:
        raise InputError(
            f"{name} is not a valid ONNX model: it names no opset; the file may be truncated, "
            "get it again"
        )
    _refuse_sparse(proto.graph, name)
    check_attributes(proto, name)
    ordered = check_graph(proto.graph, name)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # unknown keys of external data are ignored
            model = ir.from_proto(proto)
    except (ir.serde.SerdeError, ValueError, TypeError, NotImplementedError, KeyError) as error:
        raise InputError(f"{name} is not a valid ONNX model: {_root(error)}") from None
    assert isinstance(model, ir.Model)
    _check_versions(model, name)
    if not ordered:
        model.graph.sort()
    return model


def _root(error: BaseException) -> str:
    """The first line of what first went wrong."""
    while error.__cause__ is not None:
        error = error.__cause__
    return (str(error).splitlines() or [type(error).__name__])[0]


def _refuse_sparse(graph: onnx.GraphProto, name: str) -> None:
    """Raise for a sparse initializer, which would be lost on the way."""
    for sparse in graph.sparse_initializer:
        raise InputError(
            f"{name}: initializer {sparse.values.name!r} is sparse, which is not supported; "
            "export the model with dense weights"
        )


def _check_versions(model: ir.Model, name: str) -> None:
    """Raise for versions nothing here was written for."""
    if model.ir_version > onnx.IR_VERSION:
        raise InputError(
            f"{name} has IR version {model.ir_version}; the installed onnx knows "
            f"{onnx.IR_VERSION} at most: upgrade onnx"
        )
    opsets = model.graph.opset_imports
    opset = opsets.get("", opsets.get("ai.onnx"))
    newest = onnx.defs.onnx_opset_version()
    if opset is None:
        if any(n.domain in ("", "ai.onnx") for n in model.graph.all_nodes()):
            raise InputError(f"{name} uses ONNX operators but names no opset of them")
    elif opset > newest:
        raise InputError(
            f"{name} has opset {opset}; the installed onnx knows {newest} at most: upgrade onnx"
        )


def _check_inline_data(everything: Iterable[ir.TensorProtocol], name: str) -> None:
    """Raise for a tensor in the file that does not hold what its shape promises."""
    for tensor in everything:
        if tensor.dtype is ir.DataType.UNDEFINED:
            raise InputError(f"{name}: tensor {tensor.name!r} has no element type")
        if not isinstance(tensor, ir.serde.TensorProtoTensor):
            continue
        proto = tensor.raw
        if any(d < 0 for d in proto.dims):
            raise InputError(f"{name}: tensor {tensor.name!r} has a negative size")
        needed = tensor.nbytes
        raw = proto.HasField("raw_data")
        if not (len(proto.raw_data) == needed if raw else _is_whole(tensor)):
            raise InputError(
                f"{name}: tensor {tensor.name!r} holds more or less data than its shape needs "
                f"({needed} bytes); the file may be damaged, get it again"
            )


def _is_whole(tensor: ir.serde.TensorProtoTensor) -> bool:
    """Whether a tensor whose numbers are listed one by one can be read."""
    try:
        return bool(tensor.size == 0) or bool(np.size(tensor.numpy()) == tensor.size)
    except (ValueError, TypeError):
        return False
