"""Errors of calls: arguments that do not fit the kernel (codes F200 to F299, F730 to F732, F800 on).

CuPy's own texts where it has them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fusec.base.diagnostics import did_you_mean
from fusec.base.kernel_abi import MAX_BLOCK
from fusec.errors.base import (
    Described,
    FusecIndexError,
    FusecMemoryError,
    FusecOverflowError,
    FusecTypeError,
    FusecValueError,
    Named,
    OfParameter,
    UserError,
)


class WrongNumberOfArguments(Named, code="F200", exception=FusecTypeError):
    """A call with the wrong number of arguments."""

    message = (
        "Wrong number of arguments for '{name}'. It must be either {nin} or {nargs} (with outputs), but given {given}."
    )
    hint = "the parameters are ({inputs}) -> ({outputs})"
    nin: int
    nargs: int
    given: int
    inputs: str
    outputs: str


WITHOUT = {  # what calls of element-wise kernels do not take, and what to do instead
    "where": "an element left out would have no value: select one in the kernel, m ? x : y, or np.where(m, x, y)",
    "axis": "elements are independent of each other; ReductionKernel, ScanKernel and fusec.reduction take axis=",
}
WITHOUT_OF_TOTALS = {  # the same of reductions and scans
    "block_size": "its groups of threads are part of the order of its operations, which the bits of results depend on",
}


class UnknownKeyword(Named, code="F201", exception=FusecTypeError):
    """A call with an unknown keyword."""

    message = "Wrong arguments: {what}'{name}' takes no keyword {keyword!r}"
    keyword: str
    cure: str
    what: str = "kernel "  # "" for a decorator or a constructor


ELSEWHERE = {"dim": "axis", "ax": "axis"}
"""What other libraries call a keyword."""


def unknown_keyword(
    name: str, keyword: str, known: Sequence[str], without: Mapping[str, str] | None = None, also: str = ""
) -> UnknownKeyword:
    """The error for a keyword that a public function does not take; `known` lists those that it takes.

    without: for a kernel or a built-in function, what to do instead, by keyword. also: the end of the hint.
    """
    listed = [f"{each}=" for each in known] or ["no keywords"]
    takes = " and ".join(filter(None, (", ".join(listed[:-1]), listed[-1])))
    other = ELSEWHERE.get(keyword, "")
    near = f"did you mean '{other}'?" if other in known else did_you_mean(keyword, known)
    cure = (without or {}).get(keyword) or f"{near} a call takes {takes}{also}".lstrip()
    return UnknownKeyword(name, keyword, cure, "" if without is None else "kernel ")


POSITIONAL = "; inputs and outputs are positional"  # of kernels of strings


class UnsupportedArgument(OfParameter, code="F202", exception=FusecTypeError):
    """An argument that is neither an array nor a number."""

    message = "Unsupported type {given} for parameter '{param}' of kernel '{name}'"
    hint = "pass a number, an array, or an object that NumPy converts to an array; {cure}"
    given: str
    cure: str = "other objects need DLPack, __cuda_array_interface__ or __array__"


class ContainerDeclines(Named, code="F800", exception=FusecTypeError):
    """An argument whose class refuses ufuncs, or refuses this one."""

    message = "'{name}' cannot be called with {given:a}: its __array_ufunc__ declines"
    hint = "pass np.asarray(x); the result is then an array"
    given: str


class ContainerFails(Named, code="F801"):
    """A container that fails to provide its arrays or to wrap the results."""

    message = "'{name}' fails on {given:a}: {reason}"
    hint = "pass np.asarray(x); the result is then an array"
    given: str
    reason: str


class OutputIsNotAnArray(OfParameter, code="F203", exception=FusecTypeError):
    """A number or None where an output array is expected."""

    message = "Output arguments type must be an array: output '{param}' of kernel '{name}' got {given}"
    hint = "{taken}pass all outputs as arrays, or none to have them allocated"
    given: str
    taken: str = ""


class TypeMismatch(OfParameter, code="F204", exception=FusecTypeError):
    """A dtype that contradicts the declaration or another argument of the same placeholder."""

    message = "Type is mismatched. {param} {given} {expected}{placeholder}"
    label = "parameter '{param}' of kernel '{name}' has dtype {given}, but {reason}"
    given: str
    expected: str
    reason: str
    cure: str
    placeholder: str = ""


class PlaceholderUnbound(OfParameter, code="F205", exception=FusecTypeError):
    """A placeholder whose dtype no array argument determines."""

    message = "the type {placeholder} of parameter '{param}' of kernel '{name}' cannot be determined"
    placeholder: str
    cure: str


class UnsupportedDtype(OfParameter, code="F206", exception=FusecTypeError):
    """An array of an unsupported dtype."""

    message = "dtype {given!r} of parameter '{param}' of kernel '{name}' is not supported"
    given: str
    cure: str


class ShapesDoNotBroadcast(UserError, code="F212"):
    """Shapes that do not broadcast together."""

    message = "shapes {left} and {right} do not broadcast: axis {axis} differs"
    label = "{what} has shape {right}; {others} {left}"
    hint = "insert an axis with np.expand_dims, or slice one side"
    what: str
    left: tuple[int, ...]
    right: tuple[int, ...]
    axis: int
    others: str = "the arguments before it broadcast to"


class OutShapeMismatch(OfParameter, code="F213"):
    """An output whose shape is not the shape to which the inputs broadcast."""

    message = "Out shape is mismatched"
    label = "output '{param}' of kernel '{name}' has shape {given}; the arguments broadcast to {expected}"
    hint = "give it shape {expected}, or omit the outputs to have them allocated"
    given: tuple[int, ...]
    expected: tuple[int, ...]


class SizeNotAllowed(OfParameter, code="F214"):
    """`size=` in a call where an array that is not raw determines the size."""

    message = "Specified 'size' can be used only if all of the ndarray are 'raw'."
    label = "parameter '{param}' of kernel '{name}' is not raw, so its shape determines the size of the loop"
    hint = "omit size=, or declare the parameter 'raw'"


class SizeUndecided(Named, code="F215"):
    """A call without `size=` where nothing else determines the size."""

    message = "Loop size is undecided."
    label = "kernel '{name}': {reason}"
    reason: str
    cure: str


class OutputSizeUndecided(OfParameter, code="F216"):
    """A raw output whose size is unknown."""

    message = "Output array size is Undecided"
    label = "output '{param}' of kernel '{name}' is raw, so its size does not follow from the inputs"
    hint = "pass the output array, or size="


class BadSize(Named, code="F217"):
    """A `size=` that is not a count."""

    message = "size must be a non-negative integer below 2**62, not {given}"
    given: str


class BadBlockSize(UserError, code="F218"):
    """A `block_size=` that no device can launch."""

    message = f"block_size must be greater than zero and at most {MAX_BLOCK}, not {{given}}"
    given: str


class ScalarDoesNotFit(OfParameter, code="F219", exception=FusecOverflowError):
    """A number that the parameter's dtype cannot hold."""

    message = "{given} does not fit {dtype}, the type of parameter '{param}' of kernel '{name}'"
    given: str
    dtype: str
    cure: str


class ScalarOfWrongKind(OfParameter, code="F220", exception=FusecTypeError):
    """A number of a kind that the parameter's dtype cannot hold without loss."""

    message = "{given} is not a value of {dtype}, the type of parameter '{param}' of kernel '{name}'"
    hint = "convert it yourself, e.g. with int(), round() or .real"
    given: str
    dtype: str


class OutputIsReadOnly(OfParameter, code="F221"):
    """An output that is read-only."""

    message = "output array is read-only: '{param}' of kernel '{name}'"
    hint = "pass a writable array, e.g. a copy"


class OutputOverlapsItself(OfParameter, code="F222"):
    """An output with several elements at one address."""

    message = "output '{param}' of kernel '{name}' has elements that share memory (stride 0 or overlap)"
    hint = "write to an array whose elements share no memory, e.g. np.empty(shape)"


class OutputsOverlap(Named, code="F223"):
    """Two outputs that share memory."""

    message = "outputs '{left}' and '{right}' of kernel '{name}' overlap in memory"
    hint = "pass separate arrays"
    left: str
    right: str


class OutGivenTwice(Named, code="F224", exception=FusecTypeError):
    """Outputs given both as positional arguments and as `out=`."""

    message = "kernel '{name}' got its outputs twice: as positional arguments and as out="
    hint = "pass them in one way only"


class WrongNumberOfOutputs(Named, code="F225"):
    """An `out=` tuple of the wrong length."""

    message = "{keyword} of kernel '{name}' must hold one {item} for each output: {expected}, not {given}"
    hint = "the outputs are: {outputs}; a list or tuple stands for several outputs"
    expected: int
    given: int
    outputs: str
    keyword: str = "out="
    item: str = "array"


class TypesIncomplete(Named, code="F226", exception=FusecTypeError):
    """source() or explain() without the dtypes it needs."""

    message = "the types {missing} of kernel '{name}' are not known yet"
    hint = 'pass types={{"{first}": "float32"}}, or call the kernel once'
    missing: str
    first: str


class UnknownTypeName(UserError, code="F227", exception=FusecTypeError):
    """A types= that is not a dictionary, or an entry whose key is not a placeholder or whose value is not a dtype."""

    message = "types={given}: {problem}"
    given: str
    problem: str
    cure: str


class UnknownTarget(UserError, code="F228"):
    """An unknown target."""

    message = "unknown target {given}"
    hint = "the targets are {known}{where}"
    given: str
    known: str
    where: str = ""


class UnknownFp(UserError, code="F237"):
    """An unknown floating-point mode."""

    message = "fp={given} is not a floating-point mode"
    about = (
        'fp="strict" rounds every operation as IEEE 754 demands, fp="contract" fuses a product and a sum into one fma, '
        'fp="fast" also approximates. For instance:\n\n'
        '    ElementwiseKernel("T x", "T y", "y = x * x + 1", fp="fasst")  # wrong\n'
        '    ElementwiseKernel("T x", "T y", "y = x * x + 1", fp="fast")'
    )
    given: str
    cure: str


class InvalidKernelName(UserError, code="F229"):
    """A kernel name that is not an identifier, or is a keyword of a target."""

    message = 'Invalid kernel name: "{given}"'
    hint = "use letters, digits and underscores, not a keyword of C, CUDA or Metal"
    given: str


class ReservedParameterName(UserError, code="F230"):
    """A parameter with the name of a built-in variable of the language."""

    message = "Can not use '{given}' as a parameter name"
    hint = "'i' is the flat index and '_ind' the indexer; choose another name"
    given: str


class AxisOutOfRange(Named, code="F232", exception=FusecIndexError):
    """A body that uses an axis that an array of the call does not have."""

    message = "kernel '{name}' uses {needed} of {what}, which has {given}"
    what: str
    needed: str
    given: int
    cure: str


class DefinitionNotText(Named, code="F233", exception=FusecTypeError):
    """A part of a definition that is not a string."""

    message = "{part} of kernel '{name}' must be {wanted}, not {given}"
    part: str
    wanted: str
    given: str
    cure: str


class UnknownScalar(Named, code="F234"):
    """A name in scalars= that is not an input."""

    message = "scalars={given!r}: kernel '{name}' has no such input"
    hint = "its inputs are: {inputs}"
    given: str
    inputs: str


class OutputTooLarge(OfParameter, code="F235", exception=FusecMemoryError):
    """An output for which the memory does not suffice."""

    message = "not enough memory for output '{param}' of kernel '{name}': shape {shape}, {nbytes:,} bytes"
    shape: tuple[int, ...]
    nbytes: int
    cure: str = "work on parts of the arrays, or pass an output on disk (np.memmap)"


KERNELS = "pass a kernel or a decorated, fused or built-in function; for an expression, make a fusec.NumExpr"


class CannotSimulate(Described, code="F238", exception=FusecTypeError):
    """An object that cannot be simulated as a kernel."""

    message = "{what} cannot be simulated{how}"
    how: str = ""


class NoKernel(UserError, code="F236", exception=FusecTypeError):
    """A call that no kernel runs, or a function that has no kernel of its own, so that there is nothing to show."""

    message = "{name} has no kernel{own}: {why}"
    hint = "{cure}"
    name: str
    why: str
    cure: str = "call it; NumPy's documentation says what it does"
    own: str = ""


class CannotExplain(UserError, code="F239", exception=FusecTypeError):
    """An object that has no calls to explain."""

    message = "{what} cannot be explained"
    hint = KERNELS
    what: str


class NotWhole(Named, code="F730", exception=FusecTypeError):
    """A key, a counter or a bound of random numbers that is not a whole number."""

    message = "the {name} of random numbers is {given}, which is not a whole number"
    hint = "pass integers, or convert: int(x) for one number, x.astype('int64') for an array"
    given: str


class NotInWord(Named, code="F731", exception=FusecOverflowError):
    """A key, a counter or a bound of random numbers that does not fit in 64 bits."""

    message = "{name}={given} of random numbers is outside {low} to {high}"
    hint = "reduce it to the range, e.g. with x % 2**63"
    given: str
    low: int
    high: int


class BadRange(UserError, code="F732", exception=FusecValueError):
    """A range of random integers that is empty or too wide."""

    message = "random integers from {low} up to, but not including, {high}"
    low: int
    high: int
    cure: str
