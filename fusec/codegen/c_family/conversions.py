"""Conversions in C: plain casts where C's meaning is fusec's, templates of the spelling elsewhere."""

from __future__ import annotations

from fusec.base.dtypes import BOOL, FLOAT32, FLOAT64, INTEGERS, STORAGE_FLOATS, DType, real_type
from fusec.codegen.c_family.pieces import EQUALITY, POSTFIX, PRIMARY, Piece, cast, infix
from fusec.codegen.c_family.spelling import COMPLEX_STRUCTS, Cast, Spelling


def convert(value: Piece, source: DType, target: DType, spelling: Spelling) -> Piece:
    """`value` of dtype `source` as `target`."""
    if source == target:
        return value
    if target.is_complex:
        return _to_complex(value, source, target, spelling)
    if source.is_complex:
        if target == BOOL:
            return Piece(f"fusec_nonzero_{source}({value.text})", POSTFIX)
        return convert(Piece(f"{value.at(POSTFIX)}.re", POSTFIX), real_type(source), target, spelling)
    if source in STORAGE_FLOATS and target != FLOAT32:
        return convert(convert(value, source, FLOAT32, spelling), FLOAT32, target, spelling)
    if target == BOOL:
        zero = {FLOAT32: "0.0f", FLOAT64: "0.0"}.get(source, "0")
        return infix("!=", EQUALITY, value, Piece(zero, PRIMARY))
    if target in STORAGE_FLOATS and (source == BOOL or (source.is_integer and source.bits < 32)):
        return convert(cast(spelling.type(FLOAT32), value), FLOAT32, target, spelling)
    template = spelling.casts.get((source, target))
    if template is not None:
        return Piece(template.format(value.text), POSTFIX)
    return cast(spelling.type(target), value)


def _to_complex(value: Piece, source: DType, target: DType, spelling: Spelling) -> Piece:
    if source.is_complex:
        return Piece(f"fusec_{source}_to_{target}({value.text})", POSTFIX)
    part = real_type(target)
    zero = "0.0f" if part == FLOAT32 else "0.0"
    return Piece(f"{COMPLEX_STRUCTS[target]}{{{convert(value, source, part, spelling).text}, {zero}}}", POSTFIX)


def bitcast(value: Piece, source: DType, target: DType, spelling: Spelling) -> Piece:
    """The bits of `value` as `target`; types carried as integers are those integers."""
    source, target = spelling.carrier(source), spelling.carrier(target)
    if source == target:
        return value
    if target == BOOL:
        return infix("!=", EQUALITY, value, Piece("0", PRIMARY))
    template = spelling.bitcasts.get((source, target))
    if template is not None:
        return Piece(template.format(value.text), POSTFIX)
    assert not any(each.is_float for each in (source, target)), f"no bitcast from {source} to {target}"
    return cast(spelling.type(target), value)


def storage_casts(native: frozenset[DType]) -> dict[Cast, str]:
    """Templates between storage floats and what they compute in; integers are rounded to odd first, so only once."""
    casts: dict[Cast, str] = {}
    for dtype in STORAGE_FLOATS:
        narrow = f"fusec_float32_to_{dtype}({{}})"
        if dtype in native:
            narrow = "(half)({})"
        else:
            casts[dtype, FLOAT32] = f"fusec_{dtype}_to_float32({{}})"
            casts[FLOAT32, dtype] = narrow
        casts[FLOAT64, dtype] = narrow.format("fusec_odd_float64({})")
        for source in INTEGERS:
            if source.bits >= 32:
                odd = "fusec_odd_int64" if source.kind == "signed" else "fusec_odd_uint64"
                casts[source, dtype] = narrow.format(f"{odd}({{}})")
    return casts
