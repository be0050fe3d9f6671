"""Total order keys: find the least and the greatest float of a walk by comparing integers, in one instruction.

Note [Keys]. `maximum` of floats wants nan to win and 0.0 to be greater than -0.0, which takes three comparisons. The
bits of a float as a signed integer, the lower ones inverted where it is negative, are ordered as floats are, -0.0 just
below 0.0, with nans beyond both infinities. Moved by the number of nans of one sign, modulo the width, all nans are at
one end: that which wins.
"""

from __future__ import annotations

from fusec.base.dtypes import FLOAT32, FLOAT64, INT32, INT64, DType
from fusec.base.records import replace
from fusec.ir.expr import Expr, Struct, Type, apply, const, scalar_type
from fusec.ir.loops import Call, Declare, Function, Local, Return
from fusec.ir.reductions import Accumulator, ReductionIR, Stage, parts_of, whole_of

_KEYS = {FLOAT32: INT32, FLOAT64: INT64}
_NANS = {FLOAT32: (1 << 23) - 1, FLOAT64: (1 << 52) - 1}  # of one sign
_CALLS = {f"fusec_{op}_{dtype.name}": op for op in ("minimum", "maximum") for dtype in _KEYS}


def use_total_order_keys(reduction: ReductionIR, dtypes: frozenset[DType]) -> ReductionIR:
    """The reduction with the walks that find nothing but extremes of one or more of these dtypes accumulating keys.

    Requires: expanded functions. Ensures: the same results, but for the payload and sign of nan.
    """
    functions, stages = {each.name: each for each in reduction.functions}, []
    for stage in reduction.stages:
        running = stage.accumulator
        ops = [] if running is None else _extremes(functions[running.combine])
        if running is None or not ops or not {dtype for _, dtype in running.parts} <= dtypes:
            stages.append(stage)
            continue
        keyed = _keyed(stage, running, ops)
        stages.append(keyed)
        assert keyed.accumulator is not None, "the walk still accumulates"
        function = _function(keyed.accumulator, ops)
        functions[function.name] = function
    return replace(reduction, stages=tuple(stages), functions=tuple(functions.values()))


def _extremes(combine: Function) -> list[str]:
    """The ops of the parts of a combination, if each is an extreme of two floats; else none."""
    left, right = (parts_of(Local(name, kind)) for name, kind in combine.params)
    match combine.body:
        case (Return(value=whole),) if whole is not None:
            ops = [_extreme(*each) for each in zip(parts_of(whole), left, right, strict=True)]
            return ops if all(ops) else []
    return []


def _extreme(part: Expr, left: Expr, right: Expr) -> str:
    match part:
        case Call(function=name, args=(first, second)) if first is left and second is right:
            return _CALLS.get(name, "")
    return ""


def _keyed(stage: Stage, accumulator: Accumulator, ops: list[str]) -> Stage:
    """The walk over keys, after which the locals of its results are floats again."""
    running = f"{accumulator.name}_key"
    shifts = [_shift(op, dtype) for op, (_, dtype) in zip(ops, accumulator.parts, strict=True)]
    values = zip(parts_of(accumulator.value), shifts, strict=True)
    keys = tuple(
        apply("add", _turned(apply("bitcast", value, target=scalar_type(shift))), shift) for value, shift in values
    )
    kind = _key_type(accumulator.type)
    keyed = Accumulator(running, kind, whole_of(keys, kind), f"{accumulator.combine}_keys")
    results = zip(accumulator.parts, keyed.parts, shifts, strict=True)
    floats = [
        Declare(name, dtype, apply("bitcast", _turned(apply("subtract", Local(key, held), shift)), target=dtype))
        for (name, dtype), (key, held), shift in results
    ]
    return Stage(stage.body, keyed, (*floats, *stage.then))


def _shift(op: str, dtype: DType) -> Expr:
    """What moves all nans to the end that wins."""
    return const(_NANS[dtype] if op == "minimum" else -_NANS[dtype], _KEYS[dtype])


def _key_type(kind: Type) -> Type:
    if isinstance(kind, Struct):
        fields = tuple((name, _KEYS[dtype]) for name, dtype in kind.fields if isinstance(dtype, DType))
        return Struct(f"{kind.name}_keys", fields)
    assert isinstance(kind, DType), "an accumulator is a scalar or a struct"
    return _KEYS[kind]


def _turned(bits: Expr) -> Expr:
    """The lower bits inverted where the sign is set; its own inverse."""
    key = scalar_type(bits)
    sign = apply("right_shift", bits, const(key.bits - 1, key))
    return apply("bitwise_xor", bits, apply("bitwise_and", sign, const((1 << key.bits - 1) - 1, key)))


def _function(accumulator: Accumulator, ops: list[str]) -> Function:
    """The lesser or greater of two keys, part by part."""
    kind = accumulator.type
    parts = []
    for op, a, b in zip(ops, parts_of(Local("a", kind)), parts_of(Local("b", kind)), strict=True):
        wins = apply("less" if op == "minimum" else "greater", b, a)
        parts.append(apply("where", wins, b, a))
    body = (Return(whole_of(tuple(parts), kind)),)
    return Function(accumulator.combine, (("a", kind), ("b", kind)), kind, body)
