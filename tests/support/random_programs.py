"""Random verified programs over the whole op table and all statement forms.

Everything a program does is defined: raw indices are in range or guarded, loops are bounded, elements write only what
is theirs, atomics commute, and the bits of a nan are never looked at.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from fusec.base.dtypes import (
    ALL,
    BOOL,
    COMPLEX,
    COMPLEX64,
    COMPLEX128,
    COMPUTE_FLOATS,
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    INTEGERS,
    STORAGE_FLOATS,
    DType,
    signed_of,
    unsigned_of,
)
from fusec.base.ops import TABLE
from fusec.base.records import replace
from fusec.ir.expr import Const, Expr, Pointer, Struct, apply, const, convert
from fusec.ir.loops import (
    ArrayParam,
    Assign,
    At,
    Atomic,
    Break,
    Call,
    CallStatement,
    Continue,
    Declare,
    DeclareArray,
    Element,
    Field,
    Function,
    If,
    Load,
    Local,
    LocalArray,
    Make,
    Offset,
    Program,
    Query,
    Return,
    ScalarParam,
    SetField,
    Stmt,
    Store,
    While,
)
from fusec.ir.walk import statements
from tests.support.random_arguments import hard_values

INDEX = Query("", "index", None, INT64)
COMPUTED = (BOOL, *INTEGERS, *COMPUTE_FLOATS, *COMPLEX)
PRIMITIVE = [op for op in TABLE.values() if op.primitive and op.name not in ("where", "convert", "bitcast")]
WORK = Struct("work", (("total", FLOAT64), ("count", INT32)))
LENGTH = 4  # of local arrays


@dataclass
class Scope:
    """What statements at one place may use."""

    locals: list[Local]
    assignable: list[Local]
    arrays: list[tuple[LocalArray, int]] = field(default_factory=list)
    in_loop: bool = False

    def inner(self, in_loop: bool | None = None) -> Scope:
        """A copy for a nested block."""
        loop = self.in_loop if in_loop is None else in_loop
        return Scope(list(self.locals), list(self.assignable), list(self.arrays), loop)


class Writer:
    """Draws one program piece by piece; `budget` bounds the number of nodes.

    Choices are uniform, from a seeded generator: hypothesis's own draws favour small values, which here means programs
    that compute nothing. It still shrinks the budget.
    """

    def __init__(self, random: Random, kernel: bool, dtypes: tuple[DType, ...], budget: int) -> None:
        self.random = random
        self.dtypes = dtypes
        self.budget = budget
        self.number = 0
        self.params: dict[str, ArrayParam] = {}
        self.functions: list[Function] = []
        self.kernel = kernel

    # --- choices -------------------------------------------------------------------------------------------------

    def below(self, count: int) -> int:
        return self.random.randrange(count)

    def pick(self, choices):
        choices = tuple(choices)
        return choices[self.below(len(choices))]

    def fresh(self, prefix: str) -> str:
        self.number += 1
        return f"{prefix}{self.number}"

    def dtype(self, allowed: tuple[DType, ...] = COMPUTED) -> DType:
        return self.pick([dtype for dtype in self.dtypes if dtype in allowed] or allowed)

    # --- expressions ---------------------------------------------------------------------------------------------

    def constant(self, dtype: DType) -> Const:
        """A hard or a plain value."""
        values = hard_values(dtype)
        return const(values[self.below(min(len(values), 60))], dtype)

    def value(self, dtype: DType, scope: Scope, depth: int) -> Expr:
        """An expression of a computed or storage dtype."""
        self.budget -= 1
        if depth <= 0 or self.budget <= 0:
            return self.leaf(dtype, scope)
        form = self.below(12)
        if form <= 1:
            return self.leaf(dtype, scope)
        if form == 3:
            return self.choice(dtype, scope, depth)
        if form == 4:
            return self.conversion(dtype, scope, depth)
        if form == 5:
            return self.load(dtype, scope, depth)
        if form == 6:
            return self.called(dtype, scope, depth)
        if dtype in STORAGE_FLOATS:
            return self.conversion(dtype, scope, depth)
        if form == 7 and dtype != BOOL:
            return self.round_trip(dtype, scope, depth)
        if form == 8 and dtype == BOOL:
            return apply("logical_not", self.operation(dtype, scope, depth))
        return self.operation(dtype, scope, depth)

    def leaf(self, dtype: DType, scope: Scope) -> Expr:
        """A local, if need be converted, or now and then a constant."""
        if not self.below(6):
            return self.constant(dtype)
        known = [local for local in scope.locals if local.type == dtype]
        if known:
            return self.pick(known)
        others = [local for local in scope.locals if isinstance(local.type, DType)]
        others = [local for local in others if dtype.is_complex or not local.type.is_complex]
        return convert(self.pick(others), dtype) if others else self.constant(dtype)

    def operation(self, dtype: DType, scope: Scope, depth: int) -> Expr:
        """An op of the table whose result has the dtype."""
        options = []
        for op in PRIMITIVE:
            if op.result == "same" and dtype.kind in op.accepts:
                options.append((op.name, dtype))
            elif op.result == "bool" and dtype == BOOL:
                operand = self.dtype(tuple(other for other in COMPUTED if other.kind in op.accepts))
                options.append((op.name, operand))
            elif op.result == "int32" and dtype == INT32:
                options.append((op.name, self.dtype(INTEGERS)))
            elif op.result == "real" and dtype in COMPUTE_FLOATS:
                options.append((op.name, COMPLEX64 if dtype == FLOAT32 else COMPLEX128))
            elif op.result == "complex" and dtype.is_complex:
                options.append((op.name, FLOAT32 if dtype == COMPLEX64 else FLOAT64))
        name, operand = self.pick(options)
        first = self.value(operand, scope, depth - 1)
        rest = [self.second(first, operand, scope, depth - 1) for _ in range(TABLE[name].arity - 1)]
        return apply(name, *([first, *rest] if self.below(4) else [*rest, first]))

    def second(self, first: Expr, dtype: DType, scope: Scope, depth: int) -> Expr:
        """Another operand: now and then the same again, or a constant that rewriting rules look for."""
        form = self.below(8)
        if form == 0:
            return first
        if form <= 2:
            numbers = [0, 1, 2, 8, -1, -0.0, 0.5] if dtype in COMPUTE_FLOATS else [0, 1, 2, 8, -1]
            return const(bool(self.below(2)) if dtype == BOOL else self.pick(numbers), dtype)
        return self.value(dtype, scope, depth)

    def round_trip(self, dtype: DType, scope: Scope, depth: int) -> Expr:
        """An operation in a wider type on widened values, converted back: C's arithmetic on narrow types."""
        wider = [other for other in COMPUTED if other.kind == dtype.kind and other.bits > dtype.bits]
        if not wider or dtype.is_complex:
            return self.operation(dtype, scope, depth)
        middle = self.pick([*wider, FLOAT64] if dtype.is_integer else wider)
        if not self.below(4):
            pair = [convert(self.value(dtype, scope, depth - 1), middle) for _ in range(2)]
            return convert(apply(self.pick(["less", "equal", "greater_equal"]), *pair), dtype)
        return convert(self.widened(dtype, middle, scope, 2), dtype)

    def widened(self, dtype: DType, middle: DType, scope: Scope, depth: int) -> Expr:
        """Up to `depth` operations in the wider type on values of the narrow one."""
        if depth == 0 or not self.below(4):
            return convert(self.value(dtype, scope, 1), middle)
        op = self.pick([op for op in PRIMITIVE if op.result == "same" and middle.kind in op.accepts])
        return apply(op.name, *(self.widened(dtype, middle, scope, depth - 1) for _ in range(op.arity)))

    def choice(self, dtype: DType, scope: Scope, depth: int) -> Expr:
        condition = self.value(BOOL, scope, depth - 1)
        return apply("where", condition, self.value(dtype, scope, depth - 1), self.value(dtype, scope, depth - 1))

    def conversion(self, dtype: DType, scope: Scope, depth: int) -> Expr:
        """A conversion or, between types of one width, a bitcast that never sees a nan."""
        source = self.dtype(tuple(other for other in ALL if dtype.is_complex or not other.is_complex))
        if source == dtype:
            return self.value(dtype, scope, depth - 1)
        inner = self.value(source, scope, depth - 1)
        castable = source.bits == dtype.bits and BOOL not in (source, dtype)
        if castable and source in INTEGERS and self.below(3) == 0 and not dtype.is_complex:
            return apply("bitcast", inner, target=dtype)
        if castable and source in COMPUTE_FLOATS and dtype.is_integer and self.below(2) == 0:
            return apply("where", apply("equal", inner, inner), apply("bitcast", inner, target=dtype), const(7, dtype))
        return convert(inner, dtype)

    def load(self, dtype: DType, scope: Scope, depth: int) -> Expr:
        """An element of a raw or local array of the dtype, or a query, or a field, as there is one."""
        raw = [param for param in self.params.values() if param.raw and param.dtype == dtype and not param.written]
        local = [(array, length) for array, length in scope.arrays if array.type.element == dtype]
        if raw and self.below(2):
            return self.guarded_load(self.pick(raw), scope, depth)
        if local:
            array, length = self.pick(local)
            distance = apply("bitwise_and", self.value(INT64, scope, depth - 1), const(length - 1, INT64))
            return Load(Offset(array, distance, array.type), dtype)
        if dtype == INT64 and self.kernel:
            return self.query()
        structs = [local for local in scope.locals if local.type == WORK]
        fields = [name for name, kind in WORK.fields if kind == dtype]
        if structs and fields:
            return Field(self.pick(structs), fields[0], dtype)
        return self.constant(dtype)

    def guarded_load(self, param: ArrayParam, scope: Scope, depth: int) -> Expr:
        """An index reduced to the range, or any index behind a guard that evaluates on demand."""
        pointer = Pointer(param.dtype, "global")
        if param.ndim > 1 and self.below(2):
            index = []
            for axis in range(param.ndim):
                extent = Query(param.name, "shape", const(axis, INT64), INT64)
                index.append(_in_range(self.value(INT64, scope, depth - 2), extent))
            return Load(At(param.name, tuple(index), pointer), param.dtype)
        size = Query(param.name, "size", None, INT64)
        if self.below(2):
            flat = _in_range(self.value(INT64, scope, depth - 1), size)
            return Load(At(param.name, (flat,), pointer), param.dtype)
        anywhere = self.pick([INDEX, self.value(INT64, scope, depth - 1)])
        inside = apply("logical_and", apply("greater_equal", anywhere, const(0, INT64)), apply("less", anywhere, size))
        loaded: Expr = Load(At(param.name, (anywhere,), pointer), param.dtype)
        if param.dtype in COMPUTED and self.below(2):
            loaded = apply("not_equal" if param.dtype == BOOL else "add", loaded, loaded)
        return apply("where", inside, loaded, self.constant(param.dtype))

    def query(self) -> Expr:
        raw = [param for param in self.params.values() if param.raw]
        if raw and self.below(2):
            param = self.pick(raw)
            what = self.pick(["size", "ndim", "shape", "stride"])
            axis = const(self.below(param.ndim), INT64) if what in ("shape", "stride") else None
            return Query(param.name, what, axis, INT64)
        return self.pick([INDEX, Query("", "size", None, INT64)])

    def called(self, dtype: DType, scope: Scope, depth: int) -> Expr:
        """A call of a pure function."""
        options = [
            function
            for function in self.functions
            if function.result == dtype and all(isinstance(kind, DType) for _, kind in function.params)
        ]
        if not options:
            return self.constant(dtype)
        function = self.pick(options)
        args = tuple(self.value(kind, scope, depth - 1) for _, kind in function.params if isinstance(kind, DType))
        return Call(function.name, args, dtype)

    # --- statements ----------------------------------------------------------------------------------------------

    def block(self, scope: Scope, size: int, depth: int) -> list[Stmt]:
        body: list[Stmt] = []
        for _ in range(1 + size // 3 + self.below(size)):
            body += self.statement(scope, depth)
            if isinstance(body[-1], Break | Continue | Return):
                break
        return body

    def statement(self, scope: Scope, depth: int) -> list[Stmt]:
        form = self.below(14) if self.budget > 0 else 0
        form = self.pick([10, 10, 11]) if form == 0 and self.budget > 0 else form
        line = self.below(9)
        if form <= 2:
            return [self.declare(scope, line)]
        if form <= 4 and scope.assignable:
            target = self.pick(scope.assignable)
            return [Assign(target.name, self.value(target.type, scope, 3), line=line)]
        if form == 5 and depth:
            return [self.branch(scope, depth, line)]
        if form == 6 and depth:
            return self.loop(scope, depth, line)
        if form == 7:
            return self.local_array(scope, line)
        if form == 8:
            return self.struct(scope, line)
        if form == 9 and scope.arrays:
            array, length = self.pick(scope.arrays)
            distance = apply("bitwise_and", self.value(INT64, scope, 1), const(length - 1, INT64))
            pointer = Offset(array, distance, array.type)
            return [Store(pointer, self.value(array.type.element, scope, 2), line=line)]
        if form == 10 and self.kernel:
            return self.effect(scope, line)
        if form == 11:
            return self.call_with_pointer(scope, line)
        if form == 12 and scope.in_loop:
            return [If(self.value(BOOL, scope, 2), (self.pick([Break(), Continue()]),), line=line)]
        if form == 13 and self.kernel and depth < 2:
            return [If(self.value(BOOL, scope, 2), (Return(),), line=line)]
        return [self.declare(scope, line)]

    def declare(self, scope: Scope, line: int) -> Stmt:
        local = Local(self.fresh("v"), self.dtype(ALL))
        value = self.value(local.type, scope, 3) if self.below(6) else None
        scope.locals.append(local)
        scope.assignable.append(local)
        return Declare(local.name, local.type, value, line=line)

    def branch(self, scope: Scope, depth: int, line: int) -> Stmt:
        condition = self.value(BOOL, scope, 3)
        then = self.block(scope.inner(), 2, depth - 1)
        orelse = self.block(scope.inner(), 2, depth - 1) if self.below(2) else []
        return If(condition, tuple(then), tuple(orelse), line=line)

    def loop(self, scope: Scope, depth: int, line: int) -> list[Stmt]:
        """At most five rounds, counted by a local that the body reads but never assigns."""
        counter = Local(self.fresh("k"), INT64)
        inner = scope.inner(in_loop=True)
        inner.locals.append(counter)
        rounds = self.pick(
            [const(self.below(5), INT64), apply("bitwise_and", self.value(INT64, scope, 1), const(3, INT64))]
        )
        limit = Local(self.fresh("n"), INT64)
        condition: Expr = apply("less", counter, limit)
        if not self.below(3):
            condition = apply("logical_and", condition, self.value(BOOL, scope, 2))
        body = tuple(self.block(inner, 3, depth - 1))
        step = (Assign(counter.name, apply("add", counter, const(1, INT64))),)
        return [
            Declare(counter.name, INT64, const(0, INT64)),
            Declare(limit.name, INT64, rounds),
            While(condition, body, step, test_first=self.below(3) > 0, line=line),
        ]

    def local_array(self, scope: Scope, line: int) -> list[Stmt]:
        name, element = self.fresh("t"), self.dtype(ALL)
        values = tuple(self.value(element, scope, 2) for _ in range(self.below(LENGTH + 1)))
        scope.arrays.append((LocalArray(name, Pointer(element, "local")), LENGTH))
        return [DeclareArray(name, element, LENGTH, values, line=line)]

    def struct(self, scope: Scope, line: int) -> list[Stmt]:
        """A new struct or a new value for a field of one."""
        known = [local for local in scope.locals if local.type == WORK]
        if known and self.below(2):
            name, dtype = self.pick(WORK.fields)
            return [SetField(self.pick(known).name, name, self.value(dtype, scope, 2), line=line)]
        local = Local(self.fresh("s"), WORK)
        made = Make(tuple(self.value(dtype, scope, 2) for _, dtype in WORK.fields), WORK)
        scope.locals.append(local)
        return [Declare(local.name, WORK, made if self.below(3) else None, line=line)]

    def effect(self, scope: Scope, line: int) -> list[Stmt]:
        """A store to this element's own place, or an atomic update that commutes."""
        written = [param for param in self.params.values() if param.written]
        param = self.pick(written)
        pointer = Pointer(param.dtype, "global")
        if not param.raw:
            return [Store(Element(param.name, pointer), self.value(param.dtype, scope, 3), line=line)]
        if param.name.startswith("bins"):
            place = _in_range(self.value(INT64, scope, 2), Query(param.name, "size", None, INT64))
            op = {"a": "add", "n": "minimum", "x": "maximum", "o": "or"}[param.name[-1]]
            return [Atomic(op, At(param.name, (place,), pointer), (self.value(param.dtype, scope, 2),), line=line)]
        return [Store(At(param.name, (INDEX,), pointer), self.value(param.dtype, scope, 3), line=line)]

    def call_with_pointer(self, scope: Scope, line: int) -> list[Stmt]:
        """A call for its effect on a local array."""
        options = [f for f in self.functions if isinstance(f.params[0][1], Pointer)]
        if not options:
            return [self.declare(scope, line)]
        function = self.pick(options)
        kind = function.params[0][1]
        assert isinstance(kind, Pointer)
        arrays = [array for array, _ in scope.arrays if array.type == kind]
        if not arrays:
            name = self.fresh("t")
            scope.arrays.append((LocalArray(name, kind), LENGTH))
            return [DeclareArray(name, kind.element, LENGTH, line=line)]
        args = [self.value(dtype, scope, 2) for _, dtype in function.params[1:] if isinstance(dtype, DType)]
        assert isinstance(function.result, DType)
        targets = [local.name for local in scope.assignable if local.type == function.result]
        result = self.pick(targets) if targets and self.below(2) else ""
        call = Call(function.name, (self.pick(arrays), *args), function.result)
        return [CallStatement(call, result, line=line)]

    # --- functions and the kernel --------------------------------------------------------------------------------

    def function(self) -> Function:
        """A function of one or two values, or one that also writes through a pointer to a local array."""
        params = [Local(self.fresh("p"), self.dtype()) for _ in range(1 + self.below(2))]
        result = self.dtype()
        scope = Scope(list(params), [])
        body: list[Stmt] = []
        signature: list[tuple[str, object]] = [(param.name, param.type) for param in params]
        if not self.below(3):
            element = self.dtype()
            target = Local(self.fresh("q"), Pointer(element, "local"))
            signature.insert(0, (target.name, target.type))
            distance = apply("bitwise_and", self.value(INT64, scope, 1), const(LENGTH - 1, INT64))
            body.append(Store(Offset(target, distance, target.type), self.value(element, scope, 2)))
        body += self.block(scope, 3, 1)
        if self.below(2):
            body.append(If(self.value(BOOL, scope, 2), (Return(self.value(result, scope, 2)),)))
        body.append(Return(self.value(result, scope, 2)))
        return Function(self.fresh("f"), tuple(signature), result, tuple(body))  # type: ignore[arg-type]

    def program(self) -> Program:
        functions = []
        for _ in range(self.below(3)):
            inner = Writer(self.random, kernel=False, dtypes=self.dtypes, budget=min(self.budget, 25))
            inner.number, inner.functions = 1000 * (len(functions) + 1), functions
            functions.append(inner.function())
        self.functions = functions
        params = self.kernel_params()
        self.params = {param.name: param for param in params if isinstance(param, ArrayParam)}
        scope = Scope([], [])
        body: list[Stmt] = []
        for param in params:
            if isinstance(param, ScalarParam):
                scope.locals.append(Local(param.name, param.dtype))
            elif not param.raw and param.read:
                local = Local(f"{param.name}_in", param.dtype)
                load = Load(Element(param.name, Pointer(param.dtype, "global")), param.dtype)
                body.append(Declare(local.name, param.dtype, load))
                scope.locals.append(local)
                scope.assignable.append(local)
        body += self.block(scope, 9, 2)
        for param in self.params.values():
            if param.written and not param.raw:
                pointer = Element(param.name, Pointer(param.dtype, "global"))
                body.append(Store(pointer, self.value(param.dtype, scope, 3)))
        if any(isinstance(stmt, Return) for stmt in statements(body)):  # what a path leaves unassigned keeps its value
            params = [replace(each, read=True) if isinstance(each, ArrayParam) else each for each in params]
        return Program("kernel", tuple(params), tuple(body), tuple(functions))

    def formulas(self) -> Program:
        """Inputs of every type in play, two of the first; ten outputs, each the value of one deep expression."""
        kinds = (self.dtypes[0], *self.dtypes)
        inputs = [ArrayParam(f"x{n}", dtype) for n, dtype in enumerate(kinds)]
        outputs = [ArrayParam(f"z{n}", self.pick(kinds), written=True, read=False) for n in range(10)]
        self.kernel = False  # no index: a graph has none
        body: list[Stmt] = []
        scope = Scope([], [])
        for param in inputs:
            local = Local(f"{param.name}_in", param.dtype)
            scope.locals.append(local)
            load = Load(Element(param.name, Pointer(param.dtype, "global")), param.dtype)
            body.append(Declare(local.name, param.dtype, load))
        budget = self.budget
        for param in outputs:
            self.budget = budget
            pointer = Element(param.name, Pointer(param.dtype, "global"))
            stored = param.dtype in STORAGE_FLOATS
            body.append(Store(pointer, (self.value if stored else self.operation)(param.dtype, scope, 3)))
        return Program("kernel", (*inputs, *outputs), tuple(body))

    def kernel_params(self) -> list:
        params: list = [ArrayParam(f"x{n}", self.dtype(ALL)) for n in range(1 + self.below(2))]
        params += [ArrayParam(f"r{n}", self.dtype(ALL), raw=True, ndim=1 + self.below(3)) for n in range(self.below(3))]
        params += [ScalarParam(f"a{n}", self.dtype()) for n in range(self.below(2))]
        for n in range(1 + self.below(2)):
            params.append(ArrayParam(f"z{n}", self.dtype(ALL), written=True, read=bool(self.below(2))))
        if not self.below(3):
            params.append(ArrayParam("w", self.dtype(ALL), raw=True, written=True, ndim=1))
        if not self.below(3):
            width = self.pick([32, 64])
            dtype = self.pick([signed_of(width), unsigned_of(width)])
            params.append(ArrayParam(f"bins_{self.pick('anxo')}", dtype, raw=True, written=True, ndim=1))
        return params


def _in_range(value: Expr, extent: Expr) -> Expr:
    """An index from any integer: the remainder's sign is that of the dividend, so negative ones move up."""
    rest = apply("modulo", value, extent)
    negative = apply("less", rest, const(0, INT64))
    return apply("where", negative, apply("add", rest, extent), rest)


def writer(random: Random, dtypes: tuple[DType, ...], budget: int) -> Writer:
    """A writer for a few of the dtypes, so that its values meet."""
    computed = [dtype for dtype in dtypes if dtype in COMPUTED]
    weights = [4 if dtype in COMPUTE_FLOATS else 1 for dtype in computed]
    few = random.choices(computed, weights, k=random.randint(1, 3))
    storage = [dtype for dtype in dtypes if dtype in STORAGE_FLOATS]
    if storage and random.random() < 0.5:
        few.append(random.choice(storage))
    return Writer(random, True, tuple(dict.fromkeys([*few, BOOL, INT64])), budget)
