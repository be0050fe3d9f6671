"""The parameters of a function, and their dtypes; those of results are inferred from those of arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fusec.arguments.signature import Signature
from fusec.base import dtypes
from fusec.base.dtypes import DType
from fusec.base.recent import Recent
from fusec.base.records import dataclass, field
from fusec.dispatch.spec import MAX_PLANS
from fusec.errors.arguments import UnknownTypeName
from fusec.errors.python import CannotStore
from fusec.frontends.python import syntax as s
from fusec.frontends.python.definition import PythonDefinition


@dataclass(frozen=True)
class FunctionSignature(Signature):
    """The parameters of one variant; dtypes of results are inferred."""

    definition: PythonDefinition | None = None
    adapted: dict[tuple[tuple[str, DType], ...], frozenset[str]] = field(default_factory=dict, compare=False)
    inferred: Recent[object, dict[str, DType]] = field(default_factory=lambda: Recent(MAX_PLANS), compare=False)

    def __str__(self) -> str:
        shown = ", ".join(f"{param.name}: {param.dtype}" if param.dtype else param.name for param in self.inputs)
        return f"{self.name}({shown})"

    def bind(self, given: Sequence[DType | None]) -> dict[str, DType]:
        """Parameter name -> dtype, from the dtypes of arrays (None for numbers, and for outputs to allocate).

        A Python number takes the dtype that it meets, if that is one alone. Raises TypeMismatch, CannotStore, and what
        the text is refused with for these types.
        """
        pairs = list(zip(self.params, given, strict=True))
        types: dict[str, DType] = {}
        for param, dtype in pairs[: len(self.inputs)]:
            if param.dtype is not None and dtype is not None:
                super()._bind_one(param, dtype, {})
            known = param.dtype or dtype
            if known is not None:
                types[param.name] = known
        return self.with_results(types, {param.name: dtype for param, dtype in pairs[len(self.inputs) :]})

    def with_results(self, types: dict[str, DType], outputs: Mapping[str, DType | None]) -> dict[str, DType]:
        """The dtypes of all parameters; outputs: those of the given outputs."""
        key = (*types.items(), None, *outputs.items())
        found = self.inferred.get(key) or self.inferred.keep(key, self._with_results(types, outputs))
        return dict(found)

    def _with_results(self, types: dict[str, DType], outputs: Mapping[str, DType | None]) -> dict[str, DType]:
        from fusec.frontends.python.lower import infer

        assert self.definition is not None, "a variant has a definition"
        found = infer(self.definition, types, {})
        types.update(found.numbers)
        for name, dtype in zip(self.definition.outputs, found.results, strict=True):
            wanted = outputs.get(name) or dtype
            if not np.can_cast(dtype.numpy, wanted.numpy, "same_kind"):
                raise CannotStore(self.name, dtype.name, wanted.name).at()
            types[name] = wanted
        types = {param.name: types[param.name] for param in self.params}
        self.adapted[tuple(types.items())] = found.single
        return types

    def bind_names(self, types: Mapping[str, object]) -> dict[str, DType]:
        """Parameter name -> dtype, from a mapping of parameter names to dtypes."""
        bound = {
            param.name: param.dtype or dtype_named(param.name, types[param.name])
            for param in self.inputs
            if param.dtype is not None or param.name in types
        }
        return self.with_results(bound, {})


def dtype_named(param: str, given: object) -> DType:
    """A dtype from its name, a NumPy dtype or a type. Raises UnknownTypeName."""
    name = getattr(given, "name", None) or getattr(given, "__name__", None) or str(given)
    found = dtypes.BY_NAME.get({"float": "float64", "int": "int64", "complex": "complex128"}.get(name, name))
    if found is None:
        raise UnknownTypeName(str({param: name}), "no such dtype", dtypes.cure_for(name)).at()
    return found


def defaults_of(function: s.FunctionNode) -> dict[str, str | None]:
    """Parameter -> its default as it is written, None without one."""
    return {each.name: None if each.default is None else each.default.span.text for each in function.params}
