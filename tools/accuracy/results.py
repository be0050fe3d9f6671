"""Results on disk: one JSON file that runs on several machines fill together."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import platform
from pathlib import Path
from typing import Any

import numpy as np

import fusec
from fusec.dtypes import DType
from tools.accuracy.functions import Row
from tools.accuracy.measure import Found
from tools.accuracy.targets import kernel_of

FOLDER = Path(__file__).parents[2] / "docs"
FILE = FOLDER / "accuracy.json"


def load(path: Path) -> dict[str, Any]:
    """The file's contents, or those of an empty one."""
    empty = {"about": {}, "errors": {}, "same": {}}
    return json.loads(path.read_text()) if path.exists() else empty


def save(data: dict[str, Any], path: Path) -> None:
    """Write the file anew: sorted, a line for each finding."""
    path.parent.mkdir(exist_ok=True)
    lines = []
    for dtype, rows in sorted(data["errors"].items()):
        for op, found in sorted(rows.items()):
            for name, entry in sorted(found.items()):
                lines.append(json.dumps([dtype, op, name, entry], sort_keys=True))
    body = {"about": data["about"], "same": data["same"]}
    text = json.dumps(body, indent=1, sort_keys=True)[:-2]
    path.write_text(text + ',\n "errors": [\n' + ",\n".join(lines) + "\n]}\n")


def read(path: Path) -> dict[str, Any]:
    """`load`, with the findings by dtype, function and implementation."""
    data = load(path)
    if isinstance(data["errors"], list):
        table: dict[str, Any] = {}
        for dtype, op, name, entry in data["errors"]:
            table.setdefault(dtype, {}).setdefault(op, {})[name] = entry
        data["errors"] = table
    return data


def entry(found: Found, how: str, of: str) -> dict[str, Any]:
    """A finding as JSON. how: which arguments; of: the definition measured."""
    values = dataclasses.asdict(found)
    values["at"] = [float(each).hex() for each in found.at]
    for key in ("most", "usual", "mean"):
        values[key] = float(f"{values[key]:.4g}") if np.isfinite(values[key]) else str(values[key])
    return {**values, "how": how, "of": of}


def fingerprint(row: Row, dtype: DType) -> str:
    """Names the definition of a function: it changes with the IR that is compiled."""
    kernel = kernel_of(row.name, row.arity)
    one = np.ones(2, dtype.numpy)
    kernel(*[one] * row.arity)
    return hashlib.sha256(kernel.source("ir").encode()).hexdigest()[:12]


def about_this_cpu() -> str:
    """The CPU target in general terms."""
    import llvmlite.binding as llvm

    from fusec.runtime.cpu.processor import processor

    found = processor()
    instructions = {512: " with AVX-512", 256: " with AVX2"}.get(found.vector_bits, "")
    machine = found.architecture.replace("x86_64", "x86-64") + instructions
    version = ".".join(map(str, llvm.llvm_version_info))
    return f"fusec {fusec.__version__}, {machine}, LLVM {version}, {platform.system()}"


def about_this_device() -> str:
    """The CUDA target in general terms."""
    from fusec.runtime import cuda

    return f"fusec {fusec.__version__}, NVIDIA device of architecture {cuda.device(0).arch}"
