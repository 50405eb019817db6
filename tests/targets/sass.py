"""Widths of accesses to global memory in machine code, as NVIDIA's disassembler shows them."""

from __future__ import annotations

import importlib.metadata
import json
import shutil
import subprocess
from pathlib import Path

WIDTHS = {"8": 1, "U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}  # else 4 bytes


def disassembler() -> str | None:
    """nvdisasm from its wheel or on PATH."""
    try:
        for file in importlib.metadata.files("nvidia-cuda-nvdisasm") or ():
            if file.name == "nvdisasm":
                return str(file.locate())
    except importlib.metadata.PackageNotFoundError:
        pass
    return shutil.which("nvdisasm")


def widest_accesses(program: str, cubin: Path) -> dict[str, tuple[int, int]]:
    """Bytes of the widest load and store of global memory, by function."""
    command = [program, "-json", str(cubin)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = {}
    for function in json.loads(said)[1]:
        widest = {"LDG": 0, "STG": 0, "LD": 0, "ST": 0}
        for instruction in function["sass-instructions"]:
            name, *parts = instruction["opcode"].split(".")
            if name in widest:
                width = next((WIDTHS[part] for part in parts if part in WIDTHS), 4)
                widest[name] = max(widest[name], width)
        loads, stores = (max(widest[f"{op}G"], widest[op]) for op in ("LD", "ST"))
        found[function["function-name"]] = (loads, stores)
    return found
