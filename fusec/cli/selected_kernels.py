"""The kernels that a command line selects, and one file of their texts."""

from __future__ import annotations

import argparse
import ast
import inspect
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from fusec.base.diagnostics import did_you_mean, instance_of
from fusec.base.kernel_abi import Fp
from fusec.base.records import dataclass, field, replace
from fusec.codegen import TARGETS
from fusec.errors.base import FusecError

if TYPE_CHECKING:
    from fusec.base.kernel_abi import Kernel
    from fusec.base.source import SourceFile
    from fusec.dispatch.shown import ShownKernels
    from fusec.kernels.elementwise_kernel import ElementwiseKernel

Made = TypeVar("Made")

MODES: tuple[Fp, ...] = get_args(Fp)


class UsageError(Exception):
    """A mistake in the command line that argparse cannot detect."""


@dataclass(frozen=True)
class Choice:
    """A kernel to print. A kernel of a module that was called while this was imported shows that call."""

    kernel: Any  # of any kind: what has `shown`
    types: dict[str, str]  # of placeholders
    scalars: tuple[str, ...]  # inputs to pass by value
    file: SourceFile | None = None  # the TOML file that it comes from
    fp: Fp | None = None  # None for the kernel's own
    shape: tuple[int, ...] | None = None  # of the call of a reduction or scan
    axis: int | tuple[int, ...] | None = None
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # of parameters
    numbers: Mapping[str, object] = field(default_factory=dict)  # the values of some of `scalars`

    def kernels(self, target: str) -> list[Kernel]:
        """The kernel of an elementwise definition, or all kernels of a reduction or a scan."""
        return self._shown(target).kernels(target)

    def text(self, target: str) -> str:
        """The text by itself."""
        return self._shown(target).text(target)

    def _shown(self, target: str) -> ShownKernels:
        from fusec.dispatch.shown import Showing

        asked = Showing(
            target, self.types or None, self.scalars, self.shape, self.axis, shapes=self.shapes, numbers=self.numbers
        )
        try:
            found: ShownKernels = self.kernel.shown(asked)
        except FusecError:
            raise
        except Exception as problem:  # whatever a fused function raises for such arguments
            what = f"{self.kernel.name}() raised {type(problem).__name__}: {problem}"
            cure = "--types and --shape describe its arrays, --scalars NAME=VALUE a number"
            raise UsageError(f"{what}; {cure}") from problem
        return found.in_mode(self.fp)


def one_file(choices: list[Choice], target: str) -> str:
    """The text of all kernels: one file where the target joins them, else one after another, for reading."""
    if len(choices) > 1 and TARGETS[target].joins:
        from fusec.compiler import texts as files

        kernels = [kernel for found in _each(choices, lambda each: each.kernels(target)) for kernel in found]
        names = [kernel.name for kernel in kernels]
        for name in names:
            if names.count(name) > 1:
                raise UsageError(f"two kernels of the file would be called {name} in {target}: rename one")
        return files.one_file(kernels)
    texts = _each(choices, lambda each: each.text(target))
    if len(texts) == 1:
        return texts[0]
    names = [each.kernel.name for each in choices]
    return "\n".join(
        f"{TARGETS[target].comment} kernel {name}\n{text}" for name, text in zip(names, texts, strict=True)
    )


def _each(choices: list[Choice], make: Callable[[Choice], Made]) -> list[Made]:
    """One result for every kernel; an error is placed in the kernel's file."""
    from fusec.cli import toml_files

    results = []
    for choice in choices:
        try:
            results.append(make(choice))
        except FusecError as error:
            raise error if choice.file is None else toml_files.place_in_file(error, choice.file) from None
    return results


def from_options(options: argparse.Namespace) -> list[Choice]:
    """The selected kernels, in the selected floating-point mode."""
    chosen = _from_options(options)
    every, some = _shapes(",".join(options.shape))
    if every is not None or some:
        chosen = [replace(each, shape=each.shape if every is None else every, shapes=some) for each in chosen]
    if numbers := _numbers(options.scalars):
        chosen = [replace(each, numbers=numbers) for each in chosen]
    return chosen if options.fp is None else [replace(each, fp=options.fp) for each in chosen]


def _from_options(options: argparse.Namespace) -> list[Choice]:
    types, scalars = _types(",".join(options.types)), tuple(text.partition("=")[0].strip() for text in options.scalars)
    what = options.what
    if options.expr is not None:
        return [Choice(_from_expression(options), types, scalars)]
    if options.outputs and re.fullmatch(r"[\w./\\-]+", options.outputs):
        raise UsageError(f"compile: -o names the outputs of --expr; --out {options.outputs} writes a file")
    for option in ("inputs", "outputs", "preamble"):
        if getattr(options, option):
            raise UsageError(f"compile: --{option} goes with --expr")
    if what is None:
        raise UsageError("compile: give a kernel file, MODULE:KERNEL, or --expr with --inputs and --outputs")
    path, _, name = what.rpartition(":")
    if Path(what).suffix in (".py", ".toml") or Path(what).is_file():
        return _from_file(options, types, scalars)
    if not path:
        raise UsageError(f"compile: there is no file {what}, and no ':' as in MODULE:KERNEL")
    suffix = Path(path).suffix
    if suffix in (".py", ".toml") or "/" in path or os.sep in path:
        file = path if suffix == ".toml" else Path(path).with_suffix(".py")
        if suffix != ".toml":
            _refuse_fused(Path(file), name)
        raise UsageError(f"compile: a kernel of a file is chosen with --name: fusec compile {file} --name {name}")
    return [Choice(_imported(what), types, scalars)]


def _from_expression(options: argparse.Namespace) -> ElementwiseKernel:
    from fusec.kernels.elementwise_kernel import ElementwiseKernel

    if options.what is not None:
        raise UsageError("compile: give either a file or --expr, not both")
    if options.outputs is None:
        raise UsageError("compile: --expr needs --outputs, as in -o 'float32 z'")
    name = options.name or "kernel"
    return ElementwiseKernel(options.inputs, options.outputs, options.expr, name, preamble=options.preamble)


def _from_file(options: argparse.Namespace, types: dict[str, str], scalars: tuple[str, ...]) -> list[Choice]:
    """The kernels of a Python file, which is not run, or of a TOML file; those that are not chosen are not made."""
    found = (_of_python if Path(options.what).suffix == ".py" else _of_toml)(options.what)
    names = [name for name, _ in found]
    if options.name is not None and options.name not in names:
        if Path(options.what).suffix == ".py":
            _refuse_fused(Path(options.what), options.name)
        cure = did_you_mean(options.name, names) or f"it has {', '.join(names)}"
        raise UsageError(f"{options.what} has no kernel '{options.name}'; {cure}")
    choices = [make() for name, make in found if options.name in (None, name)]
    if len(choices) == 1 and choices[0].file is not None:
        return [_told(choices[0], types, scalars)]
    return _all_told(choices, types, scalars)


def left_out(options: argparse.Namespace) -> str:
    """What to say of the fused functions of a file whose kernels are selected, "" if it has none."""
    from fusec.cli import python_files

    if options.what is None or options.name is not None or Path(options.what).suffix != ".py":
        return ""
    fused = python_files.fused_in(Path(options.what))
    return f"left out of {options.what}: {python_files.run_to_trace(Path(options.what), *fused)}" if fused else ""


def _refuse_fused(path: Path, name: str) -> None:
    """Raise UsageError if a file's function is a fused one."""
    from fusec.cli import python_files

    if name in python_files.fused_in(path):
        raise UsageError(f"{path} has no kernel '{name}'; {python_files.run_to_trace(path, name)}")


def _of_toml(what: str) -> list[tuple[str, Callable[[], Choice]]]:
    from fusec.cli import toml_files
    from fusec.kernels.elementwise_kernel import ElementwiseKernel
    from fusec.kernels.reduction_kernel import ReductionKernel
    from fusec.kernels.scan_kernel import ScanKernel

    made = {"kernel": ElementwiseKernel, "reduction": ReductionKernel, "scan": ScanKernel}
    try:
        file, entries = toml_files.read(Path(what))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {what}: {error}") from error

    def choice(entry: toml_files.KernelEntry) -> Choice:
        try:
            kernel = made[entry.kind](**entry.arguments)
        except FusecError as error:
            raise toml_files.place_in_file(error, file) from None
        return Choice(kernel, entry.types, entry.scalars, file, shape=entry.shape, axis=entry.axis)

    return [(entry.name, partial(choice, entry)) for entry in entries]


def _of_python(what: str) -> list[tuple[str, Callable[[], Choice]]]:
    from fusec.cli import python_files

    try:
        _, kernels = python_files.read(Path(what))
    except (OSError, python_files.NotReadableError) as error:
        raise UsageError(f"cannot read {what}: {error}") from error
    return [(kernel.name, partial(Choice, kernel, {}, ())) for kernel in kernels]


def _told(choice: Choice, types: dict[str, str], scalars: tuple[str, ...]) -> Choice:
    """The choice with what the command line adds."""
    by_value = tuple(dict.fromkeys((*choice.scalars, *scalars)))
    return replace(choice, types=choice.types | types, scalars=by_value)


def _all_told(choices: list[Choice], types: dict[str, str], scalars: tuple[str, ...]) -> list[Choice]:
    """Of what the command line says about a whole file, each kernel hears what it knows; some kernel must."""
    from fusec.kernels.elementwise_function import Elementwise
    from fusec.kernels.reduction_function import Reduction

    placeholders, inputs = [], []
    for choice in choices:
        kernel = choice.kernel
        if isinstance(kernel, (Elementwise, Reduction)):
            placeholders.append(set(kernel.params))
            inputs.append(set(kernel.params))
        else:
            placeholders.append(set(kernel.signature.placeholders))
            inputs.append({param.name for param in kernel.in_params})
    for option, given, known in (("--types", list(types), placeholders), ("--scalars", list(scalars), inputs)):
        every = sorted(set().union(*known))
        for name in given:
            if name not in every:
                names = ", ".join(f"'{choice.kernel.name}'" for choice in choices)
                owner = f"kernel {names} has" if len(choices) == 1 else f"kernels {names} have"
                cure = did_you_mean(name, every) or f"known: {', '.join(every) or 'none'}"
                raise UsageError(f"{option}: {owner} no {name}; {cure}")
    return [
        _told(
            choice,
            {name: dtype for name, dtype in types.items() if name in known},
            tuple(name for name in scalars if name in read),
        )
        for choice, known, read in zip(choices, placeholders, inputs, strict=True)
    ]


def _imported(name: str) -> Any:
    """The kernel object ``MODULE:KERNEL``; modules of the working folder come first, as with ``python -m``."""
    from importlib import import_module

    module, _, path = name.partition(":")
    sys.path.insert(0, os.getcwd())
    try:
        found: object = import_module(module)
    except ImportError as error:
        raise UsageError(f"cannot import {module}: {error}") from error
    finally:
        sys.path.remove(os.getcwd())
    for part in path.split("."):
        if not hasattr(found, part):
            names = (name for name, each in inspect.getmembers(found) if is_kernel(each) or isinstance(each, type))
            cure = did_you_mean(part, names)
            raise UsageError(f"{module} has no '{path}'{'; ' + cure if cure else ''}")
        found = getattr(found, part)
    if not is_kernel(found):
        is_function = callable(found) and not isinstance(found, type)
        cure = "; decorate it with @fusec.fuse, or with @fusec.elementwise if it takes one element"
        raise UsageError(f"{name} is {instance_of(found)}, not a kernel{cure if is_function else ''}")
    return found


def is_kernel(found: object) -> bool:
    """Whether something has kernels to show: a kernel of any kind, or a function that calls some."""
    return hasattr(found, "shown") and not isinstance(found, type)


def _shapes(text: str) -> tuple[tuple[int, ...] | None, dict[str, tuple[int, ...]]]:
    """``300x200,y=200`` as the shape of all arguments, or None, and those of some."""
    every, some = None, {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, extents = part.rpartition("=")
        if not re.fullmatch(r"\d+(x\d+)*", extents):
            raise UsageError(f"--shape takes EXTENTxEXTENT or PARAMETER=EXTENTxEXTENT, as in 300x200, not '{part}'")
        shape = tuple(map(int, extents.split("x")))
        if name:
            some[name.strip()] = shape
        elif every is not None:
            both = "x".join(map(str, (*every, *shape)))
            raise UsageError(f"--shape takes one shape for all arguments: write {both} for more axes")
        else:
            every = shape
    return every, some


def _numbers(given: Sequence[str]) -> dict[str, object]:
    """``steps=5`` as a mapping; names without a value are left out."""
    numbers = {}
    for part in given:
        name, equals, text = (word.strip() for word in part.partition("="))
        if not equals:
            continue
        try:
            numbers[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            numbers[name] = None
        if not isinstance(numbers[name], (int, float, complex)):
            raise UsageError(f"--scalars takes NAME or NAME=VALUE, a number as in steps=5, not '{part}'")
    return numbers


def _types(text: str) -> dict[str, str]:
    """``T=float32,U=int8`` as a mapping."""
    types = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, dtype = (word.strip() for word in part.partition("="))
        if not (name and equals and dtype):
            raise UsageError(
                f"--types takes NAME=DTYPE, as in x=float32, for a parameter or a placeholder such as T; not '{part}'"
            )
        types[name] = dtype
    return types
