"""A builtin that fills in argument words and launches kernels, as LLVM IR text: one function serves all sequences.

It is the method of a builtin whose self is a ``bytes`` object, the words of one sequence; its arguments are a stream
and integers. It looks which device is current, and lets other threads of Python run while the driver works. Launches
that it leaves or that the driver refuses go to the fallback, which gets the number of the first of them before all
arguments.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Sequence
from enum import IntEnum
from functools import cache
from typing import Any

from fusec.base.records import dataclass
from fusec.runtime.cpu import description, fastcall, jit
from fusec.runtime.cpu.fastcall_pieces import READS
from fusec.runtime.cuda.driver import LIBRARY


class SequenceWord(IntEnum):
    """What a description says: functions and objects by address, and tables with their lengths."""

    LAUNCH = 0  # functions of the driver
    CURRENT_DEVICE = 1
    AS_WORD = 2  # functions of the interpreter
    OCCURRED = 3
    SAVE = 4
    RESTORE = 5
    FROM_LONG = 6
    VECTORCALL = 7
    DECREF = 8
    INCREF = 9
    NONE = 10
    FALLBACK = 11
    DEVICE = 12
    TEMPLATE = 13  # argument words
    WORDS_OF_TEMPLATE = 14
    FILLS = 15  # of each a word, the number of an argument behind the stream, and what is added
    FILL_COUNT = 16
    ROWS = 17  # of each launch the function, blocks, threads of a block, and its first word
    ROW_COUNT = 18
    WORDS = 19


FUNCTIONS = {
    SequenceWord.AS_WORD: "PyLong_AsUnsignedLongLongMask",
    SequenceWord.OCCURRED: "PyErr_Occurred",
    SequenceWord.SAVE: "PyEval_SaveThread",
    SequenceWord.RESTORE: "PyEval_RestoreThread",
    SequenceWord.FROM_LONG: "PyLong_FromLong",
    SequenceWord.VECTORCALL: "PyObject_Vectorcall",
    SequenceWord.DECREF: "Py_DecRef",
    SequenceWord.INCREF: "Py_IncRef",
}

TEXT = """
define ptr @enqueue(ptr %self, ptr %args, i64 %nargs, ptr %keywords) {
entry:
  %d = getelementptr i8, ptr %self, i64 {DESCRIPTION}
  %device.now = alloca i32
  %count = call i64 @word(ptr %d, i64 {W.WORDS_OF_TEMPLATE})
  %words = alloca i64, i64 %count, align 16
  %addresses = alloca ptr, i64 %count, align 16
  %values = alloca i64, i64 %nargs, align 16
  %again = add i64 %nargs, 1
  %told = alloca ptr, i64 %again, align 16
  %template = call ptr @address(ptr %d, i64 {W.TEMPLATE})
  %as.word = call ptr @address(ptr %d, i64 {W.AS_WORD})
  br label %copy
copy:
  %at = phi i64 [ 0, %entry ], [ %at.next, %copied ]
  %is.copied = icmp eq i64 %at, %count
  br i1 %is.copied, label %read, label %copied
copied:
  %known = call i64 @word(ptr %template, i64 %at)
  %place = getelementptr i64, ptr %words, i64 %at
  store i64 %known, ptr %place
  %address.place = getelementptr ptr, ptr %addresses, i64 %at
  store ptr %place, ptr %address.place
  %at.next = add i64 %at, 1
  br label %copy
read:
  %arg = phi i64 [ 0, %copy ], [ %arg.next, %kept ]
  %is.read = icmp eq i64 %arg, %nargs
  br i1 %is.read, label %fill, label %convert
convert:
  %object = call ptr @address(ptr %args, i64 %arg)
  %told.next = add i64 %arg, 1
  %told.place = getelementptr ptr, ptr %told, i64 %told.next
  store ptr %object, ptr %told.place
  %value = call i64 %as.word(ptr %object)
  %value.place = getelementptr i64, ptr %values, i64 %arg
  store i64 %value, ptr %value.place
  %is.odd = icmp eq i64 %value, -1
  br i1 %is.odd, label %ask, label %kept
ask:
  %occurred = call ptr @address(ptr %d, i64 {W.OCCURRED})
  %problem = call ptr %occurred()
  %is.fine = icmp eq ptr %problem, null
  br i1 %is.fine, label %kept, label %refused
refused:
  ret ptr null
kept:
  %arg.next = add i64 %arg, 1
  br label %read
fill:
  %fills = call ptr @address(ptr %d, i64 {W.FILLS})
  %fill.count = call i64 @word(ptr %d, i64 {W.FILL_COUNT})
  %given = getelementptr i64, ptr %values, i64 1
  br label %fill.each
fill.each:
  %fill.at = phi i64 [ 0, %fill ], [ %fill.next, %filled ]
  %is.full = icmp eq i64 %fill.at, %fill.count
  br i1 %is.full, label %look, label %filled
filled:
  %fill.start = mul i64 %fill.at, 3
  %row = getelementptr i64, ptr %fills, i64 %fill.start
  %slot = call i64 @word(ptr %row, i64 0)
  %number = call i64 @word(ptr %row, i64 1)
  %offset = call i64 @word(ptr %row, i64 2)
  %base = call i64 @word(ptr %given, i64 %number)
  %sum = add i64 %base, %offset
  %slot.place = getelementptr i64, ptr %words, i64 %slot
  store i64 %sum, ptr %slot.place
  %fill.next = add i64 %fill.at, 1
  br label %fill.each
look:
  %current = call ptr @address(ptr %d, i64 {W.CURRENT_DEVICE})
  %asked = call i32 %current(ptr %device.now)
  %has.context = icmp eq i32 %asked, 0
  br i1 %has.context, label %compare, label %fallback
compare:
  %now = load i32, ptr %device.now
  %now.wide = sext i32 %now to i64
  %device = call i64 @word(ptr %d, i64 {W.DEVICE})
  %is.here = icmp eq i64 %now.wide, %device
  br i1 %is.here, label %start, label %fallback
start:
  %rows = call ptr @address(ptr %d, i64 {W.ROWS})
  %row.count = call i64 @word(ptr %d, i64 {W.ROW_COUNT})
  %launch = call ptr @address(ptr %d, i64 {W.LAUNCH})
  %stream.word = load i64, ptr %values
  %stream = inttoptr i64 %stream.word to ptr
  %save = call ptr @address(ptr %d, i64 {W.SAVE})
  %restore = call ptr @address(ptr %d, i64 {W.RESTORE})
  %thread = call ptr %save()
  br label %next
next:
  %launched = phi i64 [ 0, %start ], [ %launched.next, %enqueued ]
  %is.done = icmp eq i64 %launched, %row.count
  br i1 %is.done, label %done, label %one
one:
  %row.start = mul i64 %launched, 4
  %it = getelementptr i64, ptr %rows, i64 %row.start
  %function = call ptr @address(ptr %it, i64 0)
  %grid.word = call i64 @word(ptr %it, i64 1)
  %block.word = call i64 @word(ptr %it, i64 2)
  %first = call i64 @word(ptr %it, i64 3)
  %grid = trunc i64 %grid.word to i32
  %block = trunc i64 %block.word to i32
  %params = getelementptr ptr, ptr %addresses, i64 %first
  %code = call i32 %launch(ptr %function, i32 %grid, i32 1, i32 1, i32 %block, i32 1, i32 1, i32 0,
                           ptr %stream, ptr %params, ptr null)
  %is.enqueued = icmp eq i32 %code, 0
  br i1 %is.enqueued, label %enqueued, label %left
enqueued:
  %launched.next = add i64 %launched, 1
  br label %next
left:
  call void %restore(ptr %thread)
  br label %fallback
done:
  call void %restore(ptr %thread)
  %none = call ptr @address(ptr %d, i64 {W.NONE})
  %incref = call ptr @address(ptr %d, i64 {W.INCREF})
  call void %incref(ptr %none)
  ret ptr %none
fallback:
  %begun = phi i64 [ 0, %look ], [ 0, %compare ], [ %launched, %left ]
  %from.long = call ptr @address(ptr %d, i64 {W.FROM_LONG})
  %begun.object = call ptr %from.long(i64 %begun)
  %is.made = icmp ne ptr %begun.object, null
  br i1 %is.made, label %leave, label %refused
leave:
  store ptr %begun.object, ptr %told
  %vectorcall = call ptr @address(ptr %d, i64 {W.VECTORCALL})
  %callable = call ptr @address(ptr %d, i64 {W.FALLBACK})
  %result = call ptr %vectorcall(ptr %callable, ptr %told, i64 %again, ptr null)
  %decref = call ptr @address(ptr %d, i64 {W.DECREF})
  call void %decref(ptr %begun.object)
  ret ptr %result
}
"""

Fill = tuple[int, int, int]
"""A word, the number of an argument behind the stream, and what is added to it."""
Row = tuple[int, int, int, int]
"""A function by address, blocks, threads of a block, and the first word."""


@dataclass(eq=False)
class NativeLaunches:
    """What a builtin launches on a device. fallback: called with the number of the first launch that is left."""

    template: array[int]
    fills: Sequence[Fill]
    rows: Sequence[Row]
    device: int
    fallback: Callable[..., object]


def builtin(sequence: NativeLaunches, store: Any) -> Callable[..., object] | None:
    """A function of a stream and integers; None where there is no native code. store: keeps the code."""
    found = _code(store)
    if found is None:
        return None
    words, code = found
    words = [*words]
    fills, rows = (array("q", sum(each, ())) for each in (sequence.fills, sequence.rows))
    keeps = (sequence, fills, rows, sequence.template)
    words[SequenceWord.FALLBACK], words[SequenceWord.DEVICE] = id(sequence.fallback), sequence.device
    words[SequenceWord.TEMPLATE], words[SequenceWord.WORDS_OF_TEMPLATE] = sequence.template.buffer_info()
    words[SequenceWord.FILLS], words[SequenceWord.FILL_COUNT] = fills.buffer_info()[0], len(sequence.fills)
    words[SequenceWord.ROWS], words[SequenceWord.ROW_COUNT] = rows.buffer_info()[0], len(sequence.rows)
    return fastcall.builtin(words, code, "enqueue", keeps)


@cache
def _code(store: Any) -> tuple[list[int], jit.LoadedCode] | None:
    """The words that all sequences share, and the function."""
    try:
        code = jit.compile_text("enqueue", _text(), store, "least")
        driver = ctypes.CDLL(LIBRARY)
        own = {SequenceWord.LAUNCH: driver.cuLaunchKernel, SequenceWord.CURRENT_DEVICE: driver.cuCtxGetDevice}
    except Exception:  # no LLVM, no room for code, or a driver of another kind: launches by cuda-bindings do as well
        return None
    if fastcall.objection_to_build():
        return None
    words = [0] * SequenceWord.WORDS
    functions = own | {word: getattr(ctypes.pythonapi, name) for word, name in FUNCTIONS.items()}
    for word, function in functions.items():
        words[word] = ctypes.cast(function, ctypes.c_void_p).value or 0
    words[SequenceWord.NONE] = id(None)
    return words, code


@cache
def _text() -> str:
    text = READS + TEXT.replace("{DESCRIPTION}", str(description.DESCRIPTION))
    for word in SequenceWord:
        text = text.replace(f"{{W.{word.name}}}", str(int(word)))
    return text
