"""The decorator `fusec.reduction`: it turns Python functions into reductions of arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from keyword import iskeyword
from types import FunctionType
from typing import Any, Unpack, overload

import numpy as np

from fusec.arguments.annotations import RoleOptions
from fusec.base.diagnostics import did_you_mean
from fusec.base.kernel_abi import Fp
from fusec.dispatch.checked import Bounds, Checks, wanted
from fusec.dispatch.planned import hide_internal_frames, kernel_name
from fusec.errors.python import BadReduction
from fusec.frontends.capture import closure
from fusec.frontends.capture.closure import FileFunction, Origin, Text
from fusec.frontends.python.accumulator import identity_of
from fusec.frontends.python.definition import Capture
from fusec.frontends.python.functions import FUNCTIONS
from fusec.kernels.decorators import given_names, origin_of
from fusec.kernels.public_types import ReductionFunction
from fusec.kernels.reduction_function import Reduction
from fusec.kernels.reduction_roles import ROLES

Function = Callable[..., object]
FromText = (Text, FileFunction)
OPERATORS = {
    "mul": "multiply",
    "and_": "bitwise_and",
    "or_": "bitwise_or",
    "xor": "bitwise_xor",
}  # Python's, as NumPy's


@overload
def reduction(definition: Function | type | str, /, **options: Unpack[RoleOptions]) -> ReductionFunction: ...
@overload
def reduction(*, combine: Function | str, **options: Unpack[RoleOptions]) -> ReductionFunction: ...
@overload
def reduction(**options: Unpack[RoleOptions]) -> Callable[[Any], ReductionFunction]: ...


@hide_internal_frames
def reduction(
    definition: Function | type | str | None = None,
    /,
    *,
    map: Function | str | None = None,  # noqa: A002 - its own word
    combine: Function | str | None = None,
    finish: Function | str | None = None,
    identity: object = None,
    name: str = "",
    fp: Fp = "strict",
    names: Mapping[str, object] | None = None,
    bounds: Bounds | None = None,
    check: Checks | None = None,
) -> Any:
    """Make a reduction from functions of scalars; a decorator, or a function of keywords.

    definition: the function that combines two totals; or a class with functions map, combine and finish, and perhaps an
    attribute identity; or a text of such functions. map: takes the elements at one position of the arguments, and
    `index` if it has such a parameter; returns the value that is combined, a number or a tuple. combine: must be
    associative and commutative; its first argument has the earlier elements. finish: takes the total, and `count` if it
    has such a parameter; returns the result or a tuple of results. identity: the total of no elements, a number or a
    tuple with as many parts as a total. name: shown in messages and used as the entry point. fp: "strict", "contract"
    or "fast". names: the values of the free names of a text. bounds: "check" tests the indices and assertions of the
    map. check: as for `elementwise`.
    Each function may be a lambda, a function decorated by fusec, a known function such as np.maximum, or a text.
    Sources are read and never run.
    Results have the shape to which the arguments broadcast, without the axes of the call, and the dtypes that NumPy
    would give them.
    Raises FusecError, with the place in the source, for anything outside of the subset, and if there is no source.

    >>> @fusec.reduction(map=lambda x, y: (x - y) ** 2, identity=0)
    ... def distance(a, b):
    ...     return a + b
    >>> distance(np.array([[1.0, 2.0], [3.0, 5.0]]), 1.0, axis=1)
    array([ 1., 20.])
    """

    @hide_internal_frames
    def decorate(given: object) -> Reduction:
        roles, start = roles_of(given, {"map": map, "combine": combine, "finish": finish}, names)
        called = kernel_name(name, _name(given))
        made = made_of(roles, identity if identity is not None else start, called, fp, names)
        made.checks = wanted(bounds, check)
        if not isinstance(given, str) and given is not None:
            made.__module__ = getattr(given, "__module__", "")
            made.document(getattr(given, "__doc__", None))
            made.__qualname__ = getattr(given, "__qualname__", made.__name__)
        return made

    return decorate if definition is None and combine is None else decorate(definition)


def made_of(
    roles: Mapping[str, object], identity: object, name: str, fp: Fp, names: Mapping[str, object] | None = None
) -> Reduction:
    """A reduction made of functions, or of their texts, by role."""
    origins: dict[str, Origin] = {}
    kept: dict[str, Mapping[str, object]] = {}
    for role, given in roles.items():
        each = known(given, role)
        origins[role], kept[role] = (each, {}) if isinstance(each, FromText) else origin_of(each, names)
    if "combine" not in origins:
        raise BadReduction("there is no function that combines", "pass combine=lambda a, b: a + b").at()
    return Reduction(origins, kept, _identity(identity), name, fp)


def known(given: object, role: str) -> object:
    """A known function, such as np.maximum, math.sqrt or operator.add, as a text that calls it."""
    name = getattr(given, "__name__", "")
    if getattr(given, "__module__", "") == "_operator":
        name = OPERATORS.get(name, name)
        given = getattr(np, name, given)
    if isinstance(given, FromText) or closure.constant_of(given)[0] != "builtin":
        return given
    params = ", ".join("ab"[: 2 if role == "combine" else min(FUNCTIONS[name].least, 2)]) if name in FUNCTIONS else "a"
    called = name if name.isidentifier() and not iskeyword(name) else "function"
    return Text(f"lambda {params}: {called}({params})", {called: given})


def roles_of(
    given: object, options: Mapping[str, object], names: Mapping[str, object] | None
) -> tuple[dict[str, object], object]:
    """The functions by role, and the identity of a class. Raises BadReduction for one that is given twice."""
    found: dict[str, object] = {}
    start = None
    if isinstance(given, type):
        found = {role: getattr(given, role) for role in ROLES if hasattr(given, role)}
        start = getattr(given, "identity", None)
        _check_class(given)
    elif isinstance(given, str):
        found = dict(_of_text(given, names))
    elif given is not None:
        found = {"combine": given}
    for role, each in options.items():
        if each is not None and role in found:
            raise BadReduction(f"{role} is given twice", "once, where it is decorated or as an option").at()
        if each is not None:
            found[role] = each
    return found, start


def _check_class(given: type) -> None:
    """Raise BadReduction for a class that has no function combine, or functions that are nothing to a reduction."""
    for name, each in vars(given).items():
        if name not in ROLES and isinstance(each, (FunctionType, staticmethod, classmethod)):
            what = f"class '{given.__name__}' has a function '{name}', which a reduction does not use"
            cure = (
                "its functions are map, combine and finish; define the functions that these call outside of the class"
            )
            raise BadReduction(what, did_you_mean(name, ROLES) or cure).at()
    if not hasattr(given, "combine"):
        what = f"class '{given.__name__}' has no function combine"
        raise BadReduction(what, "write def combine(a, b): return a + b in it").at()


def _of_text(text: str, names: Mapping[str, object] | None) -> dict[str, Text]:
    """The functions of a text by role: what is called combine, else the last, combines."""
    whole = Text(text, given_names(names))
    defined = [each.name for each in whole.functions]
    if "combine" not in defined:
        return {"combine": whole}
    return {role: Text(text, whole.names, meant=role) for role in ROLES if role in defined}


def _identity(given: object) -> Capture | None:
    """The identity as a capture. Raises BadReduction for what is no number and no tuple of numbers."""
    if given is None:
        return None
    found = closure.constant_of(given)
    if identity_of(found) is None:
        what = f"identity={given!r} is neither a number nor a tuple of numbers"
        raise BadReduction(what, "write identity=0, or one number for each part, identity=(0, 0.0)").at()
    return found


def _name(given: object) -> str:
    """What a reduction is called if nobody says."""
    found = str(getattr(given, "__name__", ""))
    return "reduction" if found in ("", "<lambda>", "combine") else found


__all__ = ["made_of", "reduction", "roles_of"]
