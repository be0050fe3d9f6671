"""Reductions written in the IR by hand, for tests of the order, the passes and the code generators."""

from __future__ import annotations

from fusec.base.dtypes import BOOL, FLOAT32, FLOAT64, INT64, DType
from fusec.ir.expr import Apply, Expr, Pointer, Struct, apply, const, convert
from fusec.ir.loops import ArrayParam, Declare, Element, Field, Function, Load, Local, Make, Return, Store
from fusec.ir.reductions import COVERED, Accumulator, ReductionIR, Stage


def element(name: str, dtype: DType) -> Expr:
    return Load(Element(name, Pointer(dtype, "global", const=True)), dtype)


def store(name: str, value: Expr, dtype: DType) -> Store:
    return Store(Element(name, Pointer(dtype, "global")), value)


def two(op: str, dtype: DType) -> Function:
    a, b = Local("a", dtype), Local("b", dtype)
    return Function("combine", (("a", dtype), ("b", dtype)), dtype, (Return(apply(op, a, b)),))


def simple(op: str, dtype: DType, result: DType | None = None) -> ReductionIR:
    """z = the combination of all x by an op, converted to `result` first."""
    result = result or dtype
    x = Local("x", dtype)
    running = Accumulator("part", result, convert(x, result), "combine")
    total = Accumulator("total", result, Local("part", result), "combine")
    body = (Declare("x", dtype, element("x", dtype)),)
    params = (ArrayParam("x", dtype), ArrayParam("z", result, written=True, read=False))
    finish = (store("z", Local("total", result), result),)
    return ReductionIR(op, params, (Stage(body, running),), total, finish, (two(op, result),))


def dot(dtype: DType) -> ReductionIR:
    """z = the sum of x * y."""
    value = apply("multiply", Local("x", dtype), Local("y", dtype))
    body = (Declare("x", dtype, element("x", dtype)), Declare("y", dtype, element("y", dtype)))
    params = (ArrayParam("x", dtype), ArrayParam("y", dtype), ArrayParam("z", dtype, written=True, read=False))
    total = Accumulator("total", dtype, Local("part", dtype), "combine")
    stages = (Stage(body, Accumulator("part", dtype, value, "combine")),)
    finish = (store("z", Local("total", dtype), dtype),)
    return ReductionIR("dot", params, stages, total, finish, (two("add", dtype),))


def extremes(dtype: DType) -> ReductionIR:
    """low and high = the least and the greatest x in one walk, as a struct."""
    kind = Struct("Extremes", (("low", dtype), ("high", dtype)))
    a, b = Local("a", kind), Local("b", kind)

    def field(side: Expr, name: str) -> Expr:
        return Field(side, name, dtype)

    low = apply("minimum", field(a, "low"), field(b, "low"))
    high = apply("maximum", field(a, "high"), field(b, "high"))
    combine = Function("combine", (("a", kind), ("b", kind)), kind, (Return(Make((low, high), kind)),))
    x = Local("x", dtype)
    running = Accumulator("part", kind, Make((x, x), kind), "combine")
    parts = tuple(Local(name, part) for name, part in running.parts)
    total = Accumulator("total", kind, Make(parts, kind), "combine")
    outputs = tuple(ArrayParam(name, dtype, written=True, read=False) for name in ("low", "high"))
    finish = tuple(store(name, Local(f"total_{name}", dtype), dtype) for name in ("low", "high"))
    body = (Declare("x", dtype, element("x", dtype)),)
    return ReductionIR(
        "extremes", (ArrayParam("x", dtype), *outputs), (Stage(body, running),), total, finish, (combine,)
    )


def argmin(dtype: DType) -> ReductionIR:
    """value and where = the least x and the first of its places, which the array `at` holds."""
    kind = Struct("Least", (("value", dtype), ("at", INT64)))
    a, b = Local("a", kind), Local("b", kind)
    av, bv = Field(a, "value", dtype), Field(b, "value", dtype)
    earlier = apply("less", Field(a, "at", INT64), Field(b, "at", INT64))
    tie = apply("logical_and", Apply("equal", (av, bv), BOOL), earlier)
    first = apply("logical_or", apply("less", av, bv), tie)
    both = [Apply("where", (first, Field(a, n, d), Field(b, n, d)), d) for n, d in kind.fields]
    combine = Function("combine", (("a", kind), ("b", kind)), kind, (Return(Make(tuple(both), kind)),))
    running = Accumulator("part", kind, Make((Local("x", dtype), Local("at", INT64)), kind), "combine")
    parts = tuple(Local(name, part) for name, part in running.parts)
    total = Accumulator("total", kind, Make(parts, kind), "combine")
    body = (Declare("x", dtype, element("x", dtype)), Declare("at", INT64, element("at", INT64)))
    params = (
        ArrayParam("x", dtype),
        ArrayParam("at", INT64),
        ArrayParam("value", dtype, written=True, read=False),
        ArrayParam("where", INT64, written=True, read=False),
    )
    finish = (store("value", Local("total_value", dtype), dtype), store("where", Local("total_at", INT64), INT64))
    return ReductionIR("argmin", params, (Stage(body, running),), total, finish, (combine,))


def spread() -> ReductionIR:
    """z = the sum of squared distances from the mean: two stages for each chunk, chunks combined after Chan."""
    f = FLOAT64
    kind = Struct("Moments", (("count", f), ("mean", f), ("square", f)))
    a, b = Local("a", kind), Local("b", kind)

    def field(side: Expr, name: str) -> Expr:
        return Field(side, name, f)

    count = apply("add", field(a, "count"), field(b, "count"))
    delta = apply("subtract", field(b, "mean"), field(a, "mean"))
    share = apply("divide", field(b, "count"), count)
    mean = apply("add", field(a, "mean"), apply("multiply", delta, share))
    square = apply("multiply", apply("multiply", delta, delta), apply("multiply", field(a, "count"), share))
    square = apply("add", apply("add", field(a, "square"), field(b, "square")), square)
    chan = Function("chan", (("a", kind), ("b", kind)), kind, (Return(Make((count, mean, square), kind)),))
    x, number = Local("x", FLOAT32), convert(Local(COVERED, INT64), f)
    body = (Declare("x", FLOAT32, element("x", FLOAT32)),)
    first = Stage(body, Accumulator("s", f, convert(x, f), "combine"), (
        Declare("number", f, number),
        Declare("mean", f, apply("divide", Local("s", f), Local("number", f))),
    ))  # fmt: skip
    far = apply("subtract", convert(x, f), Local("mean", f))
    second = Stage(body, Accumulator("q", f, apply("multiply", far, far), "combine"))
    value = Make((Local("number", f), Local("mean", f), Local("q", f)), kind)
    params = (ArrayParam("x", FLOAT32), ArrayParam("z", f, written=True, read=False))
    finish = (store("z", Local("total_square", f), f),)
    total = Accumulator("total", kind, value, "chan")
    return ReductionIR("spread", params, (first, second), total, finish, (two("add", f), chan))


def softmax(is_of_products: bool = False) -> ReductionIR:
    """y = exp(x - the greatest x) over the sum of these: three stages, no total. x may be a product, x times w."""
    f, x = FLOAT32, Local("x", FLOAT32)
    names = ("x", "w") if is_of_products else ("x",)
    body = tuple(Declare(name, f, element(name, f)) for name in names)
    x = apply("multiply", x, Local("w", f)) if is_of_products else x
    greatest = Function("larger", (("a", f), ("b", f)), f, (
        Return(apply("maximum", Local("a", f), Local("b", f))),
    ))  # fmt: skip
    power = apply("exp", apply("subtract", x, Local("m", f)))
    stages = (
        Stage(body, Accumulator("m", f, x, "larger")),
        Stage(
            body, Accumulator("s", f, power, "combine"), (Declare("r", f, apply("divide", const(1, f), Local("s", f))),)
        ),
        Stage((*body, store("y", apply("multiply", power, Local("r", f)), f)), None),
    )
    params = (*(ArrayParam(name, f) for name in names), ArrayParam("y", f, written=True, read=False))
    return ReductionIR("softmax", params, stages, None, (), (greatest, two("add", f)))
