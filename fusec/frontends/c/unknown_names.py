"""The errors for undeclared names, with hints for the habits of Python, NumPy and CUDA."""

from __future__ import annotations

import re
from collections.abc import Iterable

from fusec.base.diagnostics import did_you_mean
from fusec.base.source import Span
from fusec.errors.base import FusecError
from fusec.errors.language import NotElementwise, UnknownFunction, UnknownName
from fusec.frontends.c import literals
from fusec.frontends.c.functions import BUILTINS, refusal

MODULES = frozenset("np numpy cp cupy math cmath jnp torch scipy xp".split())
NAMES = {
    "True": "write true",
    "False": "write false",
    "None": "values are never missing here: use NAN, or a bool of your own",
    **dict.fromkeys(("pi", "PI"), "write M_PI"),
    **dict.fromkeys(("inf", "Inf", "infinity"), "write INFINITY"),
    **dict.fromkeys(("nan", "NaN"), "write NAN"),
    "newaxis": "arguments broadcast: insert the axis before the call",
}
FUNCTIONS = {
    "where": "write condition ? a : b",
    "select": "write condition ? a : b",
    "len": "write x.size() for a raw array x",
    "range": "write for (int j = 0; j < count; ++j)",
    "elif": "write else if",
    "print": "portable kernels cannot print",
    "power": "write pow(x, y)",
    "ln": "write log(x)",
    "mod": "write fmod(x, y) for floats and x % y for integers",
    "concat": "an elementwise kernel writes one value for each element",
    **dict.fromkeys(
        ("sum", "prod", "mean", "any", "all"), "a kernel computes one element; to read others, loop over a raw array"
    ),
    **{f"arc{name}": f"write a{name}" for name in ("sin", "cos", "tan", "tan2", "sinh", "cosh", "tanh")},
    "norm3d": "write sqrt(x * x + y * y + z * z)",
    "norm4d": "write sqrt(x * x + y * y + z * z + w * w)",
    "rnorm3d": "write rsqrt(x * x + y * y + z * z)",
    "rnorm4d": "write rsqrt(x * x + y * y + z * z + w * w)",
    "rhypot": "write 1 / hypot(x, y)",
    "degrees": "write rad2deg(x)",
    "radians": "write deg2rad(x)",
    "divmod": "write floor_divide(x, y), and x - y * floor_divide(x, y) for the rest",
    "isclose": "write fabs(x - y) <= tolerance",
}
POSITIONS = frozenset({"_J", "_in_ind", "_out_ind"})  # what reductions call the place of an element
HALF = re.compile(r"__h(add|sub|mul|div|fma|neg|abs|eq|ne|lt|le|gt|ge|max|min)(_\w+|2\w*)?|h(exp|log|sin|cos|sqrt)\w*")


def unknown_name(name: str, known: Iterable[str], span: Span) -> FusecError:
    """The error for a name that is not among those known."""
    refused = refusal(name)
    if refused is not None:
        return NotElementwise(name, refused).at(span)
    known = set(known)
    cure = NAMES.get(name) or did_you_mean(name, known) or did_you_mean(name, literals.CONSTANTS)
    if name in MODULES:
        cure = "functions and constants are written without the name of a module: sin(x), M_PI"
    if not cure:
        shown = ", ".join(sorted(each for each in known if not each.startswith("_") or each in POSITIONS)[:12])
        cure = f"declare it, or make it a parameter; known here: {shown}"
    return UnknownName(name, cure).at(span)


def unknown_member(module: str, member: str, span: Span) -> FusecError:
    """The error for ``np.sin`` and its like."""
    cure = NAMES.get(member) or FUNCTIONS.get(member) or f"drop the prefix: {member}"
    return UnknownName(f"{module}.{member}", cure).at(span)


def unknown_function(name: str, known: Iterable[str], span: Span) -> FusecError:
    """The error for a call of a name that is no function; known: functions beyond the built-in ones."""
    refused = refusal(name)
    if refused is not None:
        return NotElementwise(name, refused).at(span)
    cure = FUNCTIONS.get(name, "")
    if HALF.fullmatch(name):
        cure = "write the operator or the function of float: float16 values compute in float32 and round when stored"
    if not cure and "::" not in span.text:  # what stands in a namespace is no slip of the pen
        cure = did_you_mean(name, {*BUILTINS, *known})
    return UnknownFunction(name, cure or "define it in the preamble as a __device__ function").at(span)
