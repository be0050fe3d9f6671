"""Errors of a call: arguments that do not fit the kernel (codes F200 to F299, F730 to F732, F800 on).

CuPy's own texts where it has them.
"""

from __future__ import annotations

from typing import ClassVar

from fusec.errors.base import (
    FusecError,
    FusecIndexError,
    FusecMemoryError,
    FusecOverflowError,
    FusecTypeError,
    FusecValueError,
    UserError,
)


class WrongNumberOfArguments(UserError):
    """A call with neither the inputs alone nor inputs and outputs."""

    code: ClassVar[str] = "F200"
    message: ClassVar[str] = (
        "Wrong number of arguments for '{name}'. It must be either {nin} or {nargs} (with outputs), but given {given}."
    )
    hint: ClassVar[str] = "the parameters are ({inputs}) -> ({outputs})"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    name: str
    nin: int
    nargs: int
    given: int
    inputs: str
    outputs: str


class UnknownKeyword(UserError):
    """A keyword that calls do not take."""

    code: ClassVar[str] = "F201"
    message: ClassVar[str] = "Wrong arguments: kernel '{name}' takes no keyword {keyword!r}"
    hint: ClassVar[str] = "{cure}"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    name: str
    keyword: str
    cure: str = "a call takes size=, out=, stream= and block_size=; inputs and outputs are positional"


class UnsupportedArgument(UserError):
    """An argument that is neither an array nor a number."""

    code: ClassVar[str] = "F202"
    message: ClassVar[str] = "Unsupported type {given} for parameter '{param}' of kernel '{name}'"
    hint: ClassVar[str] = "pass a number, an array, or something that NumPy can turn into one; {cure}"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    name: str
    param: str
    given: str
    cure: str = "other objects need DLPack, __cuda_array_interface__ or __array__"


class ContainerDeclines(UserError):
    """An argument whose class wants no ufuncs, or not this one."""

    code: ClassVar[str] = "F800"
    message: ClassVar[str] = "'{name}' cannot be called with a {given}: its __array_ufunc__ declines"
    hint: ClassVar[str] = "pass np.asarray(x); the result is then an array"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    name: str
    given: str


class ContainerFails(UserError):
    """An argument that fails to hand out its arrays, or to take results."""

    code: ClassVar[str] = "F801"
    message: ClassVar[str] = "'{name}' fails on a {given}: {reason}"
    hint: ClassVar[str] = "pass np.asarray(x); the result is then an array"
    name: str
    given: str
    reason: str


class OutputIsNotAnArray(UserError):
    """A number or None where an output array is expected."""

    code: ClassVar[str] = "F203"
    message: ClassVar[str] = "Output arguments type must be an array: output '{param}' of kernel '{name}' got {given}"
    hint: ClassVar[str] = "{taken}pass all outputs as arrays, or none to have them allocated"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    name: str
    param: str
    given: str
    taken: str = ""


class TypeMismatch(UserError):
    """A dtype that contradicts the declaration or another argument of the same placeholder."""

    code: ClassVar[str] = "F204"
    message: ClassVar[str] = "Type is mismatched. {param} {given} {expected}{placeholder}"
    label: ClassVar[str] = "parameter '{param}' of kernel '{name}' has dtype {given}, but {reason}"
    hint: ClassVar[str] = "{cure}"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    name: str
    param: str
    given: str
    expected: str
    reason: str
    cure: str
    placeholder: str = ""


class PlaceholderUnbound(UserError):
    """A placeholder that no array argument fixes."""

    code: ClassVar[str] = "F205"
    message: ClassVar[str] = "the type {placeholder} of parameter '{param}' of kernel '{name}' cannot be determined"
    hint: ClassVar[str] = "{cure}"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    name: str
    param: str
    placeholder: str
    cure: str


class UnsupportedDtype(UserError):
    """An array of a dtype that fusec has no row for."""

    code: ClassVar[str] = "F206"
    message: ClassVar[str] = "dtype {given!r} of parameter '{param}' of kernel '{name}' is not supported"
    hint: ClassVar[str] = "{cure}"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    name: str
    param: str
    given: str
    cure: str


class ShapesDoNotBroadcast(UserError):
    """Array shapes without a common broadcast shape."""

    code: ClassVar[str] = "F212"
    message: ClassVar[str] = "shapes {left} and {right} do not broadcast: axis {axis} differs"
    label: ClassVar[str] = "parameter '{param}' of kernel '{name}' has shape {right}; those before it give {left}"
    hint: ClassVar[str] = "insert an axis with np.expand_dims, or slice one side"
    name: str
    param: str
    left: tuple[int, ...]
    right: tuple[int, ...]
    axis: int


class OutShapeMismatch(UserError):
    """An output whose shape is not the broadcast shape of the inputs."""

    code: ClassVar[str] = "F213"
    message: ClassVar[str] = "Out shape is mismatched"
    label: ClassVar[str] = (
        "output '{param}' of kernel '{name}' has shape {given}; the arguments broadcast to {expected}"
    )
    hint: ClassVar[str] = "give it shape {expected}, or leave outputs out to have them allocated"
    name: str
    param: str
    given: tuple[int, ...]
    expected: tuple[int, ...]


class SizeNotAllowed(UserError):
    """`size=` although an array that is not raw decides the size."""

    code: ClassVar[str] = "F214"
    message: ClassVar[str] = "Specified 'size' can be used only if all of the ndarray are 'raw'."
    label: ClassVar[str] = "parameter '{param}' of kernel '{name}' is not raw, so its shape is the loop's"
    hint: ClassVar[str] = "leave size= out, or declare the parameter 'raw'"
    name: str
    param: str


class SizeUndecided(UserError):
    """No `size=` although nothing else decides it."""

    code: ClassVar[str] = "F215"
    message: ClassVar[str] = "Loop size is undecided."
    label: ClassVar[str] = "{reason} of kernel '{name}'"
    hint: ClassVar[str] = "{cure}"
    name: str
    reason: str
    cure: str


class OutputSizeUndecided(UserError):
    """A raw output that nobody sized."""

    code: ClassVar[str] = "F216"
    message: ClassVar[str] = "Output array size is Undecided"
    label: ClassVar[str] = "output '{param}' of kernel '{name}' is raw, so its size does not follow from the inputs"
    hint: ClassVar[str] = "pass the output array, or size="
    name: str
    param: str


class BadSize(UserError):
    """A `size=` that is not a count."""

    code: ClassVar[str] = "F217"
    message: ClassVar[str] = "size must be a non-negative integer below 2**62, not {given}"
    name: str
    given: str


class BadBlockSize(UserError):
    """A `block_size=` that no device can launch."""

    code: ClassVar[str] = "F218"
    message: ClassVar[str] = "block_size must be greater than zero and at most 1024, not {given}"
    given: str


class ScalarDoesNotFit(UserError):
    """A number that the parameter's dtype cannot hold."""

    code: ClassVar[str] = "F219"
    message: ClassVar[str] = "{given} does not fit {dtype}, the type of parameter '{param}' of kernel '{name}'"
    hint: ClassVar[str] = "{cure}"
    exception: ClassVar[type[FusecError]] = FusecOverflowError
    name: str
    param: str
    given: str
    dtype: str
    cure: str


class ScalarOfWrongKind(UserError):
    """A number of a kind that the parameter's dtype cannot hold without loss."""

    code: ClassVar[str] = "F220"
    message: ClassVar[str] = "{given} is not a value of {dtype}, the type of parameter '{param}' of kernel '{name}'"
    hint: ClassVar[str] = "convert it yourself, e.g. with int(), round() or .real"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    name: str
    param: str
    given: str
    dtype: str


class OutputIsReadOnly(UserError):
    """An output that may not be written."""

    code: ClassVar[str] = "F221"
    message: ClassVar[str] = "output array is read-only: '{param}' of kernel '{name}'"
    hint: ClassVar[str] = "pass a writable array, e.g. a copy"
    name: str
    param: str


class OutputOverlapsItself(UserError):
    """An output with several elements at one address."""

    code: ClassVar[str] = "F222"
    message: ClassVar[str] = "output '{param}' of kernel '{name}' has elements that share memory (stride 0 or overlap)"
    hint: ClassVar[str] = "write to an array whose elements share no memory, e.g. np.empty(shape)"
    name: str
    param: str


class OutputsOverlap(UserError):
    """Two outputs in the same memory."""

    code: ClassVar[str] = "F223"
    message: ClassVar[str] = "outputs '{left}' and '{right}' of kernel '{name}' overlap in memory"
    hint: ClassVar[str] = "pass separate arrays"
    name: str
    left: str
    right: str


class OutGivenTwice(UserError):
    """Outputs both as positional arguments and as `out=`."""

    code: ClassVar[str] = "F224"
    message: ClassVar[str] = "kernel '{name}' got its outputs twice: as positional arguments and as out="
    hint: ClassVar[str] = "pass them one way only"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    name: str


class WrongNumberOfOutputs(UserError):
    """An `out=` tuple of the wrong length."""

    code: ClassVar[str] = "F225"
    message: ClassVar[str] = (
        "{keyword} of kernel '{name}' must hold one {item} for each output: {expected}, not {given}"
    )
    hint: ClassVar[str] = "the outputs are: {outputs}; a list or tuple is taken for several"
    name: str
    expected: int
    given: int
    outputs: str
    keyword: str = "out="
    item: str = "array"


class TypesIncomplete(UserError):
    """source() or explain() without the dtypes it needs."""

    code: ClassVar[str] = "F226"
    message: ClassVar[str] = "the types {missing} of kernel '{name}' are not known yet"
    hint: ClassVar[str] = 'pass types={{"{first}": "float32"}}, or call the kernel once'
    exception: ClassVar[type[FusecError]] = FusecTypeError
    name: str
    missing: str
    first: str


class UnknownTypeName(UserError):
    """A types= entry that names no placeholder, or no dtype."""

    code: ClassVar[str] = "F227"
    message: ClassVar[str] = "types={{{key!r}: {value!r}}}: {problem}"
    hint: ClassVar[str] = "{cure}"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    key: str
    value: str
    problem: str
    cure: str


class UnknownTarget(UserError):
    """A target that fusec does not generate."""

    code: ClassVar[str] = "F228"
    message: ClassVar[str] = "unknown target {given!r}"
    hint: ClassVar[str] = "targets are 'cuda', 'metal', 'llvm', 'asm' and 'ir'"
    given: str


class UnknownFp(UserError):
    """A floating-point mode that there is not."""

    code: ClassVar[str] = "F237"
    message: ClassVar[str] = "fp={given} is not a floating-point mode"
    hint: ClassVar[str] = "{cure}"
    about: ClassVar[str] = (
        'fp="strict" computes every operation as IEEE 754 says, fp="contract" may make one fma of a product and a sum, '
        'fp="fast" may approximate as well. For instance:\n\n'
        '    ElementwiseKernel("T x", "T y", "y = x * x + 1", fp="fasst")  # wrong\n'
        '    ElementwiseKernel("T x", "T y", "y = x * x + 1", fp="fast")'
    )
    given: str
    cure: str


class InvalidKernelName(UserError):
    """A kernel name that is no identifier, or a keyword of a target."""

    code: ClassVar[str] = "F229"
    message: ClassVar[str] = 'Invalid kernel name: "{given}"'
    hint: ClassVar[str] = "use letters, digits and underscores, not a keyword of C, CUDA or Metal"
    given: str


class ReservedParameterName(UserError):
    """A parameter called like a variable of the language."""

    code: ClassVar[str] = "F230"
    message: ClassVar[str] = "Can not use '{given}' as a parameter name"
    hint: ClassVar[str] = "'i' is the flat index and '_ind' the indexer; choose another name"
    given: str


class MixedDevices(UserError):
    """Arrays of the host and of a GPU in one call."""

    code: ClassVar[str] = "F231"
    message: ClassVar[str] = (
        "kernel '{name}' got arrays on different devices: '{left}' is on the {where}, '{right}' is not"
    )
    hint: ClassVar[str] = "move all arrays to one device first"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    name: str
    left: str
    right: str
    where: str


class AxisOutOfRange(UserError):
    """A body that names an axis which the array of this call has not."""

    code: ClassVar[str] = "F232"
    message: ClassVar[str] = "kernel '{name}' uses {needed} axes of {what}, which has {given}"
    hint: ClassVar[str] = "{cure}"
    exception: ClassVar[type[FusecError]] = FusecIndexError
    name: str
    what: str
    needed: str
    given: int
    cure: str


class DefinitionNotText(UserError):
    """A part of a definition that is no text."""

    code: ClassVar[str] = "F233"
    message: ClassVar[str] = "{part} of kernel '{name}' must be {wanted}, not {given}"
    hint: ClassVar[str] = "{cure}"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    name: str
    part: str
    wanted: str
    given: str
    cure: str


class UnknownScalar(UserError):
    """A name in scalars= that is no input."""

    code: ClassVar[str] = "F234"
    message: ClassVar[str] = "scalars={given!r}: kernel '{name}' has no such input"
    hint: ClassVar[str] = "its inputs are: {inputs}"
    name: str
    given: str
    inputs: str


class OutputTooLarge(UserError):
    """An output that the machine has no memory for."""

    code: ClassVar[str] = "F235"
    message: ClassVar[str] = "no memory for output '{param}' of kernel '{name}': shape {shape}, {nbytes:,} bytes"
    hint: ClassVar[str] = "{cure}"
    exception: ClassVar[type[FusecError]] = FusecMemoryError
    name: str
    param: str
    shape: tuple[int, ...]
    nbytes: int
    cure: str = "work on parts of the arrays, or pass an output on disk (np.memmap)"


class CannotSimulate(UserError):
    """Something that the interpreter, or Python, cannot run as a kernel."""

    code: ClassVar[str] = "F238"
    message: ClassVar[str] = "{what} cannot be simulated"
    hint: ClassVar[str] = "{cure}"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    what: str
    cure: str


class NotWhole(UserError):
    """A key, a counter or an end of a range of random numbers that is no whole number."""

    code: ClassVar[str] = "F730"
    message: ClassVar[str] = "the {name} of random numbers is {given}, which is not a whole number"
    hint: ClassVar[str] = "pass integers, or convert: int(x) for one number, x.astype('int64') for an array"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    name: str
    given: str


class NotInWord(UserError):
    """A key, a counter or an end of a range of random numbers that does not fit in 64 bits."""

    code: ClassVar[str] = "F731"
    message: ClassVar[str] = "the {name} of random numbers is {given}, which is outside {low} to {high}"
    hint: ClassVar[str] = "bring it into the range, e.g. with x % 2**63"
    exception: ClassVar[type[FusecError]] = FusecOverflowError
    name: str
    given: str
    low: int
    high: int


class BadRange(UserError):
    """A range of random integers that is empty or too wide."""

    code: ClassVar[str] = "F732"
    message: ClassVar[str] = "random integers from {low} up to, but not including, {high}"
    hint: ClassVar[str] = "{cure}"
    exception: ClassVar[type[FusecError]] = FusecValueError
    low: int
    high: int
    cure: str
