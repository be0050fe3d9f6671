"""One printer for all targets whose language descends from C; a `Dialect` holds the differences."""

from __future__ import annotations

from fusec.base.dtypes import DType
from fusec.base.kernel_abi import ATOMIC_BYTES, SHARED_BYTES, VECTOR_BYTES, Fp, Kernel, Layout
from fusec.base.records import replace
from fusec.codegen.c_family import facts
from fusec.codegen.c_family.bounds import POSITIONS
from fusec.codegen.c_family.copies import copied_arrays
from fusec.codegen.c_family.expressions import ExprPrinter
from fusec.codegen.c_family.file import indented, join_kernels, join_parts, renamed
from fusec.codegen.c_family.frame import Dialect, Frame, struct_texts
from fusec.codegen.c_family.groups import groups_of, rounds_of
from fusec.codegen.c_family.names import ScopeNames
from fusec.codegen.c_family.pieces import POSTFIX, PRIMARY, Piece
from fusec.codegen.c_family.places import HELPERS_BY_AXES, AddressPrinter, AddressText
from fusec.codegen.c_family.routines import needed
from fusec.codegen.c_family.rows import copied_rows
from fusec.codegen.c_family.spelling import Spelling, StructNames
from fusec.codegen.c_family.statements import StmtPrinter, harmless
from fusec.codegen.c_family.strips import Strip, held, strips
from fusec.codegen.c_family.tables import tables
from fusec.codegen.c_family.tiles import SQUARE_THREADS, turned
from fusec.codegen.c_family.wide import refusal
from fusec.codegen.generator import SINGLE, Generator, Options
from fusec.ir.expr import Struct
from fusec.ir.loops import GROUP, Function, Local, Program, Return, ScalarParam, is_shared
from fusec.ir.reductions import AXIS
from fusec.ir.walk import changed_names, is_elementary, statements


def generate(program: Program, layout: Layout, dialect: Dialect, single: bool = False, fp: Fp = "strict") -> Kernel:
    """The kernel of a program for one memory layout.

    Requires: only primitive ops, and calls of the program's own functions; in the mode "fast" also ops that the
    spelling approximates. single: literals without suffix were read as float32. fp: the mode the passes ran in.
    Raises NoSuchTypeOnTarget, AtomicUnsupported, TooManyArrays.
    """
    spelling = dialect.spelling
    _check_types(program, spelling, single)
    reserved = spelling.reserved | spelling.helpers.keys() | HELPERS_BY_AXES
    names = ScopeNames(reserved)
    kernel_name = names.fresh(program.name)
    functions = facts.called_functions(program)
    structs = _structs(program, functions)
    own = [struct for struct in structs if isinstance(struct, Struct)]
    own_names = {struct: _struct_names(struct, names, reserved) for struct in own}
    called = {function.name: names.fresh(function.name) for function in functions}
    spelling = replace(spelling, structs=own_names, called=called)
    if program.cluster > 1:
        spelling = replace(spelling, barrier=spelling.meeting)
    loose = replace(spelling, ops={**spelling.ops, **spelling.approximate}) if fp == "fast" else spelling
    rare = facts.rare(functions)
    printed = [
        _function(function, program, names, spelling if is_elementary(function) else loose, rare=function.name in rare)
        for function in functions
    ]
    frame = replace(_kernel(program, layout, loose, kernel_name, names), fp=fp)
    helpers = {**spelling.helpers, **frame.places.helpers}
    helpers |= tables([program.body, *(function.body for function in functions)], spelling)
    frame.above.extend(struct_texts(structs, spelling))
    stored = [spelling.atomic(each.op, each.array.dtype, False, "global") or "" for each in frame.copies]
    texts = ["\n".join(frame.body), *printed, *stored]
    frame.above.extend((name, helpers[name]) for name in needed(texts, helpers))
    frame.above.extend(zip((called[function.name] for function in functions), printed, strict=True))
    parts = dialect.frame(frame)
    return Kernel(
        name=kernel_name,
        target=spelling.target,
        slots=tuple(slot for slot, _ in frame.slots),
        source=join_parts(parts),
        layout=layout,
        lanes=frame.lanes,
        cost=facts.cost(program),
        notes=_notes(frame),
        group=GROUP if facts.in_groups(program) else SQUARE_THREADS if frame.tiles else 1,
        block=program.threads // program.cluster if program.block else 0,
        cluster=program.cluster,
        share=SHARED_BYTES // ATOMIC_BYTES if frame.copies else 0,
        parts=tuple(parts),
        fp=fp,
    )


def generator_of(dialect: Dialect) -> Generator:
    """The code generator of a dialect."""

    def program(program: Program, layout: Layout, options: Options) -> Kernel:
        return generate(program, layout, dialect, SINGLE in options.flags, options.fp)

    return Generator(program, join_kernels, renamed, approximate=frozenset(dialect.spelling.approximate))


def _check_types(program: Program, spelling: Spelling, single: bool) -> None:
    for use in facts.types_of(program):
        for dtype in facts.parts(use.type):
            if dtype not in spelling.types:
                raise refusal(program, dtype, use, spelling.target, single)


def _structs(program: Program, functions: list[Function]) -> list[Struct | DType]:
    """The struct types in use, in order of appearance, complex numbers first."""
    used: list[Struct | DType] = []
    names = {function.name for function in functions}
    kept = Program(program.name, program.params, program.body, tuple(f for f in program.functions if f.name in names))
    for use in facts.types_of(kept):
        for part in (use.type, *facts.parts(use.type)):
            if (isinstance(part, Struct) or (isinstance(part, DType) and part.is_complex)) and part not in used:
                used.append(part)
    return sorted(used, key=lambda struct: isinstance(struct, Struct))


def _struct_names(struct: Struct, names: ScopeNames, reserved: frozenset[str]) -> StructNames:
    """A field may be called what something else is, but neither a word of the language nor what its struct is."""
    name = names.fresh(struct.name)
    inside = ScopeNames(reserved | {name})
    return StructNames(name, {field: inside.fresh(field) for field, _ in struct.fields})


def _function(function: Function, program: Program, outer: ScopeNames, spelling: Spelling, rare: bool) -> str:
    """The text of a device function. rare: whether it is called for few arguments only."""
    scope = ScopeNames(outer=outer)
    names = scope.fresh_all([*(name for name, _ in function.params), *facts.declared(function.body)])
    printer = StmtPrinter(ExprPrinter(spelling, names), scope, program.source, types=dict(function.params))
    printer.selects = is_elementary(function) and not rare
    printer.whole(function.body, 1)
    result = "void" if function.result is None else spelling.type(function.result)
    if function.result is not None and not facts.always_returns(function.body):
        printer.write("return {};", 1)  # the end is not reached in a program that means anything
    pairs = [(spelling.type(dtype), names[name]) for name, dtype in function.params]
    params = ", ".join(f"{c_type} {name}" for c_type, name in pairs)
    lines = spelling.specialised(function.name, [name for _, name in pairs], "\n".join(printer.lines))
    shown = harmless(function.text)
    comment = f"// {shown}\n" if shown else ""
    before = spelling.rare if rare else spelling.function
    return f"{comment}{before}{result} {spelling.called[function.name]}({params}) {{\n{lines}\n}}"


def _kernel(program: Program, layout: Layout, spelling: Spelling, kernel_name: str, outer: ScopeNames) -> Frame:
    """Print the body and collect what it needs."""
    scope = ScopeNames(outer=outer)
    body = program.body[:-1] if program.body and isinstance(program.body[-1], Return) else program.body
    read = {node.name for node in facts.nodes(body) if isinstance(node, Local)} | changed_names(body)
    by_value = [param for param in program.params if isinstance(param, ScalarParam) and param.name in read]
    names = scope.fresh_all([*(param.name for param in by_value), *facts.declared(body)])
    scalars = [(param, names[param.name]) for param in by_value]
    copied = changed_names(body) & {param.name for param in by_value}
    places = AddressPrinter(program, layout, spelling, scope)
    places.use("size")
    for param, name in scalars:
        places.use_scalar(param, scope.fresh(f"{name}_argument") if param.name in copied else name)
    copies = copied_arrays(program, layout, scope) if spelling.groups else []
    places.use_copies(copies)
    lanes, groups = groups_of(program, layout, spelling, scope, frozenset(places.copies))
    places.lane = scope.fresh("k") if groups else ""
    for group in groups:
        places.use("pointer", group.array.name)
        places.grouped[group.array.name] = AddressText(Piece(f"{group.name}.v", POSTFIX), Piece(places.lane, PRIMARY))
    tiles = turned(program, layout, scope) if spelling.groups else None
    for array, place in tiles.places() if tiles else ():
        places.use("pointer", array)
        places.grouped[array] = place
    by_rows = copied_rows(program, layout, scope) if spelling.groups else None
    for row in by_rows.arrays if by_rows else ():
        places.use("pointer", row.array.name)
        places.rows[row.array.name] = row.own
    for axis in range(1, layout.ndim):
        places.use("extent", "", axis)
    label = scope.fresh("next_element")
    in_loop = f"goto {label}" if spelling.leave == "continue" else spelling.leave
    expressions = ExprPrinter(spelling, names, places)
    expressions.bounds.learn(AXIS, (0, POSITIONS))
    printer = StmtPrinter(expressions, scope, program.source, (spelling.leave, in_loop))
    printer.whole(body, 0)
    strip = None if groups or not spelling.groups or places.uses_index else _strip(program, layout, expressions, scope)
    lanes = strip.shape.rows * strip.shape.columns if strip else tiles.elements if tiles else lanes
    jumps = facts.leaves_from_loop(body) and in_loop != spelling.leave
    # The braces are there so that a jump past them skips no declaration.
    lines = ["{", *indented(printer.lines, 1), "}", f"{label}:;"] if jumps else printer.lines
    return Frame(
        program,
        layout,
        spelling,
        kernel_name,
        scope,
        places,
        lines,
        scalars,
        frozenset(copied),
        groups,
        lanes,
        names,
        strip=strip,
        tiles=tiles,
        rows=by_rows,
        copies=copies,
        rounds=rounds_of(program, layout, lanes, groups, copies),
    )


def _strip(program: Program, layout: Layout, expressions: ExprPrinter, scope: ScopeNames) -> Strip | None:
    """The interior of a stencil, printed with the names of the whole."""
    found = strips(program, layout)
    if found is None:
        return None
    shape, parts = found
    inside = held(program, layout, shape, parts, scope)
    body = inside.interior.body
    new = [name for name in facts.declared(body) if name not in expressions.names]
    expressions.names.update({**scope.fresh_all(new), **inside.places})
    places = expressions.places
    assert places is not None, "a kernel has places"
    for group in inside.groups:
        place = AddressText(Piece(f"{group.name}.v", POSTFIX), Piece(inside.column, PRIMARY))
        places.grouped[group.array.name] = place
    printer = StmtPrinter(expressions, scope, program.source, ("continue", "continue"))
    printer.whole(body, 0)
    for group in inside.groups:
        del places.grouped[group.array.name]
    return Strip(shape, parts, inside, printer.lines)


def block_text(program: Program) -> str:
    """The shape of a block, and the arrays that its threads share."""
    nbytes = sum(stmt.length * stmt.element.nbytes for stmt in statements(program.body) if is_shared(stmt))
    several = f", which {program.cluster} blocks have together" if program.cluster > 1 else ""
    return f"{' x '.join(map(str, program.block))} threads{several}, {nbytes} bytes shared"


def _notes(frame: Frame) -> tuple[str, ...]:
    """What was specialised."""
    notes = [f"layout {frame.layout.key}"]
    notes += [f"{frame.together} a thread"] if frame.strip else []
    notes += [frame.tiles.note] if frame.tiles else []
    notes += [f"rows of {frame.rows.length} elements, copied by way of shared memory"] if frame.rows else []
    notes += [f"{frame.lanes} elements a thread, loaded {VECTOR_BYTES} bytes at once"] if frame.groups else []
    notes += [f"{each.count} copies of '{each.array.name}' in shared memory" for each in frame.copies]
    notes += [f"blocks of {block_text(frame.program)}"] if frame.program.block else []
    notes += ["64-bit positions"] if frame.is_long else ["32-bit positions"]
    return tuple(notes)
