"""Scans that a user defines in text: ScanKernel, the running totals of any associative combination."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, SupportsIndex, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from fusec.arguments.annotations import Foreign, Given, Number, Output, ScanOptions
from fusec.arguments.operands import outputs_of
from fusec.arguments.scalars import flag
from fusec.arguments.signature import Signature
from fusec.base.dtypes import BOOL
from fusec.base.kernel_abi import Fp
from fusec.base.public import Public
from fusec.codegen import DEFAULT_TARGET, target_of
from fusec.compiler import pipeline
from fusec.compiler.scan_pipeline import ScanDefinition
from fusec.dispatch.arguments import array_of
from fusec.dispatch.checked import Bounds, Checks, wanted
from fusec.dispatch.interception import present
from fusec.dispatch.planned import Planned, hide_internal_frames
from fusec.dispatch.scans import SCAN
from fusec.dispatch.shown import Showing, ShownKernels
from fusec.dispatch.spec import CallOptions
from fusec.errors.arguments import POSITIONAL, WITHOUT_OF_TOTALS, unknown_keyword
from fusec.errors.reductions import (
    ExclusiveWithoutIdentity,
    NoPositionInScan,
    SegmentsNotBool,
    SegmentsUnknown,
    WhereNotBool,
    WhereWithoutIdentity,
)
from fusec.frontends.c.definition import ReductionDefinition
from fusec.kernels.elementwise_kernel import check_names, check_texts, parameters
from fusec.kernels.reduction_kernel import INDEX_NAMES, identity_number, identity_text

if TYPE_CHECKING:
    from fusec.arguments.layouts import Shape
    from fusec.dispatch.explain import Explanation

OPTIONS = ("axis", "out", "reverse", "where", "stream")  # of calls
LOCAL_NAMES = frozenset({"_i", "_j"})  # which functions of a preamble may have as variables


class ScanKernel(Public, Planned):
    """A kernel that computes the running total along an axis, up to every element.

    in_params, out_params: declarations ``[raw] TYPE NAME`` separated by commas, as for ElementwiseKernel. map_expr: the
    value of one element. scan_expr: the combination of ``a``, the total of earlier elements, and ``b``; it must be
    associative. Shape and strides fix the order (`fusec.ir.scans`), so results are reproducible to the bit.
    post_map_expr: assigns the outputs from the running total ``a``. identity: the total of no elements, which the first
    element gets if not `inclusive`, and the value of elements that ``where=`` leaves out; both need it. name: shown in
    messages. reduce_type: the type of ``a`` and ``b``, a scalar type or a struct of the preamble; by default that of
    the first output, or float32 for float16 and bfloat16. preamble: device functions, macros, structs. inclusive:
    elements take part in their own total. segments: the name of a bool input that is true where totals start again.
    options, bounds, check: as for ElementwiseKernel. fp: "strict", "contract" or "fast".
    Results have the shape to which the arguments broadcast; each call binds the placeholders to dtypes, and has one
    integer axis=.
    Raises FusecError, with the place in the text, if a declaration or an expression is malformed.

    >>> running = fusec.ScanKernel("T x", "T y", "x", "a + b", "y = a", "0", "running")
    >>> running(np.array([[1, 2], [3, 4]]), axis=0)
    array([[1, 2],
           [4, 6]])
    """

    @hide_internal_frames
    def __init__(
        self,
        in_params: str,
        out_params: str,
        map_expr: str,
        scan_expr: str,
        post_map_expr: str,
        identity: object = None,
        name: str = "scan_kernel",
        reduce_type: str | None = None,
        preamble: str = "",
        inclusive: bool = True,
        segments: str | None = None,
        options: Sequence[str] = (),
        *,
        fp: Fp = "strict",
        bounds: Bounds | None = None,
        check: Checks | None = None,
    ) -> None:
        texts = {
            "in_params": in_params, "out_params": out_params, "map_expr": map_expr, "scan_expr": scan_expr,
            "post_map_expr": post_map_expr, "preamble": preamble, "name": name,
        }  # fmt: skip
        further = {"reduce_type": reduce_type, "segments": segments}
        check_texts(name, texts | {part: each for part, each in further.items() if each is not None}, options)
        start = identity_text(identity)
        if not inclusive and start is None:
            raise ExclusiveWithoutIdentity(name).at()
        reduced = ReductionDefinition(
            in_params, out_params, map_expr, scan_expr, post_map_expr, start, name, reduce_type, preamble,
            tuple(options), "scan_expr", number=identity_number(identity),
        )  # fmt: skip
        signature = Signature(name, parameters(in_params, "input"), parameters(out_params, "output"))
        self._check_names(signature, segments, f"{map_expr} {post_map_expr}", preamble)
        definition = ScanDefinition(reduced, not inclusive, segments or "")
        super().__init__(definition, signature, SCAN, fp=pipeline.check_fp(fp))
        self.scan = definition
        definition.read()
        self.checks = wanted(bounds, check)
        self.identity, self.inclusive, self.segments = start, bool(inclusive), segments
        self._masked_last = False  # whether the last call had a mask
        self.__name__ = name
        self.document()

    @staticmethod
    def _check_names(signature: Signature, segments: str | None, text: str, preamble: str) -> None:
        """Names that mean something else, and segments that are not there."""
        check_names(signature)
        positions = INDEX_NAMES - {param.name for param in signature.params}
        for part, names in ((text, positions), (preamble, positions - LOCAL_NAMES)):
            for word in re.findall(r"[A-Za-z_]\w*", part):
                if word in names:
                    raise NoPositionInScan(word).at()
        if segments:
            found = {param.name: param for param in signature.inputs if not param.raw}.get(segments)
            if found is None:
                raise SegmentsUnknown(signature.name, segments).at()
            if found.dtype not in (None, BOOL):
                raise SegmentsNotBool(signature.name, segments, str(found.dtype)).at()

    @overload
    def __call__(self, *args: Any, out: Output, **options: Unpack[ScanOptions]) -> Output: ...
    @overload
    def __call__(self, *args: Given, out: None = None, **options: Unpack[ScanOptions]) -> NDArray[Any]: ...
    @overload
    def __call__(self, *args: Foreign | Number, out: None = None, **options: Unpack[ScanOptions]) -> Foreign: ...
    @hide_internal_frames
    def __call__(
        self,
        *args: Any,
        axis: Any = -1,
        out: Any = None,
        reverse: bool = False,
        where: Any = True,
        stream: object = None,
        **unknown: object,
    ) -> Any:
        """Scan; returns the output, or a tuple of several, of the shape that the inputs have together.

        args: the inputs, or inputs and outputs. axis: one integer. out: the output array, or a tuple of them. reverse:
        begin at the end of the axis. where: a bool array; elements where it is False count as the identity. stream: for
        arrays on a GPU.
        """
        for keyword in unknown:
            raise unknown_keyword(self.name, keyword, OPTIONS, WITHOUT_OF_TOTALS, POSITIONAL).at()
        if reverse is not True and reverse is not False:
            reverse = flag(reverse, "reverse", self.name)
        if where is not True and where is not None:
            self.check_counts(args, out)
            kernel, args = self._masked(args, where)
            found = kernel(*args, axis=axis, out=out, reverse=reverse, stream=stream)
            self._masked_last = True
            return found
        self._masked_last = False
        given = out is not None or len(args) != self.nin
        if given:
            self.check_counts(args, out)
        if self.quick and stream is None and (axis is None or type(axis) is int) and present() is None:
            quick = self.quick.get((axis, reverse, given))
            if quick is not None:
                return quick(*args, *outputs_of(out)) if given else quick(*args)
        results = self.run(args, out, CallOptions(axis, reverse=reverse, stream=stream))
        return results[0] if self.nout == 1 else results

    def _looked_into(
        self,
        args: tuple[object, ...],
        out: object = None,
        axis: SupportsIndex | None = -1,
        reverse: bool = False,
        where: object = True,
        stream: object = None,
        **unknown: object,
    ) -> tuple[ScanKernel, tuple[object, ...], CallOptions]:
        """The kernel that a call takes, its inputs, with outputs that are given, and how it scans."""
        del stream
        for keyword in unknown:
            raise unknown_keyword(self.name, keyword, OPTIONS, WITHOUT_OF_TOTALS, POSITIONAL).at()
        self.check_counts(args, out)
        kernel, args = self._masked((*args, *outputs_of(out)), where)
        return kernel, args, CallOptions(axis, reverse=flag(reverse, "reverse", self.name))

    def _masked(self, args: tuple[Any, ...], where: object) -> tuple[ScanKernel, tuple[Any, ...]]:
        """The kernel that reads a mask after its inputs, and its arguments. Raises WhereNotBool."""
        if where is True or where is None:
            return self, args
        dtype = array_of(where, self.name, "where")[1].dtype
        if dtype != np.bool_:
            raise WhereNotBool(self.name, str(dtype)).at()
        return self._with_mask, (*args[: self.nin], where, *args[self.nin :])

    @cached_property
    def _with_mask(self) -> ScanKernel:
        """The same with a bool input more. Raises WhereWithoutIdentity."""
        d = self.scan.reduced
        if d.identity is None:
            raise WhereWithoutIdentity(self.name, "scan").at()
        macros = (option.removeprefix("-D") for option in d.options)  # one of the mask's name would replace it
        texts = (d.in_params, d.out_params, d.map_expr, d.reduce_expr, d.post_map_expr, d.identity, d.preamble, *macros)
        taken = set(re.findall(r"\w+", " ".join(texts)))
        mask = next(name for number in range(len(taken) + 1) if (name := "where" + "_" * number) not in taken)
        map_expr = f"{mask} ? ({d.map_expr}) : (_type_reduce)({d.identity})"
        return ScanKernel(
            f"{d.in_params}, bool {mask}", d.out_params, map_expr, d.reduce_expr,
            d.post_map_expr, d.identity if d.number is None else d.number, d.name, d.reduce_type, d.preamble,
            self.inclusive, self.segments, d.options, fp=self.fp, check=self.checks,
        )  # fmt: skip

    @hide_internal_frames
    def source(
        self,
        target: str = DEFAULT_TARGET,
        types: Mapping[str, object] | None = None,
        *,
        shape: Shape | None = None,
        axis: int | None = None,
        reverse: bool = False,
        where: object = True,
        scalars: Sequence[str] = (),
    ) -> str:
        """The text of all kernels for a target: CUDA C by default; `fusec compile --help` lists the targets.

        types: placeholder -> dtype. shape: of contiguous arguments, a million elements in a row if not given; it
        decides on the kernels. axis, reverse, where: as in a call; any mask shows what all masks run. scalars:
        parameters to pass by value. Without any of these, what the last call ran is shown. Raises FusecTypeError if
        types are missing.
        """
        target_of(target)
        kernel, _ = self._masked((), where)
        return kernel.shown(Showing(target, types, scalars, shape, axis, reverse)).text(target)

    def shown(self, asked: Showing) -> ShownKernels:
        """What source() shows: the kernels of the last call, or of one with contiguous arrays."""
        return self._with_mask.shown(asked) if asked.of_last and self._masked_last else super().shown(asked)

    @hide_internal_frames
    def explain(self, *args: object, out: object = None, **options: Unpack[ScanOptions]) -> Explanation:
        """Report how a call with these arguments runs: kernels, order, bytes; nothing is run."""
        kernel, args, along = self._looked_into(args, out, **options)
        return kernel.explained(args, along)

    def simulated(self, *args: object, out: object = None, **options: Unpack[ScanOptions]) -> object:
        """A call in the interpreter; see `fusec.simulate`."""
        from fusec.dispatch.interpret import interpreted

        kernel, args, along = self._looked_into(args, out, **options)
        results = interpreted(kernel, args, None, along)
        return results[0] if self.nout == 1 else results

    def __repr__(self) -> str:
        signature = getattr(self, "signature", None)
        return f"<ScanKernel {signature}>"

    def described(self) -> tuple[str, str]:
        """The signature of the kernel, and its three expressions."""
        d = self.scan.reduced
        return str(self.signature), f"{d.map_expr.strip()}; {d.reduce_expr.strip()}; {d.post_map_expr.strip()}"

    def __reduce__(self) -> tuple[object, ...]:
        d = self.scan.reduced
        args = (
            d.in_params, d.out_params, d.map_expr, d.reduce_expr, d.post_map_expr,
            d.identity if d.number is None else d.number, d.name, d.reduce_type,
            d.preamble, self.inclusive, self.segments, d.options,
        )  # fmt: skip
        return partial(type(self), fp=self.fp, check=self.checks), args
