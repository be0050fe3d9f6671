"""The native entry for arrays of simple or known layout, as LLVM IR text: one function serves all kernels.

It is the method of a builtin whose self is a ``bytes`` object, the description of one kernel (description.py). The
addresses of the interpreter's and NumPy's functions stand in a table that the description points to, so that the
object needs no relocation and can be kept on disk. Whatever is not plain goes to the fallback that the description
names, with the arguments untouched.
"""

from __future__ import annotations

from functools import cache

from fusec.runtime.cpu.description import fill_in
from fusec.runtime.cpu.fastcall_pieces import PIECES

ENTRY = """\
define ptr @entry(ptr %self, ptr %args, i64 %nargs, ptr %keywords) {
entry:
  %slots = alloca [{SLOTS} x i64], align 16
  %starts = alloca [{MOST_ARGUMENTS} x i64], align 16
  %ends = alloca [{MOST_ARGUMENTS} x i64], align 16
  %results = alloca [{MOST_ARGUMENTS} x ptr], align 16
  %first.place = alloca ptr
  %description = getelementptr i8, ptr %self, i64 {DESCRIPTION}
  %table = call ptr @address(ptr %description, i64 {Header.TABLE})
  %ndarray = call ptr @address(ptr %table, i64 {AddressTable.NDARRAY})
  %inputs = call i64 @word(ptr %description, i64 {Header.INPUTS})
  %outputs = call i64 @word(ptr %description, i64 {Header.OUTPUTS})
  %required = call i64 @word(ptr %description, i64 {Header.NDIM})
  %no.keywords = icmp eq ptr %keywords, null
  br i1 %no.keywords, label %counted, label %named
named:
  %is.out = call i1 @names_out(ptr %description, ptr %table, ptr %keywords)
  %with.out = add i64 %inputs, 1
  %all.inputs = icmp eq i64 %nargs, %inputs
  %out.alone = and i1 %is.out, %all.inputs
  br i1 %out.alone, label %counted, label %fallback
counted:
  ; arguments by name stand behind those by position
  %count = phi i64 [ %nargs, %entry ], [ %with.out, %named ]
  %by.name = phi i1 [ false, %entry ], [ true, %named ]
  %is.bare = icmp eq i64 %count, %inputs
  %with.outputs = call i64 @word(ptr %description, i64 {Header.GIVEN})
  %by.position = icmp eq i64 %count, %with.outputs
  %is.given = or i1 %by.position, %by.name
  %is.either = or i1 %is.bare, %is.given
  br i1 %is.either, label %begin, label %fallback
begin:
  %template = call ptr @address(ptr %description, i64 {Header.TEMPLATE})
  %template.words = call i64 @word(ptr %description, i64 {Header.TEMPLATE_WORDS})
  %space.size = call i64 @word(ptr %description, i64 {Header.SPACE_SIZE})
  %is.known = icmp ne ptr %template, null
  br i1 %is.known, label %copy, label %loop
copy:
  %c = phi i64 [ 0, %begin ], [ %c.next, %copy ]
  %constant = call i64 @word(ptr %template, i64 %c)
  call void @put(ptr %slots, i64 %c, i64 %constant)
  %c.next = add i64 %c, 1
  %c.more = icmp ult i64 %c.next, %template.words
  br i1 %c.more, label %copy, label %loop

loop:
  %i = phi i64 [ 0, %begin ], [ 0, %copy ], [ %i.next, %next ]
  %first = phi ptr [ null, %begin ], [ null, %copy ], [ %first.next, %next ]
  %size = phi i64 [ 0, %begin ], [ 0, %copy ], [ %size.next, %next ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %look, label %seen
look:
  %argument = call ptr @argument(ptr %description, i64 %i)
  %object = call ptr @address(ptr %args, i64 %i)
  %type = call ptr @field(ptr %object, i64 {TYPE})
  %kind = call i64 @word(ptr %argument, i64 {Argument.KIND})
  %slot = call i64 @word(ptr %argument, i64 {Argument.SLOT})
  %is.number = icmp eq i64 %kind, {ParameterKind.NUMBER}
  br i1 %is.number, label %number, label %array

number:
  %read = call { i64, i1, i64 } @number(ptr %table, ptr %argument, ptr %object, ptr %type)
  %bits = extractvalue { i64, i1, i64 } %read, 0
  %good = extractvalue { i64, i1, i64 } %read, 1
  %second = extractvalue { i64, i1, i64 } %read, 2
  br i1 %good, label %number.put, label %fallback
number.put:
  %second.slot = call i64 @word(ptr %argument, i64 {Argument.SECOND_SLOT})
  call void @put(ptr %slots, i64 %second.slot, i64 %second)
  br label %next

array:
  %is.ndarray = icmp eq ptr %type, %ndarray
  br i1 %is.ndarray, label %dtype, label %fallback
dtype:
  %dtype.wanted = call ptr @address(ptr %argument, i64 {Argument.DTYPE})
  %dtype.found = call ptr @field(ptr %object, i64 {DTYPE})
  %same.dtype = icmp eq ptr %dtype.found, %dtype.wanted
  %flags = call i64 @short_field(ptr %object, i64 {FLAGS})
  %mask = call i64 @word(ptr %argument, i64 {Argument.MASK})
  %flags.wanted = call i64 @word(ptr %argument, i64 {Argument.FLAGS})
  %flags.masked = and i64 %flags, %mask
  %same.flags = icmp eq i64 %flags.masked, %flags.wanted
  %ndim = call i64 @short_field(ptr %object, i64 {NDIM})
  %some.axes = icmp ne i64 %ndim, 0
  %is.placed = icmp eq i64 %kind, {ParameterKind.PLACED}
  %has.axes = or i1 %some.axes, %is.placed
  %ok.dtype = and i1 %same.dtype, %same.flags
  %ok.array = and i1 %ok.dtype, %has.axes
  br i1 %ok.array, label %which, label %fallback
which:
  %data.pointer = call ptr @field(ptr %object, i64 {DATA})
  %data = ptrtoint ptr %data.pointer to i64
  %itemsize = call i64 @word(ptr %argument, i64 {Argument.ITEMSIZE})
  br i1 %is.placed, label %placed, label %anywhere
placed:
  %walk = call ptr @address(ptr %argument, i64 {Argument.WALK})
  %is.there = call i1 @same_walk(ptr %walk, ptr %object)
  br i1 %is.there, label %placed.put, label %fallback
placed.put:
  %offset = call i64 @word(ptr %argument, i64 {Argument.OFFSET})
  %low = call i64 @word(ptr %argument, i64 {Argument.LOW})
  %high = call i64 @word(ptr %argument, i64 {Argument.HIGH})
  %placed.data = add i64 %data, %offset
  %placed.start = add i64 %data, %low
  %placed.end = add i64 %data, %high
  br label %next
anywhere:
  %is.raw = icmp eq i64 %kind, {ParameterKind.RAW}
  br i1 %is.raw, label %raw, label %operand

operand:
  %is.first = icmp eq ptr %first, null
  br i1 %is.first, label %measure, label %match
measure:
  %any.ndim = icmp eq i64 %required, 0
  %right.ndim = icmp eq i64 %required, %ndim
  %ok.ndim = or i1 %any.ndim, %right.ndim
  %measured = call i64 @size_of(ptr %object)
  %not.empty = icmp ne i64 %measured, 0
  %ok.first = and i1 %ok.ndim, %not.empty
  br i1 %ok.first, label %operand.put, label %fallback
match:
  %matches = call i1 @same_shape(ptr %first, ptr %object)
  br i1 %matches, label %operand.put, label %fallback
operand.put:
  %known.first = phi ptr [ %object, %measure ], [ %first, %match ]
  %known.size = phi i64 [ %measured, %measure ], [ %size, %match ]
  br label %array.put

raw:
  %is.flat = icmp eq i64 %ndim, 1
  br i1 %is.flat, label %raw.size, label %fallback
raw.size:
  %raw.extents = call ptr @field(ptr %object, i64 {EXTENTS})
  %raw.extent = load i64, ptr %raw.extents
  %raw.not.empty = icmp ne i64 %raw.extent, 0
  br i1 %raw.not.empty, label %raw.put, label %fallback
raw.put:
  %raw.size.slot = call i64 @word(ptr %argument, i64 {Argument.RAW_SIZE_SLOT})
  %raw.extent.slot = call i64 @word(ptr %argument, i64 {Argument.RAW_EXTENT_SLOT})
  %raw.stride.slot = call i64 @word(ptr %argument, i64 {Argument.RAW_STRIDE_SLOT})
  call void @put(ptr %slots, i64 %raw.size.slot, i64 %raw.extent)
  call void @put(ptr %slots, i64 %raw.extent.slot, i64 %raw.extent)
  call void @put(ptr %slots, i64 %raw.stride.slot, i64 %itemsize)
  br label %array.put

array.put:
  %array.first = phi ptr [ %known.first, %operand.put ], [ %first, %raw.put ]
  %array.size = phi i64 [ %known.size, %operand.put ], [ %size, %raw.put ]
  %extent = phi i64 [ %known.size, %operand.put ], [ %raw.extent, %raw.put ]
  %nbytes = mul i64 %extent, %itemsize
  %data.end = add i64 %data, %nbytes
  br label %next

next:
  %first.next = phi ptr [ %first, %number.put ], [ %array.first, %array.put ], [ %object, %placed.put ]
  %size.next = phi i64 [ %size, %number.put ], [ %array.size, %array.put ], [ %space.size, %placed.put ]
  %value = phi i64 [ %bits, %number.put ], [ %data, %array.put ], [ %placed.data, %placed.put ]
  %start = phi i64 [ 0, %number.put ], [ %data, %array.put ], [ %placed.start, %placed.put ]
  %end = phi i64 [ 0, %number.put ], [ %data.end, %array.put ], [ %placed.end, %placed.put ]
  call void @put(ptr %slots, i64 %slot, i64 %value)
  call void @put(ptr %starts, i64 %i, i64 %start)
  call void @put(ptr %ends, i64 %i, i64 %end)
  %i.next = add i64 %i, 1
  br label %loop

seen:
  %some.array = icmp ne ptr %first, null
  %limit = call i64 @word(ptr %description, i64 {Header.LIMIT})
  %in.limit = icmp ule i64 %size, %limit
  %has.size = or i1 %some.array, %is.known
  %go = and i1 %has.size, %in.limit
  br i1 %go, label %sizes, label %fallback
sizes:
  %elements = select i1 %is.known, i64 %space.size, i64 %size
  %size.slot = call i64 @word(ptr %description, i64 {Header.SIZE_SLOT})
  %extent.slot = call i64 @word(ptr %description, i64 {Header.EXTENT_SLOT})
  call void @put(ptr %slots, i64 %size.slot, i64 %elements)
  call void @put(ptr %slots, i64 %extent.slot, i64 %elements)
  %is.separate = call i1 @separate(ptr %description, ptr %starts, ptr %ends, i64 %count)
  br i1 %is.separate, label %separated, label %fallback
separated:
  br i1 %is.given, label %given, label %allocate

given:
  %no.outputs = icmp eq i64 %outputs, 0
  br i1 %no.outputs, label %launch, label %hold
hold:
  %incref = call ptr @address(ptr %table, i64 {AddressTable.INCREF})
  br label %hold.loop
hold.loop:
  %h = phi i64 [ 0, %hold ], [ %h.next, %hold.loop ]
  %h.argument = add i64 %h, %inputs
  %held = call ptr @address(ptr %args, i64 %h.argument)
  call void %incref(ptr %held)
  %held.at = getelementptr ptr, ptr %results, i64 %h
  store ptr %held, ptr %held.at
  %h.next = add i64 %h, 1
  %h.more = icmp ult i64 %h.next, %outputs
  br i1 %h.more, label %hold.loop, label %launch

allocate:
  %allocate.limit = call i64 @word(ptr %description, i64 {Header.ALLOCATE_LIMIT})
  %may.allocate = icmp ule i64 %elements, %allocate.limit
  br i1 %may.allocate, label %allocate.start, label %fallback
allocate.start:
  %small.limit = call i64 @word(ptr %description, i64 {Header.SMALL_LIMIT})
  %is.small = icmp ule i64 %elements, %small.limit
  %nobody = call ptr @address(ptr %table, i64 {AddressTable.NONE})
  %shown = select i1 %some.array, ptr %first, ptr %nobody
  store ptr %shown, ptr %first.place
  %allocate.call = call ptr @address(ptr %table, i64 {AddressTable.VECTORCALL})
  %retain = call ptr @address(ptr %table, i64 {AddressTable.INCREF})
  %new = call ptr @address(ptr %table, i64 {AddressTable.NEW_ARRAY})
  br label %allocate.loop
allocate.loop:
  %a = phi i64 [ 0, %allocate.start ], [ %a.next, %allocate.next ]
  %a.index = add i64 %a, %inputs
  %a.argument = call ptr @argument(ptr %description, i64 %a.index)
  %allocator = call ptr @address(ptr %a.argument, i64 {Argument.ALLOCATOR})
  %no.allocator = icmp eq ptr %allocator, null
  br i1 %is.known, label %allocate.known, label %allocate.unknown
allocate.known:
  br i1 %no.allocator, label %allocate.placed, label %allocate.large
allocate.unknown:
  br i1 %is.small, label %allocate.alike, label %allocate.large
allocate.large:
  %made.large = call ptr %allocate.call(ptr %allocator, ptr %first.place, i64 1, ptr null)
  br label %allocate.check
allocate.placed:
  %a.walk = call ptr @address(ptr %a.argument, i64 {Argument.WALK})
  %walk.ndim = call i64 @word(ptr %a.walk, i64 0)
  %walk.extents = getelementptr i64, ptr %a.walk, i64 1
  br label %allocate.small
allocate.alike:
  %first.ndim = call i64 @short_field(ptr %first, i64 {NDIM})
  %first.extents = call ptr @field(ptr %first, i64 {EXTENTS})
  br label %allocate.small
allocate.small:
  %new.ndim.wide = phi i64 [ %walk.ndim, %allocate.placed ], [ %first.ndim, %allocate.alike ]
  %new.extents = phi ptr [ %walk.extents, %allocate.placed ], [ %first.extents, %allocate.alike ]
  %new.ndim = trunc i64 %new.ndim.wide to i32
  %a.dtype = call ptr @address(ptr %a.argument, i64 {Argument.DTYPE})
  call void %retain(ptr %a.dtype)
  %made.small = call ptr %new(ptr %ndarray, ptr %a.dtype, i32 %new.ndim, ptr %new.extents,
                              ptr null, ptr null, i32 0, ptr null)
  br label %allocate.check
allocate.check:
  %made = phi ptr [ %made.small, %allocate.small ], [ %made.large, %allocate.large ]
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %allocate.failed, label %allocate.next
allocate.next:
  %made.data = call ptr @field(ptr %made, i64 {DATA})
  %made.begin = ptrtoint ptr %made.data to i64
  %made.offset = call i64 @word(ptr %a.argument, i64 {Argument.OFFSET})
  %made.address = add i64 %made.begin, %made.offset
  %a.slot = call i64 @word(ptr %a.argument, i64 {Argument.SLOT})
  call void @put(ptr %slots, i64 %a.slot, i64 %made.address)
  %made.at = getelementptr ptr, ptr %results, i64 %a
  store ptr %made, ptr %made.at
  %a.next = add i64 %a, 1
  %a.more = icmp ult i64 %a.next, %outputs
  br i1 %a.more, label %allocate.loop, label %launch
allocate.failed:
  call void @drop(ptr %table, ptr %results, i64 %a)
  ret ptr null

launch:
  %kernel = call ptr @address(ptr %description, i64 {Header.KERNEL})
  %alone.below = call i64 @word(ptr %description, i64 {Header.ALONE_BELOW})
  %is.long = icmp ugt i64 %elements, %alone.below
  br i1 %is.long, label %unlock, label %short
short:
  call void %kernel(i64 0, i64 %elements, ptr %slots)
  br label %results.ready
unlock:
  %save = call ptr @address(ptr %table, i64 {AddressTable.SAVE_THREAD})
  %state = call ptr %save()
  %run = call ptr @address(ptr %description, i64 {Header.POOL_RUN})
  %no.pool = icmp eq ptr %run, null
  br i1 %no.pool, label %single, label %shared
single:
  call void %kernel(i64 0, i64 %elements, ptr %slots)
  br label %relock
shared:
  %pool = call ptr @address(ptr %description, i64 {Header.POOL_STATE})
  %grain = call ptr @address(ptr %description, i64 {Header.GRAIN})
  call void %run(ptr %pool, ptr %kernel, ptr %slots, i64 %elements, ptr %grain)
  br label %relock
relock:
  %restore = call ptr @address(ptr %table, i64 {AddressTable.RESTORE_THREAD})
  call void %restore(ptr %state)
  br label %results.ready

results.ready:
  %returns = call i64 @word(ptr %description, i64 {Header.RETURNS})
  %one = icmp eq i64 %outputs, 1
  %wants.outputs = icmp eq i64 %returns, {Returns.OUTPUTS}
  %is.single = and i1 %one, %wants.outputs
  br i1 %is.single, label %return.one, label %several
return.one:
  %result = load ptr, ptr %results
  ret ptr %result
several:
  %wants.nothing = icmp eq i64 %returns, {Returns.NOTHING}
  br i1 %wants.nothing, label %return.none, label %pack
return.none:
  call void @drop(ptr %table, ptr %results, i64 %outputs)
  %none = call ptr @address(ptr %table, i64 {AddressTable.NONE})
  %none.incref = call ptr @address(ptr %table, i64 {AddressTable.INCREF})
  call void %none.incref(ptr %none)
  ret ptr %none
pack:
  %new.tuple = call ptr @address(ptr %table, i64 {AddressTable.NEW_TUPLE})
  %set.item = call ptr @address(ptr %table, i64 {AddressTable.SET_ITEM})
  %tuple = call ptr %new.tuple(i64 %outputs)
  %no.tuple = icmp eq ptr %tuple, null
  br i1 %no.tuple, label %pack.failed, label %pack.start
pack.start:
  %is.empty = icmp eq i64 %outputs, 0
  br i1 %is.empty, label %return.tuple, label %pack.loop
pack.failed:
  call void @drop(ptr %table, ptr %results, i64 %outputs)
  ret ptr null
pack.loop:
  %p = phi i64 [ 0, %pack.start ], [ %p.next, %pack.loop ]
  %item = call ptr @address(ptr %results, i64 %p)
  %set = call i32 %set.item(ptr %tuple, i64 %p, ptr %item)
  %p.next = add i64 %p, 1
  %p.more = icmp ult i64 %p.next, %outputs
  br i1 %p.more, label %pack.loop, label %return.tuple
return.tuple:
  ret ptr %tuple

fallback:
  %vectorcall = call ptr @address(ptr %table, i64 {AddressTable.VECTORCALL})
  %callable = call ptr @address(ptr %description, i64 {Header.FALLBACK})
  %answer = call ptr %vectorcall(ptr %callable, ptr %args, i64 %nargs, ptr %keywords)
  ret ptr %answer
}
"""


@cache
def entry_text() -> str:
    """The module; its entry is ``PyObject *entry(self, args, nargs, keyword names)``."""
    return fill_in(PIECES + "\n" + ENTRY)
