"""Expressions to typed values."""

from __future__ import annotations

from collections.abc import Callable

from fusec.base import dtypes
from fusec.base.dtypes import BOOL, DType
from fusec.base.source import Span
from fusec.errors.base import FusecError
from fusec.errors.language import ArgumentCount, NotAValue, UnknownMember
from fusec.errors.python import NotInSubset
from fusec.frontends.lowering import CallSite
from fusec.frontends.python import arithmetic, arrays, blocks, calls, sequences
from fusec.frontends.python import syntax as s
from fusec.frontends.python.compound import TUPLES, Compound, compound
from fusec.frontends.python.dtype_calls import cast, dtype_named, has_dtype_argument, in_dtype
from fusec.frontends.python.function_context import FunctionContext
from fusec.frontends.python.functions import FUNCTIONS, MATH, PLAIN, part
from fusec.frontends.python.kernel_context import Other
from fusec.frontends.python.name_usage import dotted_name
from fusec.frontends.python.names import attribute_of, lookup, unusable
from fusec.frontends.python.types import (
    PY_BOOL,
    PY_COMPLEX,
    PY_FLOAT,
    PY_INT,
    Kind,
    PythonType,
    carrier,
    is_complex,
    storage,
)
from fusec.frontends.python.values import (
    Absent,
    Array,
    Builtin,
    Closure,
    Flat,
    Intrinsic,
    Items,
    LocalStore,
    Method,
    Module,
    Neighbours,
    Scalar,
    Table,
    Type,
    UserFunction,
    Value,
    converted,
    literal,
    placed,
    show,
)
from fusec.ir.expr import Expr, apply

Operate = Callable[[str, Scalar, Scalar, Span], Scalar]
Call = Callable[[s.CallNode], Value]
METHODS = {"conjugate": "conj", "conj": "conj", "item": "item", "astype": "astype", "is_integer": "is_integer"}


class PythonExpressions:
    """Lowers the expressions of a function."""

    def __init__(
        self, context: FunctionContext, operate: Operate = arithmetic.binary, call: Call | None = None
    ) -> None:
        self.context = context
        self.operate = operate  # what a binary operator means
        self.call = call or self._call  # what a call means
        context.value = self.value

    def value(self, node: s.Expression) -> Value:
        """The value of any expression."""
        if isinstance(node, s.Binary):
            return self._binary(node)
        with self.context.kernel.nested("expressions", node.span):
            try:
                found = self._value(node)
            except FusecError as problem:
                raise placed(problem, node.span) from None
        if isinstance(found, Scalar) and found.literal is None and found.uses is None:
            return Scalar(found.type, self.context.bounded(found.expr))
        return found

    def _value(self, node: s.Expression) -> Value:
        match node:
            case s.Name(name=name):
                return lookup(self.context, name, node.span)
            case s.Number(value=number):
                return literal(number)
            case s.Constant(value=value):
                return Absent() if value is None else literal(value)
            case s.String():
                number = node.text.strip("'\"").lstrip("+-").lower() in ("nan", "inf", "infinity")
                cure = "write math.nan or math.inf" if number else "only docstrings and annotations are strings"
                raise NotInSubset("a string is", cure).at(node.span)
            case s.Tuple(items=items):
                return Items(tuple(self.value(item) for item in items))
            case s.Prefix(op=op, operand=operand):
                return arithmetic.prefix(op, self.context.scalar(operand), node.span)
            case s.Compare():
                return self._compare(node)
            case s.Junction():
                return self._junction(node)
            case s.Choose(condition=condition, then=then, orelse=orelse):
                test = self.context.test(condition)
                return self._chosen(test, (self.value(then), then), (self.value(orelse), orelse), node.span)
            case s.CallNode():
                return self.call(node)
            case s.Index():
                return self._index(node)
            case s.Attribute():
                return self._attribute(node)
            case s.Binary():
                return self._binary(node)

    def _chosen(
        self, test: Expr, then: tuple[Value, s.Expression], orelse: tuple[Value, s.Expression], span: Span
    ) -> Value:
        """One of two values: numbers, or tuples of as many."""
        (first, node), (second, other) = then, orelse
        if isinstance(first, Items) and isinstance(second, Items) and len(first.items) == len(second.items):
            pairs = zip(first.items, second.items, strict=True)
            return Items(tuple(self._chosen(test, (a, node), (b, other), span) for a, b in pairs))
        return arithmetic.choose(test, self.context.number(first, node), self.context.number(second, other), span)

    def _binary(self, node: s.Binary) -> Scalar:
        """A chain of operators; a long flat one is no nesting."""
        chain: list[s.Binary] = []
        left: s.Expression = node
        while isinstance(left, s.Binary):
            chain.append(left)
            left = left.left
        found = self.context.scalar(left)
        for each in reversed(chain):
            with self.context.kernel.nested("expressions", each.place):
                right = self.context.scalar(each.right)
            found = self.operate(each.op, found, right, each.place)
            if found.literal is None and found.uses is None:
                found = Scalar(found.type, self.context.bounded(found.expr))
        return found

    def _compare(self, node: s.Compare) -> Scalar:
        first = self.value(node.first)
        if isinstance(first, Type):
            return self._same_type(first.kind, node)
        left = self.context.number(first, node.first)
        found: Scalar | None = None
        for op, operand in node.rest:
            right = self.context.scalar(operand)
            answer = arithmetic.binary(op, left, right, operand.span)
            found = answer if found is None else self._both(found, answer)
            left = right
        assert found is not None, "a comparison has an operator"
        return found

    def _same_type(self, kind: Kind, node: s.Compare) -> Scalar:
        """``x.dtype == np.float32``, known when the kernel is compiled."""
        (op, other), *more = node.rest
        wanted = self._dtype_of(other)
        if more or op not in ("==", "!=") or wanted is None:
            raise NotAValue(show(Type(kind)), "dtypes compare with one dtype: x.dtype == np.float32").at(node.span)
        return literal((storage(kind) == wanted) == (op == "=="))

    def _both(self, left: Scalar, right: Scalar) -> Scalar:
        kind = right.type if left.type == right.type else BOOL
        return Scalar(kind, apply("logical_and", arithmetic.condition(left), arithmetic.condition(right)))

    def _junction(self, node: s.Junction) -> Scalar:
        """``and`` and ``or``, whose value is that of one of the operands."""
        left, right = self.context.scalar(node.left), self.context.scalar(node.right)
        test = arithmetic.condition(left)
        if left.literal is not None:
            return right if bool(left.literal) == (node.op == "and") else left
        if left.type == right.type and left.type in (BOOL, PY_BOOL):
            return Scalar(left.type, apply(f"logical_{node.op}", left.read(), right.read()))
        first, second = (right, left) if node.op == "and" else (left, right)
        return arithmetic.choose(test, first, second, node.span)

    # --- attributes and parts ---

    def _attribute(self, node: s.Attribute) -> Value:
        dotted = dotted_name(node)
        if dotted is not None and dotted.partition(".")[0] not in self.context.variables:
            found = self.context.captured(dotted)
            if isinstance(found, Other):
                raise unusable(dotted, found, node.span)
            if found is not None:
                return found
        owner = self.value(node.value)
        if isinstance(owner, Neighbours):
            owner = self.context.neighbourhood.element(owner, (), node.value.span)
        if isinstance(owner, (Array, Flat, LocalStore)):
            return arrays.fact_of(owner, node)
        if isinstance(owner, Table):
            known = sequences.fact(owner, node.name)
            if known is not None:
                return known
        match owner, node.name:
            case Module(), _:
                return attribute_of(owner, node)
            case Scalar(), "real" | "imag":
                return part(node.name, owner)
            case Scalar(type=kind) | Table(kind=kind), "dtype":
                return Type(kind)
            case Type(), "type":
                return owner
            case Scalar(), name if name in METHODS:
                return Method(owner, name)
        cure = "numbers have .real, .imag, .dtype, .conjugate() and .astype(dtype)"
        if isinstance(owner, Table):
            cure = "arrays have .shape, .size, .ndim and .dtype here; compute others before, and use the result"
        raise UnknownMember(show(owner), node.name, cure).at(node.span)

    def _index(self, node: s.Index) -> Value:
        owner = self.value(node.value)
        if isinstance(owner, Neighbours):
            return self.context.neighbourhood.element(
                owner, self.context.neighbourhood.offsets_of(node.index), node.index.span
            )
        if isinstance(owner, (Array, Flat, LocalStore)):
            return arrays.item_of(self.context, owner, node)
        if not isinstance(owner, (Items, Table)):
            cure = "a kernel computes one element, so a name stands for one number; fusec.stencil reads neighbours"
            raise NotInSubset(f"an index into {show(owner)} is", cure).at(node.span)
        parts = node.index.items if isinstance(node.index, s.Tuple) else (node.index,)
        found = [(each, part) for part in parts for each in self._indices(self.value(part))]
        return sequences.item(owner, [self.context.number(each, part) for each, part in found], node.index.span)

    def _indices(self, found: Value) -> tuple[Value, ...]:
        return found.items if isinstance(found, Items) else (found,)

    # --- calls ---

    def _call(self, node: s.CallNode) -> Value:
        if isinstance(node.callee, s.Name) and node.callee.name == "len" and len(node.args) == 1:
            owner = self.value(node.args[0])
            if isinstance(owner, (Array, LocalStore)):
                return arrays.shape_of(owner).items[0]
            found = sequences.sequence_of(owner, node.span)
            if found is not None:
                return literal(found.length)
        callee = self.value(node.callee)
        match callee:
            case Builtin():
                return self._builtin(callee, node)
            case Type(kind=kind):
                return conversion(self.context, kind, node)
            case Method():
                return self._method(callee, node)
            case UserFunction():
                return calls.user_call(self.context, callee, node)
            case Closure():
                return calls.closure_call(self.context, callee, node)
            case Intrinsic():
                return blocks.intrinsic(self.context, callee, node)
        raise NotAValue(f"calling {show(callee)}", "only functions are called").at(node.callee.span)

    def _builtin(self, callee: Builtin, node: s.CallNode) -> Value:
        if callee.name == "dtype":
            return self._dtype(node)
        made = compound(callee.name, callee.python)
        if made is not None:
            return made.make(CallSite(callee.name, node.span), self._arguments_of(made, callee.name, node))
        wanted = None
        for each in node.keywords:
            if each.name == "dtype" and has_dtype_argument(callee.name) and not callee.python:
                wanted = self._dtype_given(each)
                continue
            cure = (
                "pass it to the call of the kernel" if each.name == "out" else "leave it out; arguments go by position"
            )
            raise NotInSubset(f"the argument '{each.name}=' of '{callee.name}' is", cure).at(each.span)
        site = CallSite(callee.name, node.span)
        if callee.name == "astype":
            raise NotInSubset("'astype' like this is", "write x.astype(dtype)").at(node.span)
        table = {**MATH, **PLAIN} if callee.python else FUNCTIONS
        known = table.get(callee.name) or FUNCTIONS[callee.name]
        args = self._items_of(node.args[0]) if callee.name in ("min", "max") and len(node.args) == 1 else None
        args = [self.context.scalar(arg) for arg in node.args] if args is None else args
        return known.call(site, args) if wanted is None else in_dtype(known, site, args, wanted)

    def _items_of(self, node: s.Expression) -> list[Scalar] | None:
        """The numbers of a tuple or a table; None for anything else."""
        found = sequences.parts_of(self.value(node), node.span)
        return None if found is None else [self.context.number(each, node) for each in found]

    def _arguments_of(self, made: Compound, name: str, node: s.CallNode) -> dict[str, Value]:
        """The arguments of a function that takes them by name too. Raises ArgumentCount or NotInSubset."""
        given: dict[str, Value] = {}
        named = [(each.name, each.value, each.span) for each in node.keywords]
        placed = [(param, each, each.span) for param, each in zip(made.params[: made.first], node.args, strict=False)]
        for param, value, span in (*placed, *named):
            if param not in made.params or param in given:
                cure = f"its parameters are: {', '.join(made.params)}"
                raise NotInSubset(f"the argument '{param}=' of '{name}' {'twice ' * (param in given)}is", cure).at(span)
            found = self.value(value)
            given[param] = found if param in TUPLES or isinstance(found, Absent) else self.context.number(found, value)
        missing = [param for param in made.params[: made.least] if isinstance(given.get(param, Absent()), Absent)]
        if missing or len(node.args) > made.first:
            expected = str(made.least) if made.least == made.first else f"{made.least} to {made.first}"
            cure = f"its parameters are: {', '.join(made.params)}"
            raise ArgumentCount(name, expected, len(node.args), cure).at(node.span)
        return given

    def _dtype(self, node: s.CallNode) -> Type:
        """``np.dtype("f")``, of a name, a dtype or a type."""
        found = self._dtype_of(node.args[0]) if len(node.args) == 1 and not node.keywords else None
        if found is None:
            raise NotAValue("this", "np.dtype takes one name or type, e.g. np.dtype('float32')").at(node.span)
        return Type(found)

    def _dtype_given(self, keyword: s.Keyword) -> DType | None:
        """What ``dtype=`` asks for; None if that is None."""
        found = self._dtype_of(keyword.value)
        if found is None and not isinstance(self.value(keyword.value), Absent):
            raise NotAValue("this", "write dtype=np.float32, with a dtype").at(keyword.span)
        return found

    def _dtype_of(self, node: s.Expression) -> DType | None:
        """The dtype that an expression is, or names; None if it is none."""
        kind = self._kind_of(node)
        return None if kind is None else storage(kind)

    def _kind_of(self, node: s.Expression) -> Kind | None:
        if isinstance(node, s.String):
            return dtype_named(node)
        found = self.value(node)
        return found.kind if isinstance(found, Type) else None

    def _method(self, callee: Method, node: s.CallNode) -> Scalar:
        name = METHODS[callee.name]
        if name == "astype":
            kind = self._kind_of(node.args[0]) if len(node.args) == 1 else None
            if kind is None:
                raise NotAValue("this", "write x.astype(np.float32), with a dtype").at(node.span)
            return cast(callee.owner, kind, node.span)
        if node.args:
            raise ArgumentCount(callee.name, "0", len(node.args), "it takes none").at(node.span)
        if name == "conj":
            return part("conj", callee.owner)
        if name == "is_integer":
            value = callee.owner.read()
            return Scalar(PY_BOOL, apply("equal", value, apply("floor", value)))
        return self._item(callee.owner)

    def _item(self, value: Scalar) -> Scalar:
        """``x.item()``: the Python number of the same sort."""
        dtype = carrier(value.type)
        kind = {"bool": PY_BOOL, "float": PY_FLOAT, "complex": PY_COMPLEX}.get(dtype.kind, PY_INT)
        return Scalar(kind, converted(value.read(), kind.dtype))


def conversion(context: FunctionContext, kind: Kind, node: s.CallNode) -> Scalar:
    """``np.float32(x)``, ``int(x)``, ``complex(x, y)``; without an argument, zero."""
    if node.keywords:
        raise NotInSubset(f"the argument '{node.keywords[0].name}=' of a type is", "pass one value").at(node.span)
    args = [context.scalar(arg) for arg in node.args]
    if not args:
        return cast(literal(0), kind, node.span)
    if len(args) == 2 and is_complex(kind):
        part_type = dtypes.real_type(carrier(kind))
        real, imag = (cast(arg, part_type, node.span).read() for arg in args)
        return Scalar(kind, apply("complex", real, imag))
    if len(args) != 1:
        name = kind.name if isinstance(kind, PythonType) else str(kind)
        raise ArgumentCount(name, "1", len(args), "convert one value").at(node.span)
    return cast(args[0], kind, node.span)
