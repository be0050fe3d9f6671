"""Functions of each element: those of the standard, from one row each."""

from __future__ import annotations

import operator
from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any, Protocol, cast

import numpy as np

from fusec.xp.array import Array
from fusec.xp.calls import Operand, array_of, call, operand_of
from fusec.xp.documentation import composed, documented
from fusec.xp.operators import binary, power, tell, unary
from fusec.xp.promotion import check
from fusec.xp.signatures import CHECKED
from fusec.xp.ufuncs import give_methods, with_options

__all__ = [
    "abs",
    "acos",
    "acosh",
    "add",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "ceil",
    "clip",
    "conj",
    "copysign",
    "cos",
    "cosh",
    "divide",
    "equal",
    "exp",
    "expm1",
    "floor",
    "floor_divide",
    "greater",
    "greater_equal",
    "hypot",
    "imag",
    "isfinite",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "nextafter",
    "not_equal",
    "positive",
    "pow",
    "real",
    "reciprocal",
    "remainder",
    "round",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "subtract",
    "tan",
    "tanh",
    "trunc",
]


class Unary(Protocol):
    """A function of each element of an array."""

    def __call__(self, x: Operand, /, **options: Any) -> Array: ...


class BinaryFunction(Protocol):
    """A function of the elements of two operands, which broadcast."""

    def __call__(self, x1: Operand, x2: Operand, /, **options: Any) -> Array: ...


def _one(name: str, sentence: str, example: str, result: str) -> Unary:
    """NumPy's ufunc of that name, for one array. example: its elements; result: those of the result."""
    function = getattr(np, name)
    run = unary(function)

    def use(builtin: Any) -> None:
        nonlocal run
        run = builtin

    tell(run, use)

    def operate(x: Operand, /, **options: Any) -> Any:
        if options:
            return with_options(function, (x,), options)
        return run(x if type(x) is Array else array_of(x))

    shown = f"xp.{name}(xp.asarray({example}))"
    return cast("Unary", _public(operate, function, name, f"{sentence}\n\n>>> {shown}\nArray({result})"))


def _two(name: str, sentence: str, example: str, result: str, function: Any = None) -> BinaryFunction:
    """NumPy's ufunc of that name, for two operands, of which one may be a number."""
    ufunc = getattr(np, name)
    function = function or ufunc
    run = power() if function is operator.pow else binary(function)
    swapped = binary(function, True)

    def use(builtin: Any) -> None:
        nonlocal run
        run = builtin

    def use_swapped(builtin: Any) -> None:
        nonlocal swapped
        swapped = builtin

    tell(run, use)
    tell(swapped, use_swapped)

    def operate(x1: Operand, x2: Operand, /, **options: Any) -> Any:
        if CHECKED:
            check(name, (x1, x2))
        if options:
            return with_options(ufunc, (x1, x2), options)
        if type(x1) is Array:
            return run(x1, x2 if type(x2) is Array else operand_of(x2))
        if type(x2) is Array:
            return swapped(x2, operand_of(x1))
        return run(array_of(x1), operand_of(x2))

    left, right = (f"xp.asarray({each})" if each[0] == "[" else each for each in example.split("; "))
    shown = f"xp.{name}({left}, {right})"
    return cast("BinaryFunction", _public(operate, ufunc, name, f"{sentence}\n\n>>> {shown}\nArray({result})"))


_OPTIONS = [
    Parameter(name, Parameter.KEYWORD_ONLY, default=default)
    for name, default in (("out", None), ("where", True), ("dtype", None))
]


def _public(operate: Any, ufunc: np.ufunc, name: str, text: str) -> Callable[..., Any]:
    """The function with name, text and signature, and with the methods of a ufunc."""
    names = operate.__code__.co_varnames[: operate.__code__.co_argcount]
    operate.__name__ = operate.__qualname__ = name
    operate.__doc__ = composed(text, (*names, "options"))
    params = [Parameter(each, Parameter.POSITIONAL_ONLY, annotation=Operand) for each in names]
    operate.__signature__ = Signature([*params, *_OPTIONS], return_annotation=Array)
    give_methods(operate, ufunc)
    return cast("Callable[..., Any]", operate)


# --- of one array --------------------------------------------------------------------------------------------------

abs = _one("abs", "The absolute value; that of the least integer is itself.", "[-1, 2]", "[1, 2]")  # noqa: A001
acos = _one("acos", "The angle in [0, pi] with this cosine.", "[1.0]", "[0.]")
acosh = _one("acosh", "The inverse of the hyperbolic cosine.", "[1.0]", "[0.]")
asin = _one("asin", "The angle in [-pi/2, pi/2] with this sine.", "[0.0]", "[0.]")
asinh = _one("asinh", "The inverse of the hyperbolic sine.", "[0.0]", "[0.]")
atan = _one("atan", "The angle in [-pi/2, pi/2] with this tangent.", "[0.0]", "[0.]")
atanh = _one("atanh", "The inverse of the hyperbolic tangent.", "[0.0]", "[0.]")
bitwise_invert = _one("bitwise_invert", "All bits inverted; of bools, the negation.", "[0, 5]", "[-1, -6]")
ceil = _one("ceil", "The least integer that is not less.", "[1.5, -1.5]", "[ 2., -1.]")
conj = _one("conj", "The complex conjugate.", "[1 + 2j]", "[1.-2.j]")
cos = _one("cos", "The cosine of an angle in radians.", "[0.0]", "[1.]")
cosh = _one("cosh", "The hyperbolic cosine.", "[0.0]", "[1.]")
exp = _one("exp", "e to the power of the element.", "[0.0]", "[1.]")
expm1 = _one("expm1", "exp(x) - 1, precise near 0.", "[0.0]", "[0.]")
floor = _one("floor", "The greatest integer that is not greater.", "[1.5, -1.5]", "[ 1., -2.]")
isfinite = _one("isfinite", "Whether it is neither infinite nor nan.", "[1.0, xp.inf]", "[ True, False]")
isinf = _one("isinf", "Whether it is infinite.", "[1.0, -xp.inf]", "[False,  True]")
isnan = _one("isnan", "Whether it is nan.", "[1.0, xp.nan]", "[False,  True]")
log = _one("log", "The natural logarithm.", "[1.0]", "[0.]")
log1p = _one("log1p", "log(1 + x), precise near 0.", "[0.0]", "[0.]")
log2 = _one("log2", "The logarithm to base 2.", "[8.0]", "[3.]")
log10 = _one("log10", "The logarithm to base 10.", "[100.0]", "[2.]")
logical_not = _one("logical_not", "Whether it is zero.", "[True, False]", "[False,  True]")
negative = _one("negative", "The element with the other sign.", "[1, -2]", "[-1,  2]")
positive = _one("positive", "The element itself.", "[1, -2]", "[ 1, -2]")
reciprocal = _one("reciprocal", "1 / x.", "[2.0, 4.0]", "[0.5 , 0.25]")
sign = _one("sign", "-1, 0 or 1, as the element's sign; of a complex x, x / abs(x).", "[-7, 0, 3]", "[-1,  0,  1]")
signbit = _one("signbit", "Whether the sign bit is set, as that of -0.0 is.", "[-0.0, 0.0]", "[ True, False]")
sin = _one("sin", "The sine of an angle in radians.", "[0.0]", "[0.]")
sinh = _one("sinh", "The hyperbolic sine.", "[0.0]", "[0.]")
sqrt = _one("sqrt", "The square root; nan of negative real elements.", "[4.0, 9.0]", "[2., 3.]")
square = _one("square", "x * x.", "[3, -4]", "[ 9, 16]")
tan = _one("tan", "The tangent of an angle in radians.", "[0.0]", "[0.]")
tanh = _one("tanh", "The hyperbolic tangent.", "[0.0]", "[0.]")
trunc = _one("trunc", "The nearest integer towards 0.", "[1.5, -1.5]", "[ 1., -1.]")

# --- of two operands -----------------------------------------------------------------------------------------------

add = _two("add", "The sum.", "[1, 2]; [10, 20]", "[11, 22]")
atan2 = _two("atan2", "The angle of the point (x2, x1), in [-pi, pi].", "[0.0]; [1.0]", "[0.]")
bitwise_and = _two("bitwise_and", "The bits that both have.", "[6]; [3]", "[2]")
bitwise_left_shift = _two("bitwise_left_shift", "x1 * 2**x2.", "[1, 3]; 2", "[ 4, 12]")
bitwise_or = _two("bitwise_or", "The bits that either has.", "[6]; [3]", "[7]")
bitwise_right_shift = _two("bitwise_right_shift", "x1 // 2**x2.", "[8, -3]; 1", "[ 4, -2]")
bitwise_xor = _two("bitwise_xor", "The bits that exactly one has.", "[6]; [3]", "[5]")
copysign = _two("copysign", "x1 with the sign of x2.", "[1.0, 2.0]; [-0.0, 3.0]", "[-1.,  2.]")
divide = _two("divide", "The quotient, a float even of integers.", "[1, 3]; 2", "[0.5, 1.5]")
equal = _two("equal", "Whether they are equal.", "[1, 2]; [1, 3]", "[ True, False]")
floor_divide = _two("floor_divide", "The quotient, rounded down.", "[7, -7]; 2", "[ 3, -4]")
greater = _two("greater", "Whether x1 > x2.", "[1, 2]; 1", "[False,  True]")
greater_equal = _two("greater_equal", "Whether x1 >= x2.", "[1, 2]; 2", "[False,  True]")
hypot = _two("hypot", "sqrt(x1**2 + x2**2), without overflow between.", "[3.0]; [4.0]", "[5.]")
less = _two("less", "Whether x1 < x2.", "[1, 2]; 2", "[ True, False]")
less_equal = _two("less_equal", "Whether x1 <= x2.", "[1, 2]; 1", "[ True, False]")
logaddexp = _two("logaddexp", "log(exp(x1) + exp(x2)), without overflow between.", "[1000.0]; [-xp.inf]", "[1000.]")
logical_and = _two("logical_and", "Whether neither is zero.", "[True, True]; [False, True]", "[False,  True]")
logical_or = _two("logical_or", "Whether one is not zero.", "[False, True]; [False, True]", "[False,  True]")
logical_xor = _two("logical_xor", "Whether exactly one is not zero.", "[True, True]; [False, True]", "[ True, False]")
maximum = _two("maximum", "The greater one; nan if either is.", "[1, 5]; 3", "[3, 5]")
minimum = _two("minimum", "The lesser one; nan if either is.", "[1, 5]; 3", "[1, 3]")
multiply = _two("multiply", "The product.", "[1, 2]; [10, 20]", "[10, 40]")
nextafter = _two("nextafter", "The next float after x1 towards x2.", "[0.0]; [1.0]", "[5.e-324]")
not_equal = _two("not_equal", "Whether they differ.", "[1, 2]; [1, 3]", "[False,  True]")
pow = _two("pow", "x1 to the power of x2.", "[2, 3]; 2", "[4, 9]", operator.pow)  # noqa: A001
remainder = _two("remainder", "x1 - x2 * floor(x1 / x2): its sign is that of x2.", "[7, -7]; 3", "[1, 2]")
subtract = _two("subtract", "The difference.", "[10, 20]; [1, 2]", "[ 9, 18]")

# --- with further parameters ---------------------------------------------------------------------------------------


@documented
def real(x: Operand, /) -> Array:
    """The real part, a view of the same memory; a real array itself.

    >>> xp.real(xp.asarray([1 + 2j]))
    Array([1.])
    """
    return array_of(x).real


@documented
def imag(x: Operand, /) -> Array:
    """The imaginary part, a view of the same memory; 0 of a real array.

    >>> xp.imag(xp.asarray([1 + 2j]))
    Array([2.])
    """
    return array_of(x).imag


@documented
def round(x: Operand, /, decimals: int = 0, **options: Any) -> Array:  # noqa: A001
    """The nearest integer, the even one of two; the nearest multiple of 10**-decimals.

    decimals: digits behind the point to keep; negative ones stand before it.

    >>> xp.round(xp.asarray([0.5, 1.5, 2.6]))
    Array([0., 2., 3.])
    """
    return call(np.round, x, *((decimals,) if decimals else ()), **options)


@documented
def clip(x: Operand, /, min: Operand = None, max: Operand = None, **options: Any) -> Array:  # noqa: A002
    """The elements, those below min replaced by min, those above max by max.

    min: a number or an array that broadcasts against x; None for no bound.
    max: likewise.

    >>> xp.clip(xp.asarray([1, 5, 9]), 2, 6)
    Array([2, 5, 6])
    """
    given = {"min": min, "max": max}
    for name in [each for each in ("a_min", "a_max") if each in options]:
        if given[name[2:]] is not None:
            raise TypeError(f"clip() got {name[2:]} and {name}, which are the same bound")
        given[name[2:]] = options.pop(name)
    bounds = [None if each is None else operand_of(each) for each in given.values()]
    if CHECKED:
        check("clip", [array_of(x), *(each for each in bounds if each is not None)])
    return call(np.clip, x, *bounds, **options)
