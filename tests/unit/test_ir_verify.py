"""The checker names the statement and the rule that is broken."""

import pytest

from fusec.base.dtypes import BOOL, COMPLEX64, FLOAT16, FLOAT32, FLOAT64, INT32, INT64, UINT32
from fusec.ir.expr import Apply, Const, Expr, Pointer, Struct, apply, const, convert
from fusec.ir.graph import Input, KernelGraph
from fusec.ir.loops import (
    ArrayParam,
    Assign,
    At,
    Atomic,
    AtomicLoad,
    AtomicStore,
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
from fusec.ir.verify import EXPRESSION_DEPTH, STATEMENT_DEPTH, verify, verify_graph

ONE, TRUE = const(1.0, FLOAT32), const(True, BOOL)
X, H = Pointer(FLOAT32, "global"), Pointer(INT32, "global")
PARAMS = (
    ScalarParam("a", FLOAT32),
    ArrayParam("x", FLOAT32),
    ArrayParam("z", FLOAT32, written=True, read=False),
    ArrayParam("h", INT32, raw=True, written=True, ndim=2),
)
PAIR = Struct("pair", (("u", FLOAT32), ("v", INT32)))
TWICE = Function("twice", (("p", FLOAT32),), FLOAT32, (Return(apply("add", Local("p", FLOAT32), ONE)),))
ZERO = const(0, INT64)


def kernel(*body: Stmt, functions: tuple[Function, ...] = (TWICE,)) -> Program:
    return Program("k", PARAMS, body, functions)


def declared(value: Expr, kind=FLOAT32) -> Declare:
    return Declare("y", kind, value)


GOOD = kernel(
    Declare("y", FLOAT32, Load(Element("x", X), FLOAT32)),
    DeclareArray("t", FLOAT32, 2, (ONE,)),
    Declare("s", PAIR, Make((ONE, const(1, INT32)), PAIR)),
    SetField("s", "u", Local("a", FLOAT32)),
    While(TRUE, (If(apply("less", Local("y", FLOAT32), ONE), (Break(),), (Continue(),)),)),
    Assign("y", Call("twice", (Field(Local("s", PAIR), "u", FLOAT32),), FLOAT32)),
    Store(Offset(LocalArray("t", Pointer(FLOAT32, "local")), ZERO, Pointer(FLOAT32, "local")), ONE),
    Atomic("add", At("h", (ZERO, Query("h", "shape", ZERO, INT64)), H), (const(1, INT32),)),
    Declare("n", INT32),
    AtomicLoad("n", At("h", (ZERO,), H)),
    AtomicStore(At("h", (ZERO,), H), Local("n", INT32)),
    Store(Element("z", X), Local("y", FLOAT32)),
)


def test_a_good_program_passes() -> None:
    verify(GOOD)
    verify(GOOD, primitive=True)


def deep(levels: int) -> Expr:
    value: Expr = Local("a", FLOAT32)
    for _ in range(levels):
        value = apply("negative", value)
    return value


def nested(levels: int) -> tuple[Stmt, ...]:
    body: tuple[Stmt, ...] = ()
    for _ in range(levels):
        body = (If(TRUE, body),)
    return body


RECURSIVE = Function("f", (), FLOAT32, (Return(Call("f", (), FLOAT32)),))
BAD = {
    "add of (float32, float64)": (declared(Apply("add", (ONE, const(1, FLOAT64)), FLOAT32)),),
    "sqrt takes 1 operands": (declared(Apply("sqrt", (ONE, ONE), FLOAT32)),),
    "unknown op frob": (declared(Apply("frob", (ONE,), FLOAT32)),),
    "less of (float32, float32) is not float32": (declared(Apply("less", (ONE, ONE), FLOAT32)),),
    "bitwise_and of (float32, float32)": (declared(Apply("bitwise_and", (ONE, ONE), FLOAT32)),),
    "add of the storage type": (declared(apply("add", *[const(1, FLOAT16)] * 2), FLOAT16),),
    "where of (float32": (declared(Apply("where", (ONE, ONE, ONE), FLOAT32)),),
    "bitcast of float32 to float64": (declared(Apply("bitcast", (ONE,), FLOAT64), FLOAT64),),
    "a bool constant is 0 or 1": (declared(Const(2, BOOL), BOOL),),
    "does not fit float32": (declared(Const(1 << 32, FLOAT32)),),
    "y is float32, its value is not": (declared(const(1, INT32)),),
    "q read as float32, declared None": (declared(Local("q", FLOAT32)),),
    "a read as int32, declared float32": (declared(Local("a", INT32), INT32),),
    "y is declared twice": (Declare("y", FLOAT32), If(TRUE, (Declare("y", FLOAT32),))),
    "inner read as float32, declared None": (If(TRUE, (Declare("inner", FLOAT32),)), declared(Local("inner", FLOAT32))),
    "a is float32, its new value is int32": (Assign("a", const(1, INT32)),),
    "q is not declared": (Assign("q", ONE),),
    "x is no output": (Store(Element("x", X), ONE),),
    "a int32 stored to": (Store(Element("z", X), const(1, INT32)),),
    "is constant": (Store(Element("z", Pointer(FLOAT32, "global", True)), ONE),),
    "h is raw": (declared(Load(Element("h", H), INT32), INT32),),
    "x is not raw": (declared(Load(At("x", (ZERO,), X), FLOAT32)),),
    "h has other axes": (declared(Load(At("h", (ZERO,) * 3, H), INT32), INT32),),
    "an index of h is not int64": (declared(Load(At("h", (const(0, INT32),), H), INT32), INT32),),
    "m is no array parameter here": (declared(Load(Element("m", X), FLOAT32)),),
    "a int32 loaded from": (declared(Load(Element("x", X), INT32), INT32),),
    "the condition is float32": (If(ONE, ()),),
    "statement 0 at depth 0 (Break, line 5): outside a loop": (Break(line=5),),
    "outside a loop": (While(TRUE, (), (Continue(),)),),
    "returns float32, declared None": (Return(ONE),),
    "twice takes [float32], got [int32]": (declared(Call("twice", (const(1, INT32),), FLOAT32)),),
    "function f is not defined before its use": (declared(Call("f", (), FLOAT32)),),
    "twice is not int32": (declared(Call("twice", (ONE,), INT32), INT32),),
    "axis of shape": (declared(Query("h", "shape", None, INT64), INT64),),
    "x is no raw array": (declared(Query("x", "size", None, INT64), INT64),),
    "belongs to the iteration space": (declared(Query("h", "index", None, INT64), INT64),),
    "the iteration space has no strides": (declared(Query("", "stride", ZERO, INT64), INT64),),
    "an atomic load of float32": (Declare("y", FLOAT32), AtomicLoad("y", Element("z", X))),
    "an atomic store of float32": (AtomicStore(Element("z", X), ONE),),
    "a float32 stored to": (AtomicStore(At("h", (ZERO,), H), ONE),),
    "compare_exchange takes 2 operands": (Atomic("compare_exchange", At("h", (ZERO,), H), (const(1, INT32),)),),
    "an operand of add is not int32": (Atomic("add", At("h", (ZERO,), H), (ONE,)),),
    "q is not declared ": (CallStatement(Call("twice", (ONE,), FLOAT32), "q"),),
    "3 values for 2 elements of t": (DeclareArray("t", FLOAT32, 2, (ONE, ONE, ONE)),),
    "a value of t is not int32": (DeclareArray("t", INT32, 2, (ONE,)),),
    "which has no float32 w": (Declare("s", PAIR), SetField("s", "w", ONE)),
    "wrong values for": (declared(Make((ONE, ONE), PAIR), PAIR),),
    "an expression is more than": (declared(deep(EXPRESSION_DEPTH)),),
    "nested more than": nested(STATEMENT_DEPTH + 2),
    "expected a scalar": (Declare("s", PAIR), declared(Apply("negative", (Local("s", PAIR),), FLOAT32))),
}  # fmt: skip


@pytest.mark.parametrize("reason", BAD)
def test_a_broken_rule_is_named(reason: str) -> None:
    with pytest.raises(AssertionError) as caught:
        verify(kernel(*BAD[reason]))
    assert reason.strip() in str(caught.value)


def test_functions_cannot_recurse() -> None:
    with pytest.raises(AssertionError, match="f is not defined before its use"):
        verify(kernel(functions=(RECURSIVE,)))


def test_parameters_have_names_of_their_own_and_sensible_marks() -> None:
    with pytest.raises(AssertionError, match="two parameters of k share a name"):
        verify(Program("k", (ScalarParam("a", INT32), ArrayParam("a", INT32)), ()))
    with pytest.raises(AssertionError, match="a is neither read nor written"):
        verify(Program("k", (ArrayParam("a", INT32, read=False),), ()))
    with pytest.raises(AssertionError, match="a is not raw"):
        verify(Program("k", (ArrayParam("a", INT32, ndim=1),), ()))


@pytest.mark.parametrize(
    "value",
    [
        apply("exp", ONE),
        convert(apply("add", *[const(1, COMPLEX64)] * 2), COMPLEX64),
        convert(const(1, COMPLEX64), FLOAT32),
    ],
)
def test_code_generators_are_promised_primitive_ops_only(value: Expr) -> None:
    program = Program("k", (), (Declare("y", value.type, value),))
    verify(program)
    with pytest.raises(AssertionError, match="is not primitive"):
        verify(program, primitive=True)


def test_graphs_are_checked() -> None:
    x = Input("x", FLOAT32)
    verify_graph(KernelGraph("g", (x,), (("z", apply("exp", x)),)))
    for value, reason in [
        (Input("y", FLOAT32), "output z of g: y is not an input"),
        (Apply("add", (x, const(1, UINT32)), FLOAT32), "add of"),
        (apply("negative", Local("x", FLOAT32)), "Local is no node of a graph"),
    ]:
        with pytest.raises(AssertionError, match=reason):
            verify_graph(KernelGraph("g", (x,), (("z", value),)))
    with pytest.raises(AssertionError, match="two outputs"):
        verify_graph(KernelGraph("g", (x,), (("z", x), ("z", x))))
    with pytest.raises(AssertionError, match="two inputs"):
        verify_graph(KernelGraph("g", (x, x), ()))
