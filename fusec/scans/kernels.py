"""Scans that a user defines in text: ScanKernel, the running totals of any associative combination."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fusec import forking, pipeline
from fusec.dtypes import BOOL
from fusec.errors.scans import ExclusiveWithoutIdentity, NoPositionInScan, SegmentsNotBool, SegmentsUnknown
from fusec.generated import Fp
from fusec.kernels import check_names, check_texts, parameters
from fusec.planned import briefly, keep
from fusec.reductions.calls import Call
from fusec.reductions.kernels import INDEX_NAMES, Reducing, is_on_device
from fusec.reductions.pipeline import ReductionDefinition
from fusec.scans import calls
from fusec.scans.calls import Plan
from fusec.scans.pipeline import ScanDefinition
from fusec.signature import Signature

if TYPE_CHECKING:
    from fusec.reductions.device_calls import Call as DeviceCall
    from fusec.scans.device_calls import Plan as DevicePlan


class Scanning(Reducing):
    """A scan with a plan for every kind of call."""

    def __init__(self, scan: ScanDefinition, signature: Signature, fp: Fp) -> None:
        super().__init__(scan.reduced, signature, fp=fp)
        self.scan = scan
        self._scan_plans: dict[object, Plan] = {}
        self._device_scan_plans: dict[object, DevicePlan] = {}

    def scan_plan(self, call: Call, reverse: bool) -> Plan:
        """The plan of a call, made at the first call of its kind and remembered."""
        key = (call.key, reverse)
        found = self._scan_plans.get(key)
        if found is None:
            found = keep(self._scan_plans, key, calls.make_plan(self, call, reverse))
        return found

    def device_scan_plan(self, call: DeviceCall, reverse: bool) -> DevicePlan:
        """The same for arrays on a device."""
        key = (call.key, reverse)
        found = self._device_scan_plans.get(key)
        if found is None:
            from fusec.scans import device_calls

            found = keep(self._device_scan_plans, key, device_calls.make_plan(self, call, reverse))
        return found


class ScanKernel(Scanning):
    """A kernel that gives every element the running total of those along an axis up to it.

    in_params, out_params: declarations ``[raw] TYPE NAME`` separated by commas, as for ElementwiseKernel. map_expr: the
    value of one element. scan_expr: the combination of ``a``, of earlier elements, and ``b``; it must be associative,
    and the order is fixed by shape and strides (`fusec.ir.scans`), so that results are reproducible to the bit.
    post_map_expr: assigns the outputs from the running total ``a``. identity: the total of no elements, which the first
    one gets if not `inclusive`. name: shown in messages. reduce_type: the type of ``a`` and ``b``, a scalar or a struct
    of the preamble; that of the first output if None, but float32 for float16 and bfloat16. preamble: device functions,
    macros, structs. inclusive: elements take part in their own total. segments: the name of a bool input that is true
    where totals start again. options: as for ElementwiseKernel. fp: "strict", "contract" or "fast".
    Raises FusecError with the place in the text if a declaration or an expression is not well formed.
    """

    @briefly
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
    ) -> None:
        texts = {
            "in_params": in_params, "out_params": out_params, "map_expr": map_expr, "scan_expr": scan_expr,
            "post_map_expr": post_map_expr, "preamble": preamble, "name": name,
        }  # fmt: skip
        check_texts(name, texts, options)
        start = None if identity is None or not str(identity).strip() else str(identity)
        if not inclusive and start is None:
            raise ExclusiveWithoutIdentity(name).at()
        reduced = ReductionDefinition(
            in_params, out_params, map_expr, scan_expr, post_map_expr, start, name, reduce_type, preamble,
            tuple(options), "scan_expr",
        )  # fmt: skip
        signature = Signature(name, parameters(in_params, "input"), parameters(out_params, "output"))
        self._check(signature, segments, f"{map_expr} {post_map_expr} {preamble}")
        definition = ScanDefinition(reduced, not inclusive, segments or "")
        super().__init__(definition, signature, pipeline.check_fp(fp))
        definition.read()
        self.identity, self.inclusive, self.segments = start, bool(inclusive), segments
        self.__name__ = name
        self.__doc__ = f"{self.signature}\n\n{map_expr.strip()}; {scan_expr.strip()}; {post_map_expr.strip()}"

    @staticmethod
    def _check(signature: Signature, segments: str | None, text: str) -> None:
        """Names that mean something else, and segments that are not there."""
        check_names(signature)
        for word in re.findall(r"[A-Za-z_]\w*", text):
            if word in INDEX_NAMES:
                raise NoPositionInScan(word).at()
        if segments:
            found = {param.name: param for param in signature.inputs if not param.raw}.get(segments)
            if found is None:
                raise SegmentsUnknown(signature.name, segments).at()
            if found.dtype not in (None, BOOL):
                raise SegmentsNotBool(signature.name, segments, str(found.dtype)).at()

    @briefly
    def __call__(
        self,
        *args: object,
        axis: int | None = -1,
        out: object = None,
        reverse: bool = False,
        stream: object = None,
    ) -> object:
        """Scan; returns the output, or a tuple of several, of the shape that the inputs have together.

        args: the inputs, or inputs and outputs. axis: one integer. out: the output array, or a tuple of them. reverse:
        begin at the end of the axis. stream: for arrays on a GPU.
        """
        self.check_counts(args, out)
        if is_on_device(args, out, True):
            with forking.lock:
                from fusec.scans import device_calls

            results = device_calls.run(self, args, out, axis, stream, reverse=bool(reverse))
        else:
            results = calls.run(self, args, out, axis, reverse=bool(reverse))
        return results[0] if self.nout == 1 else results

    def __repr__(self) -> str:
        signature = getattr(self, "signature", None)
        return f"<ScanKernel {signature}>"

    def __reduce__(self) -> tuple[object, ...]:
        d = self.scan.reduced
        args = (
            d.in_params, d.out_params, d.map_expr, d.reduce_expr, d.post_map_expr, d.identity, d.name, d.reduce_type,
            d.preamble, self.inclusive, self.segments, d.options,
        )  # fmt: skip
        return _restore, (type(self), args, self.fp)


def _restore(cls: type[ScanKernel], args: tuple[object, ...], fp: Fp) -> ScanKernel:
    """Rebuild a pickled kernel from its texts."""
    return cls(*args, fp=fp)  # type: ignore[arg-type]
