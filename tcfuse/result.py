"""An optimized model in memory, and how it gets onto disk whole or not at all."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import onnx_ir as ir

from tcfuse.digests import keep_digest, known_digest
from tcfuse.errors import InputError
from tcfuse.graph.load import read_model
from tcfuse.ort.inference import save_aside
from tcfuse.ort.manifest import Report, library_path, manifest_path, portable_path, sha256
from tcfuse.ort.writer import digest_if_same, write_model
from tcfuse.profile import timed
from tcfuse.store import Store

if TYPE_CHECKING:
    import onnx

Source: TypeAlias = "str | Path | onnx.ModelProto | ir.Model"
MOST_BYTES = 1_900_000_000  # one protobuf holds 2 GiB at most


@dataclass(frozen=True, slots=True)
class Result:
    """What ``optimize`` returns.

    Attributes:
        model: The optimized model; the original one when nothing was fused.
        library: The kernels; ``None`` when nothing was fused.
        report: What was done and measured.
        source: File the model came from, if any.
        portable: The same for machines of other kinds, where this one is in a blocked layout.
    """

    model: ir.Model
    library: Path | None
    report: Report
    source: Path | None = None
    portable: Result | None = None

    @timed("save")
    def save(self, path: str | Path) -> Path:
        """Write ``path``, its library and its manifest; the model's path.

        Where there are two forms, the portable one goes to ``portable_path(path)``.

        Everything is written to a temporary folder beside ``path`` and renamed at the end, the
        model last, so that a process that dies leaves no file that looks finished and is not.
        External data stays beside the model it belongs to.

        Raises:
            InputError: The folder cannot be written.
        """
        target = Path(path)
        if target.suffix != ".onnx":
            raise InputError(f"{target}: the output must end in .onnx")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=target.parent, prefix=".tcfuse-") as folder:
                digests: dict[Path, str] = {}
                files = self._written(target, Path(folder), digests)
                for file in files:
                    file.replace(target.parent / file.name)
                if self.portable is None:
                    _remove_earlier(portable_path(target))
        except OSError as error:
            raise InputError(
                f"{target}: cannot be written: {error.strerror or error}"
            ) from None
        for model, digest in digests.items():
            keep_digest(Store.default(), model, digest)
        return target

    def _written(self, target: Path, folder: Path, digests: dict[Path, str]) -> list[Path]:
        """Fill ``folder`` with every file; those in it in the order in which they appear.

        Args:
            target: Where the model will be.
            folder: Where files are until all are complete.
            digests: Where the SHA-256 of each model is put, by where it will be.
        """
        before = []
        if self.portable is not None:
            before = self.portable._written(portable_path(target), folder, digests)
        model, library = folder / target.name, folder / library_path(target).name
        digest = digests[target] = self._write_model(model, target)
        if self.library is not None:
            shutil.copyfile(self.library, library)
            library.chmod(0o755)
        manifest = folder / manifest_path(target).name
        written = {"model": digest, **sha256([("library", library)])}
        manifest.write_text(replace(self.report, sha256=written).to_json(), encoding="utf-8")
        if self.library is None:
            library_path(target).unlink(missing_ok=True)  # stale, of an earlier run
        data = folder / f"{target.name}.data"
        if not model.exists():
            target.touch()  # as new as the rest, and no newer than what is made of it
        files = (data, library, manifest, model)
        return [*before, *(file for file in files if file.exists())]

    def _write_model(self, path: Path, target: Path) -> str:
        """Write the model to ``path`` as it must look at ``target``; its digest.

        Where ``target`` is that model already, nothing is written: a build that is repeated
        need not write its weights again, nor hash them while nobody has touched them.
        """
        tensors = [v.const_value for v in self.model.graph.initializers.values()]
        external = [t for t in tensors if isinstance(t, ir.ExternalTensor)]
        stays = (
            self.source is not None and self.source.resolve().parent == target.resolve().parent
        )
        inside = sum(t.nbytes for t in tensors if t is not None and t not in external)
        if (external and not stays) or inside > MOST_BYTES:
            save_aside(self.model, path)
        elif self.library is None and self.source is not None and not self.report.block:
            shutil.copyfile(self.source, path)  # byte for byte
        else:
            known = known_digest(Store.default(), target)
            same = digest_if_same(self.model, target, known)
            return write_model(self.model, path) if same is None else same
        return sha256([("model", path)])["model"]


def with_notes(result: Result, *notes: str) -> Result:
    """``result`` with more notes in its report."""
    report = result.report
    return replace(result, report=replace(report, notes=(*report.notes, *notes)))


def _remove_earlier(portable: Path) -> None:
    """Remove the portable form that an earlier run left beside a model that had two."""
    if manifest_path(portable).is_file():
        for file in (portable, library_path(portable), manifest_path(portable)):
            file.unlink(missing_ok=True)


def path_of(source: Source) -> Path | None:
    """The file of a source, if it is one."""
    return Path(source) if isinstance(source, str | Path) else None


def given(source: Source) -> ir.Model:
    """The model of a source, as it was given."""
    if isinstance(source, str | Path):
        return read_model(Path(source))
    return source if isinstance(source, ir.Model) else ir.from_proto(source)
