"""The verbs of functions that call kernels: built-in and fused functions, and expressions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from fusec.arguments.signature import types_named
from fusec.base.dtypes import DType
from fusec.base.public import Public
from fusec.codegen import DEFAULT_TARGET, target_of
from fusec.dispatch.interception import intercepted
from fusec.dispatch.planned import brief, hide_internal_frames
from fusec.dispatch.shown import Showing, ShownKernels
from fusec.errors.arguments import NoKernel, unknown_keyword
from fusec.errors.python import SHOWS_ARGUMENTS, ArgumentMissing, UnexpectedArgument

if TYPE_CHECKING:
    from fusec.arguments.layouts import Shape
    from fusec.base.kernel_abi import Fp
    from fusec.dispatch.explain import Explanation
    from fusec.dispatch.notes import Notes
    from fusec.kernels.listing import Listing


NOTHING: Mapping[str, Any] = MappingProxyType({})


class KernelCaller(Public):
    """A function whose calls call kernels; these are noted or interpreted where the function is looked into."""

    name: str
    fp: Fp = "strict"
    params: tuple[str, ...] = ()  # what takes arrays or numbers
    without: str = "NumPy does the work of this call"  # why a call has no kernel

    @abstractmethod
    def called(self, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
        """A call that reaches its kernels through no fast path."""

    def noted(self, args: Sequence[Any], options: Mapping[str, Any]) -> Notes:
        """The calls of kernels that a call makes. Raises NoKernel if there are none."""
        from fusec.dispatch.notes import Notes

        notes = Notes()
        self._note(args, options, notes)
        return notes

    def _note(self, args: Sequence[Any], options: Mapping[str, Any], notes: Notes) -> Any:
        with intercepted(notes):
            found = self.called(args, options)
        if not notes.calls:
            raise NoKernel(self.name, self.without).at()
        return found

    def listed(self, args: Sequence[Any], options: Mapping[str, Any]) -> Listing:
        """The kernels of a call, with all that lies between them. Raises NoKernel if there are none."""
        from fusec.kernels.launches import KeptNotes
        from fusec.kernels.listing import Listing

        notes = KeptNotes()
        result = self._note(args, options, notes)
        return Listing(notes, self.name, self.named(args, options), result)

    def named(self, args: Sequence[Any], options: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a call, as a listing calls them."""
        named = dict(zip(self.params, args, strict=False))
        more = {f"argument {at}": each for at, each in enumerate(args[len(named) :], len(named) + 1)}
        return {**named, **more, **options}

    @hide_internal_frames
    def explain(self, *args: Any, **options: Any) -> Explanation:
        """Report how a call with these arguments runs: kernels, types, order, bytes. Nothing is run."""
        return self.noted(args, options).report()

    @hide_internal_frames
    def simulated(self, *args: Any, **options: Any) -> Any:
        """A call in the interpreter; see `fusec.simulate`."""
        from fusec.dispatch.interpret import Interpreter

        interpreter = Interpreter()
        with intercepted(interpreter):
            found = self.called(args, options)
        if not interpreter.used:
            raise NoKernel(self.name, self.without).at()
        return found

    @hide_internal_frames
    def source(
        self,
        target: str = DEFAULT_TARGET,
        *args: Any,
        types: Mapping[str, object] | None = None,
        shape: Shape | Mapping[str, Shape] | None = None,
        scalars: Sequence[str] = (),
        **options: Any,
    ) -> str:
        """The text of all kernels of a call for a target: CUDA C by default; `fusec compile --help` lists the targets.

        A comment lists the launches in order, with sizes and arguments, and the arrays between them. args: those of the
        call; or a dictionary of dtypes alone, as `types`. types: parameter -> dtype. shape: of contiguous arguments, by
        parameter or of all; a million elements in a row if not given. scalars: parameters to pass by value. options: of
        the call, such as axis=. Raises FusecTypeError if types are missing.
        """
        return self.sourced(target, args, {"types": types, "shape": shape, "scalars": scalars}, options)

    def sourced(
        self, target: str, args: tuple[Any, ...], asked: Mapping[str, Any], options: Mapping[str, Any],
        first: Mapping[str, Any] = NOTHING,
    ) -> str:  # fmt: skip
        """The same. asked: the keywords of `source` itself. first: arguments before the others, by parameter."""
        target_of(target)
        known = self.call_keywords()
        for name in options:
            if known is not None and name not in known:
                raise unknown_keyword("source", name, ("target", *asked, *known)).at()
        types, shape = asked["types"], asked["shape"]
        if len(args) == 1 and types is None and (args[0] is None or is_types(args[0])):
            (types,), args = args, ()
        if args:
            return self.listed((*first.values(), *args), options).text(target)
        every, some = (None, shape) if isinstance(shape, Mapping) else (shape, dict[str, Any]())
        wanted = Showing(target, types, asked["scalars"], every, shapes=some)
        return self.shown(wanted, {**first, **options}).text(target)

    @abstractmethod
    def call_keywords(self) -> Sequence[str] | None:
        """The keywords of calls, None if they may be any."""

    def shown(self, asked: Showing, options: Mapping[str, Any] | None = None) -> ShownKernels:
        """What source() shows: the kernels of a call with arguments of certain types."""
        from fusec.dispatch.axes import axes_within

        options = {} if options is None else options
        if asked.axis is not None:
            options = {**options, "axis": asked.axis}
        samples = self.samples(asked)
        for name in self.required():
            if name not in samples and name not in options:
                cure = f"pass types={{'{name}': 'float32'}}; {SHOWS_ARGUMENTS} takes the arguments of a call"
                if name == "self":
                    cure = f"take the method of an object: OBJECT.{self.name} in place of CLASS.{self.name}"
                raise ArgumentMissing(self.name, name, cure).at()
        first = tuple(samples.pop(name) for name in takewhile(samples.__contains__, self.params))
        with axes_within(asked):
            return self.listed(first, {**samples, **options})

    def samples(self, asked: Showing) -> dict[str, Any]:
        """Arguments of certain types, whose content does not matter. Raises UnexpectedArgument."""
        from fusec.dispatch.axes import SHOWN
        from fusec.kernels.function_signature import dtype_named

        types, found = types_named(asked.types, next(iter(self.params), "x")), dict[str, Any]()
        for name in (*types, *asked.scalars, *asked.shapes):
            if name not in self.params:
                raise UnexpectedArgument.unknown(self.name, name, self.params).at()
        for name in self.params:
            dtype = dtype_named(name, types[name]).numpy if name in types else None
            if name in asked.scalars:
                value = asked.numbers.get(name, 1.0)
                found[name] = value if dtype is None else dtype.type(value)
            elif dtype is not None:
                shape = asked.shapes.get(name, asked.shape)
                found[name] = np.empty(SHOWN if shape is None else shape, dtype)
        return found

    def required(self) -> Sequence[str]:
        """The parameters that calls must give."""
        return self.params[:1]

    def described(self) -> tuple[str, str]:
        """The signature of the function, and what it does."""
        return f"{self.name}({', '.join(self.params)})", self.__doc__ or ""


def is_types(given: object) -> bool:
    """Whether an argument of source() says which dtypes parameters have."""
    if not isinstance(given, Mapping):
        return False
    return bool(given) and all(isinstance(each, str | type | np.dtype | DType) for each in given.values())


class NoCodes(Mapping[str, str]):
    """What a function that keeps no texts has for `cached_codes`: whoever looks into it learns where texts are."""

    def __init__(self, error: NoKernel) -> None:
        self._error = error

    def _refuse(self) -> NoReturn:
        raise brief(self._error.at())

    def __getitem__(self, key: str) -> str:
        self._refuse()

    def __iter__(self) -> Iterator[str]:
        self._refuse()

    def __len__(self) -> int:
        self._refuse()

    def __repr__(self) -> str:
        return f"<no cached codes: {self._error.why}>"


class FunctionVerbs(KernelCaller):
    """The verbs of a function that stays a function, which has them as attributes."""

    def __init__(self, function: Callable[..., Any], name: str, params: tuple[str, ...]) -> None:
        self.function, self.name, self.params, self.__doc__ = function, name, params, function.__doc__
        asked = f"{name}.source(types={{'{params[0]}': 'float32'}}) returns the texts of a call"
        self.cached_codes = NoCodes(NoKernel(name, "built-in functions share theirs", asked, " of its own"))

    def call_keywords(self) -> Sequence[str]:
        """All that stand behind the arrays."""
        from inspect import signature

        return [name for name in signature(self.function).parameters if name not in self.params]

    def called(self, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
        """The function itself: what it calls asks for interceptors before it takes a fast path."""
        return self.function(*args, **options)


FUNCTION_VERBS = ("explain", "compile", "source", "shown", "simulated", "cached_codes", "_repr_html_", "name", "fp")


def give_verbs(function: Callable[..., Any], verbs: KernelCaller) -> None:
    """Let a function have verbs."""
    for name in FUNCTION_VERBS:
        setattr(function, name, getattr(verbs, name))
