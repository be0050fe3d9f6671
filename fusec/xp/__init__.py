"""Lazy arrays: a namespace of the array API whose operations fuse into a few kernels.

>>> import fusec.xp as xp
>>> x = xp.linspace(0, 1, 5)
>>> xp.sum(x * x)
Array(1.875)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from fusec.xp import (
    creation,
    datatypes,
    elementwise,
    fft,
    linalg,
    looking,
    manipulation,
    memory,
    numpy_names,
    products,
    searching,
    statistics,
)  # fmt: skip
from fusec.xp.array import Array
from fusec.xp.creation import *  # noqa: F403
from fusec.xp.datatypes import *  # noqa: F403
from fusec.xp.datatypes import DTYPES
from fusec.xp.elementwise import *  # noqa: F403
from fusec.xp.forms import Device
from fusec.xp.info import __array_namespace_info__
from fusec.xp.looking import *  # noqa: F403
from fusec.xp.manipulation import *  # noqa: F403
from fusec.xp.memory import *  # noqa: F403
from fusec.xp.products import *  # noqa: F403
from fusec.xp.promotion import flags
from fusec.xp.searching import *  # noqa: F403
from fusec.xp.statistics import *  # noqa: F403

if TYPE_CHECKING:
    from fusec.xp import extra, random

__array_api_version__ = "2025.12"
e, inf, nan, newaxis, pi = np.e, np.inf, np.nan, None, np.pi
bool, int8, int16, int32, int64 = map(DTYPES.__getitem__, ("bool", "int8", "int16", "int32", "int64"))  # noqa: A001
uint8, uint16, uint32, uint64 = map(DTYPES.__getitem__, ("uint8", "uint16", "uint32", "uint64"))
float16, float32, float64 = map(DTYPES.__getitem__, ("float16", "float32", "float64"))
complex64, complex128 = map(DTYPES.__getitem__, ("complex64", "complex128"))

__all__ = [
    "Array",
    "Device",
    "__array_api_version__",
    "__array_namespace_info__",
    "e",
    "extra",
    "fft",
    "flags",
    "inf",
    "linalg",
    "nan",
    "newaxis",
    "pi",
    "random",
]
__all__ += datatypes.NAMES
for _chapter in (creation, datatypes, elementwise, looking, manipulation, memory, products, searching, statistics):
    __all__ += _chapter.__all__


def __getattr__(name: str) -> Any:
    if name in ("extra", "random"):  # which import kernels that most programs do without
        return import_module(f"fusec.xp.{name}")
    return numpy_names.fallback(name, __name__, np, "", __all__)


def __dir__() -> list[str]:
    """The public names, NumPy's beyond the standard included, and Python's own."""
    own = {name for name in globals() if name.startswith("__")}
    return sorted({*own, *__all__, *numpy_names.names()})
