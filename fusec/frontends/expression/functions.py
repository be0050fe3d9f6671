"""The functions of expressions: the Python subset's, numexpr's own, conversions by names of dtypes, reductions."""

from __future__ import annotations

from fusec.base import dtypes
from fusec.base.dtypes import BOOL, INT64, UINT64, DType, complex_type
from fusec.base.records import dataclass
from fusec.base.source import Span
from fusec.frontends.lowering import CallSite
from fusec.frontends.python.arithmetic import condition
from fusec.frontends.python.functions import FUNCTIONS, Known
from fusec.frontends.python.types import PY_COMPLEX, PY_FLOAT, PY_INT, Kind, PythonType, carrier, storage
from fusec.frontends.python.values import Scalar, adapt, literal
from fusec.ir.expr import apply, const


def _copy(_: CallSite, args: list[Scalar]) -> Scalar:
    return args[0]


def _ones_like(_: CallSite, args: list[Scalar]) -> Scalar:
    kind = args[0].type
    return literal(1) if isinstance(kind, PythonType) else Scalar(kind, const(1, carrier(kind)))


def _complex(site: CallSite, args: list[Scalar]) -> Scalar:
    """``complex(x, y)``: complex128, or complex64 of two float32."""
    kind = FUNCTIONS["hypot"].make(site, args).type  # as for any function of two floats
    result: Kind = PY_COMPLEX if isinstance(kind, PythonType) else complex_type(carrier(kind))
    real, imag = (adapt(arg, kind, site.span).read() for arg in args)
    return Scalar(result, apply("complex", real, imag))


KNOWN: dict[str, Known] = {
    **{name: known for name, known in FUNCTIONS.items() if name not in ("min", "max")},
    "copy": Known(1, 1, _copy), "ones_like": Known(1, 1, _ones_like), "complex": Known(2, 2, _complex),
}  # fmt: skip
CONVERSIONS: dict[str, Kind] = {**dtypes.BY_NAME, "bool": BOOL, "int": PY_INT, "float": PY_FLOAT}


@dataclass(frozen=True)
class Combination:
    """How a reduction combines elements.

    op, bools: for numbers and for bools. empty: the total of no elements, None if there is none. grows: the total of
    small integers is 64 bits wide, as NumPy has it. is_ordered: not for complex numbers.
    """

    op: str
    bools: str
    empty: int | None
    grows: bool = False
    is_ordered: bool = False
    of_truths: bool = False

    def operand(self, name: str, value: Scalar, span: Span) -> Scalar:
        """An element as it is combined. Raises BadArgument."""
        if self.of_truths:
            return Scalar(BOOL, condition(value))
        dtype = storage(value.type)
        if self.is_ordered and dtype.is_complex:
            raise CallSite(name, span).refuse(dtype, "complex numbers have no order; take abs(x) or x.real")
        return adapt(value, self._total(dtype), span)

    def _total(self, dtype: DType) -> DType:
        if not self.grows or dtype.is_float or dtype.is_complex:
            return dtype
        return UINT64 if dtype.kind == "unsigned" else INT64

    def op_for(self, dtype: DType) -> str:
        """The op that combines two totals."""
        return self.bools if dtype == BOOL else self.op


REDUCTIONS: dict[str, Combination] = {
    "sum": Combination("add", "", 0, grows=True),
    "prod": Combination("multiply", "", 1, grows=True),
    "min": Combination("minimum", "bitwise_and", None, is_ordered=True),
    "max": Combination("maximum", "bitwise_or", None, is_ordered=True),
    "any": Combination("", "bitwise_or", 0, of_truths=True),
    "all": Combination("", "bitwise_and", 1, of_truths=True),
}
