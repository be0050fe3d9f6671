"""Arrays that a kernel indexes: its arguments and its local arrays; atomic updates."""

from __future__ import annotations

from math import prod

from fusec.base.diagnostics import counted
from fusec.base.dtypes import BOOL, INT64, DType
from fusec.base.records import replace
from fusec.base.source import Span
from fusec.errors.language import ArgumentCount, BadArgument, BadIndex, UnknownMember
from fusec.errors.python import BadTarget
from fusec.frontends.python import syntax as s
from fusec.frontends.python import values as v
from fusec.frontends.python.dtype_calls import cast, dtype_named
from fusec.frontends.python.function_context import FunctionContext
from fusec.frontends.python.names import ATOMICS, EFFECTS
from fusec.frontends.python.types import PY_INT, carrier, is_bool, is_integer, storage
from fusec.ir.expr import Apply, Const, Expr, Pointer, Space, apply, const
from fusec.ir.loops import At, Atomic, DeclareArray, Load, Local, LocalArray, Offset, Store, query

NAMES = {"local": "local", "shared": "tile"}  # of arrays in the IR
MAX_LOCAL = 1 << 12  # elements of a local array: 32 KiB of float64, what a GPU's thread may have without harm

# --- what is known of them ---


def array_of_call(name: str, dtype: DType, ndim: int, written: bool) -> v.ArrayParameter:
    """An argument."""
    extents = tuple(query("shape", axis, name) for axis in range(ndim))
    return v.ArrayParameter(name, dtype, extents, written=written)


def fact_of(array: v.ArrayParameter, node: s.Attribute) -> v.Value:
    """``x.shape``, ``x.size``, ``x.ndim``, ``x.dtype`` and ``x.flat``. Raises UnknownMember."""
    size = query("size", param=array.name)
    match node.name:
        case _ if array.is_flat:
            pass
        case "shape":
            return v.Items(tuple(map(_python_int, array.extents)))
        case "size" if array.space == "global":
            return v.Scalar(PY_INT, size)
        case "size":
            return v.literal(prod(_shape(array)))
        case "ndim":
            return v.literal(len(array.extents))
        case "dtype":
            return v.Type(array.dtype)
        case "flat" if array.space == "global":
            return replace(array, extents=(size,), is_flat=True)
    cure = "arrays have .shape, .size, .ndim, .dtype and .flat here"
    raise UnknownMember(v.show(array), node.name, cure).at(node.span)


def length_of(array: v.ArrayParameter) -> v.Scalar:
    """``len(x)``."""
    return _python_int(array.extents[0])


def _python_int(extent: Expr) -> v.Scalar:
    return v.literal(int(extent.value)) if isinstance(extent, Const) else v.Scalar(PY_INT, extent)


def _shape(array: v.ArrayParameter) -> tuple[int, ...]:
    """The extents of an array of fixed shape."""
    return tuple(int(each.value) for each in array.extents if isinstance(each, Const))


# --- elements ---


def item_of(context: FunctionContext, array: v.ArrayParameter, node: s.Index) -> v.Scalar:
    """``x[i, j]``. Raises BadIndex."""
    place = address_of(context, array, node.index, node.span)
    return v.Scalar(array.dtype, v.converted(Load(place, array.dtype), carrier(array.dtype)))


def address_of(context: FunctionContext, array: v.ArrayParameter, node: s.Expression, span: Span) -> Expr:
    """The address of an element. node: the index as written."""
    found, count = context.indices(node), len(array.extents)
    if len(found) != count:
        cure = f"write {count} of them: a kernel reads one element at a time"
        axes = counted(count, "axis", "axes")
        raise BadIndex(f"{len(found)} indices into an array of {axes}", cure).at(span)
    parts = node.items if isinstance(node, s.Tuple) else (node,)
    written = parts if len(parts) == count else (node,) * count
    rows = zip(found, written, array.extents, strict=True)
    index = [_counted(value, part, extent, node.span) for value, part, extent in rows]
    if array.space != "global":
        return _local_place(array, index, node.span)
    return At(array.name, tuple(index) or (const(0, INT64),), Pointer(array.dtype, "global", not array.written))


def _counted(value: v.Scalar, node: s.Expression, extent: Expr, span: Span) -> Expr:
    """An index as int64; one written as a negative number counts from the end."""
    if is_bool(value.type) or not is_integer(value.type):
        raise BadIndex(f"{v.show(value)} as an index", "indices are integers: convert with int(x)").at(span)
    place = cast(value, INT64, span).read()
    written = isinstance(node, s.Prefix) and node.op == "-" and isinstance(node.operand, s.Number)
    return apply("add", extent, place) if written else place


def is_array(context: FunctionContext, node: s.Expression) -> bool:
    """Whether an expression stands for an array whose elements may be assigned to."""
    return isinstance(context.value(node), v.ArrayParameter)


def store_item(context: FunctionContext, target: s.Index, value: v.Value) -> None:
    """``x[i, j] = value``. Raises BadTarget for an array that is only read."""
    array = context.value(target.value)
    if not isinstance(array, v.ArrayParameter):
        cure = "return the value; a kernel computes one element and writes no array"
        raise BadTarget("an element", cure).at(target.span)
    _check_written(array, target.span)
    if not isinstance(value, v.Scalar):
        raise BadTarget(f"an element {v.show(value)}", "elements are numbers").at(target.span)
    place = address_of(context, array, target.index, target.span)
    context.emit(Store(place, _as_stored(value, array.dtype, target.span), line=context.line))


def _as_stored(value: v.Scalar, dtype: DType, span: Span) -> Expr:
    """The value as the array holds it. Raises CannotConvert or NumberTooLarge."""
    if value.type == dtype:
        return v.rounded(value)
    return v.rounded(v.adapt(value, dtype, span) if value.literal is not None else cast(value, dtype, span))


def _check_written(array: v.ArrayParameter, span: Span) -> None:
    if not array.written:
        cure = f"write to '{array.name}' by that name, so that calls know it is changed"
        raise BadTarget(f"'{array.name}' under another name", cure).at(span)


# --- functions of kernels alone ---


def effect_named(context: FunctionContext, node: s.Expression) -> str:
    """Which function of kernels alone an expression calls that changes something; "" for none."""
    if not isinstance(node, s.CallNode) or not isinstance(node.callee, (s.Name, s.Attribute)):
        return ""
    name = node.callee.name
    known = context.captured(name) if isinstance(node.callee, s.Name) else None
    if name not in EFFECTS and not isinstance(known, v.Intrinsic):
        return ""
    callee = context.value(node.callee)
    return callee.name if isinstance(callee, v.Intrinsic) and callee.name in EFFECTS else ""


def atomic(context: FunctionContext, name: str, node: s.CallNode, wanted: bool) -> v.Value:
    """``fusec.atomic_add(x, i, value)``; the old value if it is wanted."""
    op = ATOMICS[name]
    count = 4 if op == "compare_exchange" else 3
    if node.keywords or len(node.args) != count:
        shown = "x, index, expected, value" if count == 4 else "x, index, value"
        raise ArgumentCount(f"fusec.{name}", str(count), len(node.args), f"write {name}({shown})").at(node.span)
    array = context.value(node.args[0])
    if not isinstance(array, v.ArrayParameter) or array.space == "local":
        cure = "pass an array of the call first, or a shared one"
        raise BadArgument(f"fusec.{name}", v.show(array), cure).at(node.args[0].span)
    _check_written(array, node.args[0].span)
    dtype = array.dtype
    if dtype.is_complex or dtype == BOOL or (op in ("and", "or", "xor") and not dtype.is_integer):
        cure = "bitwise atomics take integers, the others take integers and floats"
        raise BadArgument(f"fusec.{name}", f"{dtype} elements", cure).at(node.span)
    if array.space == "shared" and dtype.bits < 32:  # GPUs exchange whole words, which such elements share with others
        cure = "atomics on shared arrays take 32 or 64 bits, e.g. np.int32 or np.float32"
        raise BadArgument(f"fusec.{name}", f"{dtype} elements of a shared array", cure).at(node.span)
    place = address_of(context, array, node.args[1], node.args[1].span)
    values = tuple(_as_stored(context.scalar(arg), dtype, arg.span) for arg in node.args[2:])
    if not wanted:
        context.emit(Atomic(op, place, values, line=context.line))
        return v.Absent()
    old = context.declare("old", dtype)
    context.emit(Atomic(op, place, values, old.name, line=context.line))
    return v.Scalar(dtype, v.converted(Local(old.name, dtype), carrier(dtype)))


def declare_array(context: FunctionContext, space: Space, node: s.CallNode) -> v.ArrayParameter:
    """``fusec.local(shape, dtype)``, zeros, anew whenever control gets here; ``fusec.shared`` holds anything at first.

    Each element has the one, all threads of a block the other.
    """
    dtype, shape = _array_given(context, space, node)
    count = prod(shape)
    if space == "local" and count > MAX_LOCAL:
        cure = f"a local array has at most {MAX_LOCAL} elements; pass an array for more"
        raise BadArgument("fusec.local", f"{count} elements", cure).at(node.args[0].span)
    name = context.fresh(NAMES[space])
    context.emit(DeclareArray(name, dtype, count, space=space, line=context.line))
    return v.ArrayParameter(name, dtype, tuple(const(extent, INT64) for extent in shape), space)


def _array_given(context: FunctionContext, function: str, node: s.CallNode) -> tuple[DType, tuple[int, ...]]:
    """The dtype and shape that ``fusec.local(...)`` and its like are given."""
    args = [*node.args, *(each.value for each in node.keywords if each.name == "dtype")]
    if len(args) != 2 or len(node.args) + len(node.keywords) != 2:
        cure = f"write fusec.{function}(8, np.float32)"
        raise ArgumentCount(f"fusec.{function}", "2", len(args), cure).at(node.span)
    size, named = context.value(args[0]), args[1]
    dtype = v.Type(dtype_named(named)) if isinstance(named, s.String) else context.value(named)
    items = v.items_of(size)
    extents = [each.literal for each in items if isinstance(each, v.Scalar) and isinstance(each.literal, int)]
    if len(extents) != len(items) or not extents or any(each < 1 for each in extents):
        cure = "its shape is a number of at least 1, or a tuple of such numbers, known when the kernel is compiled"
        raise BadArgument(f"fusec.{function}", "this shape", cure).at(args[0].span)
    if not isinstance(dtype, v.Type):
        cure = "the second is a dtype, e.g. np.float32"
        raise BadArgument(f"fusec.{function}", v.show(dtype), cure).at(args[1].span)
    return storage(dtype.kind), tuple(extents)


def _local_place(array: v.ArrayParameter, index: list[Expr], span: Span) -> Expr:
    """The address in a local or shared array, whose elements lie in C order."""
    pointer = Pointer(array.dtype, array.space)
    place: Expr = const(0, INT64)
    for at, (value, extent) in enumerate(zip(index, _shape(array), strict=True)):
        number = _known(value)
        if number is not None and not 0 <= number < extent:
            raise BadIndex(f"index {number} of an axis of {extent}", "count from 0").at(span)
        place = value if at == 0 else apply("add", apply("multiply", place, const(extent, INT64)), value)
    return Offset(LocalArray(array.name, pointer), place, pointer)


def _known(value: Expr) -> int | None:
    """The number that an index is, if it is known: a constant, or one counted from the end."""
    match value:
        case Const():
            return int(value.value)
        case Apply("add", (Const() as left, Const() as right)):
            return int(left.value) + int(right.value)
    return None
