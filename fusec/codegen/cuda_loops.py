"""The loops by which CUDA threads share the elements of a kernel: one by one, in groups, strips, squares or blocks."""

from __future__ import annotations

from fusec.base.kernel_abi import USUAL_BLOCK, VECTOR_BYTES
from fusec.codegen.c_family import facts
from fusec.codegen.c_family.file import indented
from fusec.codegen.c_family.frame import Frame, GridShape, unravelled
from fusec.codegen.c_family.groups import LoadGroup
from fusec.codegen.c_family.rows import CopiedRow, Rows
from fusec.codegen.cuda_copies import BARRIER, copies_made, copies_stored
from fusec.codegen.cuda_strips import strip_loop
from fusec.codegen.cuda_tiles import tile_loop
from fusec.ir.loops import GROUP
from fusec.ir.scans import TURN


def loop(frame: Frame) -> list[str]:
    """The statements of a kernel: its threads' loop over the elements, and what a block does before and after."""
    lines = _loop(frame)
    return [*copies_made(frame), *lines, *copies_stored(frame)] if frame.copies else lines


def _loop(frame: Frame) -> list[str]:
    threads, at = frame.names.fresh("threads"), frame.places.index
    long, wide = ("long long ", "(long long)") if frame.is_long else ("unsigned ", "")
    first = f"{wide}blockIdx.x * blockDim.x + threadIdx.x"
    grid = GridShape(frame.scalar_copies(), threads, first, long, frame.places.use("size").text)
    if frame.tiles:
        return tile_loop(frame, frame.tiles, grid)
    lines = [f"const {long}{threads} = {wide}gridDim.x * blockDim.x;"] if not frame.program.block else []
    if facts.divides_wide(frame.program) or frame.layout.rows:
        lines.append("#pragma unroll 1")  # what is long would spill; of short rows, a thread has one
    if facts.takes_turns(frame.program):
        return _turns(frame, grid)
    if frame.program.block:
        return lines + _block_loop(frame, grid)
    if frame.groups:
        return lines + _grouped_loop(frame, grid)
    if frame.strip:
        return lines + strip_loop(frame, frame.strip, grid)
    if frame.rows:
        return [*_shared_rows(frame, frame.rows), *lines, *_row_loop(frame, frame.rows, grid)]
    if frame.places.only:
        return lines + _whole_groups(frame, grid)
    lines += [f"for ({long}{at} = {first}; {at} < {grid.size}; {at} += {threads}) {{"]
    return [*lines, *indented([*frame.coordinates(at), *grid.inside, *frame.body], 1), "}"]


def _whole_groups(frame: Frame, grid: GridShape) -> list[str]:
    """Threads of a group come together, since they exchange values; those past the end touch no element."""
    at, size = frame.places.index, grid.size
    body = [f"const bool {frame.places.only} = {at} < {size};", *frame.coordinates(at), *grid.inside, *frame.body]
    return [
        f"for ({grid.long}{at} = {grid.first}; ({at} & -{GROUP}) < {size}; {at} += {grid.threads}) {{",
        *indented(body, 1),
        "}",
    ]


def _turns(frame: Frame, grid: GridShape) -> list[str]:
    """Every thread takes one element; blocks take them in the order in which they start, whatever their numbers."""
    at, turn = frame.places.index, frame.names.fresh("turn")
    started = f"atomicAdd({frame.places.use('pointer', TURN).text}, 1ull)"
    wide = grid.long.strip()
    body = [f"if ({at} >= {grid.size}) break;", *frame.coordinates(at), *grid.inside, *frame.body]
    return [
        f"__shared__ {wide} {turn};  // blocks wait for those before: number them as they start",
        f"if (threadIdx.x == 0) {turn} = ({wide}){started};",
        BARRIER,
        f"const {wide} {at} = {turn} * blockDim.x + threadIdx.x;",
        "do {",
        *indented(body, 1),
        "} while (false);",
    ]


def _block_loop(frame: Frame, grid: GridShape) -> list[str]:
    """Every block or cluster takes one element, more only of a space of more elements than a grid may have blocks.

    Before the next one all threads must have left the last one, whose shared arrays it takes.
    """
    at, inside, long, size, several = frame.places.index, grid.inside, grid.long, grid.size, frame.program.cluster
    over, thread = "", "threadIdx.x"
    if several > 1:
        over, thread = f" / {several}", f"blockIdx.x % {several} * {frame.program.threads // several} + threadIdx.x"
    lines = [f"if ({at} != blockIdx.x{over}) {frame.spelling.barrier}", *frame.coordinates(at)]
    lines += [*frame.threads(thread), *inside]
    return [
        *frame.shared,
        f"for ({long}{at} = blockIdx.x{over}; {at} < {size}; {at} += gridDim.x{over}) {{",
        *indented([*lines, *frame.body], 1),
        "}",
    ]


def _grouped_loop(frame: Frame, grid: GridShape) -> list[str]:
    """Every thread takes `lanes` neighbours at once; past the end, the last element is computed again, not stored.

    In ragged rows the groups begin at aligned addresses of what is stored first, so that some are before the row.
    """
    inside, threads, first, long, size = grid._replace(first=f"({grid.first})")
    lanes, ragged = frame.lanes, frame.layout.ragged
    base, count, start = frame.names.fresh("base"), frame.names.fresh("count"), ""
    ahead = _ahead(frame) if ragged else ""
    before, lines = list[str](), list[str]()
    if frame.layout.ndim == 1:
        begin = f"{long}{base} = {lanes} * {first}"
        if ragged:
            behind = frame.names.fresh("ahead")
            before = [f"const int {behind} = {ahead};"]
            begin = f"long long {base} = (long long){lanes} * {first} - {behind}"
        elif frame.rounds > 1:
            before, begin = [f"{begin};", *_rounds_loop(frame, grid, base)], ""
        head = [f"for ({begin}; {base} < {size}; {base} += {lanes} * {threads}) {{"]
        end = size
    else:
        head, lines, end = _rows(frame, grid, base, ahead)
    if ragged:
        start = frame.names.fresh("start")
        lines.append(f"const int {start} = {base} < 0 ? (int)-{base} : 0;")
    lines.append(f"const int {count} = {end} - {base} < {lanes} ? (int)({end} - {base}) : {lanes};")
    for group in frame.groups:
        row = frame.places.row(group.array.name)
        aligned = f"fusec_load<{lanes}>({row} + {base}, {count})"
        load = f" = {f'fusec_load_from<{lanes}>({row}, {base}, {end})' if ragged else aligned}" if group.loaded else ""
        const = "" if group.stored else "const "
        lines.append(f"{const}{_group_type(frame, group)} {group.name}{load};")
    lines += _neighbours(frame, inside, base, count, start)
    for group in frame.groups:
        row = frame.places.row(group.array.name)
        if group.stored and ragged:
            lines.append(f"fusec_store_to<{lanes}>({row} + {base}, {group.name}, {start}, {count});")
        elif group.stored:
            lines.append(f"fusec_store<{lanes}>({row} + {base}, {group.name}, {count});")
    return [*before, *head, *indented(lines, 1), "}"]


def _group_type(frame: Frame, group: LoadGroup) -> str:
    return f"fusec_group<{frame.spelling.type(group.array.dtype)}, {frame.lanes}>"


def _neighbours(frame: Frame, inside: list[str], base: str, count: str, start: str = "") -> list[str]:
    """The loop over the elements of a group. count: of those before the end; "" if that is all of them. start: how many
    are before the row; "" if none is.
    """
    lanes, k = frame.lanes, frame.places.lane
    is_left = bool(frame.copies and count)  # those beyond the end must not update anything once more
    body = [f"if ({k} >= {count}) break;"] if is_left else []
    body += [f"if ({k} < {start}) continue;"] if is_left and start else []
    if frame.places.uses_index or frame.layout.gaps:
        within = f"{k} < {count} ? {k} : {count} - 1" if count and not is_left else k
        within = f"{k} < {start} ? {start} : {within}" if start and not is_left else within
        body.append(
            f"const long long {frame.places.coordinates[-1]} = {base} + {within if within == k else f'({within})'};"
        )
    body += [*inside, *frame.body]
    return ["#pragma unroll", f"for (int {k} = 0; {k} < {lanes}; ++{k}) {{", *indented(body, 1), "}"]


def _rounds_loop(frame: Frame, grid: GridShape, begin: str) -> list[str]:
    """Every thread loads several groups, as far apart as all threads take, before it works on the first; as long as all
    of them are whole.
    """
    inside, threads, _, long, size = grid
    lanes, rounds = frame.lanes, frame.rounds
    base, turn = frame.names.fresh("base"), frame.names.fresh("turn")
    over = ["#pragma unroll", f"for (int {turn} = 0; {turn} < {rounds}; ++{turn}) {{"]
    over += [f"    const {long}{base} = {begin} + {lanes} * {threads} * {turn};"]
    declared, loads, groups, stores = list[str](), list[str](), list[str](), list[str]()
    for group in frame.groups:
        every, place = frame.names.fresh(f"{group.name}s"), f"{frame.places.row(group.array.name)} + {base}"
        declared.append(f"{_group_type(frame, group)} {every}[{rounds}];")
        groups.append(f"{'' if group.stored else 'const '}{_group_type(frame, group)}& {group.name} = {every}[{turn}];")
        loads += [f"{every}[{turn}] = fusec_load<{lanes}>({place}, {lanes});"] if group.loaded else []
        stores += [f"fusec_store<{lanes}>({place}, {group.name}, {lanes});"] if group.stored else []
    body = [*groups, *_neighbours(frame, inside, base, ""), *stores]
    lines = [*declared, *over, *indented(loads, 1), "}", *over, *indented(body, 1), "}"]
    last = f"{begin} + {lanes * (rounds - 1)} * {threads} + {lanes}"
    return [f"for (; {last} <= {size}; {begin} += {rounds * lanes} * {threads}) {{", *indented(lines, 1), "}"]


def _ahead(frame: Frame) -> str:
    """How many elements of a row come before the first aligned group of what is stored first, or of what is loaded."""
    leader = next((group for group in frame.groups if group.stored), frame.groups[0])
    return f"fusec_ahead<{frame.lanes}>({frame.places.row(leader.array.name)})"


def _rows(frame: Frame, grid: GridShape, base: str, ahead: str) -> tuple[list[str], list[str], str]:
    """Groups lie within rows, the innermost axis, so that one division finds the row of several elements.

    Returns the loop's head, the declarations of the coordinates and of the position in the row, and the row's end.
    ahead: in ragged rows, the elements that the first group begins before the row.
    """
    fresh, lanes, c_type = frame.names.fresh, frame.lanes, grid.long.strip()
    group, pieces, row, groups = fresh("group"), fresh("pieces"), fresh("row"), fresh("groups")
    extents = [frame.places.use("extent", "", axis).text if axis else "" for axis in range(frame.layout.ndim)]
    head = [
        f"const {c_type} {row} = {extents[-1]};",
        f"const {c_type} {pieces} = ({row} + {2 * lanes - 2 if ahead else lanes - 1}) / {lanes};",
        f"const {c_type} {groups} = ({c_type}){frame.places.use('size').text} / {row} * {pieces};",
        f"for ({c_type} {group} = ({grid.first}); {group} < {groups}; {group} += {grid.threads}) {{",
    ]
    cast = [f"({c_type}){extent}" for extent in extents[:-1]]
    lines = unravelled(f"{group} / {pieces}", frame.places.coordinates[:-1], cast, c_type)
    if ahead:
        lines.append(f"const long long {base} = (long long){lanes} * ({group} % {pieces}) - {ahead};")
        lines.append(f"if ({base} >= {row}) continue;")
    else:
        lines.append(f"const {c_type} {base} = {lanes} * ({group} % {pieces});")
    return head, lines, row


def _shared_rows(frame: Frame, rows: Rows) -> list[str]:
    """Declarations of the rows of a block in shared memory."""
    sizes = {each.block: (frame.spelling.type(each.array.dtype), USUAL_BLOCK * each.pitch) for each in rows.arrays}
    return [f"__shared__ alignas({VECTOR_BYTES}) {kind} {block}[{n}];" for block, (kind, n) in sizes.items()]


def _row_loop(frame: Frame, rows: Rows, grid: GridShape) -> list[str]:
    """Every block takes as many rows as it has threads: it copies them, each thread does its own, it copies results."""
    at, size, long, length = frame.places.index, grid.size, grid.long, rows.length
    begin, count = frame.names.fresh("begin"), frame.names.fresh("count")

    def copied(row: CopiedRow, is_load: bool) -> str:
        outside = f"{frame.places.use('pointer', row.array.name).text} + {begin} * {length}"
        ends = [(row.block, row.pitch), (outside, length)]
        (to, to_pitch), (start, pitch) = ends if is_load else ends[::-1]
        return f"fusec_copy_rows<{length}, {to_pitch}, {pitch}>({to}, {start}, {count});"

    left = f"{size} - {begin}"
    lines = [f"const unsigned {count} = (unsigned)({left} < blockDim.x ? {left} : blockDim.x) * {length};"]
    lines += [copied(row, True) for row in rows.arrays if row.is_loaded]
    lines += [BARRIER, f"const {long}{at} = {begin} + threadIdx.x;"]
    for row in rows.arrays:
        const = "" if row.array.written else "const "
        c_type = frame.spelling.type(row.array.dtype)
        lines.append(f"{const}{c_type}* const {row.own} = {row.block} + threadIdx.x * {row.pitch};")
    body = [f"if ({at} >= {size}) break;", *frame.coordinates(at), *grid.inside, *frame.body]
    lines += ["do {", *indented(body, 1), "} while (false);", BARRIER]
    lines += [copied(row, False) for row in rows.arrays if row.array.written]
    lines += [BARRIER] if len({row.block for row in rows.arrays}) < len(rows.arrays) else []
    wide = grid.first.partition("blockIdx")[0]
    head = f"for ({long}{begin} = {wide}blockIdx.x * blockDim.x; {begin} < {size}; {begin} += {grid.threads}) {{"
    return [head, *indented(lines, 1), "}"]
