"""The command `fusec`: compile kernels to text, explain errors, examine the installation, manage the cache.

Exit codes: 0 all went well; 1 the user's kernel (or the machine) has a fault; 2 the command line has one.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fusec.base.diagnostics import counted, did_you_mean, excerpt, place, with_article
from fusec.cli.selected_kernels import MODES, UsageError
from fusec.codegen import DEFAULT_TARGET, TARGETS
from fusec.errors.arguments import TypesIncomplete
from fusec.errors.base import CATALOGUE, FusecError, UserError
from fusec.errors.examples import EXAMPLES
from fusec.errors.python import SHOWS_ARGUMENTS, ArgumentMissing
from fusec.version import VERSION

if TYPE_CHECKING:
    from fusec.compiler.disk_cache import Cache

OK, FAULT, USAGE = 0, 1, 2
SECONDS_PER_DAY = 86400.0
SHELLS_CODE_FOR_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with these arguments (default: those of the process) and return its exit code."""
    options = _parser().parse_args(argv)
    try:
        code: int = options.run(options)
        sys.stdout.flush()
    except FusecError as error:
        print(report(error, is_coloured(sys.stderr.isatty())), file=sys.stderr)
        return FAULT
    except UsageError as error:
        print(f"fusec: {error}", file=sys.stderr)
        return USAGE
    except BrokenPipeError:
        # The reader has seen enough. Python flushes standard output once more at exit, which must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except KeyboardInterrupt:
        return SHELLS_CODE_FOR_INTERRUPTED
    return code


# --- errors as compilers print them --------------------------------------------------------------------------------


def is_coloured(terminal: bool) -> bool:
    """Whether to use colours: on a terminal that knows them, unless NO_COLOR is set (https://no-color.org)."""
    return terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def report(error: FusecError, coloured: bool) -> str:
    """The error, the line with a caret, and the hint.

    Of a place in a file it says ``file:line:column: error: message [code]``, as compilers do; of a place in a text, and
    in all the rest, what the exception says in Python.
    """

    def paint(text: str, style: str) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if coloured else text

    value, span = error.error, error.span
    head = f"{paint('error:', '1;31')} {paint(value.text(), '1')} [{value.code}]"
    label, hint = value.text("label"), value.text("hint")
    if isinstance(value, TypesIncomplete):
        hint = f"--types {value.first}=float32"
    if isinstance(value, ArgumentMissing) and value.param != "self":
        param = value.param
        hint = f"--types {param}=float32, or an annotation; --scalars {param} passes it by value"
        if SHOWS_ARGUMENTS in value.cure:
            hint = f"--types {param}=float32 for an array, --scalars {param} for a number; {SHOWS_ARGUMENTS}"
    if span is None:
        lines = [f"fusec: {head}", *([f"  {label}"] if label else [])]
    else:
        margin, line, caret = excerpt(span, label)
        in_file = Path(span.file.name).is_file()
        lines = [f"{span.file.name}:{span.line}:{span.column}: {head}"] if in_file else [f"fusec: {head}", place(span)]
        lines += [margin, line, paint(caret, "32")]
    return "\n".join([*lines, *([f"{paint('hint:', '1;36')} {hint}"] if hint else [])])


# --- compile -------------------------------------------------------------------------------------------------------


def _compile(options: argparse.Namespace) -> int:
    from fusec.cli import selected_kernels

    found = selected_kernels.from_options(options)
    whole = selected_kernels.one_file(found, options.target)
    whole = whole if whole.endswith("\n") else whole + "\n"
    if note := selected_kernels.left_out(options):
        print(f"fusec: note: {note}", file=sys.stderr)
    if options.out is None:
        sys.stdout.write(whole)
        return OK
    try:
        options.out.write_text(whole)
    except OSError as error:
        raise UsageError(f"cannot write {options.out}: {error.strerror}") from error
    return OK


# --- explain -------------------------------------------------------------------------------------------------------


def _explain(options: argparse.Namespace) -> int:
    from importlib import import_module
    from pkgutil import iter_modules

    from fusec import errors

    for module in iter_modules(errors.__path__):
        import_module(f"fusec.errors.{module.name}")  # fills the catalogue
    if options.code is None:
        for code in sorted(CATALOGUE):
            print(code, " ", _summary(CATALOGUE[code]))
        return OK
    code = options.code.upper()
    if code not in CATALOGUE:
        cure = did_you_mean(code, sorted(CATALOGUE)) or "`fusec explain` lists them all"
        raise UsageError(f"no error has the code {options.code}; {cure}")
    print(_explanation(CATALOGUE[code]))
    return OK


def _summary(error: type[UserError]) -> str:
    return " ".join((error.__doc__ or error.message).split())


def _plain(field: re.Match[str]) -> str:
    """A field that `MessageField` shows in words of its own."""
    name, noun, plural = field.groups()
    if noun == "a":
        return f"a {{{name}}}"
    return f"{{{name}}} {plural or noun + 's'}"


def _explanation(error: type[UserError]) -> str:
    builtin = next(base for base in error.exception.__mro__ if base.__module__ == "builtins")
    fields = {f"{{{name}}}" for name in error.field_names()}
    parts = [
        f"{error.code} {error.__name__} (raised as {error.exception.__name__}, {with_article(builtin.__name__)})",
        _summary(error),
    ]
    for name, template in (("message: ", error.message), ("marked:  ", error.label), ("hint:    ", error.hint)):
        if template and template not in fields:  # a field alone says nothing
            parts.append(name + re.sub(r"\{(\w+):([a-z]\w*)(?:/(\w+))?\}", _plain, template))
    more = [text for text in (error.about, EXAMPLES.get(error.code)) if text]
    return "\n\n".join(["\n".join(parts), *more])


# --- doctor and cache ----------------------------------------------------------------------------------------------


def _doctor(_: argparse.Namespace) -> int:
    from fusec.cli import doctor

    findings = doctor.examine()
    width = max(len(finding.topic) for finding in findings)
    for finding in findings:
        print(f"{finding.topic.ljust(width)}  {finding.text}")
    return FAULT if any(finding.is_fault for finding in findings) else OK


def _cache(options: argparse.Namespace) -> int:
    from fusec.compiler.disk_cache import default_cache

    store = default_cache()
    if store is None:
        print("the cache is off: FUSEC_CACHE=0, or its folder cannot be used (FUSEC_DEBUG=1 prints the reason)")
        return OK
    match options.action:
        case "path":
            print(store.path)
        case "ls":
            _list(store)
        case "prune":
            days = None if options.days is None else options.days * SECONDS_PER_DAY
            megabytes = None if options.megabytes is None else int(options.megabytes * 1e6)
            if days is None and megabytes is None:
                raise UsageError("cache prune: give --days or --megabytes")
            print(f"removed {counted(store.prune(max_bytes=megabytes, older_than=days), 'entry', 'entries')}")
        case "clear":
            print(f"removed {counted(store.clear(), 'entry', 'entries')}")
    return OK


def _list(store: Cache) -> None:
    from time import localtime, strftime

    entries = store.list()
    for entry in entries:
        when = strftime("%Y-%m-%d", localtime(entry.mtime))
        print(f"{entry.size:>10,}  {when}  {entry.kind:<12}{entry.label or entry.path.stem[:12]}")
    print(f"{sum(entry.size for entry in entries):>10,}  bytes in {counted(len(entries), 'entry', 'entries')}")


# --- the command line ----------------------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="fusec", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--version", action="version", version=f"fusec {VERSION}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_compile(commands.add_parser("compile", help="print a kernel's text for a target"))

    explain = commands.add_parser("explain", help="explain an error code, or list all codes")
    explain.add_argument("code", nargs="?", metavar="CODE", help="as in F110")
    explain.set_defaults(run=_explain)

    doctor = commands.add_parser("doctor", help="show what this installation can do, and compile a kernel to prove it")
    doctor.set_defaults(run=_doctor)

    cache = commands.add_parser("cache", help="list, prune, clear or locate the cache of compiled kernels")
    cache.add_argument("action", choices=("ls", "prune", "clear", "path"))
    cache.add_argument("--days", type=_quantity, help="remove entries that were not used for this many days")
    cache.add_argument("--megabytes", type=_quantity, help="remove the oldest entries until the rest fits")
    cache.set_defaults(run=_cache)
    return parser


def _names(text: str) -> list[str]:
    """Names separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def _quantity(text: str) -> float:
    """A finite number that is not negative."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number") from None
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a quantity: give 0 or more")
    return value


def _add_compile(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Print the text of kernels for a target. Kernels come from the decorated functions of a Python file, which is"
        " not run; from a TOML file with a table [kernel.NAME], [reduction.NAME] or [scan.NAME] for each kernel; from a"
        " Python module (MODULE:KERNEL), which is imported, fused functions too; or from"
        " --expr. Several kernels share one file in"
        f" {' or '.join(row.language for row in TARGETS.values() if row.joins)}; other texts are printed one by one."
    )
    parser.add_argument("what", nargs="?", metavar="FILE|MODULE:KERNEL")
    parser.add_argument("-e", "--expr", metavar="TEXT", help="the operation, as in 'z = x*y + w'")
    parser.add_argument("-i", "--inputs", default="", metavar="PARAMS", help="with -e, as in 'float32 x, raw T y'")
    parser.add_argument("-o", "--outputs", metavar="PARAMS", help="with -e, as in 'float32 z'")
    parser.add_argument("--preamble", default="", metavar="TEXT", help="with -e: device functions")
    parser.add_argument("--name", help="selects one kernel of a file, or names the kernel of -e")
    targets = ", ".join(f"{row.name} is {row.language}" for row in TARGETS.values()) + f"; default: {DEFAULT_TARGET}"
    parser.add_argument("--target", choices=TARGETS, default=DEFAULT_TARGET, help=targets)
    types = "dtypes of placeholders or parameters; may be given several times"
    parser.add_argument("--types", action="append", default=[], metavar="T=DTYPE,...", help=types)
    scalars = "inputs passed by value, with a value that a fused function needs; may be given several times"
    parser.add_argument("--scalars", type=_names, action="extend", default=[], metavar="NAME[=VALUE],...", help=scalars)
    shape = "of contiguous arguments that have axes, of all or of one; a million elements if not given"
    parser.add_argument("--shape", action="append", default=[], metavar="[NAME=]NxM,...", help=shape)
    parser.add_argument("--fp", choices=MODES, help="floating-point mode; default: the kernel's own, else strict")
    parser.add_argument("--out", type=Path, metavar="FILE", help="default: standard output")
    parser.set_defaults(run=_compile)


if __name__ == "__main__":
    sys.exit(main())
