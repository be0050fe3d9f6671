"""What a kernel in Python is made of, as plain values: texts, what their free names stand for, and how it is called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fusec.dtypes import DType
from fusec.records import dataclass
from fusec.source import SourceFile

if TYPE_CHECKING:
    from fusec.ir.loops import Program

Capture = tuple[Any, ...]
"""What a free name stands for: ("python", number), ("complex", real, imag), ("numpy", dtype name, bits),
("type", dtype or Python type), ("module", name), ("builtin", name, whether it is Python's own), ("function", key),
("intrinsic", what only kernels have), ("tuple", captures), ("none",), ("other", what it is, a cure), or
("missing", a guess)."""

Border = tuple[tuple[str, ...], Capture, tuple[int, ...]]
"""What a stencil does at the border: modes, what lies outside, and the axes that its indices are for."""


@dataclass(frozen=True)
class FunctionText:
    """One function: its text as it stands in `file` from `line` on, and its free names and defaults.

    key: names it among the functions of a definition. `names` may be dotted, as in ``config.scale``.
    """

    key: str
    name: str
    file: str
    line: int
    text: str
    names: tuple[tuple[str, Capture], ...] = ()
    defaults: tuple[tuple[str, Capture], ...] = ()

    @property
    def source(self) -> SourceFile:
        """The text at its lines: empty lines stand for what comes before it in the file."""
        return SourceFile(self.file, "\n" * (self.line - 1) + self.text)


@dataclass(frozen=True)
class PythonDefinition:
    """A kernel of one function and all that it calls; the last of `functions` is the kernel.

    constants: parameters that no call of it gives, with their defaults. numbers: parameters that are Python numbers,
    with their types. outputs: the names of the results. indexed: parameters whose neighbours a stencil looks at;
    border: what it does where there are none. arrays: of an explicit kernel, each with its number of axes and whether
    it is written; None for the other sorts. checked: accesses and assertions are checked when it runs.
    """

    name: str
    functions: tuple[FunctionText, ...]
    outputs: tuple[str, ...]
    constants: tuple[tuple[str, Capture], ...] = ()
    numbers: tuple[tuple[str, str], ...] = ()
    indexed: tuple[str, ...] = ()
    border: Border | None = None
    arrays: tuple[tuple[str, int, bool], ...] | None = None
    checked: bool = False
    options: tuple[str, ...] = ()

    @property
    def texts(self) -> dict[str, Any]:
        """Everything that the meaning depends on, by its name; where the texts stand is not part of it."""
        functions = [{**vars(each), "file": "", "line": 0} for each in self.functions]
        return {**vars(self), "functions": functions}

    def read(self) -> object:
        """The syntax trees; raises what is wrong with the texts whatever the types."""
        from fusec.frontends.python.parse import parse

        return [parse(each.source) for each in self.functions]

    def lower(self, types: Mapping[str, DType], ndims: Mapping[str, int], scalars: frozenset[str]) -> Program:
        """The typed program."""
        from fusec.frontends.python.lower import lower

        return lower(self, types, scalars, ndims)
