"""The functions of the native entry of operators, as LLVM IR text, with the words of `operators_text` in braces."""

from __future__ import annotations

LOOKS = """
define internal ptr @held(ptr %description, ptr %object, i64 %word) alwaysinline {
  %offset = call i64 @word(ptr %description, i64 %word)
  %value = call ptr @field(ptr %object, i64 %offset)
  ret ptr %value
}

define internal void @hold(ptr %description, ptr %object, i64 %word, ptr %value) alwaysinline {
  %offset = call i64 @word(ptr %description, i64 %word)
  %at = getelementptr i8, ptr %object, i64 %offset
  %keep = call ptr @address(ptr %description, i64 {W.INCREF})
  call void %keep(ptr %value)
  store ptr %value, ptr %at
  ret void
}

define internal i1 @is_empty(ptr %description, i64 %word) alwaysinline {
  %list = call ptr @address(ptr %description, i64 %word)
  %at = getelementptr i8, ptr %list, i64 {COUNT}
  %count = load i64, ptr %at
  %is.empty = icmp eq i64 %count, 0
  ret i1 %is.empty
}

define internal void @swap(ptr %description, ptr %object, i64 %word, ptr %value) alwaysinline {
  %offset = call i64 @word(ptr %description, i64 %word)
  %at = getelementptr i8, ptr %object, i64 %offset
  %before = load ptr, ptr %at
  call void @hold(ptr %description, ptr %object, i64 %word, ptr %value)
  %decref = call ptr @address(ptr %description, i64 {W.DECREF})
  call void %decref(ptr %before)
  ret void
}

define internal ptr @item(ptr %description, ptr %tuple, i64 %index) alwaysinline {
  %items = call i64 @word(ptr %description, i64 {W.ITEMS})
  %first = getelementptr i8, ptr %tuple, i64 %items
  %item = call ptr @address(ptr %first, i64 %index)
  ret ptr %item
}

; the type of a number of Python's that a step takes for any value; null for others
define internal ptr @kind_of_number(ptr %description, ptr %array, ptr %other) {
entry:
  %type = call ptr @field(ptr %other, i64 {TYPE})
  %float = call ptr @address(ptr %description, i64 {W.FLOAT})
  %int = call ptr @address(ptr %description, i64 {W.INT})
  %bool = call ptr @address(ptr %description, i64 {W.BOOL})
  %complex = call ptr @address(ptr %description, i64 {W.COMPLEX})
  %none = call ptr @address(ptr %description, i64 {W.NONE})
  %is.float = icmp eq ptr %type, %float
  %is.bool = icmp eq ptr %type, %bool
  %is.complex = icmp eq ptr %type, %complex
  %is.either = or i1 %is.float, %is.bool
  %is.free = or i1 %is.either, %is.complex
  br i1 %is.free, label %yes, label %no.free
no.free:
  %is.int = icmp eq ptr %type, %int
  br i1 %is.int, label %bounded, label %no
bounded:
  %form = call ptr @held(ptr %description, ptr %array, i64 {W.FORM})
  %limits = call ptr @held(ptr %description, ptr %form, i64 {W.LIMITS})
  %is.free.int = icmp eq ptr %limits, %none
  br i1 %is.free.int, label %yes, label %within
within:
  %contains = call ptr @address(ptr %description, i64 {W.CONTAINS})
  %fits = call i32 %contains(ptr %limits, ptr %other)
  %is.within = icmp eq i32 %fits, 1
  br i1 %is.within, label %yes, label %no
yes:
  ret ptr %type
no:
  ret ptr null
}

; the key of a step; the second place is null for one operand
define internal ptr @key_of(ptr %description, ptr %place, ptr %behind) {
entry:
  %incref = call ptr @address(ptr %description, i64 {W.INCREF})
  %new.tuple = call ptr @address(ptr %description, i64 {W.NEW_TUPLE})
  %items = call i64 @word(ptr %description, i64 {W.ITEMS})
  %function = call ptr @address(ptr %description, i64 {W.FUNCTION})
  %is.alone = icmp eq ptr %behind, null
  %length = select i1 %is.alone, i64 2, i64 3
  %tuple = call ptr %new.tuple(i64 %length)
  %no.tuple = icmp eq ptr %tuple, null
  br i1 %no.tuple, label %out, label %name
name:
  %item.0 = getelementptr i8, ptr %tuple, i64 %items
  %item.1 = getelementptr ptr, ptr %item.0, i64 1
  call void %incref(ptr %function)
  store ptr %function, ptr %item.0
  call void %incref(ptr %place)
  br i1 %is.alone, label %one, label %two
one:
  store ptr %place, ptr %item.1
  br label %out
two:
  %item.2 = getelementptr ptr, ptr %item.0, i64 2
  %swapped = call i64 @word(ptr %description, i64 {W.SWAPPED})
  %is.swapped = icmp ne i64 %swapped, 0
  %left = select i1 %is.swapped, ptr %behind, ptr %place
  %right = select i1 %is.swapped, ptr %place, ptr %behind
  call void %incref(ptr %behind)
  store ptr %left, ptr %item.1
  store ptr %right, ptr %item.2
  br label %out
out:
  ret ptr %tuple
}

; put a number behind a result; whether that went well
define internal i1 @put_number(ptr %description, ptr %slots, ptr %start, ptr %number) {
entry:
  %as.long = call ptr @address(ptr %description, i64 {W.AS_LONG})
  %from.long = call ptr @address(ptr %description, i64 {W.FROM_LONG})
  %set.item = call ptr @address(ptr %description, i64 {W.SET_ITEM})
  %decref = call ptr @address(ptr %description, i64 {W.DECREF})
  %first = call i64 %as.long(ptr %start)
  %second = add i64 %first, 1
  %next = call ptr %from.long(i64 %second)
  %no.next = icmp eq ptr %next, null
  br i1 %no.next, label %no, label %put
put:
  %is.put = call i32 %set.item(ptr %slots, ptr %next, ptr %number)
  call void %decref(ptr %next)
  %is.stored = icmp eq i32 %is.put, 0
  ret i1 %is.stored
no:
  ret i1 false
}
"""

STEPS = """
; the first step of a tape, on arrays that have values; null if it is another one
define internal ptr @begin(ptr %description, ptr %array, ptr %other) noinline {
entry:
  %decref = call ptr @address(ptr %description, i64 {W.DECREF})
  %get.item = call ptr @address(ptr %description, i64 {W.GET_ITEM})
  %set.item = call ptr @address(ptr %description, i64 {W.SET_ITEM})
  %none = call ptr @address(ptr %description, i64 {W.NONE})
  %zero = call ptr @address(ptr %description, i64 {W.ZERO})
  %one = call ptr @address(ptr %description, i64 {W.ONE})
  %array.type = call ptr @address(ptr %description, i64 {W.ARRAY})
  %is.unwritten = call i1 @is_empty(ptr %description, i64 {W.WRITTEN})
  br i1 %is.unwritten, label %root, label %no
root:
  %trie = call ptr @address(ptr %description, i64 {W.TRIE})
  %root.node = call ptr @held(ptr %description, ptr %trie, i64 {W.ROOT})
  %value = call ptr @held(ptr %description, ptr %array, i64 {W.VALUE})
  %form = call ptr @held(ptr %description, ptr %array, i64 {W.FORM})
  %has.form = icmp ne ptr %form, null
  %has.own.value = icmp ne ptr %value, null
  %is.whole = and i1 %has.form, %has.own.value
  br i1 %is.whole, label %first, label %no
first:
  %first.step = call ptr %get.item(ptr %root.node, ptr %form)
  %is.new = icmp eq ptr %first.step, null
  br i1 %is.new, label %no, label %second
second:
  %first.node = call ptr @item(ptr %description, ptr %first.step, i64 0)
  %is.alone = icmp eq ptr %other, null
  br i1 %is.alone, label %key, label %which
which:
  %other.type = call ptr @field(ptr %other, i64 {TYPE})
  %is.array = icmp eq ptr %other.type, %array.type
  br i1 %is.array, label %both, label %number
number:
  %kind = call ptr @kind_of_number(ptr %description, ptr %array, ptr %other)
  %no.number = icmp eq ptr %kind, null
  br i1 %no.number, label %no, label %key
both:
  %there = call ptr @held(ptr %description, ptr %other, i64 {W.TAPE})
  %has.value = icmp eq ptr %there, %none
  br i1 %has.value, label %beside, label %no
beside:
  %other.value = call ptr @held(ptr %description, ptr %other, i64 {W.VALUE})
  %is.same = icmp eq ptr %other.value, %value
  br i1 %is.same, label %key, label %leaf
leaf:
  %other.form = call ptr @held(ptr %description, ptr %other, i64 {W.FORM})
  %has.other.value = icmp ne ptr %other.value, null
  %has.other.form = icmp ne ptr %other.form, null
  %is.other.whole = and i1 %has.other.value, %has.other.form
  br i1 %is.other.whole, label %other.first, label %no
other.first:
  %second.step = call ptr %get.item(ptr %first.node, ptr %other.form)
  %is.new.too = icmp eq ptr %second.step, null
  br i1 %is.new.too, label %no, label %leaf.node
leaf.node:
  %second.node = call ptr @item(ptr %description, ptr %second.step, i64 0)
  br label %key
key:
  %node = phi ptr [ %first.node, %second ], [ %first.node, %number ], [ %first.node, %beside ],
                  [ %second.node, %leaf.node ]
  %behind = phi ptr [ null, %second ], [ %kind, %number ], [ %zero, %beside ], [ %one, %leaf.node ]
  %is.number = phi i1 [ false, %second ], [ true, %number ], [ false, %beside ], [ false, %leaf.node ]
  %beside.value = phi ptr [ null, %second ], [ null, %number ], [ null, %beside ], [ %other.value, %leaf.node ]
  %tuple = call ptr @key_of(ptr %description, ptr %zero, ptr %behind)
  %no.tuple = icmp eq ptr %tuple, null
  br i1 %no.tuple, label %no, label %look
look:
  %step = call ptr %get.item(ptr %node, ptr %tuple)
  call void %decref(ptr %tuple)
  %is.unknown = icmp eq ptr %step, null
  br i1 %is.unknown, label %no, label %make
make:
  %incref = call ptr @address(ptr %description, i64 {W.INCREF})
  call void %incref(ptr %step)
  %after = call ptr @item(ptr %description, ptr %step, i64 0)
  %start = call ptr @item(ptr %description, ptr %step, i64 1)
  %made.form = call ptr @item(ptr %description, ptr %step, i64 2)
  %tape.type = call ptr @address(ptr %description, i64 {W.TAPES})
  %allocate = call ptr @address(ptr %description, i64 {W.ALLOCATE})
  %new.dict = call ptr @address(ptr %description, i64 {W.NEW_DICT})
  %new.reference = call ptr @address(ptr %description, i64 {W.NEW_REFERENCE})
  %slots = call ptr %new.dict()
  %places = call ptr %new.dict()
  %tape = call ptr %allocate(ptr %tape.type, i64 0)
  %made = call ptr %allocate(ptr %array.type, i64 0)
  %no.slots = icmp eq ptr %slots, null
  %no.places = icmp eq ptr %places, null
  %no.tape = icmp eq ptr %tape, null
  %no.made = icmp eq ptr %made, null
  %no.dicts = or i1 %no.slots, %no.places
  %no.objects = or i1 %no.tape, %no.made
  %lacks = or i1 %no.dicts, %no.objects
  br i1 %lacks, label %drop, label %fill
fill:
  %false = call ptr @address(ptr %description, i64 {W.FALSE})
  call void @hold(ptr %description, ptr %tape, i64 {W.NODE}, ptr %after)
  call void @hold(ptr %description, ptr %tape, i64 {W.SLOTS}, ptr %slots)
  call void @hold(ptr %description, ptr %tape, i64 {W.PLACES}, ptr %places)
  call void @hold(ptr %description, ptr %tape, i64 {W.CLOSED}, ptr %false)
  call void @hold(ptr %description, ptr %made, i64 {W.TAPE}, ptr %tape)
  call void @hold(ptr %description, ptr %made, i64 {W.AT}, ptr %start)
  call void @hold(ptr %description, ptr %made, i64 {W.FORM}, ptr %made.form)
  %first.put = call i1 @put_leaf(ptr %description, ptr %slots, ptr %places, ptr %zero, ptr %value)
  br i1 %first.put, label %more, label %drop
more:
  %is.one = icmp eq ptr %beside.value, null
  br i1 %is.one, label %weaken, label %more.put
more.put:
  %second.put = call i1 @put_leaf(ptr %description, ptr %slots, ptr %places, ptr %one, ptr %beside.value)
  br i1 %second.put, label %weaken, label %drop
weaken:
  %weak = call ptr %new.reference(ptr %made, ptr null)
  %no.weak = icmp eq ptr %weak, null
  br i1 %no.weak, label %drop, label %weak.put
weak.put:
  %result.put = call i32 %set.item(ptr %slots, ptr %start, ptr %weak)
  call void %decref(ptr %weak)
  %is.result = icmp eq i32 %result.put, 0
  br i1 %is.result, label %count, label %drop
count:
  br i1 %is.number, label %count.put, label %note
count.put:
  %number.put = call i1 @put_number(ptr %description, ptr %slots, ptr %start, ptr %other)
  br i1 %number.put, label %note, label %drop
note:
  %weak.tape = call ptr %new.reference(ptr %tape, ptr null)
  %no.weak.tape = icmp eq ptr %weak.tape, null
  br i1 %no.weak.tape, label %drop, label %append
append:
  %known = call ptr @address(ptr %description, i64 {W.KNOWN})
  %add = call ptr @address(ptr %description, i64 {W.APPEND})
  %is.added = call i32 %add(ptr %known, ptr %weak.tape)
  call void %decref(ptr %weak.tape)
  %was.added = icmp eq i32 %is.added, 0
  br i1 %was.added, label %shorten, label %drop
shorten:
  call void %decref(ptr %slots)
  call void %decref(ptr %places)
  call void %decref(ptr %tape)
  call void %decref(ptr %step)
  %known.at = getelementptr i8, ptr %known, i64 {COUNT}
  %known.count = load i64, ptr %known.at
  %low = and i64 %known.count, 63
  %is.due = icmp eq i64 %low, 0
  br i1 %is.due, label %forget, label %out
forget:
  %vectorcall = call ptr @address(ptr %description, i64 {W.VECTORCALL})
  %forget.some = call ptr @address(ptr %description, i64 {W.FORGET})
  %nothing = call ptr %vectorcall(ptr %forget.some, ptr null, i64 0, ptr null)
  call void %decref(ptr %nothing)
  %is.forgotten = icmp ne ptr %nothing, null
  br i1 %is.forgotten, label %out, label %raise
raise:
  %clear.it = call ptr @address(ptr %description, i64 {W.CLEAR})
  call void %clear.it()
  br label %out
out:
  ret ptr %made
drop:
  call void %decref(ptr %made)
  call void %decref(ptr %tape)
  call void %decref(ptr %places)
  call void %decref(ptr %slots)
  call void %decref(ptr %step)
  br label %no
no:
  %clear = call ptr @address(ptr %description, i64 {W.CLEAR})
  call void %clear()
  ret ptr null
}

; have a tape take over what it has taken over at this state before; whether that was possible. Nothing interrupts it
; between the look at both and the end.
define internal i1 @join(ptr %description, ptr %tape, ptr %other) noinline {
entry:
  %position = alloca i64
  %next.key = alloca ptr
  %next.value = alloca ptr
  %incref = call ptr @address(ptr %description, i64 {W.INCREF})
  %decref = call ptr @address(ptr %description, i64 {W.DECREF})
  %get.item = call ptr @address(ptr %description, i64 {W.GET_ITEM})
  %set.item = call ptr @address(ptr %description, i64 {W.SET_ITEM})
  %next = call ptr @address(ptr %description, i64 {W.NEXT})
  %new.tuple = call ptr @address(ptr %description, i64 {W.NEW_TUPLE})
  %none = call ptr @address(ptr %description, i64 {W.NONE})
  %places = call ptr @held(ptr %description, ptr %tape, i64 {W.PLACES})
  %others = call ptr @held(ptr %description, ptr %other, i64 {W.PLACES})
  %others.at = getelementptr i8, ptr %others, i64 {COUNT}
  %others.count = load i64, ptr %others.at
  %length = add i64 %others.count, 1
  %tuple = call ptr %new.tuple(i64 %length)
  %no.tuple = icmp eq ptr %tuple, null
  br i1 %no.tuple, label %failed, label %named
named:
  %here = call ptr @held(ptr %description, ptr %tape, i64 {W.NODE})
  %there = call ptr @held(ptr %description, ptr %other, i64 {W.NODE})
  %items = call i64 @word(ptr %description, i64 {W.ITEMS})
  %first.item = getelementptr i8, ptr %tuple, i64 %items
  %mark = call ptr @held(ptr %description, ptr %there, i64 {W.MARK})
  call void %incref(ptr %mark)
  store ptr %mark, ptr %first.item
  store i64 0, ptr %position
  br label %naming
naming:
  %n = phi i64 [ 1, %named ], [ %n.next, %name ]
  %more = call i32 %next(ptr %others, ptr %position, ptr %next.key, ptr %next.value)
  %is.more = icmp ne i32 %more, 0
  %has.room = icmp ult i64 %n, %length
  %goes.on = and i1 %is.more, %has.room
  br i1 %goes.on, label %name, label %all.named
name:
  %key = load ptr, ptr %next.key
  %known.place = call ptr %get.item(ptr %places, ptr %key)
  %is.absent = icmp eq ptr %known.place, null
  %place.or.none = select i1 %is.absent, ptr %none, ptr %known.place
  call void %incref(ptr %place.or.none)
  %item.at = getelementptr ptr, ptr %first.item, i64 %n
  store ptr %place.or.none, ptr %item.at
  %n.next = add i64 %n, 1
  br label %naming
all.named:
  %is.complete = icmp eq i64 %n, %length
  br i1 %is.complete, label %look, label %incomplete
incomplete:
  call void %decref(ptr %tuple)
  br label %failed
look:
  %joint = call ptr %get.item(ptr %here, ptr %tuple)
  call void %decref(ptr %tuple)
  %slots = call ptr @held(ptr %description, ptr %tape, i64 {W.SLOTS})
  %held = call ptr @held(ptr %description, ptr %other, i64 {W.SLOTS})
  %here.count = call ptr @held(ptr %description, ptr %here, i64 {W.COUNT})
  %there.count = call ptr @held(ptr %description, ptr %there, i64 {W.COUNT})
  %taken.here = call ptr %get.item(ptr %slots, ptr %here.count)
  %taken.there = call ptr %get.item(ptr %held, ptr %there.count)
  %is.known = icmp ne ptr %joint, null
  %is.free.here = icmp eq ptr %taken.here, null
  %is.free.there = icmp eq ptr %taken.there, null
  %are.free = and i1 %is.free.here, %is.free.there
  %goes = and i1 %are.free, %is.known
  br i1 %goes, label %begin, label %failed
begin:
  call void %incref(ptr %joint)
  call void %incref(ptr %other)
  %after = call ptr @item(ptr %description, ptr %joint, i64 0)
  %moves = call ptr @item(ptr %description, ptr %joint, i64 1)
  %arrays = call ptr @item(ptr %description, ptr %joint, i64 2)
  %leaves = call ptr @item(ptr %description, ptr %joint, i64 3)
  %moves.at = getelementptr i8, ptr %moves, i64 {COUNT}
  %moves.count = load i64, ptr %moves.at
  %arrays.at = getelementptr i8, ptr %arrays, i64 {COUNT}
  %arrays.count = load i64, ptr %arrays.at
  br label %moving
moving:
  %m = phi i64 [ 0, %begin ], [ %m.next, %move ]
  %m.more = icmp ult i64 %m, %moves.count
  br i1 %m.more, label %move, label %moved
move:
  %pair = call ptr @item(ptr %description, ptr %moves, i64 %m)
  %from = call ptr @item(ptr %description, ptr %pair, i64 0)
  %to = call ptr @item(ptr %description, ptr %pair, i64 1)
  %each = call ptr %get.item(ptr %held, ptr %from)
  %is.set = call i32 %set.item(ptr %slots, ptr %to, ptr %each)
  %m.next = add i64 %m, 1
  br label %moving
moved:
  store i64 0, ptr %position
  br label %placing
placing:
  %l = phi i64 [ 0, %moved ], [ %l.next, %place ]
  %l.more = icmp ult i64 %l, %others.count
  br i1 %l.more, label %place, label %placed
place:
  %l.is = call i32 %next(ptr %others, ptr %position, ptr %next.key, ptr %next.value)
  %l.key = load ptr, ptr %next.key
  %l.place = call ptr @item(ptr %description, ptr %leaves, i64 %l)
  %l.set = call i32 %set.item(ptr %places, ptr %l.key, ptr %l.place)
  %l.next = add i64 %l, 1
  br label %placing
placed:
  call void @swap(ptr %description, ptr %tape, i64 {W.NODE}, ptr %after)
  %reference = call ptr @address(ptr %description, i64 {W.REFERENCE})
  %referent = call ptr @address(ptr %description, i64 {W.REFERENT})
  br label %giving
giving:
  %g = phi i64 [ 0, %placed ], [ %g.next, %given ]
  %g.more = icmp ult i64 %g, %arrays.count
  br i1 %g.more, label %give, label %end
give:
  %g.pair = call ptr @item(ptr %description, ptr %arrays, i64 %g)
  %g.from = call ptr @item(ptr %description, ptr %g.pair, i64 0)
  %g.to = call ptr @item(ptr %description, ptr %g.pair, i64 1)
  %weak = call ptr %get.item(ptr %held, ptr %g.from)
  %weak.type = call ptr @field(ptr %weak, i64 {TYPE})
  %is.weak = icmp eq ptr %weak.type, %reference
  br i1 %is.weak, label %find, label %given
find:
  %array = call ptr %referent(ptr %weak)
  %is.gone = icmp eq ptr %array, %none
  br i1 %is.gone, label %given, label %lead
lead:
  call void @swap(ptr %description, ptr %array, i64 {W.AT}, ptr %g.to)
  call void @swap(ptr %description, ptr %array, i64 {W.TAPE}, ptr %tape)
  br label %given
given:
  %g.next = add i64 %g, 1
  br label %giving
end:
  %true = call ptr @address(ptr %description, i64 {W.TRUE})
  %frozen = call ptr @address(ptr %description, i64 {W.FROZEN})
  %is.frozen = call i32 %set.item(ptr %held, ptr %there.count, ptr %frozen)
  call void @swap(ptr %description, ptr %other, i64 {W.CLOSED}, ptr %true)
  call void %decref(ptr %other)
  call void %decref(ptr %joint)
  %clear.end = call ptr @address(ptr %description, i64 {W.CLEAR})
  call void %clear.end()
  ret i1 true
failed:
  %clear = call ptr @address(ptr %description, i64 {W.CLEAR})
  call void %clear()
  ret i1 false
}
"""
