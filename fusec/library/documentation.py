"""What built-in functions have in common: docstrings, each with an example, and errors of wrong calls."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial, update_wrapper
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast

from fusec.dispatch.planned import brief, composed, misused
from fusec.errors import FusecError
from fusec.errors.arguments import WITHOUT_OF_TOTALS, NoKernel
from fusec.errors.base import OfParameter
from fusec.kernels.kernel_caller import FunctionVerbs, NoCodes, give_verbs

if TYPE_CHECKING:
    from fusec.kernels.public_types import BuiltInFunction

P = ParamSpec("P")
R = TypeVar("R")

ARRAYS = ("x", "y", "weight", "bias")  # parameters that take arrays, as source() shows
WITHOUT_KERNEL = {"median": "NumPy's partition selects the middle elements"}
WITHOUT = {  # what no built-in function takes, and what to do instead; the last, most
    "fp": 'built-in functions give the bits of fp="strict"; ReductionKernel and ScanKernel take other modes',
    "bounds": "built-in functions compute no indices that could lie outside of an array",
    "check": "set FUSEC_CHECK=wrap to look for totals that wrap",
    "name": "its kernels are called as it is",
    "stream": "it runs on the current stream of the arrays' library",
    "where": "give what does not count a value without effect by np.where, or write a ReductionKernel or ScanKernel",
    **WITHOUT_OF_TOTALS,
}
ARGUMENTS = {
    "x": "x: an array of any shape from any supported library, or a list; numbers, bools or, as in NumPy, dates.",
    "y": "y: like x; both broadcast.",
    "axis": "axis: None for all, an integer or a tuple of them; negative ones count from the end.",
    "dtype": "dtype: the dtype of the accumulator and of the result; None for NumPy's choice.",
    "out": "out: the array for the result, of its shape and a dtype that holds it; it is returned.",
    "keepdims": "keepdims: keep the reduced axes, with one element each.",
    "initial": "initial: a number that takes part in every result.",
    "where": "where: a bool array that broadcasts against x and selects the elements that take part.",
    "correction": "correction: subtracted from the number of elements before the division.",
    "ddof": "ddof: NumPy's older name of correction.",
    "mean": "mean: the means, if they are known; they broadcast against x.",
    "include_initial": "include_initial: put the result of no elements first.",
}
RUNNING = {"axis": "axis: an integer; None for all elements in C order, as one axis."}  # of cumulative functions
POSITION = {"axis": "axis: an integer; None for the position among all elements in C order."}
ERRORS = "Raises FusecTypeError for dtypes that do not fit, FusecValueError for shapes and axes that do not."
TOTALS = "The shape of the result is that of x without the reduced axes; over all axes it is a NumPy scalar."
ELEMENTS = "The shape of the result is that of x."
LONGER = "The shape of the result is that of x; with include_initial, the axis has one element more."
ALONG = "The shape of the result is that of x; for axis=None it has one axis of all elements."
EXAMPLES = {
    "all": ("fusec.all([[True, False], [True, True]], axis=1)", "array([False,  True])"),
    "any": ("fusec.any([[True, False], [False, False]], axis=1)", "array([ True, False])"),
    "argmax": ("fusec.argmax([[1, 5, 2], [7, 3, 7]], axis=1)", "array([1, 0])"),
    "argmin": ("fusec.argmin([[1, 5, 2], [7, 3, 7]], axis=1)", "array([0, 1])"),
    "count_nonzero": ("int(fusec.count_nonzero([0, 3, 0, 4]))", "2"),
    "cummax": ("fusec.cummax([1, 3, 2])", "array([1, 3, 3])"),
    "cummin": ("fusec.cummin([3, 1, 2])", "array([3, 1, 1])"),
    "cumprod": ("fusec.cumprod([1, 2, 3])", "array([1, 2, 6])"),
    "cumsum": ("fusec.cumsum([[1, 2], [3, 4]], axis=1)", "array([[1, 3],\n       [3, 7]])"),
    "cumulative_prod": ("fusec.cumulative_prod([2, 3], include_initial=True)", "array([1, 2, 6])"),
    "cumulative_sum": ("fusec.cumulative_sum([2, 3], include_initial=True)", "array([0, 2, 5])"),
    "layer_norm": ("fusec.layer_norm(np.array([[1.0, 3.0]]), eps=0)", "array([[-1.,  1.]])"),
    "log_softmax": ("fusec.log_softmax(np.zeros(2)).round(4)", "array([-0.6931, -0.6931])"),
    "logcumsumexp": ("fusec.logcumsumexp(np.zeros(2)).round(4)", "array([0.    , 0.6931])"),
    "logsumexp": ("round(float(fusec.logsumexp(np.zeros(2))), 4)", "0.6931"),
    "max": ("fusec.max([[1, 5], [7, 3]], axis=0)", "array([7, 5])"),
    "mean": ("fusec.mean([[1, 2], [3, 5]], axis=1)", "array([1.5, 4. ])"),
    "mean_var": ("tuple(map(float, fusec.mean_var([1.0, 3.0])))", "(2.0, 1.0)"),
    "median": ("float(fusec.median([3, 1, 2, 9]))", "2.5"),
    "min": ("fusec.min([[1, 5], [7, 3]], axis=0)", "array([1, 3])"),
    "minmax": ("tuple(map(int, fusec.minmax([3, 1, 2])))", "(1, 3)"),
    "mulsum": ("float(fusec.mulsum([1.0, 2.0], [3.0, 4.0]))", "11.0"),
    "nanargmax": ("int(fusec.nanargmax([np.nan, 1.0, 2.0]))", "2"),
    "nanargmin": ("int(fusec.nanargmin([np.nan, 1.0, 2.0]))", "1"),
    "nanmax": ("float(fusec.nanmax([np.nan, 1.0, 2.0]))", "2.0"),
    "nanmean": ("float(fusec.nanmean([np.nan, 1.0, 2.0]))", "1.5"),
    "nanmin": ("float(fusec.nanmin([np.nan, 1.0, 2.0]))", "1.0"),
    "nanprod": ("float(fusec.nanprod([np.nan, 3.0, 2.0]))", "6.0"),
    "nanstd": ("float(fusec.nanstd([np.nan, 1.0, 3.0]))", "1.0"),
    "nansum": ("float(fusec.nansum([np.nan, 1.0, 2.0]))", "3.0"),
    "nanvar": ("float(fusec.nanvar([np.nan, 1.0, 3.0]))", "1.0"),
    "norm": ("float(fusec.norm([3.0, 4.0]))", "5.0"),
    "prod": ("fusec.prod([[1, 2], [3, 4]], axis=0)", "array([3, 8])"),
    "ptp": ("int(fusec.ptp([3, 1, 2]))", "2"),
    "softmax": ("fusec.softmax(np.zeros((2, 2)))", "array([[0.5, 0.5],\n       [0.5, 0.5]])"),
    "std": ("float(fusec.std([1.0, 3.0]))", "1.0"),
    "sum": ("fusec.sum([[1, 2], [3, 4]], axis=0)", "array([4, 6])"),
    "var": ("float(fusec.var([1.0, 3.0], correction=1))", "2.0"),
    "vecdot": ("fusec.vecdot([[1.0, 2.0], [0.0, 1.0]], [3.0, 4.0])", "array([11.,  4.])"),
}


def built_in(function: Callable[P, R]) -> BuiltInFunction[P, R]:
    """Make a function public: see `_public`."""
    return _public(function, function, function.__name__, inspect.cleandoc(function.__doc__ or ""))


def family(function: Callable[Concatenate[str, P], R]) -> Callable[[str, str], BuiltInFunction[P, R]]:
    """From a function that takes its name before its arguments to a maker of public ones, by name and docstring."""

    def member(name: str, text: str) -> BuiltInFunction[P, R]:
        bound: Any = partial(function, name)
        made = _public(bound, function, name, text)
        vars(made).update(__wrapped__=function, __signature__=inspect.signature(bound))  # the text; what users pass
        made.__annotations__ = {key: hint for key, hint in function.__annotations__.items() if key != "name"}
        return cast("BuiltInFunction[P, R]", made)

    return member


def _of_out(error: FusecError | ImportError, params: Sequence[str], out: object) -> FusecError | ImportError:
    """An error of the only output of a kernel, with the name that it has for users."""
    if out is None or isinstance(out, tuple) or isinstance(error, ImportError):
        return error
    what = error.error
    return what.called("out").at(error.span) if isinstance(what, OfParameter) and what.param not in params else error


def _public(function: Callable[P, R], origin: Callable[..., R], name: str, own: str) -> BuiltInFunction[P, R]:
    """A function that raises errors from here, and whose docstring tells what its own text leaves out, with an example.

    origin: the function that has the code.
    """

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except (FusecError, ImportError) as error:  # as `hide_internal_frames` does
            found: tuple[R] | None = composed(call, args, kwargs)
            if found is not None:
                return found[0]
            raise brief(_of_out(error, params, kwargs.get("out"))) from error.__cause__
        except TypeError as problem:
            misuse = misused(problem, call, args, kwargs, WITHOUT)
            if misuse is None:
                raise
            raise misuse from None

    update_wrapper(call, origin).__wrapped__ = function  # whose signature is what users see
    code = origin.__code__
    params = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    known = ARGUMENTS | (POSITION if "arg" in name else {} if "keepdims" in params or "softmax" in name else RUNNING)
    told = [known[each] for each in params if each in known and f"{each}:" not in own]
    shape = LONGER if "include_initial" in params else ALONG if RUNNING["axis"] in told else ELEMENTS
    shape = TOTALS if "keepdims" in params else shape
    example, result = EXAMPLES[name]
    call.__name__ = call.__qualname__ = name
    call.__doc__ = "\n".join([own, "", *told, shape, ERRORS, "", f">>> {example}", result])
    verbs = FunctionVerbs(call, name, tuple(each for each in params if each in ARRAYS))
    if name in WITHOUT_KERNEL:
        verbs.without = WITHOUT_KERNEL[name]
        verbs.cached_codes = NoCodes(NoKernel(name, verbs.without))
    give_verbs(call, verbs)
    return cast("BuiltInFunction[P, R]", call)
