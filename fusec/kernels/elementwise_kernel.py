"""Kernels that a user defines in text: ElementwiseKernel, CuPy's, for arrays of any library on any target."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from fusec.arguments.annotations import ElementwiseOptions, Foreign, Given, Number, Output
from fusec.arguments.containers import Door, adopted
from fusec.arguments.operands import is_contained, outputs_of
from fusec.arguments.signature import Parameter, Signature, join
from fusec.base.diagnostics import shown_number
from fusec.base.kernel_abi import Fp
from fusec.base.public import Public
from fusec.compiler import pipeline
from fusec.dispatch import checked
from fusec.dispatch.call import KernelCall
from fusec.dispatch.checked import Bounds, Checks
from fusec.dispatch.fast_path_host import FastPath, ShortWays
from fusec.dispatch.planned import Planned, ShowsElements, block_size_of, hide_internal_frames
from fusec.dispatch.shown import Showing, ShownKernels
from fusec.dispatch.spec import PLAIN, CallOptions
from fusec.errors.arguments import (
    POSITIONAL,
    WITHOUT,
    BadSize,
    DefinitionNotText,
    InvalidKernelName,
    OutGivenTwice,
    ReservedParameterName,
    WrongNumberOfOutputs,
    unknown_keyword,
)
from fusec.frontends.c.definition import Definition
from fusec.frontends.c.params import parse_params

if TYPE_CHECKING:
    from fusec.dispatch.explain import Explanation

OPTIONS = ("size", "out", "stream", "block_size")  # of calls
MAX_SIZE = 1 << 62  # elements; beyond, positions would not fit 64 bits with room for a chunk

KEYWORDS = frozenset(
    """
    alignas alignof and asm auto bitand bitor bool break case catch char class compl const constexpr continue
    default delete device do double else enum explicit extern false float for friend goto half if inline int
    long mutable namespace new not nullptr operator or private protected public register return short signed sizeof
    static struct switch template this thread threadgroup true try typedef typename union unsigned using vertex
    virtual void volatile while xor __global__ __device__ __shared__ __constant__ __host__
    """.split()
)


class ElementwiseKernel(Public, ShortWays, Planned, ShowsElements):
    """A kernel that runs a C-like operation for every element of its broadcast arguments.

    in_params, out_params: declarations ``[raw] TYPE NAME`` separated by commas; a one-letter TYPE is a placeholder,
    which each call binds to a dtype. operation: the body; it may use ``i``, the flat index, and ``_ind``. name: shown
    in messages and used as the entry point. reduce_dims: merge axes that all operands step over evenly. preamble:
    device functions, macros, structs and typedefs. no_return: calls return None. return_tuple: calls return a tuple
    even for one output. loop_prep, after_loop: statements before and after the operation. options: ``-DNAME=VALUE``,
    and ``-fsingle-precision-constant`` to read ``0.5`` as ``0.5f``. fp: "strict" computes what is written; "contract"
    fuses a product and a sum into one fma, the same on every target; "fast" also approximates. bounds: "check" tests
    every index into raw and local arrays; the first violation raises. check: "wrap" reports integers that lose their
    value. None follows FUSEC_CHECK.
    Results have the shape to which the arguments broadcast, and dtypes by the placeholders.
    Raises FusecError, with the place in the text, if a declaration or the body is malformed.

    >>> saxpy = fusec.ElementwiseKernel("T a, T x, T y", "T z", "z = a * x + y", "saxpy")
    >>> saxpy(2.0, np.arange(3.0), np.ones((2, 1)))
    array([[1., 3., 5.],
           [1., 3., 5.]])
    """

    names_output = True

    @hide_internal_frames
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
        fp: Fp = "strict",
        bounds: Bounds | None = None,
        check: Checks | None = None,
    ) -> None:
        texts = {"in_params": in_params, "out_params": out_params, "operation": operation, "preamble": preamble}
        check_texts(name, {**texts, "loop_prep": loop_prep, "after_loop": after_loop}, options)
        definition = Definition(in_params, out_params, operation, name, preamble, loop_prep, after_loop, tuple(options))
        signature = Signature(name, parameters(in_params, "input"), parameters(out_params, "output"))
        check_names(signature)
        pipeline.check(definition)
        words = _words(definition)
        super().__init__(
            definition,
            signature,
            reduce_dims=reduce_dims,
            no_return=no_return,
            return_tuple=return_tuple,
            uses_index=not {"i", "n", "_ind"}.isdisjoint(words - {param.name for param in signature.params}),
            updated=_updated(words, signature),
            fp=pipeline.check_fp(fp),
        )
        self.__name__ = name
        self.checks = checked.wanted(bounds, check)
        self.operation, self.preamble = operation, preamble
        self.kwargs: dict[str, Any] = {"loop_prep": loop_prep, "after_loop": after_loop, "options": tuple(options)}
        self.document()
        self.take_no_short_way(self._from_python)

    # --- calling -------------------------------------------------------------------------------------------------

    @overload
    def __call__(self, *args: Any, out: Output, **options: Unpack[ElementwiseOptions]) -> Output: ...
    @overload
    def __call__(self, *args: Given, out: None = None, **options: Unpack[ElementwiseOptions]) -> NDArray[Any]: ...
    @overload
    def __call__(self, *args: Foreign | Number, out: None = None, **options: Unpack[ElementwiseOptions]) -> Foreign: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run for every element; returns the output, or a tuple of several.

        args: the inputs, or inputs and outputs: arrays and numbers. size: how often to run, if and only if all arrays
        are raw. out: the output array, or a tuple of them. stream, block_size: for arrays on a GPU, whose blocks have
        at most 256 threads.
        Raises FusecTypeError and FusecValueError for arguments that do not fit; then nothing was written.
        """
        return self._fast(*args, **kwargs)

    @hide_internal_frames
    def _from_python(self, *args: object, **kwargs: object) -> object:
        if kwargs:
            return self._run(*self._from_keywords(args, **kwargs))
        return self._run(args, PLAIN)

    def _from_keywords(
        self,
        args: tuple[object, ...],
        size: object = -1,
        stream: object = None,
        block_size: object = None,
        out: object = None,
        **unknown: object,
    ) -> tuple[tuple[object, ...], CallOptions]:
        """Inputs with the outputs, if any are given, and size, stream and threads of a block."""
        for keyword in unknown:
            raise unknown_keyword(self.name, keyword, OPTIONS, WITHOUT, POSITIONAL).at()
        threads = block_size_of(block_size)
        if size is None:
            size = -1
        if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or not -1 <= size < MAX_SIZE:
            raise BadSize(self.name, shown_number(size)).at()
        if out is not None:
            if len(args) != self.nin:
                raise (OutGivenTwice(self.name) if len(args) == self.nargs else self.wrong_number(len(args))).at()
            outputs = outputs_of(out)
            if len(outputs) != self.nout:
                raise WrongNumberOfOutputs(self.name, self.nout, len(outputs), join(self.out_params)).at()
            args = (*args, *outputs)
        return args, CallOptions(size=int(size), stream=stream, block_size=threads)

    def _run(self, args: tuple[object, ...], options: CallOptions) -> object:
        if len(args) != self.nin and len(args) != self.nargs:
            raise self.wrong_number(len(args)).at()
        if any(map(is_contained, args)):
            names = [param.name for param in self.in_params]
            door = Door(
                self.name, names, 0 if self.no_return else self.nout,
                lambda inputs, outputs: self._results((*inputs, *outputs), options),
                elementwise=not (self.uses_index or options.size != -1 or any(param.raw for param in self.params)),
            )  # fmt: skip
            results = adopted(door, args[: self.nin], args[self.nin :])
        else:
            results = self._results(args, options)
        if self.no_return:
            return None
        return results[0] if self.nout == 1 and not self.return_tuple else results

    def _results(self, args: tuple[object, ...], options: CallOptions) -> tuple[object, ...]:
        """All outputs of a call whose arguments need no reading before."""
        if self.checks:
            return checked.run(self._checked, args, options)
        return self.run(args, None, options)

    @cached_property
    def _checked(self) -> Planned:
        return checked.checked(self, self.checks)

    def fast_path(self, call: KernelCall[Any]) -> FastPath:
        """Its own."""
        del call
        return self.path

    def shown(self, asked: Showing) -> ShownKernels:
        """What source() shows: the definition, with its checks if calls have them, its types and its memory layout."""
        return self._checked.shown(asked) if self.checks else super().shown(asked)

    # --- looking inside ------------------------------------------------------------------------------------------

    @hide_internal_frames
    def explain(self, *args: object, out: object = None, **options: Unpack[ElementwiseOptions]) -> Explanation:
        """Report how a call with these arguments runs: merged axes, lanes, types, bytes moved. Nothing is run."""
        args, asked = self._from_keywords(args, out=out, **options)
        if len(args) not in (self.nin, self.nargs):
            raise self.wrong_number(len(args)).at()
        return self.explained(args, asked._replace(stream=None))

    def __repr__(self) -> str:
        return f"<ElementwiseKernel {vars(self).get('signature', 'that was refused')}>"

    def described(self) -> tuple[str, str]:
        """The signature of the kernel, and its operation."""
        return str(self.signature), self.operation.strip()

    def __reduce__(self) -> tuple[object, ...]:
        d = self.definition
        assert isinstance(d, Definition), "a kernel string has texts"
        made = partial(
            type(self), no_return=self.no_return, return_tuple=self.return_tuple, **self.kwargs, fp=self.fp,
            check=self.checks,
        )  # fmt: skip
        return made, (d.in_params, d.out_params, d.operation, d.name, self.reduce_dims, d.preamble)


def check_texts(name: object, texts: Mapping[str, object], options: object) -> None:
    """Raise DefinitionNotText for a part of a definition of another type, InvalidKernelName for its name."""
    called = name if isinstance(name, str) else "kernel"
    for part, text in {"name": name, **texts}.items():
        if not isinstance(text, str):
            cure = "declarations are one text, separated by commas" if "params" in part else "pass a text"
            raise DefinitionNotText(called, part, "a text (str)", type(text).__name__, cure).at()
    if isinstance(options, str) or not isinstance(options, Sequence) or not all(isinstance(o, str) for o in options):
        cure = f"write options=({options!r},)" if isinstance(options, str) else "e.g. options=('-DN=3',)"
        raise DefinitionNotText(called, "options", "a tuple of texts", type(options).__name__, cure).at()
    if not re.fullmatch(r"[a-zA-Z_]\w*", called, re.ASCII) or called in KEYWORDS:
        raise InvalidKernelName(called).at()


def check_names(signature: Signature) -> None:
    """Raise ReservedParameterName for a parameter that has the index's name."""
    for param in signature.params:
        if param.name in ("i", "_ind"):
            raise ReservedParameterName(param.name).at()


def parameters(text: str, which: str) -> tuple[Parameter, ...]:
    """The declared parameters of one side. which: "input" or "output"."""
    declared = parse_params(text, which)  # type: ignore[arg-type]
    return tuple(Parameter(each.name, each.type_name, each.dtype, each.raw, each.non_const) for each in declared)


def _words(definition: Definition) -> set[str]:
    """The names in the texts; those in comments and strings count, which only costs speed."""
    text = " ".join(
        (definition.operation, definition.preamble, definition.loop_prep, definition.after_loop, *definition.options)
    )
    return set(re.findall(r"[A-Za-z_]\w*", text))


def _updated(words: Iterable[str], signature: Signature) -> frozenset[str]:
    """The raw arrays that texts may update atomically."""
    if not any(word.startswith("atomic") for word in words):
        return frozenset()
    written = (*signature.outputs, *(param for param in signature.inputs if param.non_const))
    return frozenset(param.name for param in written if param.raw)
