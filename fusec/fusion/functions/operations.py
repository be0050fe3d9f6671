"""All operations of fused functions: the modules that fill the tables, which traced arrays consult."""

from __future__ import annotations

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
    routines,
    scans,
    scattering,
    sorting,
    transforms,
    ufuncs,
)

LOADED = (
    *(arranging, comparing, composing, contractions, creation, gathering, known, linear, masked, moving, numpy_source),
    *(operators, parts, places, products, reducing, routines, scans, scattering, sorting, transforms, ufuncs),
)
