"""``tcfuse doctor``: is everything here, and does it work?"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from ctypes import create_string_buffer
from pathlib import Path

from tcfuse.commands.progress import print_table
from tcfuse.debug import cache_dir, current
from tcfuse.errors import DeviceError, TcfuseError, ToolchainError
from tcfuse.ort.manifest import versions

Check = Callable[[], str]


class _AbsentError(TcfuseError):
    """Something that only some need is not here."""


def run() -> int:
    """Print one line a check; exit status 1 when one fails."""
    rows: list[tuple[str, str, str]] = []
    for name, check in CHECKS.items():
        try:
            rows.append((name, "ok", check()))
        except _AbsentError as absent:
            rows.append((name, "none", str(absent)))
        except (TcfuseError, OSError, ImportError) as error:
            rows.append((name, "FAILS", " ".join(str(error).split())))
    print_table(("check", "result", "what"), rows)
    return int(any(result == "FAILS" for _, result, _ in rows))


def _packages() -> str:
    return ", ".join(f"{name} {version}" for name, version in versions().items())


def _cache() -> str:
    folder = cache_dir()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folder):
        return f"{folder} can be written"


def _compiler() -> str:
    from tcfuse.targets.compilers import find_compiler

    return str(find_compiler(current().cxx))


def _cuda_compiler() -> str:
    from tcfuse.targets.nvrtc_library import find_nvrtc, locate

    try:
        locate()
    except ToolchainError as error:
        raise _AbsentError(str(error)) from error
    nvrtc = find_nvrtc()
    return f"{nvrtc}, for {', '.join(f'sm_{number}' for number in nvrtc.archs)}"


def _gpus() -> str:
    from tcfuse.gpu.libcuda import MAJOR, MINOR, Libcuda

    try:
        cuda = Libcuda()
        cuda.call("cuInit", 0)
    except DeviceError as error:
        raise _AbsentError(str(error)) from error
    found = []
    for ordinal in range(cuda.number("cuDeviceGetCount")):
        device = cuda.number("cuDeviceGet", ordinal)
        name = create_string_buffer(256)
        cuda.call("cuDeviceGetName", name, len(name), device)
        major, minor = (cuda.number("cuDeviceGetAttribute", a, device) for a in (MAJOR, MINOR))
        found.append(f"{name.value.decode(errors='replace')} (sm_{major}{minor})")
    version = cuda.number("cuDriverGetVersion")
    driver = f"the driver's CUDA is {version // 1000}.{version % 1000 // 10}"
    if not found:
        raise _AbsentError(f"none can be seen; {driver}")
    return f"{', '.join(found)}; {driver}"


def _runtime() -> str:
    from tcfuse.ort.inference import runtime

    ort = runtime()
    return f"onnxruntime {ort.__version__}, {', '.join(ort.get_available_providers())}"


def _rates() -> str:
    from tcfuse.calibration import calibrated
    from tcfuse.graph.machine import MACHINE
    from tcfuse.store import Store

    machine = calibrated(Store.default())
    if machine == MACHINE:
        return "built-in table ('tcfuse calibrate' measures this machine)"
    return f"measured on {machine.name}"


def _operators() -> str:
    from tcfuse import opdef

    return f"{len(opdef.registered())} operator definitions"


def _end_to_end() -> str:
    """Optimize a small model without measuring, and run it."""
    import numpy as np
    import onnx_ir as ir

    from tcfuse.ort.arrays import run
    from tcfuse.ort.inference import open_session
    from tcfuse.pipeline import optimize

    x = ir.val("x", ir.DataType.FLOAT, ["N", 8])
    nodes = [ir.node("Sigmoid", [x])]
    nodes.append(ir.node("Mul", [x, nodes[0].outputs[0]]))
    nodes.append(ir.node("Tanh", [nodes[1].outputs[0]]))
    (y,) = nodes[-1].outputs
    y.name, y.dtype, y.shape = "y", ir.DataType.FLOAT, ir.Shape(["N", 8])
    graph = ir.Graph([x], [y], nodes=nodes, opset_imports={"": 17}, name="doctor")
    result = optimize(ir.Model(graph, ir_version=8), gate=False)
    if result.library is None:
        raise ToolchainError(
            result.report.regions[0].reason if result.report.regions else "nothing fused"
        )
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "doctor.so"
        library.write_bytes(result.library.read_bytes())
        given = np.linspace(-3, 3, 16, dtype=np.float32).reshape(2, 8)
        run(open_session(result.model, library), {"x": given})
    return f"{result.report.kept[0].name} compiled, verified and run"


CHECKS: dict[str, Check] = {
    "packages": _packages,
    "cache": _cache,
    "compiler": _compiler,
    "CUDA compiler": _cuda_compiler,
    "GPUs": _gpus,
    "onnxruntime": _runtime,
    "rates": _rates,
    "operators": _operators,
    "end to end": _end_to_end,
}
