"""Errors of the command line and of kernel files (codes F400 to F499)."""

from __future__ import annotations

from typing import ClassVar

from fusec.errors.base import UserError


class NotToml(UserError):
    """A kernel file that is not TOML."""

    code: ClassVar[str] = "F400"
    message: ClassVar[str] = "not a TOML file: {problem}"
    hint: ClassVar[str] = "a kernel file holds one table [kernel.NAME], [reduction.NAME] or [scan.NAME] for each kernel"
    problem: str


class NoKernels(UserError):
    """A TOML file without kernels."""

    code: ClassVar[str] = "F401"
    message: ClassVar[str] = "{file} defines no kernel"
    hint: ClassVar[str] = (
        "add a table [kernel.NAME] with in_params, out_params and operation, or [reduction.NAME] or [scan.NAME] with"
        " map_expr, reduce_expr or scan_expr, and post_map_expr"
    )
    file: str


class BadKernelTable(UserError):
    """A kernel's table with a missing, unknown or mistyped key."""

    code: ClassVar[str] = "F402"
    message: ClassVar[str] = "kernel '{kernel}': {problem}"
    hint: ClassVar[str] = (
        "keys: in_params, out_params, operation, of a reduction map_expr, reduce_expr, post_map_expr; optional:"
        " preamble, loop_prep, after_loop, options, types, scalars, fp, of a reduction also identity, reduce_type,"
        " shape, axis; of a scan scan_expr, inclusive and segments"
    )
    kernel: str
    problem: str


class NoPythonKernels(UserError):
    """A Python file without functions that fusec compiles."""

    code: ClassVar[str] = "F403"
    message: ClassVar[str] = "{file} defines no kernel"
    hint: ClassVar[str] = (
        "decorate a function of its top level with @fusec.elementwise, @fusec.stencil or @fusec.kernel"
    )
    file: str


class BadDecorator(UserError):
    """A decorator, or a kernel of texts, whose arguments the file does not tell without being run."""

    code: ClassVar[str] = "F404"
    message: ClassVar[str] = "this kernel cannot be made without running the file: {problem}"
    hint: ClassVar[str] = "write its arguments as literals, or compile MODULE:KERNEL, which imports the module"
    kernel: str
    problem: str


class UnknownTable(UserError):
    """Something at the top level of a kernel file that is no table of kernels."""

    code: ClassVar[str] = "F405"
    message: ClassVar[str] = "{problem}"
    hint: ClassVar[str] = "a kernel file holds tables [kernel.NAME], [reduction.NAME] and [scan.NAME], and nothing else"
    problem: str
