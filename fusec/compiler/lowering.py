"""How definitions become typed IR. Definitions are data; their type selects the function that lowers them.

The front ends' definitions are registered here; another folder registers a type of its own where it defines it. The
front ends themselves are imported when the first of their definitions is lowered.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import singledispatch
from typing import TYPE_CHECKING

from fusec.arguments.scalars import encode
from fusec.base.dtypes import DType
from fusec.errors.base import FusecError
from fusec.errors.reductions import IdentityLost
from fusec.frontends.c.definition import Definition, ReductionDefinition
from fusec.frontends.expression.definition import ExpressionDefinition, TotalDefinition
from fusec.frontends.python.definition import PythonDefinition, ReductionFunctions

if TYPE_CHECKING:
    from fusec.ir.loops import Program
    from fusec.ir.reductions import ReductionIR
    from fusec.kinds.launch import Request


@singledispatch
def lower_program(
    definition: object, types: Mapping[str, DType], ndims: Mapping[str, int], scalars: frozenset[str]
) -> Program:
    """The typed program before any pass. ndims: axes of raw arrays. scalars: parameters that are passed by value."""
    del types, ndims, scalars
    raise TypeError(f"no lowering to a program is registered for {type(definition).__name__}")


@singledispatch
def lower_reduction(definition: object, request: Request) -> tuple[ReductionIR, Program]:
    """The typed reduction before any pass, and the program for totals of no elements, without statements if these
    have no value.
    """
    del request
    raise TypeError(f"no lowering to a reduction is registered for {type(definition).__name__}")


@lower_program.register(Definition)
def _text(
    definition: Definition, types: Mapping[str, DType], ndims: Mapping[str, int], scalars: frozenset[str]
) -> Program:
    from fusec.frontends.c.lower import lower

    return lower(definition.read(), types, ndims=ndims, scalars=scalars)


@lower_program.register(PythonDefinition)
def _function(
    definition: PythonDefinition, types: Mapping[str, DType], ndims: Mapping[str, int], scalars: frozenset[str]
) -> Program:
    from fusec.frontends.python.lower import lower

    return lower(definition, types, scalars, ndims)


@lower_program.register(ExpressionDefinition)
def _expression(
    definition: ExpressionDefinition, types: Mapping[str, DType], ndims: Mapping[str, int], scalars: frozenset[str]
) -> Program:
    from fusec.frontends.expression.lower import lower

    del ndims
    return lower(definition, types, scalars)


@lower_reduction.register(ReductionDefinition)
def _reduction_text(definition: ReductionDefinition, request: Request) -> tuple[ReductionIR, Program]:
    from fusec.frontends.c.reductions import lower

    ndims = {"": request.ndim, **dict(request.ndims)}
    reduction, empty = lower(definition.read(), dict(request.types), ndims, request.scalars, request.reduced)
    held = None if reduction.total is None else reduction.total.type
    if definition.number is not None and isinstance(held, DType):
        try:
            encode(definition.number, held, "identity", definition.name)
        except FusecError as problem:
            raise IdentityLost(definition.name, repr(definition.number), held.name).at() from problem
    return reduction, empty


@lower_reduction.register(ReductionFunctions)
def _reduction_functions(definition: ReductionFunctions, request: Request) -> tuple[ReductionIR, Program]:
    from fusec.frontends.python.reduction import lower

    return lower(definition, dict(request.types), request.scalars, request.ndim, request.reduced)


@lower_reduction.register(TotalDefinition)
def _total(definition: TotalDefinition, request: Request) -> tuple[ReductionIR, Program]:
    from fusec.frontends.expression.lower import lower_total

    return lower_total(definition, dict(request.types), request.scalars)
