"""An optimized model on disk, read back with its library and manifest."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import onnx_ir as ir

from tcfuse.cuda_options import CudaOptions
from tcfuse.errors import InputError, TcError
from tcfuse.mapping_options import MappingOptions
from tcfuse.ort.manifest import RegionReport, Report, library_path, read_manifest, sha256
from tcfuse.ort.record import interface_from_json
from tcfuse.targets.base import Interface
from tcfuse.tc.checked import CheckedDef
from tcfuse.tc.parser import parse
from tcfuse.tc.sema import check
from tcfuse.wisdom.advice import Advice


@dataclass(frozen=True, slots=True)
class Artifact:
    """The three files of one optimized model."""

    path: Path
    model: ir.Model
    library: Path
    report: Report

    @classmethod
    def read(cls, path: Path) -> Artifact:
        """The model at ``path`` with what lies beside it.

        Raises:
            InputError: A file is missing, damaged or of another run.
        """
        report = read_manifest(path)
        library = library_path(path)
        if report.kept and not library.is_file():
            raise InputError(f"{path}: its kernels, {library.name}, are missing beside it")
        found = sha256([("model", path), ("library", library)])
        for role, digest in report.sha256.items():
            if found.get(role) != digest:
                raise InputError(f"{path}: the {role} is not the one its manifest was made for")
        return cls(path, ir.load(path), library, report)

    def region(self, name: str) -> RegionReport:
        """What the manifest says about a kernel."""
        for region in self.report.kept:
            if region.name == name:
                return region
        known = ", ".join(dict.fromkeys(region.name for region in self.report.kept)) or "none"
        raise InputError(f"{self.path}: no kernel {name!r}; kernels are {known}")

    def checked(self, region: RegionReport) -> CheckedDef:
        """The definition of a kernel, checked again."""
        try:
            return check(parse(region.tc), sizes=self.interface(region).sizes)
        except TcError as error:
            raise InputError(
                f"{self.path}: the definition of {region.name} in its manifest: {error.message}"
            ) from None

    def knobs(self, region: RegionReport, target: str) -> tuple[MappingOptions, CudaOptions]:
        """The knobs that a kernel was compiled with."""
        given = self.report.options
        mapping = MappingOptions.of(given.get("mapping", {}))
        if target not in region.tuned:
            return mapping, CudaOptions(**given.get("cuda", {}))
        advice = Advice.of_record(region.tuned[target])
        return advice.mapping(mapping), advice.cuda()

    def interface(self, region: RegionReport) -> Interface:
        """The signature of a kernel."""
        if region.interface is None:
            raise InputError(f"{self.path}: the manifest has no signature for {region.name}")
        return interface_from_json(region.interface)
