"""Order bits: the least or the greatest float of a walk is found among integers, whose comparison is one instruction.

Note [Keys]. `maximum` of floats wants nan to win and 0.0 to be greater than -0.0, which takes three comparisons. The
bits of a float as a signed integer, the lower ones inverted where it is negative, are ordered as floats are, -0.0 just
below 0.0, with nans beyond both infinities. Moved by the number of nans of one sign, modulo the width, all nans are at
one end: that which wins.
"""

from __future__ import annotations

from fusec.dtypes import FLOAT32, FLOAT64, INT32, INT64, DType
from fusec.ir.expr import Expr, apply, const, scalar_type
from fusec.ir.loops import Call, Declare, Function, Local, Return
from fusec.ir.reductions import Accumulator, Reduction, Stage
from fusec.records import replace

_KEYS = {FLOAT32: INT32, FLOAT64: INT64}
_NANS = {FLOAT32: (1 << 23) - 1, FLOAT64: (1 << 52) - 1}  # of one sign


def order_bits(reduction: Reduction, dtypes: frozenset[DType]) -> Reduction:
    """The reduction with the walks that find one extreme of one of these dtypes accumulating keys.

    Requires: expanded functions. Ensures: the same results, but for the payload and sign of nan.
    """
    functions, stages = {each.name: each for each in reduction.functions}, []
    for stage in reduction.stages:
        op = "" if stage.accumulator is None else _extreme(functions[stage.accumulator.combine])
        if stage.accumulator is None or not op or stage.accumulator.type not in dtypes:
            stages.append(stage)
            continue
        keyed = _keyed(stage, stage.accumulator, op)
        function = _function(f"{stage.accumulator.combine}_keys", op, _KEYS[stage.accumulator.type])
        functions[function.name] = function
        stages.append(keyed)
    return replace(reduction, stages=tuple(stages), functions=tuple(functions.values()))


def _extreme(combine: Function) -> str:
    """The op that a combination of two floats is, if it is one of the extremes; else empty."""
    match combine.body:
        case (Return(value=Call(function=name, args=(Local(name=left), Local(name=right)))),):
            ops = {f"fusec_{op}_{dtype.name}": op for op in ("minimum", "maximum") for dtype in _KEYS}
            return ops.get(name, "") if [left, right] == [name for name, _ in combine.params] else ""
    return ""


def _keyed(stage: Stage, accumulator: Accumulator, op: str) -> Stage:
    dtype = accumulator.type
    assert isinstance(dtype, DType), "the extreme is a scalar"
    name, key = f"{accumulator.name}_key", _KEYS[dtype]
    shift = const(_NANS[dtype] if op == "minimum" else -_NANS[dtype], key)
    value = apply("add", _turned(apply("bitcast", accumulator.value, target=key)), shift)
    back = apply("bitcast", _turned(apply("subtract", Local(name, key), shift)), target=dtype)
    running = Accumulator(name, key, value, f"{accumulator.combine}_keys")
    return Stage(stage.body, running, (Declare(accumulator.name, dtype, back), *stage.then))


def _turned(bits: Expr) -> Expr:
    """The lower bits inverted where the sign is set; its own inverse."""
    key = scalar_type(bits)
    sign = apply("right_shift", bits, const(key.bits - 1, key))
    return apply("bitwise_xor", bits, apply("bitwise_and", sign, const((1 << key.bits - 1) - 1, key)))


def _function(name: str, op: str, key: DType) -> Function:
    """The lesser or greater of two keys."""
    a, b = Local("a", key), Local("b", key)
    wins = apply("less" if op == "minimum" else "greater", b, a)
    return Function(name, (("a", key), ("b", key)), key, (Return(apply("where", wins, b, a)),))
