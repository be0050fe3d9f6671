"""Kernel strings: CuPy's C-like texts to a program in the loops IR."""

from __future__ import annotations

from collections.abc import Mapping

from fusec.base.dtypes import INT64, DType
from fusec.base.records import dataclass, field, replace
from fusec.base.source import SourceFile
from fusec.errors.language import TooDeep
from fusec.frontends.c import syntax as s
from fusec.frontends.c.assignment import read_first, used
from fusec.frontends.c.bodies import TRUE
from fusec.frontends.c.context import TranslationUnit
from fusec.frontends.c.frame import FunctionFrame
from fusec.frontends.c.lint import review
from fusec.frontends.c.params import ParamDecl, check_distinct, parse_params
from fusec.frontends.c.parse import Reader
from fusec.frontends.c.statements import StatementLowering
from fusec.frontends.c.symbols import Address, Indexer, NamedConstant, RawArray, Symbol, Variable
from fusec.frontends.lowering import MAX_DEPTH
from fusec.ir import loops as ir
from fusec.ir.expr import Expr, Pointer

INDEX = ir.Query("", "index", None, INT64)
SIZE = ir.Query("", "size", None, INT64)


@dataclass(frozen=True)
class KernelText:
    """The texts of a kernel and their syntax trees; nothing here depends on types.

    source: the operation's text, which the lines of the program refer to. trees: preamble, loop_prep, operation and
    after_loop. single: float literals without suffix are float32. addressed: variables whose address may be kept.
    """

    name: str
    inputs: tuple[ParamDecl, ...]
    outputs: tuple[ParamDecl, ...]
    operation: str
    preamble: str = ""
    loop_prep: str = ""
    after_loop: str = ""
    options: tuple[str, ...] = ()
    source: SourceFile = field(default_factory=lambda: SourceFile("operation", ""), compare=False)
    declarations: tuple[s.External, ...] = field(default=(), compare=False, repr=False)
    trees: tuple[s.Body, ...] = field(default=((), (), ()), compare=False, repr=False)
    single: bool = False
    addressed: frozenset[str] = field(default=frozenset(), compare=False, repr=False)

    @property
    def params(self) -> tuple[ParamDecl, ...]:
        """Inputs, then outputs."""
        return self.inputs + self.outputs


def parse(
    in_params: str,
    out_params: str,
    operation: str,
    name: str = "kernel",
    preamble: str = "",
    loop_prep: str = "",
    after_loop: str = "",
    options: tuple[str, ...] = (),
) -> KernelText:
    """Parse the texts of a kernel. Raises the errors of fusec.errors.language that do not depend on types."""
    inputs, outputs = parse_params(in_params, "input", name), parse_params(out_params, "output", name)
    check_distinct(inputs, outputs)
    params = inputs + outputs
    placeholders = frozenset(param.type_name for param in params if param.dtype is None)
    reader = Reader(placeholders, frozenset(param.name for param in params), tuple(options))
    source = SourceFile(f"kernel '{name}', operation", operation)
    declarations = reader.preamble(SourceFile(f"kernel '{name}', preamble", preamble)) if preamble.strip() else ()
    prepared = reader.body(SourceFile(f"kernel '{name}', loop_prep", loop_prep))
    body = reader.body(source)
    after = reader.body(SourceFile(f"kernel '{name}', after_loop", after_loop))
    review(inputs, outputs, declarations, (prepared, body, after))
    return KernelText(
        name, inputs, outputs, operation, preamble, loop_prep, after_loop, tuple(options), source, declarations,
        (prepared, body, after), reader.single, frozenset(reader.addressed),
    )  # fmt: skip


def lower(
    kernel: KernelText, types: Mapping[str, DType], *, ndims: Mapping[str, int], scalars: frozenset[str]
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
        self, kernel: KernelText, types: Mapping[str, DType], ndims: Mapping[str, int], scalars: frozenset[str]
    ) -> None:
        self.kernel, self.types, self.scalars = kernel, types, scalars
        placeholders = {param.type_name: types[param.name] for param in kernel.params if param.dtype is None}
        self.unit = TranslationUnit(kernel.source, kernel.single, dict(placeholders), addressed=kernel.addressed)
        StatementLowering(FunctionFrame(self.unit, set())).declarations.preamble(kernel.declarations)
        taken = {param.name for param in kernel.params} | set(self.unit.functions) | set(self.unit.globals)
        self.unit.names |= {param.name for param in kernel.params} | set(self.unit.globals) | {kernel.name}
        self.frame = FunctionFrame(self.unit, taken)
        self.lowering = StatementLowering(self.frame)
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
                return self.lowering.declarations.in_memory(param.name, dtype, None, "")
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
        body = (*frame.prologue, *frame.blocks[0])
        if not (body and isinstance(body[-1], ir.Return)):
            body += frame.exits
        return self._assembled(body)

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
            self.frame.blocks[-1].extend(body)

    def _element(self, param: ParamDecl) -> ir.Element:
        const = param.name not in self.outputs and not param.non_const
        return ir.Element(param.name, Pointer(self.types[param.name], "global", const))

    def _current(self, param: ParamDecl) -> Expr:
        found = self.frame.symbols[0][param.name]
        assert isinstance(found, (Variable, Address)), "outputs are variables"
        return self.lowering.storage.load(found)

    def _assembled(self, body: tuple[ir.Stmt, ...]) -> ir.Program:
        read = used(body)
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
                    self.lowering.declarations.in_memory(param.name, dtype, value, "")
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
