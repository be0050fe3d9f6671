"""Kernels a user defines in text: ElementwiseKernel, CuPy's, for arrays of any library on any target."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import numpy as np

from fusec import calls, debug, forking, pipeline
from fusec.calls import Call
from fusec.entries import Entries
from fusec.errors import FusecError
from fusec.errors.arguments import (
    BadBlockSize,
    BadSize,
    DefinitionNotText,
    InvalidKernelName,
    OutGivenTwice,
    ReservedParameterName,
    UnknownKeyword,
    UnknownScalar,
    WrongNumberOfArguments,
    WrongNumberOfOutputs,
)
from fusec.frontends.params import parse_params
from fusec.operands import is_foreign
from fusec.pipeline import Definition, Specialisation
from fusec.plans import Plan
from fusec.signature import Parameter, Signature, join

if TYPE_CHECKING:
    from fusec.explain import Explanation

MAX_SIZE = 1 << 62  # elements; beyond, positions would not fit 64 bits with room for a chunk
MAX_PLANS = 256  # combinations of shapes and strides remembered by one kernel

KEYWORDS = frozenset(
    """
    alignas alignof and asm auto bitand bitor bool break case catch char class compl const constexpr continue
    default delete device do double else enum explicit extern false float for friend goto half if inline int
    long mutable namespace new not nullptr operator or private protected public register return short signed sizeof
    static struct switch template this thread threadgroup true try typedef typename union unsigned using vertex
    virtual void volatile while xor __global__ __device__ __shared__ __constant__ __host__
    """.split()
)


Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def _briefly(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Raise errors from here: the frames of fusec below would hide the user's own (FUSEC_DEBUG=1 shows them)."""

    @wraps(function)
    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        try:
            return function(*args, **kwargs)
        except FusecError as error:
            if debug.level():
                raise
            raise error.with_traceback(None) from error.__cause__

    return call


class ElementwiseKernel:
    """A kernel that runs a C-like operation for every element of its broadcast arguments.

    in_params, out_params: declarations ``[raw] TYPE NAME`` separated by commas; a one-letter TYPE is a placeholder,
    bound at the call. operation: the body; it may use ``i``, the flat index, and ``_ind``. name: shown in messages
    and used as entry point. reduce_dims: merge axes that all operands walk evenly. preamble: device functions, macros,
    structs and typedefs. no_return: calls return None. return_tuple: calls return a tuple even of one output.
    loop_prep, after_loop: statements before and after the operation. options: ``-DNAME=VALUE``, and
    ``-fsingle-precision-constant`` to read ``0.5`` as ``0.5f``.
    Raises FusecError with the place in the text if a declaration or the body is not well formed.
    """

    @_briefly
    def __init__(
        self,
        in_params: str,
        out_params: str,
        operation: str,
        name: str = "kernel",
        reduce_dims: bool = True,
        preamble: str = "",
        no_return: bool = False,
        return_tuple: bool = False,
        *,
        loop_prep: str = "",
        after_loop: str = "",
        options: Sequence[str] = (),
    ) -> None:
        texts = {"in_params": in_params, "out_params": out_params, "operation": operation, "preamble": preamble}
        _check_texts(name, {**texts, "loop_prep": loop_prep, "after_loop": after_loop}, options)
        if not re.fullmatch(r"[a-zA-Z_]\w*", name, re.ASCII) or name in KEYWORDS:
            raise InvalidKernelName(name).at()
        self.definition = Definition(
            in_params, out_params, operation, name, preamble, loop_prep, after_loop, tuple(options)
        )
        self.signature = Signature(name, _parameters(in_params, "input"), _parameters(out_params, "output"))
        for param in self.signature.params:
            if param.name in ("i", "_ind"):
                raise ReservedParameterName(param.name).at()
        pipeline.check(self.definition)
        self.name = self.__name__ = name
        self.operation, self.preamble = operation, preamble
        self.in_params, self.out_params = self.signature.inputs, self.signature.outputs
        self.params = self.signature.params
        self.nin, self.nout, self.nargs = len(self.in_params), len(self.out_params), len(self.params)
        self.reduce_dims, self.no_return, self.return_tuple = reduce_dims, no_return, return_tuple
        self.kwargs = {"loop_prep": loop_prep, "after_loop": after_loop, "options": tuple(options)}
        self.__doc__ = f"{self.signature}\n\n{operation.strip()}"
        self._uses_index = _uses_index(self.definition, self.signature)
        self._plans: dict[object, Plan] = {}
        self._last: Specialisation | None = None
        self._fast: Callable[..., object] = self._from_python
        self._entries = Entries(self._from_python)

    # --- calling -------------------------------------------------------------------------------------------------

    def __call__(self, *args: object, **kwargs: object) -> object:
        """Run for every element; returns the output, or a tuple of several.

        args: the inputs, or inputs and outputs: arrays and numbers. size: how often to run, if and only if all arrays
        are raw. out: the output array, or a tuple of them. stream, block_size: for arrays on a GPU.
        Raises FusecTypeError and FusecValueError for arguments that do not fit; then nothing was written.
        """
        return self._fast(*args, **kwargs)

    @_briefly
    def _from_python(self, *args: object, **kwargs: object) -> object:
        if kwargs:
            return self._from_keywords(args, **kwargs)
        return self._run(args, -1, None, None)

    def _from_keywords(
        self,
        args: tuple[object, ...],
        size: object = -1,
        stream: object = None,
        block_size: object = None,
        out: object = None,
        **unknown: object,
    ) -> object:
        for keyword in unknown:
            raise UnknownKeyword(self.name, keyword).at()
        threads = None if block_size is None else _block_size(block_size)
        if size is None:
            size = -1
        if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or not -1 <= size < MAX_SIZE:
            raise BadSize(self.name, repr(size)).at()
        if out is not None:
            if len(args) != self.nin:
                raise (OutGivenTwice(self.name) if len(args) == self.nargs else self._wrong_number(len(args))).at()
            outputs = tuple(out) if isinstance(out, (tuple, list)) else (out,)
            if len(outputs) != self.nout:
                raise WrongNumberOfOutputs(self.name, self.nout, len(outputs), join(self.out_params)).at()
            args = (*args, *outputs)
        return self._run(args, int(size), stream, threads)

    def _run(self, args: tuple[object, ...], size: int, stream: object, block_size: int | None) -> object:
        if len(args) != self.nin and len(args) != self.nargs:
            raise self._wrong_number(len(args)).at()
        run = calls.run if not any(map(is_foreign, args)) else _runner(args)
        results = run(self, args, size, stream, block_size)
        if self.no_return:
            return None
        return results[0] if self.nout == 1 and not self.return_tuple else results

    def _wrong_number(self, given: int) -> WrongNumberOfArguments:
        return WrongNumberOfArguments(
            self.name, self.nin, self.nargs, given, join(self.in_params), join(self.out_params)
        )

    # --- plans ---------------------------------------------------------------------------------------------------

    @property
    def uses_index(self) -> bool:
        """True if the texts may ask for the position of the element."""
        return self._uses_index

    def plan(self, call: Call) -> Plan:
        """The plan of a call, made at the first call of its kind and remembered."""
        found = self._plans.get(call.key)
        again = found is not None
        if found is None:
            found = calls.make_plan(self, call)
            with forking.lock:
                if len(self._plans) >= MAX_PLANS:
                    self._plans.clear()
                self._plans[call.key] = found
        self._fast = self._entries.after(self, found, call, again) or self._fast
        self.remember(Specialisation(tuple(found.types.items()), call.numbers, found.space.layout))
        return found

    def remember(self, spec: Specialisation) -> None:
        """Note what was called last: source() without types shows it."""
        self._last = spec

    # --- looking inside ------------------------------------------------------------------------------------------

    @_briefly
    def source(
        self, target: str = "cuda", types: Mapping[str, object] | None = None, *, scalars: Sequence[str] = ()
    ) -> str:
        """The text for a target: "cuda", "metal", "llvm", "asm" (of this machine) or "ir" (fusec's own).

        types: placeholder -> dtype; not needed if every type is declared, nor after a call, whose layout is then
        shown too. scalars: parameters to pass by value. Raises FusecTypeError if types are missing.
        """
        pipeline.check_target(target)
        return pipeline.text_of(self.definition, self.specialisation(types, scalars), target)

    def specialisation(self, types: Mapping[str, object] | None = None, scalars: Sequence[str] = ()) -> Specialisation:
        """What source() shows: the types given, or those of the last call."""
        if types is None and self._last is not None:
            return self._last
        inputs = [param.name for param in self.in_params]
        for name in scalars:
            if name not in inputs:
                raise UnknownScalar(self.name, name, ", ".join(inputs)).at()
        bound = self.signature.bind_names(types or {})
        arrays = [param for param in self.params if param.name not in scalars]
        layout = pipeline.canonical_layout(
            self.definition,
            bound,
            [param.name for param in arrays if not param.raw],
            [param.name for param in arrays if param.raw],
        )
        return Specialisation(tuple(bound.items()), frozenset(scalars), layout)

    @_briefly
    def explain(self, *args: object, size: int = -1) -> Explanation:
        """What fusec makes of these arguments: axes merged, lanes, types, bytes moved. Nothing is run."""
        with forking.lock:
            from fusec import explain

        if len(args) not in (self.nin, self.nargs):
            raise self._wrong_number(len(args)).at()
        return explain.explain(self, calls.read(self, args, size))

    @property
    def cached_codes(self) -> dict[str, str]:
        """LLVM text by dtypes, for every combination called so far (CuPy's property of that name)."""
        return {
            ", ".join(f"{name}: {dtype}" for name, dtype in plan.types.items()): plan.executable.kernel.source
            for plan in list(self._plans.values())
        }

    def __repr__(self) -> str:
        return f"<ElementwiseKernel {vars(self).get('signature', 'that was refused')}>"

    def _repr_html_(self) -> str:
        from html import escape

        return f"<b>{escape(str(self.signature))}</b><pre>{escape(self.operation.strip())}</pre>"

    def __reduce__(self) -> tuple[object, ...]:
        d = self.definition
        state = (d.in_params, d.out_params, d.operation, d.name, self.reduce_dims, d.preamble)
        return _restore, (type(self), state, self.no_return, self.return_tuple, d.loop_prep, d.after_loop, d.options)


def _restore(
    cls: type[ElementwiseKernel],
    state: tuple[str, str, str, str, bool, str],
    no_return: bool,
    return_tuple: bool,
    loop_prep: str,
    after_loop: str,
    options: tuple[str, ...],
) -> ElementwiseKernel:
    """Rebuild a pickled kernel from its texts."""
    return cls(*state, no_return, return_tuple, loop_prep=loop_prep, after_loop=after_loop, options=options)


def _runner(args: tuple[object, ...]) -> Callable[..., tuple[object, ...]]:
    """What runs a call with arrays of other libraries: on their device if one of them is on one."""
    with forking.lock:
        from fusec.runtime import cuda

    if not any(cuda.is_device_array(arg) for arg in args if is_foreign(arg)):
        return calls.run
    with forking.lock:
        from fusec import device_calls

    return device_calls.run


def _block_size(given: object) -> int:
    """Threads of a block, the same limits on every device; raises BadBlockSize."""
    if isinstance(given, bool) or not isinstance(given, (int, np.integer)) or not 0 < given <= 1024:
        raise BadBlockSize(repr(given)).at()
    return int(given)


def _check_texts(name: object, texts: Mapping[str, object], options: object) -> None:
    """Raise DefinitionNotText for a part of a definition of another type."""
    called = name if isinstance(name, str) else "kernel"
    for part, text in {"name": name, **texts}.items():
        if not isinstance(text, str):
            cure = "declarations are one text, separated by commas" if "params" in part else "pass a text"
            raise DefinitionNotText(called, part, "a text (str)", type(text).__name__, cure).at()
    if isinstance(options, str) or not isinstance(options, Sequence) or not all(isinstance(o, str) for o in options):
        cure = f"write options=({options!r},)" if isinstance(options, str) else "e.g. options=('-DN=3',)"
        raise DefinitionNotText(called, "options", "a tuple of texts", type(options).__name__, cure).at()


def _parameters(text: str, which: str) -> tuple[Parameter, ...]:
    declared = parse_params(text, which)  # type: ignore[arg-type]
    return tuple(Parameter(each.name, each.type_name, each.dtype, each.raw, each.non_const) for each in declared)


def _uses_index(definition: Definition, signature: Signature) -> bool:
    """True if a text holds one of the names of the index; comments and strings count, which only costs speed."""
    names = {"i", "n", "_ind"} - {param.name for param in signature.params}
    text = " ".join(
        (definition.operation, definition.preamble, definition.loop_prep, definition.after_loop, *definition.options)
    )
    return not names.isdisjoint(re.findall(r"[A-Za-z_]\w*", text))
