"""Products of matrices as LLVM IR text: functions of positions, as kernels are, which call BLAS for each block.

A position is a block of one product of several, which all have the same sizes. `GEMM` and `GEMV` name the slots; behind
them stand three for each product: the bytes before its operands and its result. `hold` and `release`, whose slots are
`HOLD`, are functions of one position, before the first product and after the last one.
"""

from __future__ import annotations

from functools import cache

GEMM = (
    "a", "b", "c", "rows", "columns", "inner", "lda", "ldb", "ldc", "turn_a", "turn_b", "block_rows", "block_columns",
    "row_blocks", "blocks", "pairs", "step_a", "step_b", "step_c", "function", "row_a", "column_b", "row_c", "column_c",
    "one", "zero",
)  # fmt: skip
"""Addresses; sizes; elements from one column to the next; CBLAS's words for transposes; the sizes of a block, how many
blocks lie below each other, and how many there are; products that follow each other, and bytes from one to the next;
the address of the function; bytes from one row or column to the next; addresses of factors, for complex numbers."""

GEMV = (
    "a", "b", "c", "rows", "columns", "lda", "turn_a", "step_of_b", "step_of_c", "block_rows", "blocks", "pairs",
    "step_a", "step_b", "step_c", "function", "block_a", "block_c", "is_turned", "one", "zero",
)  # fmt: skip
"""As above, of a matrix as it lies and a vector. block_a, block_c: bytes from the row or column of one element of the
result to that of the next, and from one element to the next."""

HOLD = ("words", "get", "set")

PLAIN, TURNED = 111, 112  # CBLAS's words for matrices; 102 below says that they lie by columns

_COMMON = """
declare i64 @llvm.smin.i64(i64, i64)

define internal i64 @word(ptr %from, i64 %number) nounwind alwaysinline {
  %at = getelementptr i64, ptr %from, i64 %number
  %value = load i64, ptr %at
  ret i64 %value
}

; where an array of a product begins
define internal ptr @start(ptr %slots, i64 %array, i64 %first, i64 %step, i64 %pair, i64 %number)
    nounwind alwaysinline {
  %base = call i64 @word(ptr %slots, i64 %array)
  %bytes = call i64 @word(ptr %slots, i64 %step)
  %before = mul i64 %pair, %bytes
  %place = mul i64 %number, 3
  %its = add i64 %place, %first
  %its.own = add i64 %its, %array
  %start = call i64 @word(ptr %slots, i64 %its.own)
  %one = add i64 %base, %before
  %address = add i64 %one, %start
  %found = inttoptr i64 %address to ptr
  ret ptr %found
}
"""

_LOOP_HEAD = """
define void @product(i64 %lo, i64 %hi, ptr %slots) nounwind {
entry:
WORDS
  %code = inttoptr i64 %function to ptr
FACTORS
  br label %next
next:
  %position = phi i64 [ %lo, %entry ], [ %following, %next.end ]
  %more = icmp slt i64 %position, %hi
  br i1 %more, label %do, label %out
do:
  %product = sdiv i64 %position, %blocks
  %block = srem i64 %position, %blocks
  %number = sdiv i64 %product, %pairs
  %pair = srem i64 %product, %pairs
  %a.at = call ptr @start(ptr %slots, i64 0, i64 COUNT, i64 STEP_A, i64 %pair, i64 %number)
  %b.at = call ptr @start(ptr %slots, i64 1, i64 COUNT, i64 STEP_B, i64 %pair, i64 %number)
  %c.at = call ptr @start(ptr %slots, i64 2, i64 COUNT, i64 STEP_C, i64 %pair, i64 %number)
"""

_GEMM = """
  %down = srem i64 %block, %row_blocks
  %along = sdiv i64 %block, %row_blocks
  %row = mul i64 %down, %block_rows
  %column = mul i64 %along, %block_columns
  %rows.left = sub i64 %rows, %row
  %columns.left = sub i64 %columns, %column
  %rows.own = call i64 @llvm.smin.i64(i64 %block_rows, i64 %rows.left)
  %columns.own = call i64 @llvm.smin.i64(i64 %block_columns, i64 %columns.left)
  %a.bytes = mul i64 %row, %row_a
  %b.bytes = mul i64 %column, %column_b
  %c.down = mul i64 %row, %row_c
  %c.along = mul i64 %column, %column_c
  %c.bytes = add i64 %c.down, %c.along
  %a.own = getelementptr i8, ptr %a.at, i64 %a.bytes
  %b.own = getelementptr i8, ptr %b.at, i64 %b.bytes
  %c.own = getelementptr i8, ptr %c.at, i64 %c.bytes
  %turn.a = trunc i64 %turn_a to i32
  %turn.b = trunc i64 %turn_b to i32
NARROW rows.own columns.own inner lda ldb ldc
  call void %code(i32 102, i32 %turn.a, i32 %turn.b, INT %rows.own.n, INT %columns.own.n, INT %inner.n, FACTOR ONE,
    ptr %a.own, INT %lda.n, ptr %b.own, INT %ldb.n, FACTOR ZERO, ptr %c.own, INT %ldc.n)
"""

_GEMV = """
  %row = mul i64 %block, %block_rows
  %turned = icmp ne i64 %is_turned, 0
  %size = select i1 %turned, i64 %columns, i64 %rows
  %left = sub i64 %size, %row
  %own = call i64 @llvm.smin.i64(i64 %block_rows, i64 %left)
  %rows.own = select i1 %turned, i64 %rows, i64 %own
  %columns.own = select i1 %turned, i64 %own, i64 %columns
  %a.bytes = mul i64 %row, %block_a
  %c.bytes = mul i64 %row, %block_c
  %a.own = getelementptr i8, ptr %a.at, i64 %a.bytes
  %c.own = getelementptr i8, ptr %c.at, i64 %c.bytes
  %turn.a = trunc i64 %turn_a to i32
NARROW rows.own columns.own lda step_of_b step_of_c
  call void %code(i32 102, i32 %turn.a, INT %rows.own.n, INT %columns.own.n, FACTOR ONE, ptr %a.own, INT %lda.n,
    ptr %b.at, INT %step_of_b.n, FACTOR ZERO, ptr %c.own, INT %step_of_c.n)
"""

_LOOP_END = """
  br label %next.end
next.end:
  %following = add i64 %position, 1
  br label %next
out:
  ret void
}
"""

_HOLD = """
define internal void @lock(ptr %words) nounwind {
entry:
  br label %try
try:
  %swap = cmpxchg ptr %words, i64 0, i64 1 acquire monotonic, align 8
  %taken = extractvalue { i64, i1 } %swap, 1
  br i1 %taken, label %out, label %try
out:
  ret void
}

; the first of several calls notes the number of threads, and the last one restores it, unless somebody has changed it
define void @ENTRY(i64 %lo, i64 %hi, ptr %slots) nounwind {
entry:
  %words = load ptr, ptr %slots
  %get.at = getelementptr ptr, ptr %slots, i64 1
  %get = load ptr, ptr %get.at
  %set.at = getelementptr ptr, ptr %slots, i64 2
  %set = load ptr, ptr %set.at
  %count.at = getelementptr i64, ptr %words, i64 1
  %had.at = getelementptr i64, ptr %words, i64 2
  call void @lock(ptr %words)
  %count = load i64, ptr %count.at
  %now = call i32 %get()
BODY
done:
  store atomic i64 0, ptr %words release, align 8
  ret void
}
"""

_FIRST = """
  %count.after = add i64 %count, 1
  store i64 %count.after, ptr %count.at
  %is.first = icmp eq i64 %count, 0
  br i1 %is.first, label %note, label %done
note:
  %wide = sext i32 %now to i64
  store i64 %wide, ptr %had.at
  call void %set(i32 1)
  br label %done
"""

_LAST = """
  %count.after = sub i64 %count, 1
  store i64 %count.after, ptr %count.at
  %is.last = icmp eq i64 %count.after, 0
  %as.set = icmp eq i32 %now, 1
  %restores = and i1 %is.last, %as.set
  br i1 %restores, label %restore, label %done
restore:
  %had = load i64, ptr %had.at
  %narrow = trunc i64 %had to i32
  call void %set(i32 %narrow)
  br label %done
"""


@cache
def product_text(letter: str, is_vector: bool, integer: int) -> str:
    """The module; its entry is ``void @product(i64 lo, i64 hi, ptr slots)``.

    letter: of the dtype. is_vector: `GEMV`. integer: the bytes of BLAS's integers.
    """
    slots, body = (GEMV, _GEMV) if is_vector else (GEMM, _GEMM)
    words = [f"  %{name} = call i64 @word(ptr %slots, i64 {at})" for at, name in enumerate(slots) if at > 2]
    kind = {"s": "float", "d": "double"}.get(letter, "ptr")
    factors = "  %one.at = inttoptr i64 %one to ptr\n  %zero.at = inttoptr i64 %zero to ptr"
    values = ("%one.at", "%zero.at") if kind == "ptr" else ("1.0", "0.0")
    converted = "trunc i64 %{0} to i32" if integer == 4 else "add i64 %{0}, 0"
    lines = list[str]()
    for line in (_LOOP_HEAD + body).splitlines():
        is_list = line.startswith("NARROW")
        lines += [f"  %{name}.n = {converted.format(name)}" for name in line.split()[1:]] if is_list else [line]
    text = _COMMON + "\n".join(lines) + _LOOP_END
    named = {
        "WORDS": "\n".join(words), "FACTORS": factors, "COUNT": str(len(slots)), "STEP_A": str(slots.index("step_a")),
        "STEP_B": str(slots.index("step_b")), "STEP_C": str(slots.index("step_c")), "INT": f"i{8 * integer}",
        "FACTOR ONE": f"{kind} {values[0]}", "FACTOR ZERO": f"{kind} {values[1]}",
    }  # fmt: skip
    for name, value in named.items():
        text = text.replace(name, value)
    return text


@cache
def hold_text(is_first: bool) -> str:
    """The module that holds BLAS to one thread, as ``@hold``, or lets it go, as ``@release``."""
    return _HOLD.replace("ENTRY", "hold" if is_first else "release").replace("BODY", _FIRST if is_first else _LAST)
