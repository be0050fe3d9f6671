"""Functions of scalars, written in Python, as callable objects that run for every element of their arguments."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from functools import cached_property
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from fusec.arguments.containers import Door, adopted
from fusec.arguments.operands import Form, dtype_of, form_of, is_contained, outputs_of
from fusec.arguments.scalars import SCALAR_TYPES, as_array, encode
from fusec.arguments.signature import Parameter, Takes, types_named
from fusec.base import dtypes, locks
from fusec.base.diagnostics import counted
from fusec.base.dtypes import DType
from fusec.base.kernel_abi import Fp
from fusec.base.public import CallSignature, Public, signature_of
from fusec.base.recent import Recent
from fusec.base.records import dataclass
from fusec.compiler import pipeline
from fusec.dispatch import checked
from fusec.dispatch.call import KernelCall
from fusec.dispatch.checked import Checks
from fusec.dispatch.fast_path_host import FastPath, ShortWays
from fusec.dispatch.planned import Planned, ShowsElements, block_size_of, hide_internal_frames, kernel_name
from fusec.dispatch.shown import Showing, ShownKernels
from fusec.dispatch.spec import PLAIN, Bound, CallOptions
from fusec.errors.arguments import WITHOUT
from fusec.errors.python import ArgumentMissing, BadParameter, UnexpectedArgument, argument_missing
from fusec.frontends.capture import closure, frozen_globals
from fusec.frontends.capture.closure import Captured, Origin
from fusec.frontends.python import signature as declared
from fusec.frontends.python.definition import Capture, PythonDefinition
from fusec.kernels.function_signature import FunctionSignature, defaults_of, dtype_named

if TYPE_CHECKING:
    import inspect

    from fusec.dispatch.explain import Explanation

RESERVED = ("out", "stream", "block_size")
NAMES = ("__module__", "__qualname__")  # which a copy has too
MAX_VARIANTS = 64  # combinations of numbers and defaults of one function


@dataclass(frozen=True)
class Decoration:
    """What a function of arrays is made of."""

    origin: Origin  # the Python function, or its text
    name: str  # "" for its own
    fp: Fp = "strict"
    kept: Mapping[str, object] = {}  # values its free names had when it was decorated
    checks: Checks = ""  # what calls look for, see `fusec.dispatch.checked`


@dataclass(frozen=True)
class Selection:
    """The parameters of a function that a call gives, and how."""

    inputs: tuple[Parameter, ...]  # those that are given
    constants: tuple[tuple[str, Capture], ...]  # the defaults of the others
    numbers: tuple[tuple[str, str], ...]  # Python numbers, with their types
    scalars: frozenset[str]  # parameters whose dtypes NumPy's scalars chose
    forms: Mapping[str, Form]  # of all parameters


class Variant(Planned):
    """A function for a given selection of arrays and numbers among its arguments; the others have their defaults."""

    def __init__(
        self,
        owner: Elementwise,
        selection: Selection,
        definition: PythonDefinition,
        *,
        neighbours: bool = False,
        updated: frozenset[str] = frozenset(),
    ) -> None:
        outputs = tuple(Parameter(name, name, None) for name in definition.outputs)
        super().__init__(
            definition,
            FunctionSignature(owner.name, selection.inputs, outputs, definition),
            return_tuple=owner.returns_tuple, fp=owner.fp, uses_index=neighbours, reduce_dims=not neighbours,
            updated=updated,
        )  # fmt: skip
        self.follows_raw = neighbours
        self.owner, self.scalars = owner, selection.scalars
        self.takes_outputs, self.names_output = not definition.constants, True

    @cached_property
    def checked(self) -> Planned:
        """The same with the checks of its owner."""
        return checked.checked(self, self.owner.checks)

    @cached_property
    def guarded(self) -> Planned:
        """The same with checks of bounds at least."""
        return checked.checked(self, checked.with_bounds(self.owner.checks))

    @cached_property
    def is_positional(self) -> bool:
        """Whether positional arguments reach it: no parameter with its default precedes a given one."""
        return [param.name for param in self.in_params] == list(self.owner.params[: self.nin])

    def fast_path(self, call: KernelCall[Any]) -> FastPath | None:
        """That of its owner, unless positional arguments would mean something else."""
        if self.is_positional and (self.takes_outputs or call.is_on_host or not call.is_given):
            return self.owner.path
        return None

    def takes(self, param: Parameter) -> Takes:
        """Numbers of the kind that made this variant, unless the dtype was declared."""
        assert isinstance(self.definition, PythonDefinition), "variants are made of functions"
        if param.name in self.scalars:
            return "NumPy"
        return dict(self.definition.numbers).get(param.name, "any")  # type: ignore[return-value]

    def remember(self, bound: Bound) -> None:
        """Record the last call: source() without types shows it."""
        self.owner.last = self
        super().remember(bound)

    def converts(self, name: str, types: Mapping[str, DType]) -> bool:
        """Whether a float would serve as well as the given integer: it meets floats of one dtype only."""
        assert isinstance(self.signature, FunctionSignature), "variants infer"
        if any(param.name == name and self.takes(param) == "any" for param in self.in_params):
            return True
        return name in self.signature.adapted.get(tuple(types.items()), ())

    def binds_outputs(self, types: Mapping[str, DType], numbers: frozenset[str]) -> bool:
        """True if the outputs have the dtypes that the function computes."""
        del numbers
        given = [None if param in self.out_params else types[param.name] for param in self.params]
        return self.signature.bind(given) == dict(types)


class Elementwise(Public, ShowsElements, ShortWays):
    """A function of scalars that runs for every element of its arguments; see `fusec.elementwise`."""

    kind = "elementwise"
    reserved: tuple[str, ...] = RESERVED
    __signature__ = CallSignature()
    is_elementwise = True  # whether a result depends on the arguments at its own place alone

    def __init__(self, made_of: Decoration) -> None:
        origin, self.checks = made_of.origin, made_of.checks
        self.__fusec_origin__ = origin
        self.tree = closure.read(origin)
        self.kept = closure.attributes(origin, self.tree) | dict(made_of.kept)
        self.name = kernel_name(made_of.name, self.tree.name)
        self.fp = pipeline.check_fp(made_of.fp)
        self.params = tuple(param.name for param in self.tree.params)
        declared.check(self.tree, self.reserved)
        self._variants: Recent[tuple[Form, ...], Variant] = Recent(MAX_VARIANTS)
        self._captured: Captured | None = None
        self._declared: dict[str, DType | None] = {}
        self.last: Variant | None = None
        self.take_no_short_way(self._from_python)
        if isinstance(origin, FunctionType):
            functools.update_wrapper(self, origin)
        else:
            self.__name__ = self.__qualname__ = self.tree.name
        self.document(self.tree.doc)

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """The names of the results."""
        return declared.outputs(self.captured().functions)[0]

    @cached_property
    def returns_tuple(self) -> bool:
        """Whether calls return a tuple."""
        return declared.outputs(self.captured().functions)[1]

    # --- calling -------------------------------------------------------------------------------------------------

    def __call__(self, *args: object, **kwargs: object) -> object:
        """Run for every element; returns the result, or a tuple of several.

        Arguments are arrays that broadcast and numbers, by position or name. out: the array for the result, or a tuple
        of them. stream, block_size: for arrays on a GPU. Without any array the result is a NumPy scalar.
        Raises FusecTypeError and FusecValueError for arguments that do not fit; then nothing was written.
        """
        return self._fast(*args, **kwargs)

    @hide_internal_frames
    def _from_python(
        self,
        *args: object,
        out: object = None,
        stream: object = None,
        block_size: object = None,
        **named: object,
    ) -> object:
        if named:
            self.check_named(named)
        outputs, args = self._given_outputs(args, out), args[: len(self.params)]
        options = CallOptions(stream=stream, block_size=block_size_of(block_size))
        given = (*args, *named.values())

        def call(inputs: tuple[object, ...], outputs: tuple[object, ...]) -> tuple[object, ...]:
            rest = dict(zip(named, inputs[len(args) :], strict=True))
            return self._results(inputs[: len(args)], rest, outputs, options)

        if any(map(is_contained, given)):
            names = (*self.params[: len(args)], *named)
            door = Door(self.name, names, len(self.outputs), call, elementwise=self.is_elementwise)
            results = adopted(door, given, outputs)
        else:
            results = call(given, outputs)
        return results if self.returns_tuple else results[0]

    def _results(
        self,
        args: tuple[object, ...],
        named: Mapping[str, object],
        outputs: tuple[object, ...],
        options: CallOptions,
    ) -> tuple[object, ...]:
        """All results of a call whose arguments need no reading before."""
        variant, inputs, _ = self.bound(args, named)
        if not outputs and all(isinstance(arg, SCALAR_TYPES) for arg in inputs):
            return self._of_numbers(inputs, variant)
        return self.launch(variant, (*inputs, *outputs), options)

    def launch(self, variant: Variant, args: tuple[object, ...], options: CallOptions) -> tuple[object, ...]:
        """Run a variant, with checks if they are on."""
        self.last = variant
        if self.checks:
            return checked.run(variant.checked, args, options)
        return variant.run(args, None, options)

    def _of_numbers(self, inputs: tuple[object, ...], variant: Variant) -> tuple[object, ...]:
        """The function of numbers alone, as NumPy scalars."""
        found = self.launch(*self._with_arrays(inputs, variant), PLAIN)
        return tuple(each[()] for each in found)  # type: ignore[index]

    def _with_arrays(self, inputs: tuple[object, ...], variant: Variant) -> tuple[Variant, tuple[object, ...]]:
        """The variant for numbers as arrays, and these; Python's numbers adapt to NumPy's among them, if any."""
        arrays: dict[str, object] = {}
        adapts = any(isinstance(value, np.generic) for value in inputs)
        for param, value in zip(variant.in_params, inputs, strict=True):
            dtype = self.declared()[param.name]
            if dtype is not None:
                encode(value, dtype, param.name, self.name)  # refuses what does not fit
                arrays[param.name] = np.asarray(value).astype(dtype.numpy)
            elif adapts and not isinstance(value, np.generic):
                arrays[param.name] = value
            else:
                arrays[param.name] = as_array(value, param.name, self.name)
        if not arrays:
            raise BadParameter(f"'{self.name}' got no arguments", "pass an array or a number").at()
        return self.bound((), arrays)[:2]

    def check_named(self, named: Mapping[str, object]) -> None:
        """Raise UnexpectedArgument for a keyword that is no parameter."""
        for name in (each for each in named if each not in self.params):
            also = f"; and {', '.join(f'{each}=' for each in self.reserved)}"
            raise UnexpectedArgument.unknown(self.name, name, self.params, also, WITHOUT.get(name, "")).at()

    def bound(
        self, args: tuple[object, ...], named: Mapping[str, object]
    ) -> tuple[Variant, tuple[object, ...], tuple[object, ...]]:
        """The variant for these arguments, its inputs, and the positional outputs."""
        self._look_again()
        given: dict[str, object] = dict(zip(self.params, args, strict=False))
        outputs = self._given_outputs(args)
        if named:
            self.check_named(named)
        for name, value in named.items():
            if name in given:
                raise UnexpectedArgument.twice(self.name, f"'{name}'").at()
            given[name] = value
        forms = tuple(self.form(name, given[name]) if name in given else "default" for name in self.params)
        variant = self._variants.get(forms) or self._variant(forms)
        return variant, tuple(given[name] for name in self.params if name in given), outputs

    def _given_outputs(self, args: tuple[object, ...], out: object = None) -> tuple[object, ...]:
        """The outputs that follow the inputs by position, or those of out=. Raises UnexpectedArgument."""
        outputs = args[len(self.params) :]
        if outputs and len(outputs) != len(self.outputs):
            cure = (
                f"it takes {counted(len(self.params), 'argument')}, then {counted(len(self.outputs), 'output')} if any"
            )
            raise UnexpectedArgument(self.name, counted(len(args), "argument"), cure).at()
        if out is None:
            return outputs
        if outputs:
            raise UnexpectedArgument.twice(self.name, "out=").at()
        outputs = outputs_of(out)
        if len(outputs) != len(self.outputs):
            found, wanted = (counted(len(each), "array") for each in (outputs, self.outputs))
            raise UnexpectedArgument(self.name, f"out= of {found}", f"pass {wanted}").at()
        return outputs

    def form(self, name: str, value: object) -> Form:
        """How a variant sees an argument. Raises UnsupportedDtype for NumPy scalars that are not numbers."""
        if isinstance(value, np.generic) and dtypes.from_numpy(value.dtype) is None:
            dtype_of(np.asarray(value), name, self.name)
        return form_of(value)

    # --- variants ------------------------------------------------------------------------------------------------

    @locks.fork_safe
    def _variant(self, forms: tuple[Form, ...]) -> Variant:
        """A variant, made at the first call of its kind."""
        captured = self.captured()
        defaults = dict(captured.functions[-1].defaults)
        declared = self.declared()
        inputs, constants, numbers, scalars = [], [], [], set[str]()
        for name, form in zip(self.params, forms, strict=True):
            if form == "default":
                if name not in defaults:
                    raise argument_missing(self.name, name, self.params).at()
                constants.append((name, defaults[name]))
                continue
            dtype = declared[name]
            if form.startswith("Python ") and dtype is None:
                numbers.append((name, form.partition(" ")[2]))
            elif form.startswith("number "):
                if dtype is None:
                    scalars.add(name)
                dtype = dtype or dtypes.BY_NAME[form.partition(" ")[2]]
            inputs.append(Parameter(name, dtype.name if dtype else name, dtype))
        seen = dict(zip(self.params, forms, strict=True))
        selection = Selection(tuple(inputs), tuple(constants), tuple(numbers), frozenset(scalars), seen)
        return self._variants.keep(forms, self.variant_of(selection))

    def variant_of(self, selection: Selection) -> Variant:
        """A variant for a selection of arguments."""
        return Variant(self, selection, self.definition_of(selection))

    def definition_of(self, selection: Selection, **further: Any) -> PythonDefinition:
        """The definition of a variant. further: fields that only some kinds of functions have."""
        functions = self.captured().functions
        return PythonDefinition(self.name, functions, self.outputs, selection.constants, selection.numbers, **further)

    def captured(self) -> Captured:
        """The function's text with the values of its names; names that did not exist yet are looked up now."""
        self._look_again()
        if self._captured is None:
            self._captured = closure.capture(self.__fusec_origin__, self.kept)
        return self._captured

    def _look_again(self) -> None:
        """Forget what was made while a name was missing that is there now."""
        if self._captured is not None and self._captured.missing and frozen_globals.now_known(self._captured.missing):
            with locks.lock:
                self._captured, self._declared = None, {}
                self._variants.clear()
                for each in ("outputs", "returns_tuple"):
                    self.__dict__.pop(each, None)

    def declared(self) -> Mapping[str, DType | None]:
        """The dtypes that annotations fix."""
        if not self._declared:
            from fusec.frontends.python.annotations import dtype_of
            from fusec.frontends.python.kernel_context import KernelContext

            captured = self.captured()
            context = KernelContext(PythonDefinition(self.name, captured.functions, self.outputs))
            key = captured.functions[-1].key
            self._declared = {param.name: dtype_of(param.annotation, context, key) for param in self.tree.params}
        return self._declared

    # --- looking inside ------------------------------------------------------------------------------------------

    def shown(self, asked: Showing) -> ShownKernels:
        """What source() shows: the definition, with its checks if calls have them, its types and its memory layout."""
        if asked.of_last and self.last is not None:
            variant = self.last
        else:
            variant, given, by_value = self.shown_variant(asked.types, asked.scalars)
            asked = Showing(asked.target, given, by_value)
        return (variant.checked if self.checks else variant).shown(asked)

    def shown_variant(
        self, types: Mapping[str, object] | None, scalars: Sequence[str]
    ) -> tuple[Variant, Mapping[str, object], Sequence[str]]:
        """What source() shows before any call: the variant, its types, and its parameters passed by value."""
        given = types_named(types, next(iter(self.params), "x"))
        for name in (*given, *scalars):
            if name not in self.params:
                raise UnexpectedArgument.unknown(self.name, name, self.params).at()
        defaults = dict(self.captured().functions[-1].defaults)
        forms = []
        for name in self.params:
            if name in scalars:
                forms.append(f"number {dtype_named(name, given[name])}" if name in given else "Python float")
            elif name in given or self.declared()[name] is not None:
                forms.append(self.form_shown(name))
            else:
                if name not in defaults:
                    raise ArgumentMissing(self.name, name, f"pass types={{'{name}': 'float32'}}").at()
                forms.append("default")
        return self._variant(tuple(forms)), given, scalars

    def form_shown(self, name: str) -> Form:
        """How a parameter is passed before any call."""
        del name
        return "array"

    @hide_internal_frames
    def explain(
        self, *args: object, out: object = None, stream: object = None, block_size: object = None, **named: object
    ) -> Explanation:
        """Report how a call with these arguments runs: merged axes, lanes, types, bytes moved. Nothing is run."""
        del stream
        outputs, threads = self._given_outputs(args, out), block_size_of(block_size)
        variant, inputs, _ = self.bound(args[: len(self.params)], named)
        if not outputs and all(isinstance(arg, SCALAR_TYPES) for arg in inputs):
            variant, inputs = self._with_arrays(inputs, variant)
        return variant.explained((*inputs, *outputs), CallOptions(block_size=threads))

    @property
    def cached_codes(self) -> dict[str, str]:
        """LLVM text by dtypes, for every combination called so far."""
        return {key: text for each in self._variants.values() for key, text in each.cached_codes.items()}

    def call_signature(self) -> inspect.Signature:
        """The signature of the function itself."""
        if isinstance(self.__fusec_origin__, FunctionType):
            import inspect

            return inspect.signature(self.__fusec_origin__)
        return signature_of(defaults_of(self.tree), {})

    def described(self) -> tuple[str, str]:
        """The signature of the function, and its source."""
        return f"{self.name}({', '.join(self.params)})", self.tree.span.file.text.strip()

    def __repr__(self) -> str:
        return f"<fusec.{self.kind} {self.described()[0]}>"

    @property
    def own_options(self) -> tuple[object, ...]:
        """What its kind is made with beside the function."""
        return ()

    def __reduce__(self) -> tuple[object, ...]:
        made_of = Decoration(Captured(self.captured().functions), self.name, self.fp, {}, self.checks)
        return type(self), (made_of, *self.own_options), {key: getattr(self, key) for key in NAMES}

    def __get__(self, instance: object, owner: type | None = None) -> object:
        return self
