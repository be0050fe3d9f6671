"""All operations of fused functions: the modules that fill the tables, which traced arrays consult."""

from __future__ import annotations

from fusec.fusion import (
    arranging,
    comparing,
    creation,
    known,
    linear,
    moving,
    numpy_source,
    operators,
    parts,
    places,
    products,
    reducing,
    routines,
    sorting,
    transforms,
    ufuncs,
)

LOADED = (
    *(arranging, comparing, creation, known, linear, moving, numpy_source, operators, parts),
    *(places, products, reducing, routines, sorting, transforms, ufuncs),
)
