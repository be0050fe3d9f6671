"""A definition's program in the interpreter: as the front end made it, and after the passes of each target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from fusec import passes
from fusec.base.dtypes import DType
from fusec.base.kernel_abi import Fp
from fusec.base.rounding_mode import default_rounding
from fusec.compiler import pipeline
from fusec.compiler.lowering import lower_program
from fusec.ir.interpret import interpret
from fusec.ir.loops import Program
from fusec.passes.expand import expand
from fusec.passes.resolve import resolve_axes
from tests.fuzz.findings import FindingError, accepted
from tests.support.random_arguments import same_bits

Values = dict[str, Any]


def ways(
    definition: pipeline.Source,
    types: Mapping[str, DType],
    ndims: Mapping[str, int],
    scalars: frozenset[str],
    fp: Fp = "strict",
) -> dict[str, Callable[[], Program]]:
    """The programs that must compute the same, each by what it is."""

    @cache
    def lowered() -> Program:
        raw = {name: ndim for name, ndim in ndims.items() if name}
        return resolve_axes(lower_program(definition, types, raw, scalars), ndims)

    def passed(target: passes.Target | None) -> Program:
        return passes.run(lowered(), passes.Facts(fp, target=target))

    found: dict[str, Callable[[], Program]] = {"the program as written": lambda: expand(lowered())}
    found |= {"the program after all passes": lambda: passed(None), "the program for the CPU": lambda: passed("cpu")}
    if fp != "strict":  # as written, products and sums round apart
        del found["the program as written"]
    return found


def left(program: Program, arrays: Values, scalars: Values, shape: tuple[int, ...]) -> Values:
    """The arrays after the program has run on them."""
    with default_rounding(), np.errstate(all="ignore"):
        interpret(program, arrays, scalars, shape)
    return arrays


def interpreted(
    programs: Mapping[str, Callable[[], Program]],
    fresh: Callable[[], tuple[Values, Values]],
    shape: tuple[int, ...],
    shown: str,
) -> Values:
    """What all programs leave in memory; fresh: arrays and numbers. Raises FindingError if two differ."""
    wanted: Values | None = None
    known: list[Program] = []
    for way, lower in programs.items():
        with default_rounding():
            program = accepted(lower, shown)
        if program in known:
            continue
        known.append(program)
        found = left(program, *fresh(), shape)
        if wanted is None:
            wanted = found
        compare(wanted, found, f"{way} differs", shown)
    assert wanted is not None, "there are programs"
    return wanted


def compare(wanted: Values, found: Values, what: str, shown: str) -> None:
    """Raise FindingError for the first element that differs."""
    for name, array in wanted.items():
        other = found[name]
        if (array.shape, array.dtype) != (other.shape, other.dtype):
            detail = f"{what}: {name} is {other.dtype} {other.shape}, not {array.dtype} {array.shape}"
            raise FindingError("shape", detail, shown)
        if not same_bits(array, other):
            for index in np.ndindex(array.shape):
                if not same_bits(np.asarray(array[index]), np.asarray(other[index])):
                    detail = f"{what}: {name}{list(index)} is {other[index]!r}, not {array[index]!r}"
                    raise FindingError("bits", detail, shown)
