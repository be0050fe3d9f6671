"""Builtins that call a kernel in a fraction of a microsecond, and leave other calls to Python.

One kind takes contiguous arrays of any shape, another arrays of the very shapes and strides of an earlier call.

The entry is machine code of our own that reads CPython's and NumPy's objects, so it is only used where a look at
living objects confirms their layout; elsewhere, and on builds without the interpreter lock, `make` gives the fallback.
"""

from __future__ import annotations

import ctypes
import importlib
import math
import struct
import sys
from array import array
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from typing import Any, Literal

import numpy as np

from fusec.base.dtypes import BY_NAME, COMPLEX64, COMPLEX128, FLOAT32, FLOAT64, INT64, DType
from fusec.base.kernel_abi import Layout, Step
from fusec.base.records import dataclass
from fusec.environment import debug
from fusec.runtime.cpu import description as d
from fusec.runtime.cpu import jit, memory, threads
from fusec.runtime.cpu.description import Accepts, AddressTable, Argument, Header, NumberForm, ParameterKind, Returns
from fusec.runtime.cpu.engine import Executable
from fusec.runtime.cpu.fastcall_text import entry_text

Callee = Callable[..., object]

METH_FASTCALL, METH_KEYWORDS = 0x80, 0x02
C_CONTIGUOUS, ALIGNED, WRITEABLE = 0x0001, 0x0100, 0x0400
WARN_ON_WRITE = 0x8000_0000  # a result of broadcast_arrays: writing needs NumPy's warning first
NEW_FROM_DESCR = 94  # PyArray_NewFromDescr in NumPy's table of C functions; 2 is ndarray
METHOD = struct.Struct("=QQQQ")  # PyMethodDef: name, function, flags, documentation


@dataclass(frozen=True)
class ArgSpec:
    """One positional parameter of a call: inputs in order, then outputs.

    name: as in the kernel's slots. number: passed by value, else an array. converts: for numbers, that an int or a
    bool may stand for a float, and a bool for an int; not if the number's own type has chosen the dtype. takes:
    numbers of a type of Python's, NumPy's scalars of the dtype alone, or all that convert. changes: of an input, that
    the kernel writes it. exactly: the only integer that a parameter takes, None for any. group: arrays of one group may
    have the same elements in the same places; those of group "" may not be the memory of any other. is_checked: the
    caller has seen to it that the kernel may write it, whatever memory it shares.
    """

    name: str
    dtype: DType
    output: bool = False
    number: bool = False
    converts: bool = True
    takes: Literal["bool", "int", "float", "complex", "NumPy", "any"] = "any"
    changes: bool = False
    exactly: int | None = None
    group: str = "elements"
    is_checked: bool = False


@dataclass(frozen=True)
class KnownLayout:
    """How one array of a known call is laid out: shape, strides in bytes, NumPy's alignment flag.

    offset: from its data to what the kernel gets. low, high: from its data to the bounds of its memory.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    aligned: bool
    offset: int
    low: int
    high: int


@dataclass(frozen=True)
class KnownCall:
    """A call whose slots are known except for addresses and numbers.

    template: the slots. size: of the iteration space. places: of the arguments, None for numbers. orders: the axes of
    outputs to allocate, from outermost to innermost in memory, by parameter; empty if none may be allocated.
    """

    template: array[int]
    size: int
    places: tuple[KnownLayout | None, ...]
    orders: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class CallForm:
    """The calls that an entry takes."""

    limit: int | None = None  # elements above which another kernel is better (streaming stores, 64-bit positions)
    ndim: int = 0  # of arrays; 0 if any number will do
    allocates: bool = True  # calls may leave out the outputs
    returns: Literal["outputs", "tuple", "nothing"] = "outputs"
    known: KnownCall | None = None  # take only arrays that lie like these; limit and ndim mean nothing then
    given: bool = True  # calls may give the outputs
    keyword: bool = False  # they may give the only one as out=
    zeroed: Collection[str] = ()  # outputs of which new ones start as zeros


def make(
    executable: Executable, args: Sequence[ArgSpec], fallback: Callee, name: str, form: CallForm | None = None
) -> Callee:
    """A builtin that runs the kernel on plain arguments and hands all other calls to `fallback`.

    Gives `fallback` itself if kernel or interpreter do not allow a native entry.
    """
    form = form or CallForm()
    known = form.known
    reason = objection(executable, args, known)
    if reason:
        debug.show(2, f"{name} has no native entry: {reason}", "")
        return fallback
    code = jit.compile_text("entry", entry_text(), executable.store, "least")
    words, keeps = _header(executable, args, form.limit), [fallback, executable]
    words[Header.FALLBACK] = id(fallback)
    words[Header.NDIM], words[Header.RETURNS] = form.ndim, Returns[form.returns.upper()]
    words[Header.GIVEN] = len(args) if form.given or not words[Header.OUTPUTS] else -1
    words[Header.KEYWORD] = form.keyword and words[Header.OUTPUTS] == 1
    for at, arg in enumerate(args):
        words += _argument(executable, arg, at)
        allocator = _allocator(arg, form, None if known is None else known.places[at])
        words[Argument.ALLOCATOR - Argument.WORDS] = 0 if allocator is None else id(allocator)
        keeps += [allocator, arg.dtype.numpy]
    if known is not None:
        keeps += _note_known(words, args, known)
    if not form.allocates:
        words[Header.ALLOCATE_LIMIT] = 0
    if form.zeroed:
        words[Header.SMALL_LIMIT] = 0  # the entry itself does not clear what it allocates
    return builtin(words, code, name, keeps)


def builtin(words: Sequence[int], code: jit.LoadedCode, name: str, keeps: object, signature: str = "") -> Callee:
    """A builtin whose self is some words. keeps: what these point to. signature: for `inspect`, with brackets."""
    packed = struct.pack(f"={len(words)}q", *words)
    method = METHOD.pack(0, code.address, METH_FASTCALL | METH_KEYWORDS, 0)
    texts = [name.encode() + b"\0", f"{name}{signature}\n--\n\n\0".encode()]
    self = b"".join((packed, method, *texts))  # one object, so that the function keeps alive all that it points to
    at = id(self) + d.DESCRIPTION + len(packed)
    shown = at + METHOD.size + len(texts[0]) if signature else 0
    ctypes.memmove(at, METHOD.pack(at + METHOD.size, code.address, METH_FASTCALL | METH_KEYWORDS, shown), METHOD.size)
    module = _Module("fusec")
    module.keeps = keeps
    return _new_function(at, self, module)


class _Module(str):
    """The `__module__` of a builtin; keeps alive what its description points to, and shows it to the collector."""

    keeps: object


def _allocator(arg: ArgSpec, form: CallForm, place: KnownLayout | None) -> Callee | None:
    """Makes the outputs that the entry leaves to the pool of memory: large ones, and those that start as zeros."""
    dtype, is_zeroed = arg.dtype.numpy, arg.name in form.zeroed
    make = memory.zeros if is_zeroed else memory.empty
    if form.known is None or place is None:
        return lambda first: make(first.shape, dtype)
    shape, axes = place.shape, form.known.orders.get(arg.name)
    in_order = axes is None or axes == tuple(range(len(shape)))
    if in_order and not is_zeroed and math.prod(shape) * dtype.itemsize < memory.LARGE:
        return None
    return lambda _: make(shape, dtype, None if in_order else axes)


def _new_function(method: int, self: bytes, module: str) -> Callee:
    create = ctypes.pythonapi.PyCFunction_NewEx
    create.restype, create.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.py_object]
    function: Callee = create(method, self, module)
    return function


# --- the description -------------------------------------------------------------------------------------------------


def _header(executable: Executable, args: Sequence[ArgSpec], limit: int | None) -> list[int]:
    outputs = [arg for arg in args if arg.output]
    widest = max(arg.dtype.nbytes for arg in args if not arg.number)
    narrow = ((1 << 31) - 1) // widest  # elements whose offsets fit 32 bits
    bound = (1 << 62) if executable.kernel.layout.wide else narrow
    pool = threads.pool(executable.store)
    words = [0] * Header.WORDS
    words[Header.TABLE] = ctypes.addressof(_table())
    words[Header.KERNEL] = executable.address
    words[Header.LIMIT] = bound if limit is None else min(limit, bound)
    largest = max((arg.dtype.nbytes for arg in outputs), default=1)
    words[Header.ALLOCATE_LIMIT] = words[Header.LIMIT]
    words[Header.SMALL_LIMIT] = (memory.LARGE - 1) // largest  # from there on they are recycled
    words[Header.ALONE_BELOW] = executable.grain.serial_below
    words[Header.POOL_RUN] = executable.runner or (0 if pool is None else pool.run_address)
    words[Header.POOL_STATE] = 0 if pool is None else pool.state_address
    words[Header.GRAIN] = executable.grain.address
    words[Header.INPUTS], words[Header.OUTPUTS] = len(args) - len(outputs), len(outputs)
    words[Header.SIZE_SLOT] = _slot(executable, "size", "")
    words[Header.EXTENT_SLOT] = _slot(executable, "extent", "")
    return words


def _note_known(words: list[int], args: Sequence[ArgSpec], known: KnownCall) -> list[object]:
    """Complete a description for arrays of known places; returns what must stay alive."""
    words[Header.TEMPLATE] = known.template.buffer_info()[0]
    words[Header.TEMPLATE_WORDS] = len(known.template)
    words[Header.SPACE_SIZE] = known.size
    words[Header.SIZE_SLOT] = words[Header.EXTENT_SLOT] = d.NO_SLOT
    words[Header.LIMIT] = 1 << 62
    words[Header.ALLOCATE_LIMIT] = (1 << 62) if known.orders else 0
    keeps: list[object] = [known.template]
    alike: dict[object, int] = {}
    for position, (arg, place) in enumerate(zip(args, known.places, strict=True)):
        if place is None:
            continue
        walk = array("q", (len(place.shape), *place.shape, *place.strides))
        flags = WRITEABLE if arg.output or arg.changes else 0
        at = Header.WORDS + position * Argument.WORDS
        words[at + Argument.KIND] = ParameterKind.PLACED
        words[at + Argument.MASK] = ALIGNED | flags | (WARN_ON_WRITE if flags else 0)
        words[at + Argument.FLAGS] = flags | (ALIGNED if place.aligned else 0)
        if words[at + Argument.PLACE] > 0:  # no raw array, and not alone
            walks = (arg.group, arg.dtype.nbytes, place.shape, place.strides, place.offset)
            words[at + Argument.PLACE] = alike.setdefault(walks, position + 1)
        words[at + Argument.WALK] = walk.buffer_info()[0]
        words[at + Argument.OFFSET : at + Argument.HIGH + 1] = place.offset, place.low, place.high
        keeps.append(walk)
    return keeps


def _slot(executable: Executable, kind: str, param: str, axis: int = 0) -> int:
    """Where a value goes; the place that no kernel reads if this one does not ask for it. axis: 1 for a second half."""
    for position, slot in enumerate(executable.kernel.slots):
        if slot.kind == kind and (slot.param == param or param == "") and (slot.axis == axis or kind != "scalar"):
            return position
    return d.NO_SLOT


def _argument(executable: Executable, arg: ArgSpec, position: int) -> list[int]:
    if arg.number:
        return _number(executable, arg)
    words = [0] * Argument.WORDS
    raw = arg.name in dict(executable.kernel.layout.raw)
    changes = arg.output or arg.changes
    flags = C_CONTIGUOUS | ALIGNED | (WRITEABLE if changes else 0)
    words[Argument.KIND] = ParameterKind.RAW if raw else ParameterKind.ARRAY
    words[Argument.CHANGES] = changes and not arg.is_checked
    words[Argument.PLACE] = -1 - position if raw or not arg.group else arg.dtype.nbytes
    words[Argument.DTYPE] = id(arg.dtype.numpy)
    words[Argument.MASK] = flags | (WARN_ON_WRITE if changes else 0)
    words[Argument.FLAGS] = flags
    words[Argument.SLOT] = _slot(executable, "pointer", arg.name)
    words[Argument.ITEMSIZE] = arg.dtype.nbytes
    words[Argument.RAW_SIZE_SLOT] = _slot(executable, "raw_size", arg.name)
    words[Argument.RAW_EXTENT_SLOT] = _slot(executable, "raw_extent", arg.name)
    words[Argument.RAW_STRIDE_SLOT] = _slot(executable, "raw_stride", arg.name)
    return words


def _number(executable: Executable, arg: ArgSpec) -> list[int]:
    words = [0] * Argument.WORDS
    words[Argument.KIND] = ParameterKind.NUMBER
    words[Argument.SLOT] = _slot(executable, "scalar", arg.name)
    words[Argument.SECOND_SLOT] = _slot(executable, "scalar", arg.name, 1)
    if arg.takes == "NumPy":
        words[Argument.SCALAR] = id(arg.dtype.numpy.type)
        words[Argument.ITEMSIZE] = arg.dtype.nbytes
        words[Argument.FORM] = NumberForm.INTEGER
        if arg.exactly is not None:
            words[Argument.LEAST], words[Argument.MOST] = arg.exactly & ((1 << arg.dtype.bits) - 1), 1
        return words
    words[Argument.MASK] = _accepts(arg)
    words[Argument.FORM] = FORMS.get(arg.dtype, NumberForm.INTEGER)
    if arg.dtype.is_complex:
        words[Argument.SCALAR], words[Argument.ITEMSIZE] = id(complex), 16
        return words
    words[Argument.LEAST], words[Argument.MOST] = _range(arg.dtype) if arg.exactly is None else [arg.exactly] * 2
    return words


FORMS = {
    FLOAT32: NumberForm.FLOAT32,
    FLOAT64: NumberForm.FLOAT64,
    COMPLEX64: NumberForm.FLOAT32,
    COMPLEX128: NumberForm.FLOAT64,
}


def _accepts(arg: ArgSpec) -> int:
    numpy = Accepts.NUMPY if arg.takes == "any" else 0
    own = {"bool": Accepts.BOOL, "int": Accepts.INT, "float": Accepts.FLOAT}.get(arg.takes, 0)
    if arg.dtype.kind == "bool":
        return (own or Accepts.BOOL) & Accepts.BOOL | numpy
    if arg.dtype.is_integer:
        return (Accepts.INT | Accepts.BOOL if arg.converts else own & ~Accepts.FLOAT or Accepts.INT) | numpy
    return (Accepts.FLOAT | Accepts.INT | Accepts.BOOL if arg.converts else own or Accepts.FLOAT) | numpy


def _range(dtype: DType) -> tuple[int, int]:
    """The integers that a parameter takes here, within int64; larger ones of uint64 go the long way."""
    if not dtype.is_integer:
        return 0, 1
    low = -(1 << (dtype.bits - 1)) if dtype.kind == "signed" else 0
    return low, min(low + (1 << dtype.bits) - 1, (1 << 63) - 1)


@cache
def address_reader() -> Callable[[object], int]:
    """The function that returns the address of an array's elements, in a tenth of the time of NumPy's attributes."""
    if objection_to_build():
        return _slow_address
    word = ctypes.c_int64.from_address
    return lambda array: word(id(array) + d.DATA).value


def _slow_address(array: Any) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


# --- what must be true for it ----------------------------------------------------------------------------------------


def objection(executable: Executable, args: Sequence[ArgSpec], known: KnownCall | None) -> str:
    """Why a kernel cannot have a native entry; empty if it can."""
    layout = executable.kernel.layout
    arrays = {arg.name for arg in args if not arg.number}
    writes = any(arg.output or (arg.changes and known is not None) for arg in args)
    if not writes or [arg.output for arg in args] != sorted(arg.output for arg in args):
        return "its parameters are not inputs followed by outputs"
    if len(args) > d.MOST_ARGUMENTS or len(executable.kernel.slots) > d.MOST_SLOTS:
        return "it has too many parameters"
    if known is None and not is_contiguous(layout):
        return "its arrays are not contiguous"
    if arrays != {name for name, _ in (*layout.steps, *layout.raw)} or not (layout.steps or known):
        return "its arrays are not all parameters of the call"
    for arg in args:
        if arg.number and not (_is_plain(arg.dtype) if arg.takes == "NumPy" else _is_simple(arg.dtype)):
            return f"'{arg.name}' is a number of {arg.dtype}"
        if arg.exactly is not None and not _is_within(arg.exactly, arg.dtype):
            return "a number that determines how many elements there are is not a 64-bit integer"
    return _objection_to_raw(layout, args, known) or objection_to_build()


def is_contiguous(layout: Layout) -> bool:
    """True if all arrays that a kernel walks have the layout of its space, without gaps."""
    return layout.ndim == 1 and all(row == (Step.UNIT,) for _, row in layout.steps)


def _objection_to_raw(layout: Layout, args: Sequence[ArgSpec], known: KnownCall | None) -> str:
    if known is None and any(shape != (1, True) for _, shape in layout.raw):
        return "a raw array is not one-dimensional and contiguous"
    if known is None and any(arg.output for arg in args if arg.name in dict(layout.raw)):
        return "an output is raw"
    if layout.aligned > min(arg.dtype.nbytes for arg in args if not arg.number):
        return "it needs more alignment than arrays have"
    return ""


def _is_within(value: int, dtype: DType) -> bool:
    least, most = _range(dtype)
    return dtype.is_integer and least <= value <= most


def _is_simple(dtype: DType) -> bool:
    if dtype.is_complex:
        return _is_plain(COMPLEX128) and complex.__basicsize__ == d.VALUE + 16
    return dtype.is_integer or dtype.kind == "bool" or dtype in (FLOAT32, FLOAT64)


@cache
def _is_plain(dtype: DType) -> bool:
    """Whether NumPy's scalars of a dtype are objects that the value's bytes follow."""
    kind = dtype.numpy.type
    pattern = np.frombuffer(bytes(range(1, dtype.nbytes + 1)), dtype.numpy)[0] if dtype.kind != "bool" else np.True_
    if type(pattern) is not kind or kind.__basicsize__ < d.VALUE + dtype.nbytes:
        return False
    return ctypes.string_at(id(pattern) + d.VALUE, dtype.nbytes) == pattern.tobytes()


@cache
def objection_to_build() -> str:
    """Why the interpreter's or NumPy's objects cannot be read; empty if their layout is the expected one."""
    if sys.implementation.name != "cpython" or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return "the interpreter is not CPython with its lock"
    if (object.__basicsize__, bytes.__basicsize__, struct.calcsize("P")) != (16, d.DESCRIPTION + 1, 8):
        return "objects have an unknown header"
    names = ("out",)
    if (_peek(id(names) + d.COUNT, ctypes.c_int64), _peek(id(names) + tuple.__basicsize__, ctypes.c_int64)) != (
        1,
        id(names[0]),
    ):
        return "tuples have an unknown layout"
    if INT64.numpy.byteorder not in "=<" or sys.byteorder != "little":
        return "the machine is big-endian"
    try:
        api = _numpy_api()
    except (ImportError, AttributeError, ValueError):
        return "NumPy hides its C functions"
    if api[2] != id(np.ndarray):
        return "NumPy's table of C functions is another"
    probe = np.zeros((2, 3, 5), FLOAT32.numpy)
    probe.flags.writeable = False
    found = tuple(_peek(id(probe) + at, kind) for at, kind in _FIELDS)
    flags = C_CONTIGUOUS | ALIGNED
    expected = (id(np.ndarray), probe.ctypes.data, 3, id(FLOAT32.numpy), flags)
    extents, strides = (_peek(id(probe) + at, ctypes.c_int64) for at in (d.EXTENTS, d.STRIDES))
    walk = [_peek(start + 8 * axis, ctypes.c_int64) for start in (extents, strides) for axis in range(3)]
    masked = (*found[:4], found[4] & (flags | WRITEABLE))
    if masked != expected or walk != [*probe.shape, *probe.strides]:
        return "arrays have an unknown layout"
    return ""


_OUT = sys.intern("out")  # as names of arguments in calls are

_FIELDS: tuple[tuple[int, Any], ...] = (
    (d.TYPE, ctypes.c_int64),
    (d.DATA, ctypes.c_int64),
    (d.NDIM, ctypes.c_int32),
    (d.DTYPE, ctypes.c_int64),
    (d.FLAGS, ctypes.c_int32),
)


def _peek(address: int, kind: Any) -> int:
    value: int = kind.from_address(address).value
    return value


@cache
def _numpy_api() -> ctypes.Array[ctypes.c_int64]:
    """The start of the table that NumPy's C API is."""
    place = "numpy.core" if np.__version__.startswith("1.") else "numpy._core"
    umath = importlib.import_module(place + "._multiarray_umath")
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address = pointer(umath._ARRAY_API, None)
    return (ctypes.c_int64 * (NEW_FROM_DESCR + 1)).from_address(address)


@cache
def _table() -> ctypes.Array[ctypes.c_int64]:
    """Addresses of what the entry calls and compares with; lives as long as the process."""
    table = (ctypes.c_int64 * AddressTable.WORDS)()
    objects: dict[AddressTable, object] = {
        AddressTable.NDARRAY: np.ndarray,
        AddressTable.FLOAT: float,
        AddressTable.INT: int,
        AddressTable.BOOL: bool,
    }
    objects |= {AddressTable.TRUE: True, AddressTable.NONE: None, AddressTable.OUT: _OUT}
    for word, value in objects.items():
        table[word] = id(value)
    table[AddressTable.ITEMS] = tuple.__basicsize__
    scalars = [BY_NAME[name] for name in d.SCALARS]
    if all(map(_is_plain, scalars)):
        for at, dtype in enumerate(scalars):
            table[AddressTable.SCALARS + at] = id(dtype.numpy.type)
    functions = {
        AddressTable.VECTORCALL: "PyObject_Vectorcall",
        AddressTable.SAVE_THREAD: "PyEval_SaveThread",
        AddressTable.RESTORE_THREAD: "PyEval_RestoreThread",
        AddressTable.NEW_TUPLE: "PyTuple_New",
        AddressTable.SET_ITEM: "PyTuple_SetItem",
        AddressTable.INCREF: "Py_IncRef",
        AddressTable.DECREF: "Py_DecRef",
        AddressTable.AS_LONG_LONG: "PyLong_AsLongLongAndOverflow",
        AddressTable.AS_DOUBLE: "PyFloat_AsDouble",
    }
    for word, name in functions.items():
        address = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
        assert address, f"the interpreter exports {name}"
        table[word] = address
    table[AddressTable.NEW_ARRAY] = _numpy_api()[NEW_FROM_DESCR]
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(table))
    return table
