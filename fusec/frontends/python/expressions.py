"""Expressions to typed values."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from fusec.base import dtypes
from fusec.base.dtypes import BOOL, DType
from fusec.base.source import Span
from fusec.errors.base import FusecError
from fusec.errors.language import ArgumentCount, NotAValue, UnknownMember
from fusec.errors.python import NotInSubset
from fusec.frontends.lowering import CallSite
from fusec.frontends.python import arithmetic, arrays, blocks, calls, sequences
from fusec.frontends.python import syntax as s
from fusec.frontends.python import types as t
from fusec.frontends.python import values as v
from fusec.frontends.python.compound import OPTIONAL, TUPLES, Compound, compound
from fusec.frontends.python.dtype_calls import cast, dtype_named, has_dtype_argument, in_dtype
from fusec.frontends.python.function_context import FunctionContext
from fusec.frontends.python.functions import FUNCTIONS, MATH, PLAIN, part
from fusec.frontends.python.kernel_context import Other
from fusec.frontends.python.name_usage import called, dotted_name
from fusec.frontends.python.names import attribute_of, lookup, unusable
from fusec.ir.expr import Expr, apply

Operate = Callable[[str, v.Scalar, v.Scalar, Span], v.Scalar]
Call = Callable[[s.CallNode], v.Value]


class PythonExpressions:
    """Lowers the expressions of a function."""

    def __init__(
        self, context: FunctionContext, operate: Operate = arithmetic.binary, call: Call | None = None
    ) -> None:
        self.context = context
        self.operate = operate  # what a binary operator means
        self.call = call or self._call  # what a call means
        context.value = self.value

    def value(self, node: s.Expression) -> v.Value:
        """The value of any expression."""
        if isinstance(node, s.Binary):
            return self._binary(node)
        with self.context.kernel.nested("expressions", node.span):
            try:
                found = self._value(node)
            except FusecError as problem:
                raise v.placed(problem, node.span) from None
        if isinstance(found, v.Scalar) and found.literal is None and found.uses is None:
            return v.Scalar(found.type, self.context.bounded(found.expr))
        return found

    def _value(self, node: s.Expression) -> v.Value:
        match node:
            case s.Name(name=name):
                return lookup(self.context, name, node.span)
            case s.Number(value=number):
                return v.literal(number)
            case s.Constant(value=value):
                return v.Absent() if value is None else v.literal(value)
            case s.String():
                number = node.text.strip("'\"").lstrip("+-").lower() in ("nan", "inf", "infinity")
                cure = "write math.nan or math.inf" if number else "only docstrings and annotations are strings"
                raise NotInSubset("a string is", cure).at(node.span)
            case s.Tuple(items=items):
                return v.Items(tuple(self.value(item) for item in items))
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
        raise AssertionError(f"{type(node).__name__} is handled elsewhere")

    def _chosen(
        self, test: Expr, then: tuple[v.Value, s.Expression], orelse: tuple[v.Value, s.Expression], span: Span
    ) -> v.Value:
        """One of two values: numbers, or tuples of as many."""
        (first, node), (second, other) = then, orelse
        if isinstance(first, v.Items) and isinstance(second, v.Items) and len(first.items) == len(second.items):
            pairs = zip(first.items, second.items, strict=True)
            return v.Items(tuple(self._chosen(test, (a, node), (b, other), span) for a, b in pairs))
        return arithmetic.choose(test, self.context.number(first, node), self.context.number(second, other), span)

    def _binary(self, node: s.Binary) -> v.Scalar:
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
                found = v.Scalar(found.type, self.context.bounded(found.expr))
        return found

    def _compare(self, node: s.Compare) -> v.Scalar:
        first = self.value(node.first)
        if isinstance(first, v.Type):
            return self._same_type(first.kind, node)
        left = self.context.number(first, node.first)
        found: v.Scalar | None = None
        for op, operand in node.rest:
            right = self.context.scalar(operand)
            answer = arithmetic.binary(op, left, right, operand.span)
            found = answer if found is None else self._both(found, answer)
            left = right
        assert found is not None, "a comparison has an operator"
        return found

    def _same_type(self, kind: t.Kind, node: s.Compare) -> v.Scalar:
        """``x.dtype == np.float32``, known when the kernel is compiled."""
        (op, other), *more = node.rest
        wanted = self._dtype_of(other)
        if more or op not in ("==", "!=") or wanted is None:
            raise NotAValue(v.show(v.Type(kind)), "dtypes compare with one dtype: x.dtype == np.float32").at(node.span)
        return v.literal((t.storage(kind) == wanted) == (op == "=="))

    def _both(self, left: v.Scalar, right: v.Scalar) -> v.Scalar:
        kind = right.type if left.type == right.type else BOOL
        return v.Scalar(kind, apply("logical_and", arithmetic.condition(left), arithmetic.condition(right)))

    def _junction(self, node: s.Junction) -> v.Scalar:
        """``and`` and ``or``, whose value is that of one of the operands."""
        left, right = self.context.scalar(node.left), self.context.scalar(node.right)
        test = arithmetic.condition(left)
        if left.literal is not None:
            return right if bool(left.literal) == (node.op == "and") else left
        if left.type == right.type and left.type in (BOOL, t.PY_BOOL):
            return v.Scalar(left.type, apply(f"logical_{node.op}", left.read(), right.read()))
        first, second = (right, left) if node.op == "and" else (left, right)
        return arithmetic.choose(test, first, second, node.span)

    # --- attributes and parts ---

    def _attribute(self, node: s.Attribute) -> v.Value:
        dotted = dotted_name(node)
        if dotted is not None and dotted.partition(".")[0] not in self.context.variables:
            found = self.context.captured(dotted)
            if isinstance(found, Other):
                raise unusable(dotted, found, node.span)
            if found is not None:
                return found
        owner = self.context.element(self.value(node.value), node.value.span)
        if isinstance(owner, v.ArrayParameter):
            return arrays.fact_of(owner, node)
        if isinstance(owner, v.Table):
            return sequences.fact_of(owner, node)
        match owner, node.name:
            case v.Module(), _:
                return attribute_of(owner, node)
            case v.Scalar(), "real" | "imag":
                return part(node.name, owner)
            case v.Scalar(type=kind), "dtype":
                return v.Type(kind)
            case v.Type(), "type":
                return owner
            case v.Scalar(), name if name in METHODS or name == "astype":
                return v.Method(owner, name)
        cure = "numbers have .real, .imag, .dtype, .conjugate() and .astype(dtype)"
        if hasattr(np.ndarray, node.name):
            cure = "the function sees one element; a function of whole arrays takes @fusec.fuse"
        raise UnknownMember(v.show(owner), node.name, cure).at(node.span)

    def _index(self, node: s.Index) -> v.Value:
        owner = self.value(node.value)
        if isinstance(owner, v.Neighbours):
            offsets = self.context.neighbourhood.offsets_of(node.index)
            return self.context.neighbourhood.element(owner, offsets, node.index.span)
        if isinstance(owner, v.ArrayParameter):
            return arrays.item_of(self.context, owner, node)
        if not isinstance(owner, (v.Items, v.Table)):
            cure = "a kernel computes one element, so a name stands for one number; fusec.stencil reads neighbours"
            raise NotInSubset(f"an index into {v.show(owner)} is", cure).at(node.span)
        return sequences.item(owner, self.context.indices(node.index), node.index.span)

    # --- calls ---

    def _call(self, node: s.CallNode) -> v.Value:
        if called(node) == "len" and len(node.args) == 1:
            owner = self.value(node.args[0])
            if isinstance(owner, v.ArrayParameter) and not owner.is_flat:
                return arrays.length_of(owner)
            found = sequences.sequence_of(owner, node.span)
            if found is not None:
                return v.literal(found.length)
        callee = self.value(node.callee)
        match callee:
            case v.Builtin():
                return self._builtin(callee, node)
            case v.Type(kind=kind):
                return conversion(self.context, kind, node)
            case v.Method():
                return self._method(callee, node)
            case v.UserFunction():
                return calls.user_call(self.context, callee, node)
            case v.Closure():
                return calls.closure_call(self.context, callee, node)
            case v.Intrinsic():
                return blocks.intrinsic(self.context, callee, node)
        raise NotAValue(f"calling {v.show(callee)}", "only functions are called").at(node.callee.span)

    def _builtin(self, callee: v.Builtin, node: s.CallNode) -> v.Value:
        if callee.name == "dtype":
            return self._dtype(node)
        made = compound(callee.name, callee.python)
        if made is not None:
            return made.make(CallSite(callee.name, node.span), **self._arguments_of(made, callee.name, node))
        wanted = None
        for each in node.keywords:
            if each.name == "dtype" and has_dtype_argument(callee.name) and not callee.python:
                wanted = self._dtype_given(each)
                continue
            cure = "leave it out; arguments go by position"
            cure = "pass it to the call of the kernel" if each.name == "out" else cure
            raise NotInSubset(f"the argument '{each.name}=' of '{callee.name}' is", cure).at(each.span)
        site = CallSite(callee.name, node.span)
        table = {**MATH, **PLAIN} if callee.python else FUNCTIONS
        known = table.get(callee.name) or FUNCTIONS[callee.name]
        args = self._items_of(node.args[0]) if callee.name in ("min", "max") and len(node.args) == 1 else None
        args = [self.context.scalar(arg) for arg in node.args] if args is None else args
        return known.call(site, args) if wanted is None else in_dtype(known, site, args, wanted)

    def _items_of(self, node: s.Expression) -> list[v.Scalar] | None:
        """The numbers of a tuple or a table; None for anything else."""
        found = sequences.parts_of(self.value(node), node.span)
        return None if found is None else [self.context.number(each, node) for each in found]

    def _arguments_of(self, made: Compound, name: str, node: s.CallNode) -> dict[str, v.Value]:
        """The arguments of a function that takes them by name too. Raises ArgumentCount or NotInSubset."""
        given: dict[str, v.Value] = {}
        cure = f"its parameters are: {', '.join(made.params)}"
        placed = [(param, each, each.span) for param, each in zip(made.params[: made.first], node.args, strict=False)]
        for param, value, span in (*placed, *((each.name, each.value, each.span) for each in node.keywords)):
            if param not in made.params or param in given:
                raise NotInSubset(f"the argument '{param}=' of '{name}' {'twice ' * (param in given)}is", cure).at(span)
            found = self.value(value)
            is_number = param not in TUPLES and not isinstance(found, v.Absent)
            given[param] = self.context.number(found, value) if is_number else found
        missing = [param for param in made.params[: made.least] if isinstance(given.get(param, v.Absent()), v.Absent)]
        if missing or len(node.args) > made.first:
            expected = str(made.least) if made.least == made.first else f"{made.least} to {made.first}"
            raise ArgumentCount(name, expected, len(node.args), cure).at(node.span)
        wrong = next((each for each in given if isinstance(given[each], v.Absent) and each not in OPTIONAL), None)
        if wrong is not None:
            raise CallSite(name, node.span).refuse(f"{wrong}=None", "pass a number")
        return given

    def _dtype(self, node: s.CallNode) -> v.Type:
        """``np.dtype("f")``, of a name, a dtype or a type."""
        found = self._dtype_of(node.args[0]) if len(node.args) == 1 and not node.keywords else None
        if found is None:
            raise NotAValue("this", "np.dtype takes one name or type, e.g. np.dtype('float32')").at(node.span)
        return v.Type(found)

    def _dtype_given(self, keyword: s.Keyword) -> DType | None:
        """What ``dtype=`` asks for; None if that is None."""
        found = self._dtype_of(keyword.value)
        if found is None and not isinstance(self.value(keyword.value), v.Absent):
            raise NotAValue("this", "write dtype=np.float32, with a dtype").at(keyword.span)
        return found

    def _dtype_of(self, node: s.Expression) -> DType | None:
        """The dtype that an expression is, or names; None if it is none."""
        kind = self._kind_of(node)
        return None if kind is None else t.storage(kind)

    def _kind_of(self, node: s.Expression) -> t.Kind | None:
        if isinstance(node, s.String):
            return dtype_named(node)
        found = self.value(node)
        return found.kind if isinstance(found, v.Type) else None

    def _method(self, callee: v.Method, node: s.CallNode) -> v.Scalar:
        if callee.name == "astype":
            kind = self._kind_of(node.args[0]) if len(node.args) == 1 else None
            if kind is None:
                raise NotAValue("this", "write x.astype(np.float32), with a dtype").at(node.span)
            return cast(callee.owner, kind, node.span)
        if node.args:
            raise ArgumentCount(callee.name, "0", len(node.args), "it takes none").at(node.span)
        return METHODS[callee.name](callee.owner)


def _item(value: v.Scalar) -> v.Scalar:
    """``x.item()``: the Python number of the same sort."""
    dtype = t.carrier(value.type)
    kind = {"bool": t.PY_BOOL, "float": t.PY_FLOAT, "complex": t.PY_COMPLEX}.get(dtype.kind, t.PY_INT)
    return v.Scalar(kind, v.converted(value.read(), kind.dtype))


def _is_integer(value: v.Scalar) -> v.Scalar:
    return v.Scalar(t.PY_BOOL, apply("equal", value.read(), apply("floor", value.read())))


METHODS: dict[str, Callable[[v.Scalar], v.Scalar]] = {  # of numbers, without arguments
    "conjugate": partial(part, "conj"), "conj": partial(part, "conj"), "item": _item, "is_integer": _is_integer,
}  # fmt: skip


def conversion(context: FunctionContext, kind: t.Kind, node: s.CallNode) -> v.Scalar:
    """``np.float32(x)``, ``int(x)``, ``complex(x, y)``; without an argument, zero."""
    if node.keywords:
        raise NotInSubset(f"the argument '{node.keywords[0].name}=' of a type is", "pass one value").at(node.span)
    args = [context.scalar(arg) for arg in node.args]
    if not args:
        return cast(v.literal(0), kind, node.span)
    if len(args) == 2 and t.is_complex(kind):
        part_type = dtypes.real_type(t.carrier(kind))
        real, imag = (cast(arg, part_type, node.span).read() for arg in args)
        return v.Scalar(kind, apply("complex", real, imag))
    if len(args) != 1:
        name = kind.name if isinstance(kind, t.PythonType) else str(kind)
        raise ArgumentCount(name, "1", len(args), "convert one value").at(node.span)
    return cast(args[0], kind, node.span)
