"""Reductions whose map, combination and finish are Python functions, as callable objects."""

from __future__ import annotations

from collections.abc import Mapping
from types import FunctionType, NoneType
from typing import TYPE_CHECKING, Any

import numpy as np

from fusec.arguments import operands
from fusec.arguments.operands import Form, outputs_of, scalars_of
from fusec.arguments.scalars import flag
from fusec.arguments.signature import Parameter, Signature, Takes, types_named
from fusec.base import dtypes, locks
from fusec.base.diagnostics import counted
from fusec.base.dtypes import DType
from fusec.base.kernel_abi import Fp
from fusec.base.public import CallSignature, Public, signature_of
from fusec.base.recent import Recent
from fusec.base.records import dataclass, replace
from fusec.compiler import pipeline
from fusec.dispatch.call import KernelCall
from fusec.dispatch.checked import Checks
from fusec.dispatch.fast_path_host import FastPath, Paths
from fusec.dispatch.planned import Planned, ShowsTotals, hide_internal_frames, kernel_name
from fusec.dispatch.reductions import REDUCTION
from fusec.dispatch.shown import Showing, ShownKernels
from fusec.dispatch.spec import Axis, CallOptions
from fusec.errors import FusecError
from fusec.errors.arguments import WITHOUT_OF_TOTALS
from fusec.errors.python import BadReduction, CannotStore, UnexpectedArgument, argument_missing
from fusec.frontends.capture import closure, frozen_globals
from fusec.frontends.capture.closure import Origin
from fusec.frontends.python.definition import Capture, FunctionText, ReductionFunctions
from fusec.kernels.function_signature import defaults_of, dtype_named
from fusec.kernels.reduction_roles import RESERVED, check, inputs_of

if TYPE_CHECKING:
    import inspect

    from fusec.dispatch.explain import Explanation
    from fusec.frontends.python import syntax as s

MAX_VARIANTS = 64  # combinations of dtypes, numbers and defaults of one reduction
KEPT = ("__module__", "__name__", "__qualname__", "__doc__", "checks")  # of a copy
OPTIONS: Mapping[str, object] = {"axis": None, "keepdims": False, "out": None, "where": True, "stream": None}
TAKES = "a call also takes axis=, keepdims=, out=, where= and stream="


class ReductionVariant(Planned):
    """A reduction for arguments of certain dtypes, some of them numbers, others with their defaults.

    is_tuple: whether several results, or one, come as a tuple. forms: of all parameters. native: calls of as many
    arguments by position may get a native entry.
    """

    def __init__(
        self,
        owner: Reduction,
        definition: ReductionFunctions,
        signature: Signature,
        is_tuple: bool,
        forms: Mapping[str, Form],
    ) -> None:
        super().__init__(definition, signature, REDUCTION, uses_index=owner.uses_index, fp=owner.fp)
        self.owner, self.is_tuple, self.forms, self.checks = owner, is_tuple, forms, owner.checks
        types = {param.name: param.dtype for param in signature.inputs if param.dtype is not None}
        self.native = _is_plain(forms, types) and (self.nout == 1) == (not is_tuple)
        if not self.native:
            self.native_objection = "defaults come before given arguments, or numbers or results need Python"
        else:
            self.share(owner.paths.setdefault(self.nin, Paths()))

    def converts(self, name: str, types: Mapping[str, DType]) -> bool:
        """Never: a number's own type counts."""
        del name, types
        return False

    def takes(self, param: Parameter) -> Takes:
        """Numbers of the kind that made this variant."""
        sort, _, kind = self.forms.get(param.name, "").partition(" ")
        return kind if sort == "Python" else "NumPy"  # type: ignore[return-value]

    def fast_path(self, call: KernelCall[Any]) -> FastPath | None:
        """None if the arguments need Python."""
        return super().fast_path(call) if self.native else None

    def answer(self, args: tuple[object, ...], out: tuple[object, ...] | None, options: CallOptions) -> object:
        """The result of a call that has arrived here, but may belong to another variant."""
        return self.owner.run(args, {}, out, options)


@dataclass(frozen=True)
class CapturedRoles:
    """Functions by themselves, and the key of each role among them: of a reduction that is restored."""

    functions: tuple[FunctionText, ...]
    keys: dict[str, str]


class Reduction(Public, ShowsTotals):
    """A reduction made of functions, which runs along axes of its arguments; see `fusec.reduction`.

    origins: by role, the functions or their texts. kept: likewise, values that their free names had. identity: what a
    total of no elements is, as a capture.
    """

    __signature__ = CallSignature()

    def __init__(
        self,
        origins: Mapping[str, Origin] | CapturedRoles,
        kept: Mapping[str, Mapping[str, object]],
        identity: Capture | None,
        name: str,
        fp: Fp,
    ) -> None:
        self._captured: tuple[tuple[FunctionText, ...], dict[str, str]] | None = None
        if isinstance(origins, CapturedRoles):
            self._captured, origins = (origins.functions, origins.keys), {}
        self.origins, self.identity = origins, identity
        self._missing: closure.Missing = ()
        self.trees = self._trees()
        self.kept = {
            role: {**closure.attributes(origin, self.trees[role]), **kept[role]} for role, origin in origins.items()
        }
        self.name = kernel_name("", name)
        self.fp = pipeline.check_fp(fp)
        check(self.trees)
        self.params = inputs_of(self.trees)
        asked = {param.name for role in ("map", "finish") if role in self.trees for param in self.trees[role].params}
        self.uses_index = not asked.isdisjoint(("index", "indices"))
        self._declared: dict[str, DType | None] = {}
        self._variants: Recent[object, ReductionVariant] = Recent(MAX_VARIANTS)
        self._last: ReductionVariant | None = None
        self.checks: Checks = ""
        self.paths: dict[int, Paths] = {}  # by the number of arguments
        self.__name__ = self.__qualname__ = name
        self.document()

    def _trees(self) -> dict[str, s.FunctionNode]:
        if self._captured is not None:
            functions, keys = self._captured
            known = {each.key: each for each in functions}
            return {role: known[key].tree for role, key in keys.items()}
        return {role: closure.read(origin) for role, origin in self.origins.items()}

    # --- calling -------------------------------------------------------------------------------------------------

    def __call__(self, *args: object, **kwargs: object) -> object:
        """Reduce; returns the result, or a tuple of several.

        args: arrays that broadcast and numbers, by position or name. axis: None for all, an integer or a tuple.
        keepdims: keep the reduced axes, with one element each. out: the array for the result, or a tuple of arrays.
        where: a bool array that selects the elements that take part. stream: for arrays on a GPU.
        Raises FusecTypeError and FusecValueError for arguments that do not fit; then nothing was written.
        """
        paths = self.paths.get(len(args))
        if paths is not None and kwargs.keys() <= {"axis", "keepdims", "out"}:
            axis, keepdims, out = kwargs.get("axis"), kwargs.get("keepdims", False), kwargs.get("out")
            plain = type(axis) in (int, NoneType) and type(keepdims) is bool
            quick = paths.quick.get((axis, keepdims, out is not None)) if plain else None
            if quick is not None:
                try:
                    return scalars_of(quick(*args)) if out is None else quick(*args, *outputs_of(out))
                except FusecError:
                    pass  # before anything was written, and raised again below
        return self._from_python(args, kwargs)

    @hide_internal_frames
    def _from_python(self, args: tuple[object, ...], named: dict[str, Any]) -> object:
        named = {**named}
        options = self._options(named.pop("axis", None), named.pop("keepdims", False), named.pop("where", True))
        out, stream = named.pop("out", None), named.pop("stream", None)
        return self.run(args, named, out, options._replace(stream=stream))

    def _options(self, axis: Axis, keepdims: object, where: object) -> CallOptions:
        return CallOptions(axis, flag(keepdims, "keepdims", self.name), where)

    def run(
        self,
        args: tuple[object, ...],
        named: Mapping[str, object],
        out: object,
        options: CallOptions,
    ) -> object:
        """Run a call in its variant."""
        variant, inputs = self.bound(args, named, out)
        self._last = variant
        if out is not None:
            variant.check_counts(inputs, out)
        results = variant.run(inputs, out, options)
        found = results if variant.is_tuple else results[0]
        return scalars_of(found) if out is None else found

    def bound(
        self, args: tuple[object, ...], named: Mapping[str, object], out: object = None
    ) -> tuple[ReductionVariant, tuple[object, ...]]:
        """The variant for these arguments, and its inputs in order."""
        self._look_again()
        given: dict[str, object] = dict(zip(self.params, args, strict=False))
        if len(args) > len(self.params):
            cure = f"it takes {', '.join(self.params)}; axis=, out= and the others are given by name"
            raise UnexpectedArgument(self.name, counted(len(args), "argument"), cure).at()
        for name, value in named.items():
            if name not in self.params:
                why = WITHOUT_OF_TOTALS.get(name, "")
                raise UnexpectedArgument.unknown(self.name, name, self.params, f"; {TAKES}", why).at()
            if name in given:
                raise UnexpectedArgument.twice(self.name, f"'{name}'").at()
            given[name] = value
        if given and all(map(operands.is_number, given.values())):
            first = next(name for name in self.params if name in given)
            given[first] = np.asarray(given[first])
        forms, ndim = dict.fromkeys(self.params, "default"), 0
        for name, value in given.items():
            forms[name], axes = self._form(name, value)
            ndim = max(ndim, axes)
        outputs = out if isinstance(out, (tuple, list)) else () if out is None else (out,)
        wanted = tuple(None if operands.is_number(each) else self._dtype(each, "out") for each in outputs)
        return self._variant(forms, ndim, wanted), tuple(given[name] for name in self.params if name in given)

    def _form(self, name: str, value: object) -> tuple[Form, int]:
        """How a variant sees an argument, and how many axes it has."""
        if isinstance(value, (FunctionType, type)):
            what = f"'{self.name}' has a function that combines, so it cannot decorate another"
            raise BadReduction(what, "omit combine=: the decorated function combines").at()
        if isinstance(value, np.generic):
            return f"number {self._dtype(np.asarray(value), name)}", 0
        if isinstance(value, (bool, int, float, complex)):
            return f"Python {next(kind.__name__ for kind in (bool, int, float, complex) if isinstance(value, kind))}", 0
        given = _looked_at(value, name, self.name)
        return f"array {self._dtype(given, name)}", given.ndim

    def _dtype(self, array: object, name: str) -> DType:
        found = array if isinstance(array, np.ndarray) else _looked_at(array, name, self.name)
        return operands.dtype_of(found, name, self.name)

    # --- variants ------------------------------------------------------------------------------------------------

    def _variant(self, forms: Mapping[str, Form], ndim: int, wanted: tuple[DType | None, ...] = ()) -> ReductionVariant:
        """A variant, made at the first call of its kind. wanted: dtypes of the outputs given."""
        key = (*forms.values(), ndim if self.uses_index else None, wanted)
        known = self._variants.get(key)
        if known is not None:
            return known
        return self._variants.keep(key, self._made(forms, ndim, wanted))

    @locks.fork_safe
    def _made(self, forms: Mapping[str, Form], ndim: int, wanted: tuple[DType | None, ...]) -> ReductionVariant:
        """The types of a variant: those of its arguments first, then what its functions return for these."""
        from fusec.frontends.python.reduction import infer

        functions, keys = self.captured()
        constants, numbers, types = self._sorted(forms)
        roles = tuple(keys.items())
        definition = ReductionFunctions(
            self.name, functions, (), constants, numbers, roles=roles, inputs=self.params, identity=self.identity
        )
        scalars = frozenset(name for name, form in forms.items() if form.startswith(("Python", "number")))
        found = infer(definition, types, scalars, ndim)
        types |= found.numbers
        names = ["out"] if len(found.results) == 1 else [f"out{at}" for at in range(len(found.results))]
        names = [f"{name}_" if name in self.params else name for name in names]
        results = []
        for dtype, asked in zip(found.results, wanted or found.results, strict=False):
            results.append(asked or dtype)
            if not np.can_cast(dtype.numpy, results[-1].numpy, "same_kind"):
                raise CannotStore(self.name, dtype.name, results[-1].name).at()
        results += found.results[len(results) :]
        inputs = tuple(Parameter(name, types[name].name, types[name]) for name in self.params if name in types)
        outputs = tuple(Parameter(name, dtype.name, dtype) for name, dtype in zip(names, results, strict=True))
        signature = Signature(self.name, inputs, outputs)
        return ReductionVariant(self, replace(definition, outputs=tuple(names)), signature, found.is_tuple, forms)

    def _sorted(
        self, forms: Mapping[str, Form]
    ) -> tuple[tuple[tuple[str, Capture], ...], tuple[tuple[str, str], ...], dict[str, DType]]:
        """Defaults of parameters not given, types of Python numbers, and dtypes of all other parameters."""
        functions, keys = self.captured()
        mapping = next((each for each in functions if each.key == keys.get("map")), None)
        defaults = {} if mapping is None else dict(mapping.defaults)
        constants, numbers, types = [], [], dict[str, DType]()
        for name, form in forms.items():
            sort, _, kind = form.partition(" ")
            declared = self.declared().get(name)
            if sort == "default":
                if name not in defaults:
                    raise argument_missing(self.name, name, self.params).at()
                constants.append((name, defaults[name]))
            elif declared is not None:
                types[name] = declared
            elif sort == "Python":
                numbers.append((name, kind))
            else:
                types[name] = dtypes.BY_NAME[kind]
        return tuple(constants), tuple(numbers), types

    def captured(self) -> tuple[tuple[FunctionText, ...], dict[str, str]]:
        """The functions' texts with the values of their names, and the key of each role."""
        self._look_again()
        if self._captured is None:
            found, keys = closure.capture_roles(self.origins, self.kept)
            self._captured, self._missing = (found.functions, keys), found.missing
        return self._captured

    def _look_again(self) -> None:
        """Forget what was made while a name was missing that is there now."""
        if self._missing and frozen_globals.now_known(self._missing):
            self._captured, self._missing, self._declared = None, (), {}
            self._variants.clear()

    def declared(self) -> Mapping[str, DType | None]:
        """The dtypes that annotations of the map fix."""
        if not self._declared and "map" in self.trees:
            from fusec.frontends.python.annotations import dtype_of
            from fusec.frontends.python.definition import PythonDefinition
            from fusec.frontends.python.kernel_context import KernelContext

            functions, keys = self.captured()
            context = KernelContext(PythonDefinition(self.name, functions, ()))
            params = self.trees["map"].params
            self._declared = {each.name: dtype_of(each.annotation, context, keys["map"]) for each in params}
        return self._declared

    # --- looking inside ------------------------------------------------------------------------------------------

    def shown(self, asked: Showing) -> ShownKernels:
        """What source() shows: the kernels of the last call, or of one with contiguous arrays."""
        from fusec.dispatch.axes import SHOWN

        if asked.of_last and self._last is not None and self._last.last is not None:
            return self._last.shown(asked)
        types, scalars = asked.types, asked.scalars
        given = types_named(types, next(iter(self.params), "x"))
        for name in (*given, *scalars):
            if name not in self.params:
                raise UnexpectedArgument.unknown(self.name, name, self.params).at()
        forms: dict[str, Form] = {}
        for name in self.params:
            dtype = dtype_named(name, given[name]) if name in given else self.declared().get(name)
            forms[name] = "default" if dtype is None else f"array {dtype}"
            if name in scalars:
                forms[name] = "Python float" if dtype is None else f"number {dtype}"
        variant = self._variant(forms, len(SHOWN if asked.shape is None else asked.shape))
        return variant.shown(replace(asked, types={}))

    @hide_internal_frames
    def explain(
        self,
        *args: object,
        axis: Axis = None,
        keepdims: bool = False,
        out: object = None,
        where: object = True,
        stream: object = None,
        **named: object,
    ) -> Explanation:
        """Report how a call with these arguments runs: kernels, axes, order, bytes; nothing is run."""
        del stream
        variant, inputs = self.bound(args, named, out)
        if out is not None:
            variant.check_counts(inputs, out)
        return variant.explained((*inputs, *outputs_of(out)), self._options(axis, keepdims, where))

    def simulated(
        self,
        *args: object,
        axis: Axis = None,
        keepdims: bool = False,
        out: object = None,
        where: object = True,
        **named: object,
    ) -> object:
        """A call in the interpreter; see `fusec.simulate`."""
        from fusec.dispatch.interpret import interpreted

        variant, inputs = self.bound(args, named, out)
        if out is not None:
            variant.check_counts(inputs, out)
        results = interpreted(variant, inputs, out, self._options(axis, keepdims, where))
        found = results if variant.is_tuple else results[0]
        return scalars_of(found) if out is None else found

    @property
    def cached_codes(self) -> dict[str, str]:
        """LLVM text of all kernels by dtypes and shape, for every combination called so far."""
        return {key: text for each in self._variants.values() for key, text in each.cached_codes.items()}

    def call_signature(self) -> inspect.Signature:
        """The parameters of the map, and the options of calls."""
        defaults = defaults_of(self.trees["map"]) if "map" in self.trees else {}
        return signature_of({name: defaults.get(name) for name in self.params}, OPTIONS)

    def described(self) -> tuple[str, str]:
        """The signature of the reduction, and the sources of its functions."""
        texts = dict.fromkeys(tree.span.file.text.strip() for tree in self.trees.values())
        return f"{self.name}({', '.join(self.params)})", "\n".join(texts)

    def __repr__(self) -> str:
        return f"<fusec.reduction {self.described()[0]}>"

    def __reduce__(self) -> tuple[object, ...]:
        roles = CapturedRoles(*self.captured())
        return type(self), (roles, {}, self.identity, self.name, self.fp), {key: getattr(self, key) for key in KEPT}

    def __get__(self, instance: object, owner: type | None = None) -> object:
        return self


def _looked_at(value: object, name: str, kernel: str) -> operands.Array:
    """An array of any library, as one to look at: of one on a device, dtype and axes. Raises UnsupportedArgument."""
    from fusec.dispatch.arguments import array_of

    return array_of(value, kernel, name)[1]


def _is_plain(forms: Mapping[str, Form], types: Mapping[str, DType]) -> bool:
    """Whether the given arguments are the first ones, and NumPy's scalars have the dtypes of their parameters."""
    sorts = [form.partition(" ")[0] for form in forms.values()]
    count = len([sort for sort in sorts if sort != "default"])
    numbers = [(types[name].name, form.partition(" ")[2]) for name, form in forms.items() if form.startswith("number")]
    return "default" not in sorts[:count] and all(dtype == kind for dtype, kind in numbers)


__all__ = ["RESERVED", "Reduction", "ReductionFunctions", "ReductionVariant"]
