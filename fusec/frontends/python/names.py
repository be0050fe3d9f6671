"""The meanings of names in a function: variables, captured values, known functions and types; and errors for others."""

from __future__ import annotations

import builtins

from fusec.base.diagnostics import did_you_mean
from fusec.base.dtypes import BY_NAME as DTYPES
from fusec.base.source import Span
from fusec.errors.base import FusecError
from fusec.errors.language import UnknownName
from fusec.errors.python import MaybeUnassigned, NotACapture, NotInSubset
from fusec.frontends.python import syntax as s
from fusec.frontends.python.compound import KNOWN, PYTHONS_OWN
from fusec.frontends.python.function_context import FunctionContext
from fusec.frontends.python.functions import CONSTANTS, PLAIN
from fusec.frontends.python.kernel_context import Other
from fusec.frontends.python.types import BY_NAME
from fusec.frontends.python.values import Builtin, Intrinsic, Module, Type, Value, literal
from fusec.ir.loops import AtomicOp

ATOMICS: dict[str, AtomicOp] = {
    "atomic_add": "add", "atomic_min": "minimum", "atomic_max": "maximum", "atomic_and": "and", "atomic_or": "or",
    "atomic_xor": "xor", "atomic_exchange": "exchange", "atomic_cas": "compare_exchange",
}  # fmt: skip
EFFECTS = frozenset(("barrier", *ATOMICS))
INTRINSICS = frozenset(("grid", "local", "shared", "thread_index", "block_index", *EFFECTS))
MODULES = frozenset("np numpy math cmath xp fusec scipy special".split())
SUBMODULES = frozenset("special numpy".split())
NUMPY_NAMES = {"bool_": "bool", "single": "float32", "double": "float64", "half": "float16", "intp": "int64"}
HABITS = {
    **dict.fromkeys(
        ("sum", "any", "all", "mean", "prod", "std", "var", "dot", "matmul", "sort", "argmax", "argmin", "cumsum"),
        "a kernel computes one element and sees no others",
    ),
    "print": "a kernel cannot print; return the value, or let fusec.simulate(f, python=True) run the function itself",
    "len": "a kernel computes one element: pass the length as a number",
    "range": "range is allowed only in 'for i in range(...)'",
    "enumerate": "it is allowed only in 'for i, v in enumerate(t)', with a tuple or an array from outside",
    "zip": "it is allowed only in 'for a, b in zip(t, u)'; arguments are iterated together anyway",
    "reversed": "it is allowed only in 'for v in reversed(t)', with a tuple or an array from outside",
    "list": "a kernel's values are numbers",
    "str": "a kernel's values are numbers",
    "isinstance": "types are known when a call is compiled; write a function for each",
    "ln": "write log(x)",
    "sorted": "write min and max",
    "input": "make it a parameter",
    "type": "types are known when a call is compiled: x.dtype",
    "breakpoint": "fusec.simulate(f, python=True)(...) runs the function itself, and stops there",
    **dict.fromkeys(("map", "filter"), "call the function on each value"),
    **dict.fromkeys(("iter", "next"), "write a loop: for i in range(n): ..."),
    **dict.fromkeys(("tuple", "dict", "set"), "a kernel's values are numbers, and tuples of them: a, b"),
    **dict.fromkeys(
        ("array", "zeros", "ones", "empty", "full", "arange"),
        "fusec.local(shape, dtype) is a small array of an element",
    ),
    **dict.fromkeys(
        ("rand", "randn", "randint", "uniform", "normal"), "fusec.random.uniform32(key, counter) makes random numbers"
    ),
}

RUN_IN_PYTHON = {  # habits that fusec.simulate(f, python=True) allows; what to do where it does not run
    "print": "a kernel cannot print; return the value",
    "breakpoint": "a kernel cannot stop; return the value that you want to look at",
}


def lookup(context: FunctionContext, name: str, span: Span) -> Value:
    """The value of a name. Raises UnknownName, MaybeUnassigned or NotACapture."""
    binding = context.variables.get(name)
    if binding is not None:
        if binding.missing:
            raise MaybeUnassigned(name, binding.span.line, binding.missing).at(span)
        return binding.value
    if name in context.local_names:
        raise UnknownName(name, "it is assigned further down; assign it before it is read").at(span)
    found = context.captured(name)
    if isinstance(found, Other):
        raise unusable(name, found, span)
    found = found or _known(name)
    if found is None:
        raise _unknown(context, name, span)
    return found


def attribute_of(module: Module, node: s.Attribute) -> Value:
    """An attribute of a module. Raises NotInSubset."""
    if module.name == "fusec" and node.name in INTRINSICS:
        return Intrinsic(node.name)
    name = NUMPY_NAMES.get(node.name, node.name)
    if name in DTYPES:
        return Type(DTYPES[name])
    if name in SUBMODULES:
        return Module(name)
    if name == "dtype":
        return Builtin(name)
    if name in CONSTANTS:
        return literal(CONSTANTS[name])
    own = module.name == "math" and name in PYTHONS_OWN["math"]
    if own or name in KNOWN:
        return Builtin(name, own)
    known, page = {*KNOWN, *CONSTANTS}, "docs/python.md lists the functions"
    if module.name == "fusec":
        known, page = known | INTRINSICS, f"docs/kernels.md describes fusec.grid and the like; {page} of numbers"
    cure = HABITS.get(name) or did_you_mean(name, known) or page
    raise NotInSubset(f"'{module.name}.{node.name}' is", cure).at(node.span)


def unusable(name: str, found: Other, span: Span) -> FusecError:
    """The error for a name whose value a kernel cannot hold."""
    wrong = NotACapture(name, found.given, found.cure) if found.given else UnknownName(name, found.cure)
    return wrong.at(span)


def _unknown(context: FunctionContext, name: str, span: Span) -> FusecError:
    if name in HABITS:
        runs = context.kernel.definition.runs_in_python or name not in RUN_IN_PYTHON
        return NotInSubset(f"'{name}' is", HABITS[name] if runs else RUN_IN_PYTHON[name]).at(span)
    captured = dict(context.kernel.texts[context.key].names)
    cure = did_you_mean(name, {*context.variables, *captured, *KNOWN, *BY_NAME, *PLAIN})
    if not cure and hasattr(builtins, name):
        return NotInSubset(f"Python's '{name}' is", "docs/python.md lists the functions").at(span)
    if not cure:
        shown = ", ".join(sorted(each for each in context.variables if not each.startswith("_"))[:12])
        cure = f"define it in the module, or make it a parameter; variables here: {shown or 'none'}"
    return UnknownName(name, cure).at(span)


def _known(name: str) -> Value | None:
    """What a name means that nobody has defined: in texts that stand for themselves."""
    if name in PYTHONS_OWN["builtins"]:
        return Builtin(name, python=True)
    if name in BY_NAME:
        return Type(BY_NAME[name])
    if name in DTYPES:
        return Type(DTYPES[name])
    if name in MODULES:
        return Module("numpy" if name in ("np", "xp") else name)
    if name in KNOWN:
        return Builtin(name)
    return None
