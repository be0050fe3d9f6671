"""The kernels of all calls that one call makes, as one text, which begins with a comment that lists the launches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fusec.arguments.operands import outputs_of
from fusec.base.kernel_abi import Fp, Kernel
from fusec.base.records import dataclass, replace
from fusec.codegen import Target, target_of
from fusec.dispatch.notes import NotedCall
from fusec.errors.base import FusecError
from fusec.errors.targets import NoSuchTypeOnTarget

if TYPE_CHECKING:
    from fusec.ir.loops import Program

from fusec.kernels.launch_comment import MemoryUses, lines_of
from fusec.kernels.launches import (
    KeptNotes,
    Listed,
    ListedLaunch,
    ListedTogether,
    NotedLibraryCall,
    launches_of,
    title_of,
)
from fusec.kinds.reduction import has_end


@dataclass(frozen=True)
class Listing:
    """The kernels of noted calls in one text, each with a name of its own, in the order of their launches."""

    notes: KeptNotes
    name: str  # of the function
    arguments: Mapping[str, Any]  # of the call, by parameter
    result: Any  # of the call
    fp: Fp | None = None  # None for that of each kernel

    def kernels(self, target: str) -> list[Kernel]:
        """The kernels, equal ones once."""
        return [each for each in _kernels_of(self._listed(target)) if isinstance(each, Kernel)]

    def text(self, target: str) -> str:
        """One file if the target joins kernels, else one text after another."""
        row, listed = target_of(target), self._listed(target)
        places = MemoryUses(self.notes, (self.arguments, self.result), listed)
        comment = "".join(f"{row.comment} {line}\n" for line in lines_of(self.name, places, listed))
        distinct = _kernels_of(listed)
        if row.shows == "source":
            kernels = [each for each in distinct if isinstance(each, Kernel)]
            return comment + (f"\n{row.generator.join(kernels)}" if kernels else "")
        return comment + "".join(f"\n{_shown(each, row)}" for each in distinct)

    def in_mode(self, fp: Fp | None) -> Listing:
        """The same in another floating-point mode; None for its own."""
        return replace(self, fp=fp)

    def _listed(self, target: str) -> list[Listed]:
        """All launches and calls in order; kernels are numbered if there are several."""
        found: list[Listed] = []
        shared: dict[int, list[ListedLaunch]] = {}  # launches by the calls that share them
        ends: list[list[ListedLaunch]] = []
        following, last = {id(call) for call in self.notes.following}, list[ListedLaunch]()
        planned = {id(call) for call in self.notes.planned}
        sharing = {id(call): at for at, calls in enumerate(self.notes.shared) for call in calls}
        for call in self.notes.order:
            if isinstance(call, NotedLibraryCall):
                found.append(call)
                continue
            try:
                made = launches_of(call, target, self.fp)
            except FusecError as problem:
                raise self._named(problem, call) from problem.__cause__
            found += made
            if id(call) in sharing and len(made) == 1:
                shared.setdefault(sharing[id(call)], []).extend(made)
            if id(call) in planned and made and has_end([each.launch for each in made]):
                ends.append(made[-2:])
            elif id(call) in following and len(last) == len(made) == 1:
                ends.append([*last, *made])
            last = made
        launches = [each for each in found if isinstance(each, ListedLaunch)]
        distinct: dict[str, Kernel | Program] = {}
        for each in launches:
            text = each.kernel.source if isinstance(each.kernel, Kernel) else _shown(each.kernel, target_of(target))
            each.kernel = distinct.setdefault(text, each.kernel)
        marks = [f"_{at}" for at in range(1, len(distinct) + 1)] if len(distinct) > 1 else [""] * len(distinct)
        renamed = {
            id(kernel): _named(kernel, f"{title_of(kernel)}{mark}")
            for kernel, mark in zip(distinct.values(), marks, strict=True)
        }
        for each in launches:
            each.kernel = renamed[id(each.kernel)]
        return _with_ends(_together(found, [*shared.values()], target_of(target)), ends, target_of(target))

    def _named(self, problem: FusecError, call: NotedCall | NotedLibraryCall) -> FusecError:
        """The error for a parameter of a kernel that a function is made of, with what the user calls the argument."""
        error = problem.error
        if not isinstance(error, NoSuchTypeOnTarget) or isinstance(call, NotedLibraryCall):
            return problem
        pairs = zip(call.kernel.params, (*call.args, *outputs_of(call.out)), strict=False)
        own = {f"parameter '{each.name}'": (each.name, given) for each, given in pairs}
        param, given = own.get(error.where, ("", None))
        name = MemoryUses(self.notes, (self.arguments, None), ()).called(given)
        is_own = not name and all(each.name in self.arguments for each in call.kernel.in_params)
        if not param or name == param or is_own:
            return problem
        narrow = "complex64" if error.dtype.startswith("complex") else "float32"
        where, cure = f"argument '{name}'", f"pass it as {narrow}"
        if not name:
            where, cure = f"an array or number in '{self.name}'", f"make it {narrow}, e.g. x.astype('{narrow}')"
        return NoSuchTypeOnTarget(where, error.dtype, error.target, cure).at(problem.span)


def _together(listed: list[Listed], shared: Sequence[Sequence[ListedLaunch]], row: Target) -> list[Listed]:
    """The same with one launch for kernels that share it, where the target has such kernels."""
    together = row.generator.beside if row.shows == "source" else None
    if together is None:
        return listed
    first: dict[int, ListedTogether] = {}
    gone: set[int] = set()
    taken: dict[str, Kernel] = {}  # by source
    for launches in shared:
        kernels = [each.kernel for each in launches if isinstance(each.kernel, Kernel)]
        distinct = [id(each) for each in dict.fromkeys(kernels)]
        parts = sorted(launches, key=lambda each: distinct.index(id(each.kernel)))
        ordered = sorted(kernels, key=lambda each: distinct.index(id(each)))
        title = f"{ordered[0].title}_together"
        made = together(ordered, title) if len(launches) > 1 else None
        if made is not None and made.source not in taken and any(each.title == title for each in taken.values()):
            made = together(ordered, f"{title}{len(taken)}")
        if made is not None:
            first[id(launches[0])] = ListedTogether(taken.setdefault(made.source, made), parts)
            gone |= {id(each) for each in launches[1:]}
    return [first.get(id(each), each) for each in listed if id(each) not in gone]


def _with_ends(listed: list[Listed], ends: Sequence[Sequence[ListedLaunch]], row: Target) -> list[Listed]:
    """The same with one launch for two kernels of which the second follows at the end of the first."""
    make = row.generator.ended if row.shows == "source" else None
    found = list(listed)
    taken: dict[str, Kernel] = {}  # by source
    for first, last in ends if make is not None else ():
        assert make is not None, "asked before"
        assert isinstance(first.kernel, Kernel), "sources are those of kernels"
        assert isinstance(last.kernel, Kernel), "sources are those of kernels"
        made = make(first.kernel, last.kernel, f"{first.title}_to_end")
        if made is not None:
            at = found.index(first)
            found[at : at + 2] = [ListedTogether(taken.setdefault(made.source, made), (first, last), True)]
    return found


def _kernels_of(listed: Sequence[Listed]) -> list[Kernel | Program]:
    """The kernels that are launched, each once."""
    return list({id(each.kernel): each.kernel for each in listed if not isinstance(each, NotedLibraryCall)}.values())


def _named(kernel: Kernel | Program, name: str) -> Kernel | Program:
    """A kernel under another name."""
    if not isinstance(kernel, Kernel):
        return replace(kernel, name=name)
    return kernel if name == kernel.title else target_of(kernel.target).generator.renamed(kernel, name)


def _shown(kernel: Kernel | Program, row: Target) -> str:
    """The text of one kernel."""
    if not isinstance(kernel, Kernel):
        from fusec.ir.text import print_program

        return print_program(kernel)
    if row.shows == "source":
        return kernel.source
    from fusec.runtime.cpu import engine

    return engine.assembly(kernel)
