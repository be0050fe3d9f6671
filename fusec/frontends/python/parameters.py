"""What the parameters of a kernel stand for in a call: elements, numbers, arrays, and defaults that it leaves alone."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from fusec.base.dtypes import DType
from fusec.base.records import dataclass
from fusec.base.source import Span
from fusec.errors.python import BadParameter
from fusec.frontends.python.definition import PythonDefinition
from fusec.frontends.python.kernel_context import Other, value_of
from fusec.frontends.python.types import BY_NAME, carrier
from fusec.frontends.python.values import ArrayParameter, Neighbours, Scalar, Uses, Value, converted
from fusec.ir.expr import Expr, Pointer
from fusec.ir.loops import ArrayParam, Declare, Element, Load, Local, Param, ScalarParam, Stmt
from fusec.ir.walk import expressions, operands, statements


@dataclass(frozen=True)
class Inferred:
    """The types of a call."""

    results: tuple[DType, ...]
    is_tuple: bool  # whether the results come as one
    numbers: Mapping[str, DType]  # those that Python numbers among its arguments adapt to
    single: frozenset[str]  # integers that meet floats of one dtype alone, so that a float instead would do the same


class Parameters:
    """The parameters of a kernel in a call. types: of its arguments. arrays: those that the kernel indexes itself."""

    def __init__(
        self,
        definition: PythonDefinition,
        types: Mapping[str, DType],
        arrays: Iterable[ArrayParameter | Neighbours] = (),
    ) -> None:
        self.types = types
        self.constants, self.numbers = dict(definition.constants), dict(definition.numbers)
        self.arrays = {each.name: each for each in arrays}
        self._uses = {name: Uses() for name in self.numbers}

    def value(self, name: str, span: Span) -> Value:
        """The value of a parameter. Raises BadParameter for a default that a kernel cannot use."""
        if name in self.constants:
            found = value_of(self.constants[name], name)
            if isinstance(found, Other):
                raise BadParameter(f"the default of '{name}' is {found.given}", found.cure).at(span)
            return found
        dtype = self.types.get(name)
        if name in self.numbers:
            kind = BY_NAME[self.numbers[name]]
            return Scalar(kind, Local(name, dtype or kind.dtype), uses=self._uses[name])
        if name in self.arrays:
            return self.arrays[name]
        assert dtype is not None, f"{name} has a type"
        return Scalar(dtype, converted(Local(name, dtype), carrier(dtype)))

    def inferred(self, results: tuple[DType, ...], is_tuple: bool) -> Inferred:
        """The types of the call; a number that met one dtype alone takes that dtype."""
        numbers, single = {}, set()
        for name, kind in self.numbers.items():
            met = self._uses[name].dtypes
            target = next(iter(met)) if len(met) == 1 else None
            numbers[name] = BY_NAME[kind].dtype if target is None else target
            single |= {name} if kind == "int" and target is not None and target.is_float else set()
        return Inferred(results, is_tuple, numbers, frozenset(single))

    def params(self, names: Iterable[str], scalars: Container[str]) -> list[Param]:
        """Inputs of the IR, each an element or one of the numbers `scalars`."""
        found = [name for name in names if name not in self.constants]
        return [(ScalarParam if name in scalars else ArrayParam)(name, self.types[name]) for name in found]

    def loads(
        self, names: Iterable[str], scalars: Container[str], body: tuple[Stmt, ...], *values: Expr
    ) -> tuple[Stmt, ...]:
        """The loads of the elements that statements and values read, of the inputs `names` in order."""
        roots = [*values, *(root for each in statements(body) for root in operands(each))]
        read = {each.name for each in expressions(roots) if isinstance(each, Local)}
        elements = [name for name in names if name in read and name not in scalars and name not in self.arrays]
        types = [(name, self.types[name]) for name in elements if name not in self.constants]
        return tuple(
            Declare(name, dtype, Load(Element(name, Pointer(dtype, "global", True)), dtype)) for name, dtype in types
        )
