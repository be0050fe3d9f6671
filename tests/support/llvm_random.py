"""Random structured programs: nested branches and loops with every kind of exit, locals, local arrays, raw accesses."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from fusec.base.dtypes import BOOL, FLOAT32, INT32, INT64, DType
from fusec.ir.expr import Expr, Pointer, apply, const, convert
from fusec.ir.loops import (
    ArrayParam,
    Assign,
    Atomic,
    Break,
    Call,
    CallStatement,
    Continue,
    Declare,
    DeclareArray,
    Function,
    If,
    Load,
    Local,
    LocalArray,
    Offset,
    Program,
    Return,
    ScalarParam,
    Stmt,
    Store,
    While,
)
from tests.support.llvm_check import POSITION, at, element

RAW_SIZE = 64


@dataclass
class Scope:
    """Names that may be used: variables by type, and local arrays with their lengths."""

    variables: list[Local]
    arrays: list[tuple[str, int]] = field(default_factory=list)
    in_loop: bool = False
    depth: int = 0

    def inner(self, in_loop: bool = False) -> Scope:
        return Scope(list(self.variables), list(self.arrays), self.in_loop or in_loop, self.depth + 1)


class Writer:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.count = 0
        self.in_function = False
        self.functions: list[Function] = []
        # One kind of update: updates of several kinds would depend on the order of lanes.
        self.update = self.random.choice(["add", "minimum", "xor"])

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def program(self) -> Program:
        if self.random.random() < 0.6:
            self.functions = [self.function()]
        params = (
            ScalarParam("s", INT32),
            ArrayParam("x", INT32),
            ArrayParam("f", FLOAT32),
            ArrayParam("A", INT32, raw=True, ndim=1),
            ArrayParam("C", INT32, raw=True, written=True, ndim=1),
            ArrayParam("y", INT32, written=True, read=False),
            ArrayParam("g", FLOAT32, written=True, read=False),
        )
        scope = Scope([Local("s", INT32)])
        body: list[Stmt] = []
        for name, dtype in (("x", INT32), ("f", FLOAT32)):
            body.append(Declare(name, dtype, Load(element(name, dtype), dtype)))
            scope.variables.append(Local(name, dtype))
        for name, dtype in (("y", INT32), ("g", FLOAT32)):
            body.append(Declare(name, dtype))
            scope.variables.append(Local(name, dtype))
        body += self.block(scope, 6)
        body += [Store(element(name, dtype), Local(name, dtype)) for name, dtype in (("y", INT32), ("g", FLOAT32))]
        return Program("k", params, tuple(body), tuple(self.functions))

    def function(self) -> Function:
        self.in_function = True
        scope = Scope([Local("p", INT32), Local("q", FLOAT32)])
        body = self.block(scope, 3)
        if self.random.random() < 0.8:
            body.append(Return(self.expr(INT32, scope)))
        self.in_function = False
        return Function("helper", (("p", INT32), ("q", FLOAT32)), INT32, tuple(body))

    # --- statements ----------------------------------------------------------------------------------------------

    def block(self, scope: Scope, length: int) -> list[Stmt]:
        body: list[Stmt] = []
        for _ in range(self.random.randint(1, length)):
            body += self.statement(scope)
        return body

    def statement(self, scope: Scope) -> list[Stmt]:
        choices = [self.declare, self.assign, self.assign, self.assign, self.array, self.array_store]
        if scope.depth < 4:
            choices += [self.branch, self.branch, self.loop]
        if scope.in_loop:
            choices += [self.leave]
        choices += [self.finish, self.atomic] if not self.in_function else [self.finish]
        if self.functions and not self.in_function:
            choices.append(self.call_statement)
        return self.random.choice(choices)(scope)

    def declare(self, scope: Scope) -> list[Stmt]:
        dtype = self.random.choice([INT32, FLOAT32, BOOL])
        value = None if self.random.random() < 0.2 else self.expr(dtype, scope)
        name = self.fresh("v")
        scope.variables.append(Local(name, dtype))
        return [Declare(name, dtype, value)]

    def assign(self, scope: Scope) -> list[Stmt]:
        target = self.random.choice([v for v in scope.variables if not v.name.startswith("k")])
        return [Assign(target.name, self.expr(target.type, scope))]

    def array(self, scope: Scope) -> list[Stmt]:
        name, length = self.fresh("arr"), self.random.choice([2, 4])
        values = tuple(self.expr(INT32, scope) for _ in range(self.random.randint(0, length)))
        scope.arrays.append((name, length))
        return [DeclareArray(name, INT32, length, values)]

    def array_store(self, scope: Scope) -> list[Stmt]:
        if not scope.arrays:
            return self.assign(scope)
        return [Store(self.array_place(scope), self.expr(INT32, scope))]

    def array_place(self, scope: Scope) -> Expr:
        name, length = self.random.choice(scope.arrays)
        pointer = LocalArray(name, Pointer(INT32, "local"))
        if self.random.random() < 0.5:
            return Offset(pointer, const(self.random.randrange(length), INT64), pointer.type)
        index = convert(apply("bitwise_and", self.expr(INT32, scope), const(length - 1, INT32)), INT64)
        return Offset(pointer, index, pointer.type)

    def branch(self, scope: Scope) -> list[Stmt]:
        then = tuple(self.block(scope.inner(), 3))
        orelse = tuple(self.block(scope.inner(), 3)) if self.random.random() < 0.5 else ()
        return [If(self.expr(BOOL, scope), then, orelse)]

    def loop(self, scope: Scope) -> list[Stmt]:
        """At most a few turns: a counter that only the loop itself writes."""
        name = self.fresh("k")
        counter = Local(name, INT32)
        inner = scope.inner(in_loop=True)
        inner.variables.append(counter)
        limit = const(self.random.randint(1, 5), INT32)
        condition = apply("less", counter, limit)
        if self.random.random() < 0.5:
            condition = apply("logical_and", condition, self.expr(BOOL, inner))
        step = (Assign(name, apply("add", counter, const(1, INT32))),)
        if self.random.random() < 0.3:
            scope.variables.append(counter)  # read after the loop
        body = tuple(self.block(inner, 4))
        test_first = self.random.random() < 0.7
        return [Declare(name, INT32, const(0, INT32)), While(condition, body, step, test_first=test_first)]

    def leave(self, scope: Scope) -> list[Stmt]:
        exit_ = self.random.choice([Break, Continue])()
        return [If(self.expr(BOOL, scope), (exit_,))] if self.random.random() < 0.8 else [exit_]

    def finish(self, scope: Scope) -> list[Stmt]:
        result = self.expr(INT32, scope) if self.in_function else None
        if self.in_function:
            return [If(self.expr(BOOL, scope), (Return(result),))]
        stores = tuple(Store(element(n, t), Local(n, t)) for n, t in (("y", INT32), ("g", FLOAT32)))
        return [If(self.expr(BOOL, scope), (*stores, Return()))]

    def atomic(self, scope: Scope) -> list[Stmt]:
        index = convert(apply("bitwise_and", self.expr(INT32, scope), const(RAW_SIZE - 1, INT32)), INT64)
        return [Atomic(self.update, at("C", INT32, index), (self.expr(INT32, scope),))]

    def call_statement(self, scope: Scope) -> list[Stmt]:
        name = self.fresh("v")
        call = Call("helper", (self.expr(INT32, scope), self.expr(FLOAT32, scope)), INT32)
        scope.variables.append(Local(name, INT32))
        return [Declare(name, INT32), CallStatement(call, name)]

    # --- expressions ---------------------------------------------------------------------------------------------

    def expr(self, dtype: DType, scope: Scope, depth: int = 3) -> Expr:
        known = [v for v in scope.variables if v.type == dtype]
        if depth == 0 or self.random.random() < 0.25:
            if known and self.random.random() < 0.8:
                return self.random.choice(known)
            value = self.random.randint(-3, 9) if dtype != BOOL else self.random.random() < 0.5
            return const(value, dtype)
        if dtype == BOOL:
            return self.condition(scope, depth - 1)
        if self.random.random() < 0.15:
            arms = (self.expr(dtype, scope, depth - 1), self.expr(dtype, scope, depth - 1))
            return apply("where", self.expr(BOOL, scope, depth - 1), *arms)
        if dtype == FLOAT32:
            return self.real(scope, depth - 1)
        return self.integer(scope, depth - 1)

    def condition(self, scope: Scope, depth: int) -> Expr:
        if self.random.random() < 0.3:
            op = self.random.choice(["logical_and", "logical_or"])
            return apply(op, self.expr(BOOL, scope, depth), self.expr(BOOL, scope, depth))
        dtype = self.random.choice([INT32, FLOAT32])
        op = self.random.choice(["less", "greater_equal", "equal"])
        return apply(op, self.expr(dtype, scope, depth), self.expr(dtype, scope, depth))

    def real(self, scope: Scope, depth: int) -> Expr:
        if self.random.random() < 0.2:
            return convert(self.expr(INT32, scope, depth), FLOAT32)
        op = self.random.choice(["add", "subtract", "multiply"])
        return apply(op, self.expr(FLOAT32, scope, depth), self.expr(FLOAT32, scope, depth))

    def integer(self, scope: Scope, depth: int) -> Expr:
        kind = self.random.random()
        if kind < 0.12:
            index = convert(apply("bitwise_and", self.expr(INT32, scope, depth), const(RAW_SIZE - 1, INT32)), INT64)
            return Load(at("A", INT32, index), INT32)
        if kind < 0.2 and scope.arrays:
            return Load(self.array_place(scope), INT32)
        if kind < 0.28 and not self.in_function:
            return convert(POSITION, INT32)
        if kind < 0.34:
            return convert(self.expr(FLOAT32, scope, depth), INT32)
        if kind < 0.42 and self.functions and not self.in_function:
            return Call("helper", (self.expr(INT32, scope, depth), self.expr(FLOAT32, scope, depth)), INT32)
        op = self.random.choice(["add", "subtract", "multiply", "quotient", "modulo", "bitwise_xor", "right_shift"])
        return apply(op, self.expr(INT32, scope, depth), self.expr(INT32, scope, depth))
