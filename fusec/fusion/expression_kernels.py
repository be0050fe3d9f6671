"""Expressions as callable objects: one kernel for each reduction in the text, and one for the rest."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from operator import attrgetter
from typing import Any, Generic, Literal, TypeVar, get_args

import numpy as np

from fusec.arguments.containers import Door, adopted
from fusec.arguments.operands import TEXT, Form, admitted, dtype_of, form_of, host_array, is_contained, lends
from fusec.arguments.scalars import SCALAR_TYPES, as_array
from fusec.arguments.signature import Parameter, Signature, Takes
from fusec.base import dtypes, locks
from fusec.base.dtypes import DType
from fusec.base.recent import Recent
from fusec.base.records import dataclass, field, replace
from fusec.base.rounding_mode import default_rounding
from fusec.dispatch import checked, engine
from fusec.dispatch.call import KernelCall
from fusec.dispatch.checked import Checks
from fusec.dispatch.exact_totals import check_totals
from fusec.dispatch.fast_path_host import FastPath
from fusec.dispatch.planned import Planned
from fusec.dispatch.reductions import REDUCTION
from fusec.dispatch.spec import PLAIN, CallOptions
from fusec.errors.base import FusecError
from fusec.errors.fusing import BadAxis, BadOption, CannotCast, NotANumber
from fusec.frontends.expression.definition import ExpressionDefinition, TotalDefinition, text_of
from fusec.frontends.expression.functions import REDUCTIONS
from fusec.frontends.expression.parse import ExpressionPart, Parsed, parse
from fusec.fusion.trace.numbers import picking

Order = Literal["K", "A", "C", "F"]
Casting = Literal["no", "equiv", "safe", "same_kind", "unsafe"]

NAME = "evaluate"  # of kernels, in messages
MAX_VARIANTS = 64  # combinations of arrays and numbers of one part
ORDERS: tuple[Order, ...] = get_args(Order)
CASTINGS: tuple[Casting, ...] = get_args(Casting)
dtype_of_array = attrgetter("dtype")
Variant = TypeVar("Variant", bound=Planned)


@dataclass(frozen=True)
class PartSignature(Signature):
    """The parameters of one part of an expression; the dtype of its result is inferred."""

    definition: ExpressionDefinition | None = None
    adapted: dict[tuple[tuple[str, DType], ...], frozenset[str]] = field(default_factory=dict, compare=False)

    def bind(self, given: Sequence[DType | None]) -> dict[str, DType]:
        """Parameter name -> dtype, from the dtypes of arrays (None for numbers, and for an output not given).

        A Python number takes the dtype that it meets, if that is one alone. Raises what the text is refused with.
        """
        types = {
            param.name: dtype or param.dtype
            for param, dtype in zip(self.inputs, given, strict=False)
            if dtype is not None or param.dtype is not None
        }
        return self._bound({name: dtype for name, dtype in types.items() if dtype is not None}, given[-1])

    def bind_names(self, types: Mapping[str, object]) -> dict[str, DType]:
        """Parameter name -> dtype, from a mapping of names to dtypes. Raises UnknownTypeName or TypesIncomplete."""
        inputs = Signature(self.name, self.inputs, ())
        own = {name: dtype for name, dtype in types.items() if name in inputs.placeholders}
        return self._bound(inputs.bind_names(own), None)

    def _bound(self, types: dict[str, DType], output: DType | None) -> dict[str, DType]:
        from fusec.frontends.expression.lower import infer

        assert self.definition is not None, "a part has a definition"
        found = infer(self.definition, types)
        types = {**types, **found.numbers}
        types = {param.name: types[param.name] for param in self.inputs}
        types[self.definition.outputs[0]] = output or found.results[0]
        self.adapted[tuple(types.items())] = found.single
        return types


class ExpressionVariant(Planned):
    """A part without reductions, for a given choice of arrays and numbers."""

    def __init__(self, owner: ElementPart, definition: ExpressionDefinition, signature: PartSignature) -> None:
        super().__init__(definition, signature)
        self.owner, self.typed = owner, signature

    @cached_property
    def checked(self) -> Planned:
        """The same with the checks of its owner."""
        return checked.checked(self, self.owner.source.checks)

    def fast_path(self, call: KernelCall[Any]) -> FastPath | None:
        """That of its owner."""
        del call
        return self.owner.path if self.in_params else None

    def takes(self, param: Parameter) -> Takes:
        """Numbers of the kind that made this variant: NumPy's have dtypes."""
        assert isinstance(self.definition, ExpressionDefinition), "parts are made of texts"
        return dict(self.definition.numbers).get(param.name, "NumPy")  # type: ignore[return-value]

    def converts(self, name: str, types: Mapping[str, DType]) -> bool:
        """Whether a float would serve as well as the given integer: it meets floats of one dtype only."""
        return name in self.typed.adapted.get(tuple(types.items()), ())

    def binds_outputs(self, types: Mapping[str, DType], numbers: frozenset[str]) -> bool:
        """True if the output has the computed dtype."""
        del numbers
        given = [None if param in self.out_params else types[param.name] for param in self.params]
        return self.typed.bind(given) == dict(types)


class TextPart(ABC, Generic[Variant]):
    """A part of a text, with a kernel for each choice of arrays and numbers."""

    def __init__(self, source: PartSource) -> None:
        self.source, self.inputs = source, source.part.inputs
        self.variants: Recent[tuple[Form, ...], Variant] = Recent(MAX_VARIANTS)

    @abstractmethod
    def made(self, definition: ExpressionDefinition, signature: PartSignature) -> Variant:
        """The kernel of a definition."""

    def variant(self, inputs: tuple[object, ...]) -> Variant:
        """The kernel for these arguments."""
        forms = tuple(map(form_of, inputs))
        found = self.variants.get(forms)
        return self.variants.keep(forms, self.made(*self.source.typed(forms))) if found is None else found

    def result(self, inputs: tuple[object, ...]) -> DType:
        """The dtype of the result for these arguments."""
        variant = self.variant(inputs)
        types = variant.signature.bind([*map(_dtype_of, self.inputs, inputs), None])
        return types[variant.out_params[0].name]

    def check_axes(self, inputs: tuple[object, ...]) -> int:
        """The number of axes of the result."""
        return max((len(getattr(each, "shape", ())) for each in inputs), default=0)


class ElementPart(TextPart[ExpressionVariant]):
    """A part that combines nothing. fast: the function that calls run, with inputs and perhaps the output."""

    def __init__(self, source: PartSource) -> None:
        super().__init__(source)
        self.fast: Callable[..., object] = self.from_python
        self.path = FastPath(self.from_python, partial(setattr, self, "fast"))
        self.results: Recent[object, DType] = Recent(MAX_VARIANTS)  # what is computed, by the dtypes of what is given

    def made(self, definition: ExpressionDefinition, signature: PartSignature) -> ExpressionVariant:
        """The kernel of a definition."""
        return ExpressionVariant(self, definition, signature)

    def from_python(self, *args: object) -> object:
        """Run for every element of the arguments, of which the last may be the output."""
        count = len(self.inputs)
        if any(map(is_contained, args)):
            for name, value in zip(self.inputs, args, strict=False):
                if isinstance(value, TEXT):
                    raise _text(name)
            (found,) = adopted(Door(NAME, self.inputs, 1, self._results), args[:count], args[count:])
        else:
            (found,) = self._results(args[:count], args[count:])
        return found

    def _results(self, inputs: tuple[object, ...], outputs: tuple[object, ...]) -> tuple[object, ...]:
        """The result of a call whose arguments need no reading before."""
        inputs = self.source.prepared(inputs)
        if not outputs and all(isinstance(arg, SCALAR_TYPES) for arg in inputs):
            inputs = self.source.as_arrays(inputs)
            if not inputs:
                outputs = (np.empty((), self.result(()).numpy),)
        given, variant = (*inputs, *outputs), self.variant(inputs)
        if self.source.checks:
            return checked.run(variant.checked, given, PLAIN)
        return variant.run(given)

    def run(self, inputs: tuple[object, ...], out: object, order: Order, casting: Casting) -> object:
        """Run with an output, an order or a casting rule."""
        if out is None and (order == "K" or _is_natural(inputs, order)):
            return self.fast(*inputs)
        types = tuple(map(type, inputs))
        try:
            kinds = tuple(map(dtype_of_array, inputs))
        except AttributeError:  # numbers among them, or lists
            kinds = tuple(getattr(each, "dtype", None) for each in inputs)
        key = types, kinds, getattr(out, "dtype", None), casting
        dtype = self.results.get(key)
        if dtype is None:
            dtype = self.result(self.source.prepared(inputs))
            check_cast("the result", dtype, out, casting)
            if _settle(types, kinds):
                self.results[key] = dtype
        if out is None:
            out = _allocated(self.source.prepared(inputs), dtype, order)
        return self.fast(*inputs, out)


class ReductionPart(TextPart[Planned]):
    """A part that combines elements."""

    def __init__(self, source: PartSource) -> None:
        super().__init__(source)
        axes = source.part.axes
        self.axis = axes[0] if axes is not None and len(axes) == 1 else axes
        self._choice = (self.axis, False, False)
        self.elements = ElementPart(replace(source, apart=True)) if source.checks else None  # to look for what wraps
        self._quick: dict[object, Callable[..., object]] = {}  # of the variant that takes arrays alone
        self._kinds: frozenset[type] = frozenset({np.ndarray})  # of arrays that this takes

    def fast(self, *inputs: object) -> object:
        """The totals of the arguments, a NumPy scalar without axes; plain arrays take a native entry."""
        quick = self._quick.get(self._choice)
        if quick is not None:
            for each in inputs:
                if type(each) not in self._kinds:
                    break
            else:
                try:
                    found: Any = quick(*inputs)
                except FusecError:  # which the long way words by the text
                    pass
                else:
                    return found if type(found) is not np.ndarray or found.ndim else found[()]
        return self._run(inputs, None, "K", "same_kind")

    def run(self, inputs: tuple[object, ...], out: object, order: Order, casting: Casting) -> object:
        """Combine, with an output, an order or a casting rule."""
        if out is None and order == "K":
            return self.fast(*inputs)
        return self._run(inputs, out, order, casting)

    def _run(self, inputs: tuple[object, ...], out: object, order: Order, casting: Casting) -> object:
        inputs = self.source.prepared(inputs)
        if all(isinstance(arg, SCALAR_TYPES) for arg in inputs):
            inputs = self.source.as_arrays(inputs) or (np.zeros(()),)
        kernel = self.variant(inputs)
        self.check_axes(inputs)
        if out is not None:
            check_cast("the result", self.result(inputs), out, casting)
        if self.elements is not None:
            self._check(self.elements, inputs)
        (found,) = kernel.run(inputs, out, CallOptions(self.axis))
        if self.elements is None and not any(isinstance(each, SCALAR_TYPES) for each in inputs):
            if all(isinstance(each, np.ndarray) for each in inputs):
                self._quick = kernel.quick
            elif engine.is_on_device(inputs):
                self._quick, self._kinds = kernel.quick, self._kinds | set(map(type, inputs))
        if out is not None or not isinstance(found, np.ndarray):
            return found
        if order in ("C", "F"):
            found = np.asarray(found, order=order)
        return found if found.ndim else found[()]

    def _check(self, elements: ElementPart, inputs: tuple[object, ...]) -> None:
        """Look for elements that wrap, and for totals of host arrays."""
        values, part = elements.from_python(*inputs), self.source.part
        if isinstance(values, np.ndarray):
            check_totals(NAME, REDUCTIONS[part.op].op, values, part.axes, part.span)

    def check_axes(self, inputs: tuple[object, ...]) -> int:
        """The number of axes of the totals. Raises BadAxis."""
        axes, ndim = self.source.part.axes, super().check_axes(inputs)
        for axis in axes or ():
            if axis >= ndim:
                cure = f"what is combined has {ndim} axes" if ndim != 1 else "what is combined has 1 axis"
                if (op := self.source.part.op) in ("max", "min"):
                    cure += f"; {op}(x, axis) reduces, {op}imum(a, b) compares two values"
                raise BadAxis(f"there is no axis {axis}", cure).at(self.source.part.span)
        return 0 if axes is None else ndim - len(axes)

    def made(self, definition: ExpressionDefinition, signature: PartSignature) -> Planned:
        """The kernel of a definition."""
        assert isinstance(definition, TotalDefinition), "this part combines"
        return Planned(definition, signature, REDUCTION)


# An expression, how it was called, and a weak reference to the output if one was given.
Remembered = tuple["ExpressionKernel", Callable[[], object] | None, Order, Casting]


@dataclass(frozen=True)
class PartSource:
    """One part of a text."""

    text: str
    number: int
    part: ExpressionPart
    expands: bool  # powers of small integers become products
    checks: Checks = ""  # what calls look for
    apart: bool = False  # of a part that combines elements: those by themselves

    def typed(self, forms: tuple[Form, ...]) -> tuple[ExpressionDefinition, PartSignature]:
        """The definition and the signature for arguments of these kinds."""
        numbers, inputs = [], []
        for name, form in zip(self.part.inputs, forms, strict=False):
            python, _, dtype = form.partition(" ")
            fixed = dtypes.BY_NAME[dtype] if python == "number" else None
            if python == "Python":
                numbers.append((name, dtype))
            inputs.append(Parameter(name, fixed.name if fixed else name, fixed))
        out = "out"
        while out in self.part.inputs:
            out += "_"
        made = TotalDefinition if self.part.op and not self.apart else ExpressionDefinition
        functions = (text_of(self.text, NAME),)
        definition = made(NAME, functions, (out,), numbers=tuple(numbers), part=self.number, expands=self.expands)
        return definition, PartSignature(NAME, tuple(inputs), (Parameter(out, out, None),), definition)

    def prepared(self, values: tuple[object, ...]) -> tuple[object, ...]:
        """The arguments as arrays and numbers. Raises NotANumber for text."""
        return tuple(_prepared(*pair) for pair in zip(self.part.inputs, values, strict=True))

    def as_arrays(self, numbers: tuple[object, ...]) -> tuple[object, ...]:
        """Numbers, some as arrays: all of them, or only NumPy's if there are any, to which Python's adapt.

        Raises ScalarDoesNotFit.
        """
        kinds = np.generic if any(isinstance(each, np.generic) for each in numbers) else object
        pairs = zip(self.part.inputs, numbers, strict=True)
        return tuple(_as_array(name, each) if isinstance(each, kinds) else each for name, each in pairs)


class ExpressionKernel:
    """A compiled text. names: its arguments, sorted. only: its part if there is only one.

    check: as for `fusec.elementwise`; of indices an expression has none.
    """

    def __init__(self, text: str, optimization: str = "aggressive", check: object = None) -> None:
        self.text, self.optimization = text, optimization
        with locks.lock, default_rounding():
            self.parsed: Parsed = parse(text_of(text, NAME).source)
        self.names = self.parsed.names
        expands, self.checks = optimization == "aggressive", checked.wanted("trust", check)
        self.parts = tuple(
            (ReductionPart if part.op else ElementPart)(PartSource(text, at, part, expands, self.checks))
            for at, part in enumerate(self.parsed.parts)
        )
        self.only = self.parts[0] if len(self.parts) == 1 else None
        self.pick: Callable[[Mapping[str, object]], tuple[object, ...]] = picking(self.names)
        self.plainly: Remembered = self, None, "K", "same_kind"

    def run(
        self, values: tuple[object, ...], out: object = None, order: Order = "K", casting: Casting = "same_kind"
    ) -> object:
        """The value for arguments in the order of `names`."""
        if self.only is not None:
            return self.only.run(values, out, order, casting)
        known = dict(zip(self.names, values, strict=True))
        *before, last = self.parts
        for part in before:
            found = part.run(tuple(known[name] for name in part.inputs), None, "K", casting)
            known[part.source.part.name] = np.asarray(found) if isinstance(found, np.generic) else found
        return last.run(tuple(known[name] for name in last.inputs), out, order, casting)

    def check(self, values: Sequence[object], out: object, casting: Casting) -> None:
        """Raise the errors of names, kinds and types of the arguments; nothing is run."""
        known = dict(zip(self.names, values, strict=True))
        dtype = None
        for part in self.parts:
            inputs = part.source.prepared(tuple(known[name] for name in part.inputs))
            if all(isinstance(each, SCALAR_TYPES) for each in inputs):
                inputs = part.source.as_arrays(inputs)
            dtype = part.result(inputs)
            known[part.source.part.name] = np.empty((1,) * part.check_axes(inputs), dtype.numpy)
        if out is not None and dtype is not None:
            check_cast("the result", dtype, out, casting)


# --- arguments -------------------------------------------------------------------------------------------------------


def _prepared(name: str, value: object) -> object:
    """An argument as an array or a number. Raises NotANumber for text, and what `operands` refuses."""
    kind = type(value)
    if kind in (float, int, bool, complex):
        return value
    if isinstance(value, TEXT):
        raise _text(name)
    found = admitted(value, name, NAME)
    if isinstance(found, (np.ndarray, np.generic)) and found.dtype.kind in "SUT":
        raise _text(name)
    if isinstance(found, np.generic):
        dtype_of(np.asarray(found), name, NAME)  # refuses scalars of which there are no arrays either
    return found


def _dtype_of(name: str, value: object) -> DType | None:
    """The dtype of an array of any library, None for numbers. Raises UnsupportedArgument or UnsupportedDtype."""
    if isinstance(value, SCALAR_TYPES):
        return None
    if not isinstance(value, np.ndarray):
        known = dtypes.BY_NAME.get(str(getattr(value, "dtype", "")).rpartition(".")[2])
        if known is not None:
            return known
    return dtype_of(host_array(value, name, NAME), name, NAME)


def _text(name: str) -> Exception:
    return NotANumber(f"'{name}' is text", "compare strings with NumPy, and pass the bools").at()


def _as_array(name: str, value: object) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    """A number as a zero-dimensional array; uint32 becomes int64, as numexpr has it."""
    found = as_array(value, name, NAME)
    return found.astype(np.int64) if found.dtype == np.uint32 else found


def _settle(types: tuple[type, ...], kinds: tuple[object, ...]) -> bool:
    """True if types and dtypes say what is computed: not for lists, nor for numbers alone, which go by their values."""
    numbers = (float, int, bool, complex)
    return any(each is np.ndarray or lends(each) for each in types) and all(
        kind in numbers or dtype is not None for kind, dtype in zip(types, kinds, strict=True)
    )


def _is_natural(inputs: tuple[object, ...], order: Order) -> bool:
    """True if a result that follows the arrays has this order in memory anyway: they all have it, and one shape."""
    flag = "f_contiguous" if order == "F" else "c_contiguous"
    shape = None
    for each in inputs:
        if type(each) is np.ndarray:
            shape = each.shape if shape is None else shape
            if each.shape != shape or not getattr(each.flags, flag):
                return False
        elif not isinstance(each, SCALAR_TYPES):
            return False
    return True


def _allocated(inputs: tuple[object, ...], dtype: DType, order: Order) -> object:
    """A new output; order "A": Fortran's if all arrays have that, else C's."""
    shape = np.broadcast_shapes(*(getattr(each, "shape", ()) for each in inputs))
    if order == "A":
        arrays = [each for each in inputs if isinstance(each, np.ndarray)]
        fortran = arrays and all(each.flags.f_contiguous and not each.flags.c_contiguous for each in arrays)
        order = "F" if fortran else "C"
    return np.empty(shape, dtype.numpy, "F" if order == "F" else "C")


def check_cast(what: str, dtype: DType, target: object, casting: Casting) -> None:
    """Raise CannotCast if the rule does not let an array hold values of a dtype."""
    wanted = getattr(target, "dtype", None)
    if isinstance(wanted, np.dtype) and not np.can_cast(dtype.numpy, wanted, casting):
        raise CannotCast(what, dtype.name, str(wanted), casting).at()


def check_options(order: object, casting: object) -> None:
    """Raise BadOption for an unknown order or casting rule."""
    if order not in ORDERS:
        raise BadOption(f"order={order!r} is not known", f"orders are {', '.join(map(repr, ORDERS))}").at()
    if casting not in CASTINGS:
        raise BadOption(f"casting={casting!r} is not known", f"rules are {', '.join(map(repr, CASTINGS))}").at()
