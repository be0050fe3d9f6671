"""Expressions as texts, with numexpr's functions: evaluate, validate, re_evaluate and NumExpr."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from inspect import CO_OPTIMIZED
from types import FrameType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

import numpy as np

from fusec.arguments.operands import admitted, is_foreign, is_number
from fusec.base import dtypes
from fusec.base.diagnostics import did_you_mean, instance_of
from fusec.base.dtypes import DType
from fusec.dispatch import checked
from fusec.dispatch.axes import SHOWN
from fusec.dispatch.planned import brief, composed, hide_internal_frames
from fusec.dispatch.shown import Showing
from fusec.errors.arguments import NoKernel, unknown_keyword
from fusec.errors.base import FusecError
from fusec.errors.fusing import (
    ArgumentsOfExpression,
    BadOption,
    CannotCast,
    NameNotFound,
    NotAnExpression,
    NothingBefore,
)
from fusec.fusion.expression_kernels import (
    NAME,
    Casting,
    ExpressionKernel,
    Order,
    Remembered,
    check_options,
    dtype_of_array,
)
from fusec.fusion.trace.lines import HERE
from fusec.fusion.trace.numbers import picking
from fusec.kernels.kernel_caller import KernelCaller, NoCodes, give_verbs

if TYPE_CHECKING:
    from fusec.graphs.building import Graph
    from fusec.kernels.public_types import EvaluateFunction

Names = Mapping[str, object]
Signature = Sequence[tuple[str, object]]

MAX_KNOWN = 512  # texts whose kernels are kept
KEYWORDS = ("out", "order", "casting")  # of calls
WITHOUT = {  # what expressions do not take, and what to do instead
    "bounds": "an expression has no indices that could lie outside of an array",
    "fp": 'expressions give the bits of fp="strict"; ElementwiseKernel takes other modes',
    "name": "kernels of expressions are called evaluate; ElementwiseKernel takes a name",
    "stream": "an expression runs on the stream of its arrays' library",
    "block_size": "fusec chooses the blocks of expressions; ElementwiseKernel takes block_size=",
    "where": "select in the text: where(mask, value, 0)",
}
P = ParamSpec("P")
R = TypeVar("R")
OF_TEXTS: Mapping[str, tuple[object, ...]] = {  # keywords that belong to a text, with their values; check= has its own
    "check": (), "optimization": ("none", "moderate", "aggressive"), "truediv": (False, True, "auto"),
}  # fmt: skip

_known = lru_cache(MAX_KNOWN)(ExpressionKernel)  # called alike everywhere, since the arguments are the key


class _Last(threading.local):
    """What a thread has evaluated or validated last, with a weak reference to its output, or None."""

    call: Remembered | None = None


_last = _Last()


class EvaluateVerbs(KernelCaller):
    """The verbs of `evaluate`, which take its arguments."""

    def __init__(self, text: str | None) -> None:
        self.name, self.__doc__ = NAME, text
        asked = 'NumExpr(ex, signature).cached_codes and evaluate.source("llvm", ex, names) have them'
        self.cached_codes = NoCodes(NoKernel(NAME, "every text has its own", asked, " of its own"))

    def called(self, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
        """A call of the same text without fast paths."""
        expression, values, rest = _taken(*args, **options)
        return expression.run(values, **rest)

    def call_keywords(self) -> None:
        """The keywords of calls: evaluate itself checks them."""

    def graph(self, *args: Any, **options: Any) -> Graph:
        """A text of some names as a graph of arrays; nothing is run."""
        expression, values, _ = _taken(*args, **options)
        made = {name: each for name, each in options.items() if name in ("optimization", "check", "truediv")}
        return _graph(expression.text, made, dict(zip(expression.names, values, strict=True)))

    def named(self, args: Sequence[Any], options: Mapping[str, Any]) -> dict[str, Any]:
        """The names of a text with what they stand for, and the output."""
        expression, values, rest = _taken(*args, **options)
        return {**dict(zip(expression.names, values, strict=True)), "out": rest["out"]}


def _with_verbs(function: Callable[P, R]) -> EvaluateFunction[P, R]:
    verbs = EvaluateVerbs(function.__doc__)
    give_verbs(function, verbs)
    vars(function)["graph"] = verbs.graph
    return cast("EvaluateFunction[P, R]", function)


@_with_verbs
def evaluate(
    ex: str,
    local_dict: Names | None = None,
    global_dict: Names | None = None,
    out: Any = None,
    order: Order = "K",
    casting: Casting = "same_kind",
    sanitize: bool | None = None,
    _frame_depth: int = 3,
    disable_cache: bool = False,
    **kwargs: object,
) -> Any:
    """The value of an expression, such as ``evaluate("2*a + 3*b")``, for all elements of its arrays.

    ex: operators, numbers, known functions, and names. Names are looked up in `local_dict` and `global_dict`, by
    default the variables where evaluate is called. out: the array for the result. order: the memory order of a new
    result. casting: how the result may be converted for `out`. optimization: "aggressive" turns small powers into
    products. check: "wrap" reports integers that lose their value; None follows FUSEC_CHECK. sanitize, truediv:
    accepted without effect, because no text is ever executed and ``/`` is always true division. disable_cache: do not
    remember this call for re_evaluate. The result has the shape to which the arrays broadcast, and the dtype that NumPy
    would give it.
    Raises FusecError, with the place in the text.

    >>> a, b = np.array([1, 2]), np.array([0.5, 1.5])
    >>> fusec.evaluate("2*a + b", {"a": a, "b": b})
    array([2.5, 5.5])
    """
    del sanitize
    values: tuple[object, ...] = ()
    try:  # as `hide_internal_frames` does, whose frame would cost as much as all of this
        expression = _known(ex) if ex.__class__ is str and not kwargs else _compiled(ex, kwargs)
        values = _values(expression, local_dict, global_dict, _frame_depth - 1)
        if out is None and order == "K" and casting == "same_kind":
            if not disable_cache:
                _last.call = expression.plainly
            if expression.only is not None:
                return expression.only.fast(*values)
        elif not disable_cache:
            _last.call = expression, None if out is None else _weakly(out), order, casting
        check_options(order, casting)
        return expression.run(values, out, order, casting)
    except (FusecError, ImportError) as error:
        if values:  # of which some may be traced
            run = _compiled(ex, kwargs, ExpressionKernel).run  # without fast paths, which note nothing
            found = composed(run, (values, out, order, casting), {})
            if found is not None:
                return found[0]
        raise brief(error) from error.__cause__


def validate(
    ex: str,
    local_dict: Names | None = None,
    global_dict: Names | None = None,
    out: object = None,
    order: Order = "K",
    casting: Casting = "safe",
    _frame_depth: int = 2,
    sanitize: bool | None = None,
    **kwargs: object,
) -> Exception | None:
    """The exception that evaluate would raise before it runs anything, or None; re_evaluate then evaluates it.

    ex, local_dict, global_dict, out, order, casting, sanitize: as for `evaluate`, which also describes shapes and
    dtypes.
    Nothing is raised.

    >>> fusec.validate("2*a", {"a": np.ones(3)})
    >>> isinstance(fusec.validate("2*", {}), fusec.FusecError)
    True
    """
    del sanitize
    try:
        expression = _compiled(ex, kwargs)
        values = _values(expression, local_dict, global_dict, _frame_depth)
        check_options(order, casting)
        expression.check(values, out, casting)
    except Exception as problem:  # whatever an object among the names raises, too
        return problem.with_traceback(None)
    _last.call = expression, None if out is None else _weakly(out), order, casting
    return None


def re_evaluate(local_dict: Names | None = None, global_dict: Names | None = None, _frame_depth: int = 2) -> Any:
    """The value of the expression that this thread evaluated or validated last, with the present values of its names.

    local_dict, global_dict: as for `evaluate`, which also describes shapes and dtypes.
    Raises NothingBefore (a FusecRuntimeError) if there is no such expression.

    >>> fusec.evaluate("2*a", {"a": np.array([1, 2])})
    array([2, 4])
    >>> fusec.re_evaluate({"a": np.array([3, 4])})
    array([6, 8])
    """
    try:
        if _last.call is None:
            raise NothingBefore().at()
        expression, refers, order, casting = _last.call
        values = _values(expression, local_dict, global_dict, _frame_depth)
        return expression.run(values, None if refers is None else refers(), order, casting)
    except (FusecError, ImportError) as error:
        raise brief(error) from error.__cause__


class NumExpr(KernelCaller):
    """An expression with fixed types.

    expression: the text. signature: (name, type) of each argument in order; by default the sorted names, as float64.
    Calls take the arguments by position, and out=, order= and casting=, which is "safe" by default and applies to
    arguments too. input_names, signature, constants: as in numexpr. sanitize: without effect. Results have the shape to
    which the arguments broadcast.
    Raises FusecError, with the place in the text; types are names of dtypes.

    >>> area = fusec.NumExpr("a * b", [("a", "float32"), ("b", "float32")])
    >>> area(np.float32([1, 2]), np.float32([3, 4]))
    array([3., 8.], dtype=float32)
    """

    @hide_internal_frames
    def __init__(self, expression: str, signature: Signature = (), sanitize: bool = True, **kwargs: object) -> None:
        del sanitize
        text = expression if isinstance(expression, str) else str(expression)
        self._expression = _compiled(text, kwargs, others=("signature",))
        names = self._expression.names
        if any(not isinstance(each, (tuple, list)) or len(each) != 2 for each in signature):
            cure = 'pass a name and a type for each argument, as in [("a", "float32"), ("b", "float32")]'
            raise BadOption(f"the signature {signature!r} has no types", cure).at()
        self.input_names = tuple(name for name, _ in signature) if signature else names
        if sorted(self.input_names) != list(names):
            given, read = (", ".join(each) or "nothing" for each in (self.input_names, names))
            what = f"the signature names {given}, and the expression reads {read}"
            raise BadOption(what, "name every input of the expression, each once").at()
        self.signature = tuple((name, _dtype(name, kind)) for name, kind in signature) or tuple(
            (name, dtypes.FLOAT64) for name in names
        )
        self._options = dict(kwargs)
        self._types = (np.ndarray,) * len(self.signature)
        self._dtypes = tuple(dtype.numpy for _, dtype in self.signature)
        self._sorted = picking([self.input_names.index(name) for name in names])
        self.name, self.params, self.checks = NAME, self.input_names, self._expression.checks
        self.__name__ = NAME
        self.document()

    @property
    def constants(self) -> tuple[object, ...]:
        """The numbers in the text, each once."""
        return self._expression.parsed.numbers

    def __call__(
        self, *args: Any, out: Any = None, order: Order = "K", casting: Casting = "safe", **options: object
    ) -> Any:
        """The value for these arguments. options: numexpr's ex_uses_vml, which makes no difference."""
        try:
            for name in options.keys() - {"ex_uses_vml"}:
                cure = unknown_keyword(NAME, name, KEYWORDS, WITHOUT).cure
                raise BadOption(f"Unknown keyword argument '{name}'", cure).at()
            if tuple(map(type, args)) == self._types and tuple(map(dtype_of_array, args)) == self._dtypes:
                values = self._sorted(args)
            else:
                values = self._expression.pick(self._given(args, casting))
            if out is None and order == "K" and casting == "safe" and self._expression.only is not None:
                return self._expression.only.fast(*values)
            check_options(order, casting)
            return self._expression.run(values, out, order, casting)
        except (FusecError, ImportError) as error:
            options |= {"out": out, "order": order, "casting": casting}
            found = composed(type(self).called, (self, args, options), {})
            if found is not None:
                return found[0]
            raise brief(error) from error.__cause__

    def run(self, *args: Any, **options: Any) -> Any:
        """The same as a call."""
        return self(*args, **options)

    def graph(self, *args: Any) -> Graph:
        """The expression of these arguments as a graph of arrays; nothing is run."""
        return _graph(self._expression.text, self._options, self._given(args, "safe"))

    def _given(self, args: tuple[object, ...], casting: Casting) -> dict[str, object]:
        """The arguments by name, as the signature's types. Raises ArgumentsOfExpression and CannotCast."""
        check_options("K", casting)
        if len(args) != len(self.input_names):
            names = ", ".join(self.input_names) or "none"
            raise ArgumentsOfExpression(len(self.input_names), len(args), names).at()
        return {
            name: _converted(name, value, dtype, casting)
            for (name, dtype), value in zip(self.signature, args, strict=True)
        }

    def call_keywords(self) -> Sequence[str]:
        """Those of every expression."""
        return KEYWORDS

    def called(self, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
        """A call of the same expression without its fast paths."""
        plain, fresh = _compiled(self._expression.text, self._options, ExpressionKernel), object.__new__(NumExpr)
        for part, known in zip(plain.parts, self._expression.parts, strict=True):
            part.variants = known.variants
        vars(fresh).update(vars(self), _expression=plain)
        return fresh(*args, **options)

    def samples(self, asked: Showing) -> dict[str, Any]:
        """Arrays of the types of the signature. Raises BadOption for other types."""
        if asked.types or asked.scalars:
            given = "types=" if asked.types else "scalars="
            raise BadOption(f"source() of an expression takes no {given}", "signature= of NumExpr fixes the types").at()
        shape = SHOWN if asked.shape is None else asked.shape
        return {name: np.empty(asked.shapes.get(name, shape), dtype.numpy) for name, dtype in self.signature}

    @property
    def cached_codes(self) -> dict[str, str]:
        """LLVM text by dtypes, for every combination of this text called so far."""
        variants = [each for part in self._expression.parts for each in part.variants.values()]
        return {key: text for each in variants for key, text in each.cached_codes.items()}

    def described(self) -> tuple[str, str]:
        """The arguments, and the text."""
        return f"{NAME}({', '.join(self.input_names)})", self._expression.text

    def __repr__(self) -> str:
        return f"<fusec.NumExpr {self._expression.text!r}, ({', '.join(self.input_names)})>"

    def __reduce__(self) -> tuple[object, ...]:
        signature = [(name, dtype.name) for name, dtype in self.signature]
        return partial(NumExpr, **self._options), (self._expression.text, signature)  # type: ignore[arg-type]


def _taken(
    ex: object = None, local_dict: Names | None = None, global_dict: Names | None = None, out: object = None,
    order: Order = "K", casting: Casting = "same_kind", **options: object,
) -> tuple[ExpressionKernel, tuple[object, ...], dict[str, Any]]:  # fmt: skip
    """The arguments of `evaluate`: the text, values of its names, and the rest."""
    expression = _compiled(ex, options, ExpressionKernel)
    check_options(order, casting)
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(HERE):
        frame = frame.f_back
    found = frame.f_locals if local_dict is None else local_dict
    values = _values(expression, found, frame.f_globals if global_dict is None else global_dict, 1)
    return expression, values, {"out": out, "order": order, "casting": casting}


def _graph(text: str, options: Mapping[str, Any], values: Mapping[str, Any]) -> Graph:
    """An expression of some names as a graph."""
    from fusec.fusion.fuse import Fused

    kernel = _compiled(text, options, ExpressionKernel)

    def value(**given: Any) -> Any:
        found = composed(kernel.run, (kernel.pick(given), None, "K", "same_kind"), {})
        assert found is not None, "its arguments are traced"
        return found[0]

    return Fused(value, NAME).graph(**values)


# --- texts and names -------------------------------------------------------------------------------------------------


def _compiled(
    text: object,
    options: Mapping[str, object],
    known: Callable[..., ExpressionKernel] = _known,
    others: Sequence[str] = KEYWORDS,
) -> ExpressionKernel:
    """The expression of a text, from those known. others: keywords that go with options.

    Raises NotAnExpression and BadOption.
    """
    if not isinstance(text, str):
        raise NotAnExpression(f"must specify expression as a string, not {type(text).__name__}", "pass a text").at()
    for name, value in options.items():
        if name == "check":
            continue
        allowed = OF_TEXTS.get(name)
        if allowed is None:
            cure = unknown_keyword(NAME, name, (*others, *OF_TEXTS), WITHOUT).cure
            raise BadOption(f"Unknown keyword argument '{name}'", cure).at()
        if value not in allowed:
            raise BadOption(f"'{name}' must be one of {allowed}", f"not {value!r}").at()
    optimization, check = str(options.get("optimization", "aggressive")), options.get("check")
    if check is not None:
        return known(str(text), optimization, checked.wanted("trust", check))
    return known(str(text)) if optimization == "aggressive" else known(str(text), optimization)


def _values(
    expression: ExpressionKernel, local_dict: Names | None, global_dict: Names | None, depth: int
) -> tuple[object, ...]:
    """What names stand for; depth: how far up the caller is whose variables count. Raises NameNotFound."""
    if local_dict is not None:
        try:
            return expression.pick(local_dict)
        except KeyError:
            return _searched(expression, local_dict, global_dict, sys._getframe(depth))
        except (TypeError, AttributeError, IndexError):
            _must_be_mapping("local_dict", local_dict)
            raise
    frame = sys._getframe(depth)
    known = frame.f_locals
    try:
        found = expression.pick(known)
    except KeyError:
        found = _searched(expression, known, global_dict, frame)
    if type(known) is dict and frame.f_code.co_flags & CO_OPTIMIZED and sys.getrefcount(known) == ALONE:
        known.clear()  # a copy of a function's variables, which would keep their values alive as long as the call
    return found


ALONE = 3  # references to that copy if nobody but its frame and `_values` has it


def _searched(
    expression: ExpressionKernel, known: Names, global_dict: Names | None, frame: FrameType
) -> tuple[object, ...]:
    """What names stand for that are not all local. Raises NameNotFound."""
    found = []
    for name in expression.names:
        try:
            found.append(known[name])
        except KeyError:
            try:
                found.append((frame.f_globals if global_dict is None else global_dict)[name])
            except KeyError:
                place = expression.parsed.places[expression.names.index(name)]
                raise NameNotFound(name, _resembling(name, known)).at(place) from None
            except (TypeError, AttributeError, IndexError):
                _must_be_mapping("global_dict", global_dict)
                raise
    return tuple(found)


def _must_be_mapping(what: str, given: object) -> None:
    """Raise BadOption for what looks no names up."""
    if given is not None and not isinstance(given, Mapping):
        cure = "pass a dict of names and values, such as {'a': a}"
        raise BadOption(f"{what}= must be a dict, not {instance_of(given)}", cure).at() from None


def _resembling(name: str, known: Names) -> str:
    return did_you_mean(name, [each for each in known if isinstance(each, str)]) or "assign it, or pass local_dict="


def _weakly(out: object) -> Callable[[], object]:
    """A reference that keeps nothing alive; of what allows none, a strong one."""
    try:
        return weakref.ref(out)
    except TypeError:
        return lambda: out


def _dtype(name: str, kind: object) -> DType:
    """The dtype of a signature. Raises BadOption."""
    try:
        found = dtypes.from_numpy(np.dtype(kind))  # type: ignore[call-overload]
    except TypeError:
        found = dtypes.BY_NAME.get(str(kind))
    if found is None:
        raise BadOption(f"'{name}' has type {kind!r}", dtypes.cure_for(str(kind))).at()
    return found


def _converted(name: str, value: object, dtype: DType, casting: Casting) -> object:
    """An argument as the dtype of the signature. Raises CannotCast."""
    found = np.asarray(value) if is_number(value) else admitted(value, name, "NumExpr")
    if not isinstance(found, np.ndarray):
        return found
    if found.dtype == dtype.numpy:
        return value if is_foreign(value) else found
    if not np.can_cast(found.dtype, dtype.numpy, casting):
        raise CannotCast(f"'{name}'", str(found.dtype), dtype.name, casting).at()
    return found.astype(dtype.numpy)
