"""Errors of the command line and of kernel files (codes F400 to F499)."""

from __future__ import annotations

from fusec.errors.base import Named, UserError


class NotToml(UserError, code="F400"):
    """A kernel file that is not TOML."""

    message = "not a TOML file: {problem}"
    hint = "a kernel file holds one table [kernel.NAME], [reduction.NAME] or [scan.NAME] for each kernel"
    problem: str


class NoKernels(UserError, code="F401"):
    """A kernel file without kernels."""

    message = "{file} defines no kernel"
    hint = (
        "add a table [kernel.NAME] with in_params, out_params and operation, or [reduction.NAME] or [scan.NAME] with"
        " map_expr, reduce_expr or scan_expr, and post_map_expr"
    )
    file: str


class BadKernelTable(Named, code="F402"):
    """A table of a kernel with a missing, unknown or mistyped key."""

    message = "kernel '{name}': {problem}"
    hint = (
        "keys: in_params, out_params, operation, of a reduction map_expr, reduce_expr, post_map_expr; optional:"
        " preamble, loop_prep, after_loop, options, types, scalars, fp, of a reduction also identity, reduce_type,"
        " shape, axis; of a scan scan_expr, inclusive and segments"
    )
    problem: str


class NoPythonKernels(UserError, code="F403"):
    """A Python file without functions that fusec compiles."""

    message = "{file} defines no kernel"
    hint = "decorate a function at its top level with @fusec.elementwise, @fusec.stencil or @fusec.kernel"
    file: str


class BadDecorator(Named, code="F404"):
    """A decorator or kernel string whose arguments are unknown until the file runs."""

    message = "this kernel cannot be made without running the file: {problem}"
    hint = "write its arguments as literals, or compile MODULE:KERNEL, which imports the module"
    problem: str


class UnknownTable(UserError, code="F405"):
    """An entry at the top level of a kernel file that is not a table of kernels."""

    message = "{problem}"
    hint = "a kernel file holds tables [kernel.NAME], [reduction.NAME] and [scan.NAME], and nothing else"
    problem: str
