"""All operations of fused functions: the modules that fill the tables, which traced arrays consult."""

from __future__ import annotations

from types import FunctionType

from fusec.fusion.functions import (
    arranging,
    comparing,
    composing,
    contractions,
    creation,
    gathering,
    known,
    linear,
    masked,
    moving,
    numpy_source,
    operators,
    parts,
    places,
    products,
    reducing,
    rounding,
    routines,
    scans,
    scattering,
    sorting,
    transforms,
    ufuncs,
)
from fusec.fusion.trace.failing import restrict, restricting
from fusec.fusion.trace.tables import CREATION
from fusec.fusion.trace.tracer import Tracer

LOADED = (
    *(arranging, comparing, composing, contractions, creation, gathering, known, linear, masked, moving, numpy_source),
    *(operators, parts, places, products, reducing, rounding, routines, scans, scattering, sorting, transforms, ufuncs),
)
restrict(Tracer)
CREATION.update({made: restricting(each) for made, each in CREATION.items() if isinstance(each, FunctionType)})
