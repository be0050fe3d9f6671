"""The definition of a kernel in Python, as plain values: texts, the values of free names, and the kind of call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fusec.base.records import dataclass
from fusec.base.source import SourceFile

if TYPE_CHECKING:
    from fusec.frontends.python.syntax import FunctionNode

TEXT = "<text>"  # the file of a function that a text gives

Capture = tuple[Any, ...]
"""What a free name stands for: ("python", number, key), ("complex", real, imag, key), ("numpy", dtype name, bits),
("type", dtype or Python type), ("module", name), ("builtin", name, whether it is Python's own), ("function", key),
("intrinsic", what only kernels have), ("tuple", captures), ("array", dtype name, shape, its bytes in C order as hex),
("none",), ("other", what it is, a cure, perhaps whether it is a class of arrays), or ("missing", a guess)."""


def number(value: complex) -> Capture:
    """A Python number as a capture; its key tells apart what is equal: 1, 1.0 and True, or 0.0 and -0.0."""
    if isinstance(value, complex):
        return ("complex", value.real, value.imag, f"{value.real.hex()} {value.imag.hex()}")
    return ("python", value, value.hex() if isinstance(value, float) else type(value).__name__)


Border = tuple[tuple[str, ...], Capture, tuple[int, ...]]
"""What a stencil does at the border: modes, what lies outside, and the axes that its indices are for."""


@dataclass(frozen=True)
class FunctionText:
    """One function: its text as it stands in `file` from `line` on, and its free names and defaults.

    key: names it among the functions of a definition. `names` may be dotted, as in ``config.scale``. part: of a lambda,
    where it begins and ends in `text`, which is all of its lines.
    """

    key: str
    name: str
    file: str
    line: int
    text: str
    names: tuple[tuple[str, Capture], ...] = ()
    defaults: tuple[tuple[str, Capture], ...] = ()
    part: tuple[int, int] | None = None

    @property
    def source(self) -> SourceFile:
        """The text at its lines: empty lines stand for what comes before it in the file."""
        return SourceFile(self.file, "\n" * (self.line - 1) + self.text)

    @property
    def tree(self) -> FunctionNode:
        """The syntax tree: of the last function of that name, or of the last of all."""
        from fusec.frontends.python.parse import parse, parse_lambda

        if self.part is not None:
            start, end = (self.line - 1 + at for at in self.part)
            return parse_lambda(self.source, start, end)
        found = parse(self.source)
        return next((each for each in reversed(found) if each.name == self.name), found[-1])


@dataclass(frozen=True)
class PythonDefinition:
    """A kernel of one function and all that it calls."""

    name: str
    functions: tuple[FunctionText, ...]  # the last is the kernel
    outputs: tuple[str, ...]  # the names of the results
    constants: tuple[tuple[str, Capture], ...] = ()  # parameters that no call of it gives, with their defaults
    numbers: tuple[tuple[str, str], ...] = ()  # parameters that are Python numbers, with their types
    indexed: tuple[str, ...] = ()  # parameters whose neighbours a stencil looks at
    border: Border | None = None  # what a stencil does where there are none
    arrays: tuple[tuple[str, int, bool], ...] | None = None  # of an explicit kernel: axes, whether it is written
    checked: bool = False  # accesses and assertions are checked when it runs
    block: tuple[int, ...] = ()  # how many positions of its grid make a block, along each axis; () without blocks
    options: tuple[str, ...] = ()

    @property
    def texts(self) -> dict[str, Any]:
        """Everything that the meaning depends on, by its name; where the texts stand is not part of it."""
        functions = [{**vars(each), "file": "", "line": 0} for each in self.functions]
        return {**vars(self), "functions": functions}

    @property
    def runs_in_python(self) -> bool:
        """Whether fusec.simulate runs the function itself: one of Python that does not look at neighbours."""
        return self.border is None and self.functions[-1].file != TEXT

    def read(self) -> object:
        """The syntax trees; raises what is wrong with the texts whatever the types."""
        return [each.tree for each in self.functions]


@dataclass(frozen=True)
class ReductionFunctions(PythonDefinition):
    """A reduction of several functions and all that they call."""

    runs_in_python = False

    roles: tuple[tuple[str, str], ...] = ()  # the keys of "combine" and, if there are any, of "map" and "finish"
    inputs: tuple[str, ...] = ()  # the names of the arguments
    identity: Capture | None = None  # a number, or a tuple of numbers
