"""Reductions that a user defines in text: ReductionKernel, CuPy's, with several outputs and one order of operations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack, overload

from numpy.typing import NDArray

from fusec.arguments.annotations import Foreign, Given, Number, Output, ReductionOptions
from fusec.arguments.operands import is_number, outputs_of
from fusec.arguments.scalars import flag
from fusec.arguments.signature import Signature
from fusec.base.kernel_abi import Fp
from fusec.base.public import Public
from fusec.compiler import pipeline
from fusec.dispatch.axes import plain_axis
from fusec.dispatch.checked import Bounds, Checks, wanted
from fusec.dispatch.interception import PlainCall
from fusec.dispatch.planned import Planned, ShowsTotals, hide_internal_frames
from fusec.dispatch.reductions import REDUCTION
from fusec.dispatch.spec import Axis, CallOptions
from fusec.errors.arguments import POSITIONAL, WITHOUT_OF_TOTALS, unknown_keyword
from fusec.frontends.c.definition import ReductionDefinition
from fusec.kernels.elementwise_kernel import check_names, check_texts, parameters

if TYPE_CHECKING:
    from fusec.dispatch.explain import Explanation

OPTIONS = ("axis", "keepdims", "out", "where", "stream")  # of calls
INDEX_NAMES = frozenset({"_J", "_i", "_j", "_in_ind", "_out_ind"})


class ReductionKernel(Public, Planned, ShowsTotals):
    """A kernel that combines the elements along some axes of its broadcast arguments to one total each.

    in_params, out_params: declarations ``[raw] TYPE NAME`` separated by commas, as for ElementwiseKernel. map_expr: the
    value of one element; it may use ``_J``, the position of the element among those of its total, and the coordinates
    ``_in_ind.get()[d]`` and ``_out_ind.get()[d]``. reduce_expr: the combination of ``a`` and ``b``, which must be
    associative and commutative; shape and strides fix the order, so results are reproducible to the bit. post_map_expr:
    assigns the outputs from ``a``. identity: the total of no elements, and the value of elements that ``where=`` leaves
    out; None if there is none. name: shown in messages. reduce_type: the type of ``a`` and ``b``, a scalar type or a
    struct of the preamble; by default that of the first output, or float32 for float16 and bfloat16. preamble: device
    functions, macros, structs. options, reduce_dims, bounds, check: as for ElementwiseKernel. fp: "strict", "contract"
    or "fast".
    Results have the shape to which the arguments broadcast, without the axes of the call; each call binds the
    placeholders to dtypes.
    Raises FusecError, with the place in the text, if a declaration or an expression is malformed.

    >>> total = fusec.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "norm")
    >>> total(np.array([[3.0, 4.0], [6.0, 8.0]]), axis=1)
    array([ 5., 10.])
    """

    @hide_internal_frames
    def __init__(
        self,
        in_params: str,
        out_params: str,
        map_expr: str,
        reduce_expr: str,
        post_map_expr: str,
        identity: object = None,
        name: str = "reduce_kernel",
        reduce_type: str | None = None,
        reduce_dims: bool = True,
        preamble: str = "",
        options: Sequence[str] = (),
        *,
        fp: Fp = "strict",
        bounds: Bounds | None = None,
        check: Checks | None = None,
    ) -> None:
        texts = {
            "in_params": in_params, "out_params": out_params, "map_expr": map_expr, "reduce_expr": reduce_expr,
            "post_map_expr": post_map_expr, "preamble": preamble, "name": name,
        }  # fmt: skip
        check_texts(name, texts if reduce_type is None else {**texts, "reduce_type": reduce_type}, options)
        start = identity_text(identity)
        definition = ReductionDefinition(
            in_params, out_params, map_expr, reduce_expr, post_map_expr, start, name, reduce_type, preamble,
            tuple(options), number=identity_number(identity),
        )  # fmt: skip
        signature = Signature(name, parameters(in_params, "input"), parameters(out_params, "output"))
        check_names(signature)
        words = re.findall(r"[A-Za-z_]\w*", f"{map_expr} {post_map_expr} {preamble}")
        asked = INDEX_NAMES - {param.name for param in signature.params}
        uses_index, fp = not asked.isdisjoint(words), pipeline.check_fp(fp)
        super().__init__(definition, signature, REDUCTION, uses_index=uses_index, fp=fp)
        definition.read()
        self.texts, self.checks = definition, wanted(bounds, check)
        self.__name__ = name
        self.identity, self.reduce_type, self.reduce_dims = start, reduce_type, reduce_dims
        self.document()

    @overload
    def __call__(self, *args: Any, out: Output, **options: Unpack[ReductionOptions]) -> Output: ...
    @overload
    def __call__(self, *args: Given, out: None = None, **options: Unpack[ReductionOptions]) -> NDArray[Any]: ...
    @overload
    def __call__(self, *args: Foreign | Number, out: None = None, **options: Unpack[ReductionOptions]) -> Foreign: ...
    @hide_internal_frames
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Reduce; returns the output, or a tuple of several.

        args: the inputs, or inputs and outputs. axis: None for all, an integer or a tuple. keepdims: reduced axes stay
        with one element. out: the output array, or a tuple of them. where: a bool array of elements that take part.
        stream: for arrays on a GPU.
        """
        if self.quick and kwargs.keys() <= {"axis", "keepdims", "out"}:
            axis, keepdims, out = kwargs.get("axis"), kwargs.get("keepdims", False), kwargs.get("out")
            if axis is not None and type(axis) is not int:
                axis = plain_axis(axis)
            given = out is not None or len(args) != self.nin
            quick = self.quick.get((axis, keepdims, given)) if type(keepdims) is bool else None
            if quick is not None and given:
                self.check_counts(args, out)
                return quick(*args, *outputs_of(out))
            if quick is not None:
                return quick(*args)
        return self._from_keywords(args, **kwargs)

    def plain_call(self, args: tuple[Any, ...], options: dict[str, Any]) -> PlainCall:
        """A call without fast paths, for fused functions."""
        return ReductionKernel._from_keywords, (self, args), options

    def _from_keywords(self, args: tuple[object, ...], out: object = None, **options: Any) -> object:
        results = self.run(args, out, self._options(args, out, **options))
        return results[0] if self.nout == 1 else results

    def _options(
        self,
        args: tuple[object, ...],
        out: object = None,
        axis: Axis = None,
        keepdims: bool = False,
        stream: object = None,
        where: object = True,
        **unknown: object,
    ) -> CallOptions:
        """How a call reduces. Raises for arguments and outputs of a wrong number."""
        for keyword in unknown:
            raise unknown_keyword(self.name, keyword, OPTIONS, WITHOUT_OF_TOTALS, POSITIONAL).at()
        self.check_counts(args, out)
        return CallOptions(axis, flag(keepdims, "keepdims", self.name), where, stream=stream)

    @hide_internal_frames
    def explain(self, *args: object, out: object = None, **options: Unpack[ReductionOptions]) -> Explanation:
        """Report how a call with these arguments runs: kernels, axes, order, bytes; nothing is run."""
        asked = self._options(args, out, **options)._replace(stream=None)
        return self.explained((*args, *outputs_of(out)), asked)

    def simulated(self, *args: object, out: object = None, **options: Unpack[ReductionOptions]) -> object:
        """A call in the interpreter; see `fusec.simulate`."""
        from fusec.dispatch.interpret import interpreted

        results = interpreted(self, args, out, self._options(args, out, **options))
        return results[0] if self.nout == 1 else results

    def __repr__(self) -> str:
        signature = getattr(self, "signature", None)
        return f"<ReductionKernel {signature}>"

    def described(self) -> tuple[str, str]:
        """The signature of the kernel, and its three expressions."""
        d = self.texts
        return str(self.signature), f"{d.map_expr.strip()}; {d.reduce_expr.strip()}; {d.post_map_expr.strip()}"

    def __reduce__(self) -> tuple[object, ...]:
        d = self.texts
        args = (
            d.in_params, d.out_params, d.map_expr, d.reduce_expr, d.post_map_expr,
            d.identity if d.number is None else d.number, d.name, d.reduce_type, self.reduce_dims, d.preamble,
            d.options,
        )  # fmt: skip
        return partial(type(self), fp=self.fp, check=self.checks), args


def identity_text(identity: object) -> str | None:
    """The text of an identity, None for none; a number is written as the kernel language writes it."""
    text = "" if identity is None else str(identity)
    if is_number(identity):
        text = {"nan": "NAN", "inf": "INFINITY", "-inf": "-INFINITY", "True": "true", "False": "false"}.get(text, text)
    return text if text.strip() else None


def identity_number(identity: object) -> object:
    """The identity itself if it is a number that totals can hold; None for a text or no identity."""
    return identity if is_number(identity) and not isinstance(identity, str) else None
