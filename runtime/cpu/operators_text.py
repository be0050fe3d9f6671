"""The native entry of an operator of lazy arrays, as LLVM IR text: one function serves all operators.

It is the method of a builtin whose self is a ``bytes`` object, the words of one operator. It looks a step up and takes
it, as `fusec/xp/operators.py` does, in the same order. All else goes to the fallback, with the arguments untouched.
"""

from __future__ import annotations

from enum import IntEnum
from functools import cache

from fusec.runtime.cpu.description import fill_in
from fusec.runtime.cpu.fastcall_pieces import PIECES
from fusec.runtime.cpu.operators_leaves import LEAVES
from fusec.runtime.cpu.operators_pieces import LOOKS, STEPS


class OperatorWord(IntEnum):
    """What a description says: the operator, objects and functions by address, and where attributes and items are."""

    FALLBACK = 0
    FUNCTION = 1
    OPERANDS = 2
    SWAPPED = 3
    ARRAY = 4  # types
    FLOAT = 5
    INT = 6
    BOOL = 7
    COMPLEX = 8
    NDARRAY = 9
    NONE = 10
    EAGER = 11  # lists that must be empty: always, and for operands that have values
    WRITTEN = 12
    VECTORCALL = 13  # functions
    NEW_TUPLE = 14
    GET_ITEM = 15
    SET_ITEM = 16
    SET_DEFAULT = 17
    CONTAINS = 18
    CLEAR = 19
    ALLOCATE = 20
    NEW_REFERENCE = 21
    FROM_POINTER = 22
    AS_LONG = 23
    FROM_LONG = 24
    INCREF = 25
    DECREF = 26
    TAPE = 27  # bytes from an object to what it holds
    AT = 28
    FORM = 29
    VALUE = 30
    NODE = 31
    SLOTS = 32
    PLACES = 33
    LIMITS = 34
    ITEMS = 35
    ROOT = 36
    COUNT = 37
    DEPTH = 38
    MARK = 39
    CLOSED = 40
    TRIE = 41  # objects
    TAPES = 42  # the type of tapes
    REFERENCE = 43  # that of weak references
    KNOWN = 44  # a list of all tapes, and what shortens it now and then
    FORGET = 45
    FROZEN = 46
    ZERO = 47
    ONE = 48
    TRUE = 49
    FALSE = 50
    NEW_DICT = 51  # further functions
    NEXT = 52
    APPEND = 53
    REFERENT = 54
    PAUSE = 55
    RESUME = 56
    WORDS = 57


TEXT = """
; No collection of garbage runs meanwhile: a finalizer could free what is only borrowed here. Nothing else that is
; called runs code of Python's before the last use of such objects.
define ptr @operate(ptr %self, ptr %args, i64 %nargs, ptr %keywords) {
entry:
  %description = getelementptr i8, ptr %self, i64 {DESCRIPTION}
  %pause = call ptr @address(ptr %description, i64 {W.PAUSE})
  %was.on = call i32 %pause()
  %found = call ptr @recorded(ptr %self, ptr %args, i64 %nargs, ptr %keywords)
  %is.off = icmp eq i32 %was.on, 0
  br i1 %is.off, label %answer, label %resume
resume:
  %start.again = call ptr @address(ptr %description, i64 {W.RESUME})
  %was.off = call i32 %start.again()
  br label %answer
answer:
  %is.left = icmp eq ptr %found, inttoptr (i64 1 to ptr)
  br i1 %is.left, label %fallback, label %out
out:
  ret ptr %found
fallback:
  %vectorcall = call ptr @address(ptr %description, i64 {W.VECTORCALL})
  %callable = call ptr @address(ptr %description, i64 {W.FALLBACK})
  %result = call ptr %vectorcall(ptr %callable, ptr %args, i64 %nargs, ptr %keywords)
  ret ptr %result
}

; the result; null after an error, and 1 for what the fallback does
define internal ptr @recorded(ptr %self, ptr %args, i64 %nargs, ptr %keywords) {
entry:
  %description = getelementptr i8, ptr %self, i64 {DESCRIPTION}
  %incref = call ptr @address(ptr %description, i64 {W.INCREF})
  %decref = call ptr @address(ptr %description, i64 {W.DECREF})
  %get.item = call ptr @address(ptr %description, i64 {W.GET_ITEM})
  %none = call ptr @address(ptr %description, i64 {W.NONE})
  %array.type = call ptr @address(ptr %description, i64 {W.ARRAY})
  %operands = call i64 @word(ptr %description, i64 {W.OPERANDS})
  %is.bare = icmp eq ptr %keywords, null
  %is.counted = icmp eq i64 %nargs, %operands
  %is.lazy = call i1 @is_empty(ptr %description, i64 {W.EAGER})
  %is.called = and i1 %is.bare, %is.counted
  %is.plain = and i1 %is.called, %is.lazy
  br i1 %is.plain, label %first, label %fallback
first:
  %array = call ptr @address(ptr %args, i64 0)
  %type = call ptr @field(ptr %array, i64 {TYPE})
  %is.array = icmp eq ptr %type, %array.type
  br i1 %is.array, label %on.tape, label %fallback
on.tape:
  %tape = call ptr @held(ptr %description, ptr %array, i64 {W.TAPE})
  %is.unset = icmp eq ptr %tape, null
  %is.valued = icmp eq ptr %tape, %none
  %is.off = or i1 %is.unset, %is.valued
  br i1 %is.off, label %begin, label %count
begin:
  br i1 %is.valued, label %begin.which, label %fallback
begin.which:
  %begins.alone = icmp eq i64 %operands, 1
  br i1 %begins.alone, label %begin.one, label %begin.two
begin.two:
  %begin.other = call ptr @address(ptr %args, i64 1)
  %begin.type = call ptr @field(ptr %begin.other, i64 {TYPE})
  %begins.both = icmp eq ptr %begin.type, %array.type
  br i1 %begins.both, label %begin.both, label %begin.one
begin.both:
  %other.tape = call ptr @held(ptr %description, ptr %begin.other, i64 {W.TAPE})
  %no.other.tape = icmp eq ptr %other.tape, %none
  br i1 %no.other.tape, label %begin.one, label %mirror
mirror:
  %own.value = call ptr @held(ptr %description, ptr %array, i64 {W.VALUE})
  %value.form = call ptr @held(ptr %description, ptr %array, i64 {W.FORM})
  %mirror.place = call ptr @leaf_place(ptr %description, ptr %other.tape, ptr %own.value, ptr %value.form)
  %no.mirror = icmp eq ptr %mirror.place, null
  br i1 %no.mirror, label %unknown, label %mirrored
mirrored:
  %mirror.behind = call ptr @held(ptr %description, ptr %begin.other, i64 {W.AT})
  %is.mirrored = icmp ne ptr %mirror.behind, null
  br i1 %is.mirrored, label %key, label %fallback
begin.one:
  %begin.with = phi ptr [ null, %begin.which ], [ %begin.other, %begin.two ], [ %begin.other, %begin.both ]
  %begun = call ptr @begin(ptr %description, ptr %array, ptr %begin.with)
  %has.begun = icmp ne ptr %begun, null
  br i1 %has.begun, label %out, label %fallback
out:
  ret ptr %begun
count:
  %place = call ptr @held(ptr %description, ptr %array, i64 {W.AT})
  %own.form = call ptr @held(ptr %description, ptr %array, i64 {W.FORM})
  %is.placed = icmp ne ptr %place, null
  %is.formed = icmp ne ptr %own.form, null
  %is.whole = and i1 %is.placed, %is.formed
  br i1 %is.whole, label %how.many, label %fallback
how.many:
  %is.alone = icmp eq i64 %operands, 1
  br i1 %is.alone, label %key, label %second

second:
  %other = call ptr @address(ptr %args, i64 1)
  %other.type = call ptr @field(ptr %other, i64 {TYPE})
  %is.second = icmp eq ptr %other.type, %array.type
  br i1 %is.second, label %both, label %no.array
both:
  %there = call ptr @held(ptr %description, ptr %other, i64 {W.TAPE})
  %is.here = icmp eq ptr %there, %tape
  br i1 %is.here, label %beside, label %apart
beside:
  %beside.place = call ptr @held(ptr %description, ptr %other, i64 {W.AT})
  %is.beside = icmp ne ptr %beside.place, null
  br i1 %is.beside, label %key, label %fallback
apart:
  %has.value = icmp eq ptr %there, %none
  br i1 %has.value, label %leaf, label %meet
meet:
  %is.set = icmp ne ptr %there, null
  br i1 %is.set, label %measure, label %fallback
measure:
  %as.long.depth = call ptr @address(ptr %description, i64 {W.AS_LONG})
  %own.node = call ptr @held(ptr %description, ptr %tape, i64 {W.NODE})
  %other.node = call ptr @held(ptr %description, ptr %there, i64 {W.NODE})
  %own.depth.object = call ptr @held(ptr %description, ptr %own.node, i64 {W.DEPTH})
  %other.depth.object = call ptr @held(ptr %description, ptr %other.node, i64 {W.DEPTH})
  %own.depth = call i64 %as.long.depth(ptr %own.depth.object)
  %other.depth = call i64 %as.long.depth(ptr %other.depth.object)
  %is.deeper = icmp sgt i64 %other.depth, %own.depth
  %longer = select i1 %is.deeper, ptr %there, ptr %tape
  %shorter = select i1 %is.deeper, ptr %tape, ptr %there
  %is.joined = call i1 @join(ptr %description, ptr %longer, ptr %shorter)
  br i1 %is.joined, label %again, label %fallback
again:
  %repeated = call ptr @recorded(ptr %self, ptr %args, i64 %nargs, ptr %keywords)
  ret ptr %repeated
leaf:
  %leaf.value = call ptr @held(ptr %description, ptr %other, i64 {W.VALUE})
  %leaf.form = call ptr @held(ptr %description, ptr %other, i64 {W.FORM})
  %has.form = icmp ne ptr %leaf.form, null
  br i1 %has.form, label %find, label %fallback
no.array:
  %numpy = call ptr @address(ptr %description, i64 {W.NDARRAY})
  %is.numpy = icmp eq ptr %other.type, %numpy
  br i1 %is.numpy, label %find, label %no.numpy
find:
  %value = phi ptr [ %leaf.value, %leaf ], [ %other, %no.array ]
  %form = phi ptr [ %leaf.form, %leaf ], [ null, %no.array ]
  %leaf.place = call ptr @leaf_place(ptr %description, ptr %tape, ptr %value, ptr %form)
  %is.new = icmp eq ptr %leaf.place, null
  br i1 %is.new, label %unknown, label %key

no.numpy:
  %number.type = call ptr @kind_of_number(ptr %description, ptr %array, ptr %other)
  %no.number = icmp eq ptr %number.type, null
  br i1 %no.number, label %unknown, label %key

key:
  %behind = phi ptr [ null, %how.many ], [ %beside.place, %beside ], [ %leaf.place, %find ],
                    [ %number.type, %no.numpy ], [ %mirror.behind, %mirrored ]
  %is.number = phi i1 [ false, %how.many ], [ false, %beside ], [ false, %find ], [ true, %no.numpy ],
                      [ false, %mirrored ]
  %at = phi ptr [ %place, %how.many ], [ %place, %beside ], [ %place, %find ], [ %place, %no.numpy ],
                [ %mirror.place, %mirrored ]
  %its.tape = phi ptr [ %tape, %how.many ], [ %tape, %beside ], [ %tape, %find ], [ %tape, %no.numpy ],
                      [ %other.tape, %mirrored ]
  %items = call i64 @word(ptr %description, i64 {W.ITEMS})
  %tuple = call ptr @key_of(ptr %description, ptr %at, ptr %behind)
  %no.tuple = icmp eq ptr %tuple, null
  br i1 %no.tuple, label %failed, label %look

look:
  %node = call ptr @held(ptr %description, ptr %its.tape, i64 {W.NODE})
  %step = call ptr %get.item(ptr %node, ptr %tuple)
  call void %decref(ptr %tuple)
  %is.unknown = icmp eq ptr %step, null
  br i1 %is.unknown, label %unknown, label %take
take:
  call void %incref(ptr %step)
  %step.items = getelementptr i8, ptr %step, i64 %items
  %after = call ptr @address(ptr %step.items, i64 0)
  %start = call ptr @address(ptr %step.items, i64 1)
  %made.form = call ptr @address(ptr %step.items, i64 2)
  %allocate = call ptr @address(ptr %description, i64 {W.ALLOCATE})
  %made = call ptr %allocate(ptr %array.type, i64 0)
  %no.array.made = icmp eq ptr %made, null
  br i1 %no.array.made, label %drop.step, label %weaken
weaken:
  call void @hold(ptr %description, ptr %made, i64 {W.TAPE}, ptr %its.tape)
  call void @hold(ptr %description, ptr %made, i64 {W.AT}, ptr %start)
  call void @hold(ptr %description, ptr %made, i64 {W.FORM}, ptr %made.form)
  %new.reference = call ptr @address(ptr %description, i64 {W.NEW_REFERENCE})
  %weak = call ptr %new.reference(ptr %made, ptr null)
  %no.weak = icmp eq ptr %weak, null
  br i1 %no.weak, label %drop.made, label %claim
claim:
  %slots = call ptr @held(ptr %description, ptr %its.tape, i64 {W.SLOTS})
  %set.default = call ptr @address(ptr %description, i64 {W.SET_DEFAULT})
  %holder = call ptr %set.default(ptr %slots, ptr %start, ptr %weak)
  call void %decref(ptr %weak)
  %is.failure = icmp eq ptr %holder, null
  br i1 %is.failure, label %drop.made, label %claimed
claimed:
  %is.mine = icmp eq ptr %holder, %weak
  br i1 %is.mine, label %mine, label %taken
mine:
  br i1 %is.number, label %number, label %move
number:
  %given = call ptr @address(ptr %args, i64 1)
  %is.put = call i1 @put_number(ptr %description, ptr %slots, ptr %start, ptr %given)
  br i1 %is.put, label %move, label %drop.made
move:
  call void @swap(ptr %description, ptr %its.tape, i64 {W.NODE}, ptr %after)
  call void %decref(ptr %step)
  ret ptr %made

drop.made:
  call void %decref(ptr %made)
  br label %drop.step
drop.step:
  call void %decref(ptr %step)
  br label %failed
failed:
  ret ptr null

taken:
  call void %decref(ptr %made)
  call void %decref(ptr %step)
  br label %fallback
unknown:
  %clear = call ptr @address(ptr %description, i64 {W.CLEAR})
  call void %clear()
  br label %fallback
fallback:
  ret ptr inttoptr (i64 1 to ptr)
}
"""


@cache
def operator_text() -> str:
    """The module; its entry is ``PyObject *operate(self, args, nargs, keyword names)``."""
    text = "\n".join((LOOKS, LEAVES, STEPS, TEXT))
    for word in OperatorWord:
        text = text.replace("{W." + word.name + "}", str(int(word)))
    return fill_in(PIECES + "\n" + text)
