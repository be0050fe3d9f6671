"""Reduction texts: CuPy's map, reduce and post-map expressions to a reduction in the IR."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from fusec.base.dtypes import BFLOAT16, FLOAT16, FLOAT32, INT64, DType
from fusec.base.records import dataclass
from fusec.base.source import SourceFile, Span
from fusec.errors.base import FusecError
from fusec.errors.language import BadDeclaration, CannotConvert, NotSupported, ParameterName, TooDeep, UnknownName
from fusec.frontends.c import syntax as s
from fusec.frontends.c.assignment import read_first, used
from fusec.frontends.c.c_types import show
from fusec.frontends.c.frame import FunctionFrame
from fusec.frontends.c.lint import KnownNames, review
from fusec.frontends.c.params import ParamDecl, parse_both
from fusec.frontends.c.parse import Reader
from fusec.frontends.c.parsed import ParsedTexts
from fusec.frontends.c.storage import PlaceAccess
from fusec.frontends.c.symbols import Indexer, NamedConstant, RawArray, Variable
from fusec.frontends.c.texts import ReductionTexts
from fusec.frontends.c.type_resolution import TypeResolver
from fusec.frontends.lowering import MAX_DEPTH, position_of
from fusec.ir import loops as ir
from fusec.ir.expr import Expr, Pointer, Struct, Type, apply, const, type_of
from fusec.ir.reductions import REDUCED, TOTALS, Accumulator, ReductionIR, Stage, parts_of, whole_of
from fusec.ir.walk import roots_of

INDEX_NAMES = frozenset({"_J", "_i", "_j", "_in_ind", "_out_ind"})
SUMMED_WIDE = {FLOAT16: FLOAT32, BFLOAT16: FLOAT32}  # what a default reduce_type becomes
TOTAL, WHOLE, PART = "_total", "_whole", "_part"  # locals


@dataclass(frozen=True)
class ParsedReduction(ParsedTexts):
    """The syntax trees of a reduction's texts."""

    mapped: s.Expression
    reduced: s.Expression
    post: s.Body
    identity: s.Expression | None  # None if there is none
    reduce_type: s.Qualified | None  # as written; None for that of the first output


def parse(texts: ReductionTexts) -> ParsedReduction:
    """Parse the texts of a reduction. Raises the errors of fusec.errors.language that do not depend on types."""
    inputs, outputs = parse_both(texts)
    for param in outputs:
        if param.raw:
            cure = "outputs have one element for each total; assign it in post_map_expr"
            raise NotSupported("a raw output of a reduction is", cure).at(param.span)
        if param.name == "a":
            raise ParameterName(param.name, "'a' is the total in post_map_expr; choose another name").at(param.span)
    reader = Reader(texts, inputs + outputs, "_type_reduce")
    declarations = reader.preamble(texts.preamble)
    source = reader.file("map_expr", texts.map_expr)
    mapped = _expression(reader, source, "map_expr")
    reduced = _expression(reader, reader.file(texts.combined, texts.reduce_expr), texts.combined)
    post = reader.body(reader.file("post_map_expr", texts.post_map_expr))
    _check_post(post, outputs, reader.file("post_map_expr", texts.post_map_expr))
    start = None
    if texts.identity is not None and str(texts.identity).strip():
        start = _expression(reader, reader.file("identity", str(texts.identity)), "identity")
    kind = None if texts.reduce_type is None else _type(reader, reader.file("reduce_type", texts.reduce_type))
    seen = frozenset({"a", "_in_ind", "_out_ind", *(param.name for param in inputs)})
    for tree, names in (
        ((_returned(mapped),), KnownNames(inputs, further=INDEX_NAMES, flat=frozenset())),
        ((_returned(reduced),), KnownNames(further=frozenset("ab"), flat=frozenset())),
        (post, KnownNames((), outputs, seen, frozenset())),
        (() if start is None else (_returned(start),), KnownNames(inputs, flat=frozenset())),
    ):
        review(names, declarations, ((), tree, ()))
    common = (texts.name, inputs, outputs, source, declarations, reader.single, frozenset(reader.addressed))
    return ParsedReduction(*common, mapped, reduced, post, start, kind)


def _expression(reader: Reader, file: SourceFile, what: str) -> s.Expression:
    """The one expression of a text. Raises BadDeclaration or NotSupported."""
    body = reader.body(file)
    if len(body) == 1 and isinstance(body[0], s.Evaluate):
        return body[0].value
    if not body:
        raise BadDeclaration(f"{what} is empty", "write an expression").at(Span(file, 0, len(file.text)))
    raise NotSupported(f"more than one expression in {what} is", "put a function into the preamble and call it").at(
        body[-1].span
    )


def _check_post(post: s.Body, outputs: tuple[ParamDecl, ...], file: SourceFile) -> None:
    """Refuse a post_map_expr that leaves an output as it is whatever happens. Raises BadDeclaration."""
    if not post:
        example = outputs[0].name if outputs else "y"
        raise BadDeclaration("post_map_expr is empty", f"assign the output, e.g. post_map_expr='{example} = a'").at(
            Span(file, 0, len(file.text))
        )
    assigned = _assigned(post)
    for param in outputs:
        if param.name not in assigned:
            cure = f"write {param.name} = ..., or drop the output"
            raise BadDeclaration(f"post_map_expr never assigns the output '{param.name}'", cure).at(param.span)


def _assigned(statements: s.Body) -> set[str]:
    """The names that statements may assign: targets, and what functions may take by reference."""
    found: set[str] = set()
    pending: list[tuple[object, bool]] = [(each, False) for each in statements]
    while pending:
        node, is_target = pending.pop()
        match node:
            case s.Name(name=name) if is_target:
                found.add(name)
            case s.Assignment(target=target, value=value):
                pending += ((target, True), (value, is_target))
            case s.Prefix(op="++" | "--" | "&", operand=operand) | s.Postfix(operand=operand):
                pending.append((operand, True))
            case s.CallNode(callee=callee, args=args):
                pending += ((callee, True), *((each, True) for each in args))
            case tuple():
                pending += ((each, is_target) for each in node)
            case s.Declarator():  # a reference may be made of the value
                pending += ((node.value, True), (node.args, True))
            case s.Node():
                pending += ((getattr(node, name), is_target) for name in type(node).__match_args__)
    return found


def _type(reader: Reader, file: SourceFile) -> s.Qualified:
    """The type that a text names. Raises BadDeclaration."""
    body = reader.body(SourceFile(file.name, f"{file.text} _value"))
    if len(body) == 1 and isinstance(body[0], s.Declaration):
        return body[0].type
    raise BadDeclaration("reduce_type is not a type", "name a scalar type, or a struct of the preamble").at(
        Span(file, 0, len(file.text))
    )


def _returned(value: s.Expression) -> s.ReturnNode:
    """The expression as a statement that uses it."""
    return s.ReturnNode(value.span, value)


def lower(
    text: ParsedReduction,
    types: Mapping[str, DType],
    ndims: Mapping[str, int],
    scalars: frozenset[str],
    reduced: Sequence[int],
) -> tuple[ReductionIR, ir.Program]:
    """The reduction of a text for given types, and the program that stores its outputs where there are no elements.

    ndims: axes of raw arrays, and by the name "" those of the walk. scalars: inputs that are passed by value. reduced:
    the axes that are reduced. The program has no statement if there is no identity. Raises the errors of
    fusec.errors.language.
    """
    try:
        return _ReductionLowering(text, types, ndims, scalars, reduced).reduction()
    except RecursionError:
        raise TooDeep(MAX_DEPTH, "expressions").at() from None


class _ReductionLowering:
    """One reduction with one set of types."""

    def __init__(
        self,
        text: ParsedReduction,
        types: Mapping[str, DType],
        ndims: Mapping[str, int],
        scalars: frozenset[str],
        reduced: Sequence[int],
    ) -> None:
        self.text, self.types, self.scalars, self.ndims = text, types, scalars, ndims
        self.reduced = tuple(reduced)
        self.kept = tuple(axis for axis in range(ndims[""]) if axis not in self.reduced)
        self.unit = text.unit(types)
        self.type = self._reduce_type()
        self.unit.types["_type_reduce"] = self.type
        self.read: set[str] = set()  # outputs whose elements are read, see `_finish`

    def _reduce_type(self) -> DType | Struct:
        if self.text.reduce_type is None:
            if not self.text.outputs:
                raise BadDeclaration("there is no output", "declare one, e.g. out_params='T y'").at()
            first = self.types[self.text.outputs[0].name]
            return SUMMED_WIDE.get(first, first)
        found = TypeResolver(self._frame()).resolve(self.text.reduce_type)
        if isinstance(found, (DType, Struct)):
            return found
        raise BadDeclaration(f"reduce_type is {show(found)}", "name a scalar type, or a struct of the preamble").at(
            self.text.reduce_type.span
        )

    def _frame(self) -> FunctionFrame:
        return self.text.frame(self.unit, TOTAL, WHOLE, PART)

    def reduction(self) -> tuple[ReductionIR, ir.Program]:
        """All parts together."""
        stage, raw = self._mapped()
        combine = self._combine()
        finish = self._finish()
        total = Accumulator(TOTAL, self.type, whole_of(_locals(PART, self.type), self.type), combine.name)
        assert stage.accumulator is not None, "the map gives a value"
        stages = (Stage(stage.body, Accumulator(PART, self.type, stage.accumulator.value, combine.name)),)
        empty = self._empty(finish)
        functions = (*self.unit.emitted, combine)
        named = used((*roots_of(stage.body, finish), stage.accumulator.value))
        sizes = (ir.ScalarParam(name, INT64) for name in (REDUCED, TOTALS) if name in named)
        params = (*(self._param(param, raw) for param in self.text.params), *sizes)
        outputs = tuple(
            param
            for param in params
            if isinstance(param, ir.ScalarParam) or (isinstance(param, ir.ArrayParam) and param.written)
        )
        reduction = ReductionIR(self.text.name, params, stages, total, finish, functions, self.text.source)
        return reduction, ir.Program(self.text.name, outputs, empty, self.unit.emitted, self.text.source)

    def _mapped(self) -> tuple[Stage, dict[str, RawArray]]:
        """What happens for one element."""
        frame, raw = self._frame(), dict[str, RawArray]()
        symbols = frame.symbols[0]
        results = Indexer(self.kept, ir.Local(TOTALS, INT64))
        symbols.update({"_in_ind": Indexer(), "_out_ind": results, "_J": NamedConstant(position_of(self.reduced))})
        symbols.update({"_i": NamedConstant(position_of(self.kept)), "_j": NamedConstant(self._flat())})
        for param in self.text.inputs:
            dtype, reason = self.types[param.name], f"input '{param.name}'"
            if param.raw and param.name not in self.scalars:
                raw[param.name] = RawArray(param.name, dtype, self.ndims.get(param.name), reason)
                symbols[param.name] = raw[param.name]
            else:
                symbols[param.name] = Variable(param.name, dtype, reason)
                symbols[f"_raw_{param.name}"] = Indexer()
        value = frame.value(self.text.mapped)
        kind = type_of(value)
        if isinstance(kind, Struct) and self.text.reduce_type is None:
            cure = f"pass reduce_type='{kind.name}'"
            raise CannotConvert(f"struct {kind.name}", str(self.type), cure).at(self.text.mapped.span)
        value = PlaceAccess(frame).converted(value, self.type, self.text.mapped.span)
        body = (*frame.prologue, *frame.blocks[0])
        wanted = used((*roots_of(body), value))
        loads: list[ir.Stmt] = []
        for param in self.text.inputs:
            if not param.raw and param.name not in self.scalars and param.name in wanted:
                dtype = self.types[param.name]
                place = ir.Element(param.name, Pointer(dtype, "global", const=True))
                loads.append(ir.Declare(param.name, dtype, ir.Load(place, dtype)))
        return Stage((*loads, *body), Accumulator(PART, self.type, value, "")), raw

    def _flat(self) -> Expr:
        """CuPy's ``_j``: the position where the axes that are reduced come before the others."""
        inner = position_of(self.reduced)
        if not self.kept:
            return inner
        return apply("add", apply("multiply", inner, ir.Local(TOTALS, INT64)), position_of(self.kept))

    def _combine(self) -> ir.Function:
        frame = self._frame()
        names = frame.fresh("a"), frame.fresh("b")
        for side, name in zip("ab", names, strict=True):
            frame.symbols[0][side] = Variable(name, self.type)
        value = PlaceAccess(frame).converted(frame.value(self.text.reduced), self.type, self.text.reduced.span)
        body = (*frame.prologue, *frame.blocks[0], ir.Return(value))
        params = tuple((name, self.type) for name in names)
        return ir.Function(self.unit.fresh(f"{self.text.name}_combine"), params, self.type, body)

    def _finish(self) -> tuple[ir.Stmt, ...]:
        """What is stored for one total; an output that keeps what it holds on some path, or adds to it, is loaded."""
        frame = self._frame()
        head: list[ir.Stmt] = [ir.Declare(WHOLE, self.type, whole_of(_locals(TOTAL, self.type), self.type))]
        frame.symbols[0]["a"] = Variable(WHOLE, self.type)
        totals, covered = ir.Local(TOTALS, INT64), ir.Local(REDUCED, INT64)
        frame.symbols[0]["_out_ind"] = Indexer(self.kept, totals)
        frame.symbols[0]["_in_ind"] = Indexer((), apply("multiply", totals, covered))
        self._see_numbers(frame, {"a"})  # which is the total here
        tail: list[ir.Stmt] = []
        places = {
            param.name: ir.Element(param.name, Pointer(self.types[param.name], "global")) for param in self.text.outputs
        }
        for name, place in places.items():
            frame.symbols[0][name] = Variable(name, self.types[name])
            tail.append(ir.Store(place, ir.Local(name, self.types[name])))
        frame.exits = tuple(tail)
        with frame.scope():
            self._statements(frame)
        body = frame.finished()
        self.read = read_first(body, frozenset(places))
        for name, place in places.items():
            dtype = self.types[name]
            head.append(ir.Declare(name, dtype, ir.Load(place, dtype) if name in self.read else None))
        return (*head, *body)

    def _see_numbers(self, frame: FunctionFrame, hidden: Set[str] = frozenset()) -> None:
        """Let a part that has no element use the inputs that are numbers."""
        for param in self.text.inputs:
            if param.name in self.scalars and param.name not in hidden:
                frame.symbols[0][param.name] = Variable(param.name, self.types[param.name], f"input '{param.name}'")

    def _statements(self, frame: FunctionFrame) -> None:
        """The statements of post_map_expr. Raises UnknownName for an input that is an array."""
        try:
            frame.statements(self.text.post)
        except FusecError as problem:
            arrays = {param.name for param in self.text.inputs} - self.scalars
            if isinstance(problem.error, UnknownName) and problem.error.name in arrays:
                sees = "the total a, inputs that are numbers, the outputs, _out_ind and _in_ind.size()"
                cure = f"post_map_expr sees {sees}; use elements of arrays in map_expr"
                raise UnknownName(problem.error.name, cure).at(problem.span) from None
            raise

    def _empty(self, finish: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
        """The statements for a total of no elements."""
        if self.text.identity is None:
            return ()
        frame = self._frame()
        self._see_numbers(frame)
        value = PlaceAccess(frame).converted(frame.value(self.text.identity), self.type, self.text.identity.span)
        names = zip(_locals(TOTAL, self.type), parts_of(value), strict=True)
        declared = tuple(ir.Declare(local.name, local.type, part) for local, part in names)
        return (*frame.prologue, *frame.blocks[0], *declared, *finish)

    def _param(self, param: ParamDecl, raw: Mapping[str, RawArray]) -> ir.Param:
        dtype = self.types[param.name]
        if param.name in self.scalars:
            return ir.ScalarParam(param.name, dtype)
        if param.raw:
            return ir.ArrayParam(param.name, dtype, raw=True, ndim=raw[param.name].ndim or 1)
        is_output = param in self.text.outputs
        return ir.ArrayParam(param.name, dtype, written=is_output, read=not is_output or param.name in self.read)


def _locals(name: str, kind: Type) -> tuple[ir.Local, ...]:
    """The locals that hold an accumulator of that name."""
    return tuple(ir.Local(part, dtype) for part, dtype in Accumulator(name, kind, const(0, INT64), "").parts)
