"""Types of values: NumPy's dtypes, and Python's own numbers, which adapt to the dtype that they meet (NEP 50)."""

from __future__ import annotations

from fusec.base import dtypes
from fusec.base.dtypes import BOOL, COMPLEX128, FLOAT16, FLOAT32, FLOAT64, INT64, DType, complex_type
from fusec.base.records import dataclass


@dataclass(frozen=True, slots=True)
class PythonType:
    """bool, int, float or complex: a later one holds the values of those before; `dtype` is how it is computed."""

    name: str
    rank: int
    dtype: DType

    def __repr__(self) -> str:
        return f"Python {self.name}"


PY_BOOL = PythonType("bool", 0, BOOL)
PY_INT = PythonType("int", 1, INT64)
PY_FLOAT = PythonType("float", 2, FLOAT64)
PY_COMPLEX = PythonType("complex", 3, COMPLEX128)
PYTHON_TYPES = {bool: PY_BOOL, int: PY_INT, float: PY_FLOAT, complex: PY_COMPLEX}
BY_NAME = {each.name: each for each in PYTHON_TYPES.values()}

Kind = DType | PythonType


def storage(kind: Kind) -> DType:
    """The dtype of a result of this kind."""
    return kind.dtype if isinstance(kind, PythonType) else kind


def carrier(kind: Kind) -> DType:
    """The dtype in which values of this kind compute: float32 for narrow floats."""
    return dtypes.compute_type(storage(kind))


def promote(left: Kind, right: Kind) -> Kind | None:
    """The type of arithmetic on two operands, by NumPy's rules; None where NumPy has none."""
    match left, right:
        case PythonType(), PythonType():
            return max(left, right, key=lambda kind: kind.rank)
        case DType(), DType():
            return dtypes.promote(left, right)
        case PythonType(), DType():
            return _adapted(left, right)
        case DType(), PythonType():
            return _adapted(right, left)
    raise AssertionError("there are two sorts of types")


def _adapted(python: PythonType, dtype: DType) -> DType | None:
    """The dtype of a Python number with a value of some dtype."""
    if python == PY_BOOL:
        return dtypes.promote(BOOL, dtype)
    if python == PY_INT:
        return INT64 if dtype == BOOL else dtype
    if python == PY_FLOAT:
        return dtype if dtype.is_float or dtype.is_complex else FLOAT64
    if dtype.is_complex:
        return dtype
    return complex_type(dtype) if dtype.is_float else COMPLEX128


def floating(kind: Kind) -> Kind:
    """The type of an elementary function's result: a float wide enough, as NumPy chooses it."""
    if isinstance(kind, PythonType):
        return kind if kind.rank >= PY_FLOAT.rank else PY_FLOAT
    if kind.is_float or kind.is_complex:
        return kind
    return FLOAT16 if kind.bits == 8 else FLOAT32 if kind.bits == 16 else FLOAT64


def join(left: Kind, right: Kind) -> Kind | None:
    """The one type of a variable that has two on different branches; None if it would have to change.

    The rule: a variable keeps its dtype; a Python number becomes a value of that dtype if its kind fits.
    """
    if left == right:
        return left
    match left, right:
        case PythonType(), PythonType():
            return max(left, right, key=lambda kind: kind.rank)
        case (PythonType() as python, DType() as dtype) | (DType() as dtype, PythonType() as python):
            return dtype if python.rank <= rank(dtype) else None
    return None


def conversion(left: Kind, right: Kind, shown: str) -> str:
    """The cure for two values that cannot be one variable or result: a dtype that holds both.

    shown: what is to be converted.
    """
    found = storage(promote(left, right) or FLOAT32)  # NumPy does not promote narrow floats of different formats
    return f"convert {'one' if found in (left, right) else 'both'}, e.g. np.{found}({shown})"


def rank(kind: Kind) -> int:
    """That of the Python type with the same sort of values."""
    if isinstance(kind, PythonType):
        return kind.rank
    return {"bool": 0, "signed": 1, "unsigned": 1, "float": 2, "complex": 3}[kind.kind]


def is_bool(kind: Kind) -> bool:
    """True for both kinds of bool."""
    return kind in (BOOL, PY_BOOL)


def is_integer(kind: Kind) -> bool:
    """True for both kinds of integers, not for bool."""
    return kind == PY_INT or (isinstance(kind, DType) and kind.is_integer)


def is_complex(kind: Kind) -> bool:
    """True for both kinds of complex numbers."""
    return storage(kind).is_complex
