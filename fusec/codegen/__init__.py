"""Code generators, and the table of their targets: nothing else names a target."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Literal

from fusec.base.records import dataclass
from fusec.errors.arguments import UnknownTarget

if TYPE_CHECKING:
    from fusec.codegen.generator import Generator


@dataclass(frozen=True)
class Target:
    """A text form of kernels, for display or for running."""

    name: str
    language: str  # what it is called for people
    comment: str  # what begins a line that says something
    suffix: str  # of files that hold such texts
    module: str  # its code generator, imported when it is first used; "" if the text shows the program itself
    shows: Literal["source", "assembly", "program"] = "source"  # of a kernel its source or machine code, or its program
    threads: bool = False  # many: reductions and scans come as programs for each of them
    waits: bool = False  # threads may wait for others of earlier blocks, which go on until they end
    joins: bool = False  # several kernels make one file, in which stands once what they share

    @property
    def generator(self) -> Generator:
        """The code generator of the target."""
        found: Generator = import_module(self.module).GENERATOR
        return found


def _table(*rows: Target) -> dict[str, Target]:
    return {row.name: row for row in rows}


TARGETS = _table(
    Target("cuda", "CUDA C", "//", ".cu", "fusec.codegen.cuda", threads=True, waits=True, joins=True),
    Target("metal", "Metal", "//", ".metal", "fusec.codegen.metal", threads=True, joins=True),
    Target("llvm", "LLVM IR", ";", ".ll", "fusec.codegen.llvm"),
    Target("asm", "assembly of this machine", "#", ".s", "fusec.codegen.llvm", shows="assembly"),
    Target("ir", "fusec's own IR", "#", ".ir", "", shows="program", threads=True),
)
DEFAULT_TARGET = "cuda"  # what is shown unless somebody asks for another
ON_HOST, ON_DEVICE = "llvm", "cuda"  # what the runtimes take


def target_of(name: str) -> Target:
    """The row of a target. Raises UnknownTarget."""
    if not isinstance(name, str) or name not in TARGETS:
        *others, last = map(repr, TARGETS)
        shown = repr(name) if isinstance(name, str) else f"of type {type(name).__name__}"
        where = "" if isinstance(name, str) else "; the target comes first"
        raise UnknownTarget(shown, f"{', '.join(others)} and {last}", where).at()
    return TARGETS[name]
