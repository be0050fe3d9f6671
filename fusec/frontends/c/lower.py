"""Kernel strings: CuPy's C-like texts to a program in the loops IR."""

from __future__ import annotations

from collections.abc import Mapping

from fusec.base.dtypes import INT64, DType
from fusec.base.records import dataclass, replace
from fusec.errors.language import TooDeep
from fusec.frontends.c import syntax as s
from fusec.frontends.c.assignment import read_first, used
from fusec.frontends.c.bodies import TRUE
from fusec.frontends.c.lint import KnownNames, review
from fusec.frontends.c.params import ParamDecl, parse_both
from fusec.frontends.c.parse import Reader
from fusec.frontends.c.parsed import ParsedTexts
from fusec.frontends.c.storage import PlaceAccess
from fusec.frontends.c.symbols import Address, Indexer, NamedConstant, RawArray, Symbol, Variable
from fusec.frontends.c.texts import KernelTexts
from fusec.frontends.lowering import MAX_DEPTH
from fusec.ir import loops as ir
from fusec.ir.expr import Expr, Pointer
from fusec.ir.walk import roots_of

INDEX = ir.Query("", "index", None, INT64)
SIZE = ir.Query("", "size", None, INT64)


@dataclass(frozen=True)
class ParsedKernel(ParsedTexts):
    """The syntax trees of a kernel's texts."""

    trees: tuple[s.Body, ...]  # loop_prep, operation and after_loop


def parse(texts: KernelTexts) -> ParsedKernel:
    """Parse the texts of a kernel. Raises the errors of fusec.errors.language that do not depend on types."""
    inputs, outputs = parse_both(texts)
    reader = Reader(texts, inputs + outputs)
    source = reader.file("operation", texts.operation)
    declarations = reader.preamble(texts.preamble)
    prepared = reader.body(reader.file("loop_prep", texts.loop_prep))
    trees = (prepared, reader.body(source), reader.body(reader.file("after_loop", texts.after_loop)))
    review(KnownNames(inputs, outputs), declarations, trees)
    addressed = frozenset(reader.addressed)
    return ParsedKernel(texts.name, inputs, outputs, source, declarations, reader.single, addressed, trees)


def lower(
    kernel: ParsedKernel, types: Mapping[str, DType], *, ndims: Mapping[str, int], scalars: frozenset[str]
) -> ir.Program:
    """The program of a kernel for given types.

    types: the dtype of every parameter, by name. ndims: axes of raw arrays; where missing, as many as an index by axes
    has, else 1. scalars: parameters that are passed by value. Raises the errors of fusec.errors.language.
    """
    try:
        return _KernelLowering(kernel, types, ndims, scalars).program()
    except RecursionError:
        raise TooDeep(MAX_DEPTH, "expressions").at() from None


class _KernelLowering:
    """One kernel with one set of types."""

    def __init__(
        self, kernel: ParsedKernel, types: Mapping[str, DType], ndims: Mapping[str, int], scalars: frozenset[str]
    ) -> None:
        self.kernel, self.types, self.scalars = kernel, types, scalars
        self.unit = kernel.unit(types)
        self.frame = kernel.frame(self.unit)
        self.outputs = {param.name for param in kernel.outputs}
        self.raw: dict[str, RawArray] = {}
        self.written = [
            param for param in kernel.params
            if not param.raw and param.name not in scalars and (param.name in self.outputs or param.non_const)
        ]  # fmt: skip
        self.frame.symbols[0].update({"i": NamedConstant(INDEX), "n": NamedConstant(SIZE), "_ind": Indexer()})
        for param in kernel.params:
            self.frame.symbols[0][param.name] = self._symbol(param, ndims)
            if not param.raw:  # CuPy's name for the array itself; its shape is that of the space
                self.frame.symbols[0][f"_raw_{param.name}"] = Indexer()

    def _symbol(self, param: ParamDecl, ndims: Mapping[str, int]) -> Symbol:
        dtype = self.types[param.name]
        reason = "" if param.name in self.outputs or param.non_const else f"input '{param.name}'"
        if param.name in self.scalars:
            return Variable(param.name, dtype, f"scalar '{param.name}'")
        if param.raw:
            array = self.raw[param.name] = RawArray(param.name, dtype, ndims.get(param.name), reason)
            return array
        if param.name in self.unit.addressed and not reason:
            with self.frame.block():  # the declaration itself comes with the final body
                return self.frame.in_memory(param.name, dtype, None, "")
        return Variable(param.name, dtype, reason)

    def program(self) -> ir.Program:
        """Lower all texts and put the loads and stores around them."""
        prepared, operation, after = self.kernel.trees
        frame = self.frame
        frame.exits = tuple(ir.Store(self._element(param), self._current(param)) for param in self.written)
        with frame.scope():
            frame.statements(prepared)
            with frame.scope():
                self._operation(operation, bool(after))
            frame.statements(after)
        frame.line = 0
        return self._assembled(frame.finished())

    def _operation(self, operation: s.Body, resumes: bool) -> None:
        """The operation; where an after_loop follows, ``continue`` goes on there, so a loop of one round holds it."""
        if not resumes:
            self.frame.statements(operation)
            return
        self.frame.resumes = True
        with self.frame.block() as body:
            self.frame.statements(operation)
        self.frame.resumes = False
        if self.frame.left_early:
            self.frame.emit(ir.While(TRUE, (*body, ir.Break())))
        else:
            self.frame.emit(*body)

    def _element(self, param: ParamDecl) -> ir.Element:
        const = param.name not in self.outputs and not param.non_const
        return ir.Element(param.name, Pointer(self.types[param.name], "global", const))

    def _current(self, param: ParamDecl) -> Expr:
        found = self.frame.symbols[0][param.name]
        assert isinstance(found, (Variable, Address)), "outputs are variables"
        return PlaceAccess(self.frame).load(found)

    def _assembled(self, body: tuple[ir.Stmt, ...]) -> ir.Program:
        read = used(roots_of(body))
        early = read_first(body, frozenset(param.name for param in self.written))
        head: list[ir.Stmt] = []
        for param in self.kernel.params:
            if param.raw or param.name in self.scalars or (param not in self.written and param.name not in read):
                continue
            dtype, found = self.types[param.name], self.frame.symbols[0][param.name]
            loads = param not in self.written or param.name in early or isinstance(found, Address)
            value = ir.Load(self._element(param), dtype) if loads else None
            if isinstance(found, Address):
                with self.frame.block() as declared:
                    self.frame.in_memory(param.name, dtype, value, "")
                head += [replace(each, line=0) for each in declared]
            else:
                head.append(ir.Declare(param.name, dtype, value))
        params = tuple(self._param(param, early) for param in self.kernel.params)
        return ir.Program(self.kernel.name, params, (*head, *body), self.unit.emitted, self.kernel.source)

    def _param(self, param: ParamDecl, early: set[str]) -> ir.Param:
        dtype = self.types[param.name]
        if param.name in self.scalars:
            return ir.ScalarParam(param.name, dtype)
        written = param.name in self.outputs or param.non_const
        if param.raw:
            return ir.ArrayParam(param.name, dtype, raw=True, written=written, ndim=self.raw[param.name].ndim or 1)
        in_memory = isinstance(self.frame.symbols[0][param.name], Address)
        return ir.ArrayParam(param.name, dtype, written=written, read=not written or in_memory or param.name in early)
