"""A kernel's declared parameters, and the binding of their types to the dtypes of a call's arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import numpy as np

from fusec.base.dtypes import BY_NAME, DType, cure_for
from fusec.base.records import dataclass
from fusec.errors.arguments import PlaceholderUnbound, TypeMismatch, TypesIncomplete, UnknownTypeName

Takes = Literal["bool", "int", "float", "complex", "NumPy", "any"]
"""The numbers that a native entry takes for a parameter: NumPy's scalars have dtypes that may count."""


@dataclass(frozen=True)
class Parameter:
    """A declared parameter."""

    name: str
    type_name: str  # a dtype's name, or one character, a placeholder
    dtype: DType | None  # None of a placeholder
    raw: bool = False  # addressed by the body itself
    non_const: bool = False  # an input that the body may change

    def __str__(self) -> str:
        marks = ("raw " if self.raw else "") + ("_non_const " if self.non_const else "")
        kind = "" if self.type_name == self.name else f"{self.type_name} "  # each has a type of its own
        return f"{marks}{kind}{self.name}"


@dataclass(frozen=True)
class Signature:
    """Name, inputs and outputs of a kernel."""

    name: str
    inputs: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...]

    @property
    def params(self) -> tuple[Parameter, ...]:
        """Inputs, then outputs."""
        return self.inputs + self.outputs

    @property
    def placeholders(self) -> tuple[str, ...]:
        """The placeholder names in order of appearance."""
        return tuple(dict.fromkeys(param.type_name for param in self.params if param.dtype is None))

    def __str__(self) -> str:
        inputs, outputs = (", ".join(str(param) for param in side) for side in (self.inputs, self.outputs))
        return f"{self.name}({inputs}) -> ({outputs})"

    def bind(self, dtypes: Sequence[DType | None]) -> dict[str, DType]:
        """Parameter name -> dtype, from the dtypes of the arguments (None for a number or an output to allocate).

        Inputs are looked at first, so that an output which they do not fit is what is wrong; numbers take the type of
        their parameter. Raises TypeMismatch if two disagree, PlaceholderUnbound if nothing fixes a placeholder.
        """
        bound: dict[str, tuple[DType, str]] = {}
        for param, dtype in zip(self.params, dtypes, strict=True):
            if dtype is not None:
                self._bind_one(param, dtype, bound)
        for param in self.params:
            if param.dtype is None and param.type_name not in bound:
                raise self._unbound(param).at()
        return {param.name: param.dtype or bound[param.type_name][0] for param in self.params}

    def _bind_one(self, param: Parameter, dtype: DType, bound: dict[str, tuple[DType, str]]) -> None:
        if param.dtype is not None:
            cure = self._cure(param, param.dtype)
            if dtype != param.dtype:
                reason = f"is declared {param.dtype}"
                raise TypeMismatch(self.name, param.name, dtype.name, param.dtype.name, reason, cure).at()
            return
        known, by = bound.setdefault(param.type_name, (dtype, param.name))
        if known != dtype:
            reason = f"'{by}' has bound {param.type_name} to {known}"
            cure = self._cure(param, known) if param in self.outputs else _for_both(param.name, dtype, by, known)
            if param in self.outputs and any(each.name == by for each in self.inputs):
                cure += f", or convert the inputs first, e.g. {by}.astype('{dtype}')"
            raise TypeMismatch(self.name, param.name, dtype.name, known.name, reason, cure, f" {param.type_name}").at()

    def _cure(self, param: Parameter, expected: DType) -> str:
        """How to get an argument of the dtype; a converted copy of an output would not be what is written to."""
        if param in self.outputs:
            return f"pass an array of {expected}"
        return f"convert it first, e.g. {param.name}.astype('{expected}')"

    def _unbound(self, param: Parameter) -> PlaceholderUnbound:
        if any(param.type_name == other.type_name for other in self.inputs):
            cure = f"pass an array for '{param.name}', or declare its type"
        else:
            cure = f"pass the output array for '{param.name}', or declare its type"
        return PlaceholderUnbound(self.name, param.name, param.type_name, cure)

    def bind_names(self, types: Mapping[str, object]) -> dict[str, DType]:
        """Parameter name -> dtype, from a mapping of placeholders to dtype names, NumPy dtypes or types.

        Raises UnknownTypeName for a key or value that is none, TypesIncomplete for placeholders left open.
        """
        bound = {key: self._named(key, value) for key, value in types.items()}
        missing = [name for name in self.placeholders if name not in bound]
        if missing:
            raise TypesIncomplete(self.name, ", ".join(missing), missing[0]).at()
        return {param.name: param.dtype or bound[param.type_name] for param in self.params}

    def _named(self, key: str, value: object) -> DType:
        if key not in self.placeholders:
            known = ", ".join(self.placeholders) or "none"
            raise UnknownTypeName(str({key: str(value)}), "no such placeholder", f"the placeholders are: {known}").at()
        name = getattr(value, "name", None) or getattr(value, "__name__", None) or str(value)
        if name not in BY_NAME:
            raise UnknownTypeName(str({key: str(value)}), "no such dtype", cure_for(str(name))).at()
        return BY_NAME[name]


def types_named(types: object, example: str = "T") -> dict[str, object]:
    """What `types=` of source() and the like says; nothing if None. Raises UnknownTypeName for no dictionary."""
    if types is None or isinstance(types, Mapping):
        return dict(types or {})
    raise UnknownTypeName(repr(types), "not a dictionary", f'pass types={{"{example}": "float32"}}').at()


def join(params: Iterable[Parameter]) -> str:
    """The declarations, separated by commas."""
    return ", ".join(str(param) for param in params)


def _for_both(name: str, dtype: DType, other: str, known: DType) -> str:
    """How two inputs of one type get one that holds both, by NumPy's promotion."""
    wide = np.result_type(dtype.numpy, known.numpy)
    converted = [f"{each}.astype('{wide}')" for each, own in ((other, known), (name, dtype)) if own.numpy != wide]
    return f"convert first, to the type that holds both: {' and '.join(converted)}"
