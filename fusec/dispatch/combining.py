"""The combinations of reductions and scans, for the check "wrap": the operation, and whether it loses values."""

from __future__ import annotations

from collections.abc import Iterator

from fusec.base.dtypes import BOOL, DType
from fusec.dispatch.exact_totals import NAMES
from fusec.errors.checks import CombinationNotChecked
from fusec.frontends.python.values import holds
from fusec.ir.expr import Apply, Const, Expr, scalar_type
from fusec.ir.loops import Call, Function, Local, Return
from fusec.ir.losses import losses
from fusec.ir.reductions import ReductionIR
from fusec.ir.walk import expressions, operands, roots_of, statements

KEEPING = frozenset("minimum maximum bitwise_and bitwise_or bitwise_xor".split())


def checked_op(reduction: ReductionIR, is_exact: bool = True) -> str:
    """The operation whose exact totals must be compared with the stored ones; "" if nothing is lost.

    is_exact: totals of sums and products can be compared. Raises CombinationNotChecked for what else may lose values.
    """
    found = [stage.accumulator for stage in reduction.stages] + [reduction.total]
    known = {each.name: each for each in reduction.functions}
    lossy = [each for each in found if each is not None and any(map(_loses, _called(known[each.combine], known)))]
    if not lossy:
        return ""
    ops = {_plain(known[each.combine]) for each in lossy}
    op = ops.pop()
    if not is_exact or ops or op not in NAMES or len(reduction.stages) > 1:
        raise CombinationNotChecked(reduction.name).at()
    return op


def _called(function: Function, known: dict[str, Function]) -> Iterator[Function]:
    """A function, and all that it calls."""
    yield function
    for stmt in statements(function.body):
        for expr in expressions(operands(stmt)):
            if isinstance(expr, Call) and expr.function in known:
                yield from _called(known[expr.function], known)


def _loses(function: Function) -> bool:
    """Whether a result of integers may be beyond its type."""
    roots = roots_of(function.body)
    return any(not _is_kept(expr) for expr in expressions(roots) for _ in losses(expr))


def _is_kept(expr: Expr) -> bool:
    """Whether it is a conversion back to a type that the value had before."""
    return isinstance(expr, Apply) and expr.op == "convert" and _within(expr.args[0], expr.type)


def _within(expr: Expr, dtype: DType) -> bool:
    """Whether all that an integer may be is in a type, since it was chosen among such."""
    if scalar_type(expr) in (dtype, BOOL):
        return True
    match expr:
        case Const():
            return scalar_type(expr).is_integer and holds(dtype, int(expr.value))
        case Apply("convert", (value,)):
            return _within(value, dtype)
        case Apply("where", (_, *args)):
            return all(_within(each, dtype) for each in args)
        case Apply(op, args) if op in KEEPING:
            return all(_within(each, dtype) for each in args)
    return False


def _plain(function: Function) -> str:
    """The operation on the two totals that a function is, converted or not; "" if it is more than that."""
    if len(function.body) != 1 or not isinstance(function.body[0], Return) or function.body[0].value is None:
        return ""
    names = [name for name, _ in function.params]
    match _bare(function.body[0].value):
        case Apply(op, args) if [_name(each) for each in args] in (names, names[::-1]):
            return op
    return ""


def _bare(expr: Expr) -> Expr:
    """A value without conversions of integers."""
    while isinstance(expr, Apply) and expr.op == "convert" and scalar_type(expr).is_integer:
        expr = expr.args[0]
    return expr


def _name(expr: Expr) -> str:
    bare = _bare(expr)
    return bare.name if isinstance(bare, Local) else ""
