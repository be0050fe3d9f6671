"""The functions that the native entry is made of, as LLVM IR text; all are inlined into it or called by it alone."""

from __future__ import annotations

PIECES = """\
define internal i64 @word(ptr %base, i64 %index) alwaysinline {
  %at = getelementptr i64, ptr %base, i64 %index
  %value = load i64, ptr %at
  ret i64 %value
}

define internal ptr @address(ptr %base, i64 %index) alwaysinline {
  %at = getelementptr ptr, ptr %base, i64 %index
  %value = load ptr, ptr %at
  ret ptr %value
}

define internal void @put(ptr %base, i64 %index, i64 %value) alwaysinline {
  %at = getelementptr i64, ptr %base, i64 %index
  store i64 %value, ptr %at
  ret void
}

define internal ptr @field(ptr %object, i64 %offset) alwaysinline {
  %at = getelementptr i8, ptr %object, i64 %offset
  %value = load ptr, ptr %at
  ret ptr %value
}

define internal ptr @argument(ptr %description, i64 %index) alwaysinline {
  %skip = mul i64 %index, {Argument.WORDS}
  %word = add i64 %skip, {Header.WORDS}
  %at = getelementptr i64, ptr %description, i64 %word
  ret ptr %at
}

; the number as bits for its slot, and whether it is one that the parameter takes
define internal { i64, i1 } @number(ptr %table, ptr %argument, ptr %object, ptr %type) {
entry:
  %overflow = alloca i32
  %form = call i64 @word(ptr %argument, i64 {Argument.FORM})
  %accepts = call i64 @word(ptr %argument, i64 {Argument.MASK})
  %float.type = call ptr @address(ptr %table, i64 {Table.FLOAT})
  %int.type = call ptr @address(ptr %table, i64 {Table.INT})
  %bool.type = call ptr @address(ptr %table, i64 {Table.BOOL})
  %is.float = icmp eq ptr %type, %float.type
  br i1 %is.float, label %float, label %not.float
float:
  %float.bit = and i64 %accepts, {Accepts.FLOAT}
  %float.ok = icmp ne i64 %float.bit, 0
  br i1 %float.ok, label %float.read, label %no
float.read:
  %as.double = call ptr @address(ptr %table, i64 {Table.AS_DOUBLE})
  %double = call double %as.double(ptr %object)
  br label %real
not.float:
  %is.int = icmp eq ptr %type, %int.type
  br i1 %is.int, label %int, label %not.int
int:
  %int.bit = and i64 %accepts, {Accepts.INT}
  %int.ok = icmp ne i64 %int.bit, 0
  br i1 %int.ok, label %int.read, label %no
int.read:
  %as.long = call ptr @address(ptr %table, i64 {Table.AS_LONG_LONG})
  %long = call i64 %as.long(ptr %object, ptr %overflow)
  %over = load i32, ptr %overflow
  %fits = icmp eq i32 %over, 0
  br i1 %fits, label %whole, label %no
not.int:
  %is.bool = icmp eq ptr %type, %bool.type
  %bool.bit = and i64 %accepts, {Accepts.BOOL}
  %bool.accepted = icmp ne i64 %bool.bit, 0
  %bool.ok = and i1 %is.bool, %bool.accepted
  br i1 %bool.ok, label %bool, label %no
bool:
  %true = call ptr @address(ptr %table, i64 {Table.TRUE})
  %is.true = icmp eq ptr %object, %true
  %bit = zext i1 %is.true to i64
  br label %whole
whole:
  %integer = phi i64 [ %long, %int.read ], [ %bit, %bool ]
  %is.integer = icmp eq i64 %form, {Form.INTEGER}
  br i1 %is.integer, label %range, label %convert
range:
  %least = call i64 @word(ptr %argument, i64 {Argument.LEAST})
  %most = call i64 @word(ptr %argument, i64 {Argument.MOST})
  %not.low = icmp sge i64 %integer, %least
  %not.high = icmp sle i64 %integer, %most
  %inside = and i1 %not.low, %not.high
  br i1 %inside, label %done, label %no
convert:
  %converted = sitofp i64 %integer to double
  br label %real
real:
  %value = phi double [ %double, %float.read ], [ %converted, %convert ]
  %is.wide = icmp eq i64 %form, {Form.FLOAT64}
  br i1 %is.wide, label %wide, label %narrow
wide:
  %wide.bits = bitcast double %value to i64
  br label %done
narrow:
  %single = fptrunc double %value to float
  %single.bits = bitcast float %single to i32
  %narrow.bits = zext i32 %single.bits to i64
  br label %done
done:
  %bits = phi i64 [ %integer, %range ], [ %wide.bits, %wide ], [ %narrow.bits, %narrow ]
  %some = insertvalue { i64, i1 } { i64 0, i1 true }, i64 %bits, 0
  ret { i64, i1 } %some
no:
  ret { i64, i1 } zeroinitializer
}

; true if two arrays have the same extents
define internal i1 @same_shape(ptr %left, ptr %right) {
entry:
  %left.ndim.at = getelementptr i8, ptr %left, i64 {NDIM}
  %right.ndim.at = getelementptr i8, ptr %right, i64 {NDIM}
  %left.ndim = load i32, ptr %left.ndim.at
  %right.ndim = load i32, ptr %right.ndim.at
  %same.ndim = icmp eq i32 %left.ndim, %right.ndim
  br i1 %same.ndim, label %start, label %no
start:
  %ndim = zext i32 %left.ndim to i64
  %left.extents = call ptr @field(ptr %left, i64 {EXTENTS})
  %right.extents = call ptr @field(ptr %right, i64 {EXTENTS})
  br label %loop
loop:
  %axis = phi i64 [ 0, %start ], [ %axis.next, %compare ]
  %more = icmp ult i64 %axis, %ndim
  br i1 %more, label %compare, label %yes
compare:
  %a = call i64 @word(ptr %left.extents, i64 %axis)
  %b = call i64 @word(ptr %right.extents, i64 %axis)
  %axis.next = add i64 %axis, 1
  %same = icmp eq i64 %a, %b
  br i1 %same, label %loop, label %no
yes:
  ret i1 true
no:
  ret i1 false
}

; true if an array has the number of axes, extents and strides that stand at %walk
define internal i1 @same_walk(ptr %walk, ptr %array) {
entry:
  %ndim.at = getelementptr i8, ptr %array, i64 {NDIM}
  %ndim.narrow = load i32, ptr %ndim.at
  %ndim = zext i32 %ndim.narrow to i64
  %expected = call i64 @word(ptr %walk, i64 0)
  %same.ndim = icmp eq i64 %ndim, %expected
  br i1 %same.ndim, label %start, label %no
start:
  %extents = call ptr @field(ptr %array, i64 {EXTENTS})
  %strides = call ptr @field(ptr %array, i64 {STRIDES})
  br label %loop
loop:
  %axis = phi i64 [ 0, %start ], [ %axis.next, %compare ]
  %more = icmp ult i64 %axis, %ndim
  br i1 %more, label %compare, label %yes
compare:
  %axis.next = add i64 %axis, 1
  %stride.place = add i64 %axis.next, %ndim
  %extent = call i64 @word(ptr %extents, i64 %axis)
  %stride = call i64 @word(ptr %strides, i64 %axis)
  %extent.known = call i64 @word(ptr %walk, i64 %axis.next)
  %stride.known = call i64 @word(ptr %walk, i64 %stride.place)
  %same.extent = icmp eq i64 %extent, %extent.known
  %same.stride = icmp eq i64 %stride, %stride.known
  %same = and i1 %same.extent, %same.stride
  br i1 %same, label %loop, label %no
yes:
  ret i1 true
no:
  ret i1 false
}

; product of the extents, at least one of them
define internal i64 @size_of(ptr %array) {
entry:
  %ndim.at = getelementptr i8, ptr %array, i64 {NDIM}
  %ndim.narrow = load i32, ptr %ndim.at
  %ndim = zext i32 %ndim.narrow to i64
  %extents = call ptr @field(ptr %array, i64 {EXTENTS})
  br label %loop
loop:
  %axis = phi i64 [ 0, %entry ], [ %axis.next, %loop ]
  %size = phi i64 [ 1, %entry ], [ %size.next, %loop ]
  %extent = call i64 @word(ptr %extents, i64 %axis)
  %size.next = mul i64 %size, %extent
  %axis.next = add i64 %axis, 1
  %more = icmp ult i64 %axis.next, %ndim
  br i1 %more, label %loop, label %out
out:
  ret i64 %size.next
}

; true if the only argument by name is the output, and may be
define internal i1 @names_out(ptr %description, ptr %table, ptr %keywords) {
entry:
  %allowed = call i64 @word(ptr %description, i64 {Header.KEYWORD})
  %is.allowed = icmp ne i64 %allowed, 0
  %count.at = getelementptr i8, ptr %keywords, i64 {COUNT}
  %count = load i64, ptr %count.at
  %is.one = icmp eq i64 %count, 1
  %may.be = and i1 %is.allowed, %is.one
  br i1 %may.be, label %look, label %no
look:
  %items = call i64 @word(ptr %table, i64 {Table.ITEMS})
  %name = call ptr @field(ptr %keywords, i64 %items)
  %out = call ptr @address(ptr %table, i64 {Table.OUT})
  %same = icmp eq ptr %name, %out
  ret i1 %same
no:
  ret i1 false
}

; true if every array that is written is disjoint from every other one, or elementwise the same memory as an input
define internal i1 @separate(ptr %description, ptr %starts, ptr %ends, i64 %total) {
entry:
  br label %outer
outer:
  %output = phi i64 [ 0, %entry ], [ %output.next, %outer.next ]
  %outputs.left = icmp ult i64 %output, %total
  br i1 %outputs.left, label %which, label %yes
which:
  %which.argument = call ptr @argument(ptr %description, i64 %output)
  %changes = call i64 @word(ptr %which.argument, i64 {Argument.CHANGES})
  %is.changed = icmp ne i64 %changes, 0
  br i1 %is.changed, label %begin, label %outer.next
begin:
  %start = call i64 @word(ptr %starts, i64 %output)
  %end = call i64 @word(ptr %ends, i64 %output)
  %out.argument = call ptr @argument(ptr %description, i64 %output)
  br label %inner
inner:
  %other = phi i64 [ 0, %begin ], [ %other.next, %next ]
  %others.left = icmp ult i64 %other, %total
  br i1 %others.left, label %test, label %outer.next
test:
  %other.start = call i64 @word(ptr %starts, i64 %other)
  %other.end = call i64 @word(ptr %ends, i64 %other)
  %before = icmp ule i64 %end, %other.start
  %after = icmp ule i64 %other.end, %start
  %apart = or i1 %before, %after
  %itself = icmp eq i64 %output, %other
  %fine = or i1 %apart, %itself
  br i1 %fine, label %next, label %shared
shared:
  %same.start = icmp eq i64 %start, %other.start
  %argument = call ptr @argument(ptr %description, i64 %other)
  %other.changes = call i64 @word(ptr %argument, i64 {Argument.CHANGES})
  %is.input = icmp eq i64 %other.changes, 0
  %itemsize = call i64 @word(ptr %argument, i64 {Argument.ITEMSIZE})
  %out.itemsize = call i64 @word(ptr %out.argument, i64 {Argument.ITEMSIZE})
  %same.itemsize = icmp eq i64 %itemsize, %out.itemsize
  %kind = call i64 @word(ptr %argument, i64 {Argument.KIND})
  %out.kind = call i64 @word(ptr %out.argument, i64 {Argument.KIND})
  %kinds = or i64 %kind, %out.kind
  %plain = icmp eq i64 %kinds, {Kind.ARRAY}
  %a = and i1 %is.input, %same.start
  %b = and i1 %same.itemsize, %plain
  %ok = and i1 %a, %b
  br i1 %ok, label %next, label %no
next:
  %other.next = add i64 %other, 1
  br label %inner
outer.next:
  %output.next = add i64 %output, 1
  br label %outer
yes:
  ret i1 true
no:
  ret i1 false
}

define internal void @drop(ptr %table, ptr %objects, i64 %count) noinline {
entry:
  %decref = call ptr @address(ptr %table, i64 {Table.DECREF})
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %next, label %out
next:
  %object = call ptr @address(ptr %objects, i64 %i)
  call void %decref(ptr %object)
  %i.next = add i64 %i, 1
  br label %loop
out:
  ret void
}
"""
