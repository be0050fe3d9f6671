"""The objects that a traced function computes with: they behave like arrays and record operations."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from fusec.arguments.operands import dtype_of
from fusec.base.diagnostics import did_you_mean, with_article
from fusec.base.dtypes import BOOL
from fusec.errors import FusecError
from fusec.errors.fusing import ComplexIntoReal, NoSuchAttribute, NotFusable
from fusec.errors.reductions import AxisOutOfBounds
from fusec.frontends.python.types import PYTHON_TYPES, PythonType
from fusec.fusion.trace import conditions, elementwise, needed
from fusec.fusion.trace.failing import restricting
from fusec.fusion.trace.flags import Flags
from fusec.fusion.trace.indices import basic, has_mask, is_chosen, is_known_mask
from fusec.fusion.trace.numbers import is_extent
from fusec.fusion.trace.tables import ANY_EXTENTS, FUNCTIONS, IN_SOURCE, METHODS, STATED, cure_for
from fusec.fusion.trace.trace import RECORDING, Trace, check_fits, constant, here, literal
from fusec.fusion.trace.trace_values import Array, ArrayValue, Step, Storage, ViewOf, laid_out, leaves_of

OF_PANDAS = frozenset("iloc loc at iat index columns values to_numpy fillna dropna groupby rolling shift apply".split())
REDUCED = frozenset("sum prod mean std var min max any all".split())
BY_LABELS = "it depends on labels: pass a plain array, such as s.to_numpy()"
PANDAS_CURE = "arguments of pandas are plain arrays here: pass what this would give, such as s.to_numpy()"


class Tracer:
    """A view of memory in a trace. steps: from all of that memory to the view. is_scalar: NumPy gives a number."""

    __slots__ = ("__weakref__", "_is_scalar", "_memory", "_seen", "_steps", "_trace")
    __array_priority__ = 1000.0
    __fusec_tracer__ = True
    dtype: np.dtype[Any]
    strides: tuple[int, ...]
    ndim: int
    itemsize: int
    nbytes: int

    def __init__(
        self, trace: Trace, memory: Storage, steps: tuple[Step, ...], seen: Array, is_scalar: bool = False
    ) -> None:
        self._trace, self._memory, self._steps, self._seen = trace, memory, steps, seen
        self._is_scalar = is_scalar

    # --- what arrays say of themselves ---------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents, from which numbers can be computed in calls of other extents too."""
        return tuple(self._trace.extents.numbers_of(self))

    @shape.setter
    def shape(self, given: Any) -> None:
        """Change the shape in place. Raises an error if that needs a copy."""
        found = METHODS["_reshaped"](self, given, copies=False)
        if self._memory.is_argument and not self._steps and found._seen.shape != self._seen.shape:
            raise NotFusable("a new shape of an argument", "write x = x.reshape(shape), a view of it").at(here())
        self._steps, self._seen, self._memory = found._steps, found._seen, found._memory

    @property
    def flags(self) -> Flags:
        """What NumPy says of the memory."""
        return Flags(self)

    @property
    def device(self) -> Any:
        """The device of the array; of NumPy's, "cpu"."""
        return self._trace.device

    def __len__(self) -> int:
        if self.ndim:
            conditions.require_extents(self, [0])
        return len(self._seen)

    def _length(self) -> Any:
        """len() as the function calls it."""
        return self.shape[0] if self.ndim else len(self._seen)

    @property
    def size(self) -> Any:
        """How many elements there are."""
        return functools.reduce(operator.mul, self.shape, 1)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        del api_version
        return METHODS["__array_namespace__"](self._trace)

    def __repr__(self) -> str:
        if RECORDING.get() is not None:  # else a debugger or a report of an error asks
            return repr(self._text())
        return f"<array in a fused function: shape {self.shape}, {self.dtype}>"

    # --- reading and writing -------------------------------------------------------------------------------------

    def _read(self) -> ArrayValue:
        return self._trace.read(self._memory, self._steps, self._seen)

    def _write(self, value: ArrayValue, where: Any = True) -> None:
        """Store a value, as NumPy casts and broadcasts it. Raises NumPy's errors."""
        dtype = elementwise.known_dtype(self.dtype)
        if where is not True:
            mask, value = elementwise.mask(_operand(self._trace, where)), self._trace.adapted(value, dtype)
            value = elementwise.choose(self._trace, mask, value, self._read())
        if value.is_weak and value.dtype.is_complex and not dtype.is_complex and dtype != BOOL:
            raise ComplexIntoReal(dtype.name).at(here())
        value = self._trace.adapted(value, dtype)
        shape = self._seen.shape
        if value.shape != shape:
            lead = len(value.shape) - self.ndim
            rest = value.shape[lead:] if lead > 0 and set(value.shape[:lead]) == {1} else value.shape
            check_fits("the stored value", rest, shape)
            if rest != value.shape:
                value = viewed(self._trace, value, lambda array: np.reshape(array, rest))
            (value, _) = self._trace.ready([value, ArrayValue(value.scalar, self._seen)])
        self._put(value)

    def _put(self, value: ArrayValue) -> None:
        """Store a value of the dtype, which broadcasts."""
        self._trace.write(self._memory, self._steps, self._seen, value)

    def _view(self, step: Step, is_scalar: bool = False) -> Tracer:
        if not self._seen.ndim and isinstance(step, ViewOf) and step.function is np.flip:
            step(np.zeros((), self._seen.dtype))  # it would read the number, which may be on a device
            number: Tracer = self[()]
            return number
        seen = step(self._seen)
        scalar = is_scalar or (self._is_scalar and not seen.ndim)
        base = made(self._trace, self._read(), scalar) if self._is_scalar else self  # arrays of a number are new
        return Tracer(self._trace, base._memory, (*base._steps, step), seen, scalar)

    def _labelled(self) -> str:
        """The type with labels that it has without fuse, or may have; "" if it has none."""
        labelled, value = self._trace.labelled, self._memory.value
        if not labelled or self._is_scalar:
            return ""
        leaves = [] if value is None else [self._trace.leaves[each] for each in leaves_of(value.expr)]
        buffers = [self._memory.buffer] if value is None else [each.buffer for each in leaves]
        found = [each for each in buffers if each is not None and each.kind != "constant"]
        names = [
            next(iter(labelled.values())) if each.kind == "temporary" else labelled.get(each.place) for each in found
        ]
        return next(filter(None, names), "")

    def _refuse_labelled(self, what: str, cure: str) -> None:
        """Raise NotFusable for what an array with labels does in another way than NumPy's."""
        name = self._labelled()
        if name:
            raise NotFusable(f"{what} of {with_article(name)}", cure).at(here())

    def __getitem__(self, index: Any) -> Any:
        if has_mask(index):
            return METHODS["_picked"](self, index)
        items = index if isinstance(index, tuple) else (index,)
        if any(isinstance(each, str) for each in items):
            self._refuse_labelled("indexing", BY_LABELS)
        if any(map(is_chosen, items)):
            self._refuse_labelled("indexing", BY_LABELS)
            return METHODS["_chosen"](self, index)
        index = basic(index)
        if index != (...,):
            self._refuse_labelled("indexing", BY_LABELS)
        number = all(isinstance(each, int) for each in index) and len(index) == self.ndim
        where = (*index, ...) if number else index
        found = self._view(conditions.indexed(self, where), number)
        if ... in index:
            found._is_scalar = False
        return made(self._trace, found._read(), True) if number else found  # a number stays what it is now

    def __setitem__(self, index: Any, given: Any) -> None:
        if self._is_scalar:
            raise TypeError(f"'numpy.{self.dtype.name}' object does not support item assignment")
        if has_mask(index) or any(map(is_known_mask, index if isinstance(index, tuple) else (index,))):
            METHODS["_store_picked"](self, index, given)
            return
        if METHODS["_is_scatter"](index):
            METHODS["_scatter"](self, index, given)
            return
        value = _operand(self._trace, given)
        found = basic(index)
        if len(found) == self.ndim and value.shape and all(isinstance(each, int) for each in found):
            raise ValueError("setting an array element with a sequence.")
        self[found if ... in found else (*found, ...)]._write(value)

    @property
    def T(self) -> Tracer:  # noqa: N802 - NumPy's name
        """The transpose."""
        return self._view(ViewOf(np.transpose))

    @property
    def mT(self) -> Tracer:  # noqa: N802 - NumPy's name
        """The array with its last two axes exchanged."""
        return self._view(ViewOf(np.swapaxes, (-1, -2)))

    @property
    def real(self) -> Any:
        """The real part."""
        return FUNCTIONS["real"](self)

    @real.setter
    def real(self, given: Any) -> None:
        """Store it."""
        self.real[...] = given

    @property
    def imag(self) -> Any:
        """The imaginary part."""
        return FUNCTIONS["imag"](self)

    @imag.setter
    def imag(self, given: Any) -> None:
        """Store it."""
        if self.dtype.kind != "c":
            raise TypeError("array does not have imaginary part to set")
        self.imag[...] = given

    @property
    def flat(self) -> Any:
        """The elements in C order, as a view."""
        if not self.flags.c_contiguous:
            raise NotFusable("x.flat of an array that is not dense in C order", "index axes").at(here())
        return METHODS["_reshaped"](self, -1)

    @flat.setter
    def flat(self, given: Any) -> None:
        """Store values, again and again if they are fewer."""
        self.flat[...] = FUNCTIONS["resize"](given, self.size)

    # --- what needs values ---------------------------------------------------------------------------------------

    def _number(self, what: str) -> Any:
        """Raise what tells that Python needs this as a number."""
        if not self._steps and self._memory.value is not None and not self._seen.shape:
            names = [self._trace.leaves[each] for each in leaves_of(self._memory.value.expr)]
            if all(each.number is not None for each in names):
                arguments = [place for each in names if each.number for place in self._trace.arguments_of(each.number)]
                if arguments:
                    raise self._trace.needing(arguments[0])
        raise needed.refused(what)

    def __hash__(self) -> int:
        if not self._is_scalar:
            raise TypeError("unhashable type: 'numpy.ndarray'")
        return hash(self._number("a key or hash()"))

    def __format__(self, spec: str) -> str:
        return format(self._text(), spec)

    def __str__(self) -> str:
        return str(self._text())

    def _text(self) -> Any:
        """Raise what tells that a text needs values."""
        return self._number("a text")

    def __copy__(self) -> Any:
        return self if self._is_scalar else METHODS["copy"](self, "K")

    def __deepcopy__(self, _: Any) -> Any:
        return self.__copy__()

    def __round__(self, *_: Any) -> Any:
        if not self._is_scalar:
            raise TypeError("type numpy.ndarray doesn't define __round__ method")
        return self._number("round()")

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """What isinstance asks: the type that the function would have without fuse."""
        if not self._is_scalar:
            return np.ndarray
        if self._memory.is_python:
            return bool
        kind = self._memory.value.kind if self._memory.value is not None else None
        return elementwise.WEAK[kind] if isinstance(kind, PythonType) else self.dtype.type

    def __iter__(self) -> Iterator[Tracer]:
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[at] for at in range(len(self)))

    # --- protocols -----------------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *args: Any, **options: Any) -> Any:
        return METHODS["__array_ufunc__"](self._trace, ufunc, method, args, options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        if METHODS["_Picked"] in types:
            return NotImplemented
        module = getattr(function, "__module__", "") or ""
        name = f"{module}.{function.__name__}".removeprefix("numpy.")
        known = FUNCTIONS.get(name)
        if known is None:
            raise NotFusable(f"{module}.{function.__name__}", cure_for(function.__name__)).at(here())
        self._see_extents(name, known)
        return _asked(f"np.{name}", known, args, options)

    def _see_extents(self, name: str, function: Any) -> None:
        """Note the call of a function by its name, which tells whether it looks at extents."""
        if name in STATED or name in IN_SOURCE:
            self._trace.extents.is_asked = True
        elif name not in ANY_EXTENTS and not METHODS["_follows"](function):
            self._trace.has_looked = True

    # --- methods -------------------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        method = METHODS.get(name) if name[0] != "_" else None
        if method is None:
            if name.startswith("__"):
                raise AttributeError(f"'numpy.ndarray' object has no attribute '{name}'")
            if not hasattr(np.ndarray, name):
                if self._is_scalar and hasattr(self.__class__, name):
                    return self._number(f"'{name}'")
                known = f"write np.{name}(x)" if name in FUNCTIONS else did_you_mean(name, METHODS)
                cure = PANDAS_CURE if name in OF_PANDAS else known
                raise NoSuchAttribute(name, cure).at(here())
            raise NotFusable(f"the method '{name}'", cure_for(name, METHODS)).at(here())

        def call(*args: Any, **options: Any) -> Any:
            wanted = ["ddof"] if name in ("std", "var") else []
            wanted += ["axis"] if name in REDUCED and self.ndim > 1 and not args else []
            for each in wanted:
                if each not in options:
                    self._refuse_labelled(f"'{name}' without {each}=", f"pass {each}=, whose default differs")
            self._see_extents(name, method)
            return _asked(f"the method '{name}'", method, (self, *args), options)

        return call


@restricting
def _asked(what: str, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Call a function that stands for one of NumPy's. Raises NotFusable for arguments that only NumPy's has."""
    _check_axis(what, function, args, options)
    params = _parameters(function)
    unknown = [name for name in options if name not in params and "**" not in params]
    if unknown:
        cure = did_you_mean(unknown[0], params) or f"leave it out; it takes {', '.join(params[1:]) or 'none'}"
        raise NotFusable(f"{what} with {', '.join(f'{name}=' for name in unknown)}", cure).at(here())
    try:
        return function(*args, **options)
    except np.exceptions.AxisError as problem:
        if isinstance(problem, FusecError) or problem.axis is None or problem.ndim is None:
            raise
        cure = f"the axes of {what} are counted from 0, or from the end as -1, -2, ..."
        raise AxisOutOfBounds(problem.axis, problem.ndim, cure).at(here()) from None
    except TypeError as problem:
        if _takes(function, args, options):
            raise
        given = f"{what} with {len(args)} positional arguments"
        raise NotFusable(given, "pass the arguments of NumPy's method, by name where they have names").at(
            here()
        ) from problem


def _check_axis(what: str, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Refuse axes of arrays with labels that are chosen by names. Raises NotFusable."""
    labelled = next((each for each in args if isinstance(each, Tracer) and each._labelled()), None)
    if labelled is None:
        return
    params = _parameters(function)
    place = params.index("axis") if "axis" in params else len(args)
    axis = options.get("axis", args[place] if place < len(args) else None)
    if any(isinstance(each, str) for each in (axis if isinstance(axis, (tuple, list)) else (axis,))):
        cure = "labels are not read: pass the number of the axis, such as axis=0 for the first"
        labelled._refuse_labelled(f"{what} with axis={axis!r}", cure)


def _takes(function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> bool:
    """Whether a function has parameters for all arguments."""
    try:
        inspect.signature(function).bind(*args, **options)
    except TypeError:
        return False
    return True


@lru_cache(maxsize=512)
def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a function's parameters, "**" for any."""
    found = inspect.signature(function).parameters.values()
    return tuple("**" if each.kind is each.VAR_KEYWORD else each.name for each in found)


def _operand(trace: Trace, given: Any) -> ArrayValue:
    """An operand as a value. Raises TypeError for what is none."""
    if isinstance(given, Tracer):
        if given._trace is not trace:
            raise NotFusable("an array of another call", "return it, and pass it as an argument").at(here())
        return given._read()
    if isinstance(given, (bool, int, float, complex)) and type(given) in (bool, int, float, complex):
        return literal(given)
    if is_extent(given):
        kind = PYTHON_TYPES.get(type(given.value))
        return trace.number(
            ("known", given.value), elementwise.known_dtype(given.value.dtype) if kind is None else kind, given.derived
        )
    if isinstance(given, np.generic):
        return constant(given, elementwise.known_dtype(given.dtype))
    if isinstance(given, np.ndarray):
        dtype = dtype_of(given, "an array from outside", trace.name)
        memory = trace.constant(given, dtype)
        return trace.read(memory, (), memory.base)
    if isinstance(given, (float, int, complex)) and isinstance(found := np.asarray(given)[()], np.generic):
        return _operand(trace, found)  # of a member of an enumeration, say, which has a dtype for NumPy
    if isinstance(given, (list, tuple)):
        traced = [each for each in given if isinstance(each, Tracer)]
        if not traced:
            return _operand(trace, np.asarray(given))
        return _operand(trace, METHODS["_array"](given))
    raise not_an_operand(given)


def not_an_operand(given: Any, what: str = "an operand") -> FusecError:
    """The error for a value that arrays cannot be combined with."""
    cure = "compute with arrays, numbers, and lists of numbers"
    return NotFusable(f"{what} of type {type(given).__name__}", cure).at(here())


def _depends_on_extents(name: str) -> Any:
    """An attribute of arrays that differs with their extents."""
    read = operator.attrgetter(name)

    def get(self: Tracer) -> Any:
        self._trace.has_looked = True
        return read(self._seen)

    return property(get)


def _needs_number(name: str, what: str) -> Callable[..., Any]:
    """A method for which Python needs the number that an array holds."""

    def ask(self: Tracer, *args: Any, **options: Any) -> Any:
        found = METHODS["_ask"](self, name, *args, **options)
        return self._number(what) if found is NotImplemented else found

    return ask


Tracer.__name__ = Tracer.__qualname__ = "ndarray"  # in messages of Python's and NumPy's
for _name in ("dtype", "ndim", "itemsize"):  # as unfused, known while tracing
    setattr(Tracer, _name, property(operator.attrgetter(f"_seen.{_name}")))
for _name in ("strides", "nbytes"):
    setattr(Tracer, _name, _depends_on_extents(_name))
for _name, _what in {
    **{f"__{each}__": f"{each}()" for each in ("bool", "int", "float", "complex")}, "__contains__": "in",
    "__index__": "an index, range or axis", "__array__": "making a NumPy array of it",
    "item": "item()", "tolist": "tolist()",
}.items():  # fmt: skip
    setattr(Tracer, _name, _needs_number(_name, _what))


def viewed(trace: Trace, value: ArrayValue, step: Step) -> ArrayValue:
    """A view of a value."""
    base = value.phantom if trace.is_read(value) else laid_out(value.phantom, value.dtype.numpy)
    return trace.read(trace.storage(base, None, value), (step,), step(base))


def made(trace: Trace, value: ArrayValue, is_scalar: bool = False) -> Tracer:
    """A new array of a value. is_scalar: NumPy returns a number if it has no axes."""
    seen = value.phantom
    if seen.dtype != value.dtype.numpy or not (seen.flags.c_contiguous and seen.flags.writeable):
        seen = laid_out(seen, value.dtype.numpy)
    scalar = is_scalar and not seen.shape
    if value.is_weak and not scalar:
        value = trace.adapted(value, value.dtype)
    return Tracer(trace, trace.storage(seen, None, ArrayValue(value.scalar, seen)), (), seen, scalar)
