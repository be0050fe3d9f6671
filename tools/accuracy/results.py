"""Results on disk: one JSON file that runs on several machines fill together."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import platform
from pathlib import Path
from typing import Any

import numpy as np

import fusec
from fusec.base.dtypes import DType
from tools.accuracy.functions import Row
from tools.accuracy.measure import Found
from tools.accuracy.targets import kernel_of

FOLDER = Path(__file__).parents[2] / "docs"
FILE = FOLDER / "accuracy.json"


def read(path: Path) -> dict[str, Any]:
    """The file's contents: findings by dtype, function and implementation; of no file, empty ones."""
    data: dict[str, Any] = {"about": {}, "same": {}, "errors": []}
    if path.exists():
        data = json.loads(path.read_text())
    table: dict[str, Any] = {}
    for dtype, op, name, found in data["errors"]:
        table.setdefault(dtype, {}).setdefault(op, {})[name] = found
    return {**data, "errors": table}


def update(path: Path, parts: tuple[str, ...], value: object) -> None:
    """Set one thing in the file, and leave what other runs may have written meanwhile."""
    data = read(path)
    place = data
    for part in parts[:-1]:
        place = place.setdefault(part, {})
    place[parts[-1]] = value
    save(data, path)


def save(data: dict[str, Any], path: Path) -> None:
    """Write the file anew: sorted, a line for each finding."""
    path.parent.mkdir(exist_ok=True)
    lines = []
    for dtype, rows in sorted(data["errors"].items()):
        for op, found in sorted(rows.items()):
            lines += [json.dumps([dtype, op, name, each], sort_keys=True) for name, each in sorted(found.items())]
    body = json.dumps({"about": data["about"], "same": data["same"]}, indent=1, sort_keys=True)
    text = body.removesuffix("\n}") + ',\n "errors": [\n' + ",\n".join(lines) + "\n]}\n"
    new = path.with_suffix(f".{os.getpid()}")
    new.write_text(text)
    new.replace(path)


def entry(found: Found, how: str, of: str, digest: str) -> dict[str, Any]:
    """A finding as JSON. how: which arguments; of: the definition measured; digest: of a sweep's results."""
    values = dataclasses.asdict(found)
    values["at"] = [float(each).hex() for each in found.at]
    for key in ("most", "usual", "mean"):
        values[key] = float(f"{values[key]:.4g}") if np.isfinite(values[key]) else str(values[key])
    return {**values, "how": how, "of": of, "digest": digest}


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
