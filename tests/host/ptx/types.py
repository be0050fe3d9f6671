"""PTX's types as NumPy's, and views between them."""

import ml_dtypes
import numpy as np

from ptx.syntax import WIDTHS

UNSIGNED: dict[int, np.dtype] = {
    1: np.dtype(np.uint8),
    2: np.dtype(np.uint16),
    4: np.dtype(np.uint32),
    8: np.dtype(np.uint64),
}
SIGNED: dict[int, np.dtype] = {
    1: np.dtype(np.int8),
    2: np.dtype(np.int16),
    4: np.dtype(np.int32),
    8: np.dtype(np.int64),
}
FLOATS = {"f16": np.dtype(np.float16), "f32": np.dtype(np.float32), "f64": np.dtype(np.float64)}


def _numpy_of(kind: str) -> np.dtype:
    if kind == "pred":
        return np.dtype(bool)
    if kind == "bf16":
        return np.dtype(ml_dtypes.bfloat16)
    if kind in FLOATS:
        return FLOATS[kind]
    return (SIGNED if kind[0] == "s" else UNSIGNED)[WIDTHS[kind]]


NUMPY = {kind: _numpy_of(kind) for kind, nbytes in WIDTHS.items() if nbytes <= 8}
# A register of bits or integers is kept unsigned; one of floats as floats, so that arithmetic needs no view.
STORED = {kind: NUMPY[kind] if kind[0] in "fp" and kind in NUMPY and "x" not in kind else UNSIGNED[nbytes]
          for kind, nbytes in WIDTHS.items() if nbytes <= 8}  # fmt: skip


def narrowed(values: np.ndarray, to: np.dtype) -> np.ndarray:
    """The low bits of a register seen as another type of at most its width."""
    if values.dtype == to:
        return values
    if values.dtype.itemsize == to.itemsize:
        return values.view(to)
    raw = values.view(UNSIGNED[values.dtype.itemsize])
    return raw.astype(UNSIGNED[to.itemsize]).view(to)


def widened(values: np.ndarray, to: np.dtype) -> np.ndarray:
    """A result in the type that a register keeps: signed ones are extended with their sign, others with zeros."""
    if values.dtype == to:
        return values
    if values.dtype.itemsize == to.itemsize:
        return values.view(to)
    if values.dtype.kind == "i":
        return values.astype(SIGNED[to.itemsize]).view(to)
    return values.view(UNSIGNED[values.dtype.itemsize]).astype(UNSIGNED[to.itemsize]).view(to)
