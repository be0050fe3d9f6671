"""The functions of the native entry, as LLVM IR text; they are inlined into it or called by it alone."""

from __future__ import annotations

READS = """\
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
"""
"""What reads the words of a description."""

PIECES = (
    READS
    + """
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

define internal i64 @short_field(ptr %object, i64 %offset) alwaysinline {
  %at = getelementptr i8, ptr %object, i64 %offset
  %value = load i32, ptr %at
  %wide = zext i32 %value to i64
  ret i64 %wide
}

define internal ptr @argument(ptr %description, i64 %index) alwaysinline {
  %skip = mul i64 %index, {Argument.WORDS}
  %word = add i64 %skip, {Header.WORDS}
  %at = getelementptr i64, ptr %description, i64 %word
  ret ptr %at
}

; the number as bits for its slot, whether it is one that the parameter takes, and the bits of its second half
define internal { i64, i1, i64 } @number(ptr %table, ptr %argument, ptr %object, ptr %type) {
entry:
  %overflow = alloca i32
  %form = call i64 @word(ptr %argument, i64 {Argument.FORM})
  %accepts = call i64 @word(ptr %argument, i64 {Argument.MASK})
  %float.type = call ptr @address(ptr %table, i64 {AddressTable.FLOAT})
  %int.type = call ptr @address(ptr %table, i64 {AddressTable.INT})
  %bool.type = call ptr @address(ptr %table, i64 {AddressTable.BOOL})
  %is.float = icmp eq ptr %type, %float.type
  br i1 %is.float, label %float, label %not.float
float:
  %float.bit = and i64 %accepts, {Accepts.FLOAT}
  %float.ok = icmp ne i64 %float.bit, 0
  br i1 %float.ok, label %float.read, label %no
float.read:
  %as.double = call ptr @address(ptr %table, i64 {AddressTable.AS_DOUBLE})
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
  %as.long = call ptr @address(ptr %table, i64 {AddressTable.AS_LONG_LONG})
  %long = call i64 %as.long(ptr %object, ptr %overflow)
  %over = load i32, ptr %overflow
  %fits = icmp eq i32 %over, 0
  br i1 %fits, label %whole, label %no
not.int:
  %is.bool = icmp eq ptr %type, %bool.type
  %bool.bit = and i64 %accepts, {Accepts.BOOL}
  %bool.accepted = icmp ne i64 %bool.bit, 0
  br i1 %is.bool, label %bool.may.be, label %not.python
bool.may.be:
  br i1 %bool.accepted, label %bool, label %no
not.python:
  %scalar.type = call ptr @address(ptr %argument, i64 {Argument.SCALAR})
  %is.same = icmp eq ptr %type, %scalar.type
  br i1 %is.same, label %same, label %not.same
same:
  %is.narrow = icmp eq i64 %form, {NumberForm.FLOAT32}
  %pair.size = call i64 @word(ptr %argument, i64 {Argument.ITEMSIZE})
  %is.double = icmp eq i64 %pair.size, 16
  %is.pair = and i1 %is.narrow, %is.double
  br i1 %is.pair, label %pair, label %copied
pair:
  %pair.bits = call i64 @narrowed(ptr %object)
  br label %done
copied:
  %itemsize = call i64 @word(ptr %argument, i64 {Argument.ITEMSIZE})
  %same.bits = call i64 @bits_of(ptr %object, i64 %itemsize)
  %wanted = call i64 @word(ptr %argument, i64 {Argument.LEAST})
  %must.be = call i64 @word(ptr %argument, i64 {Argument.MOST})
  %any.bits = icmp eq i64 %must.be, 0
  %right.bits = icmp eq i64 %same.bits, %wanted
  %fine.bits = or i1 %any.bits, %right.bits
  %is.wide.pair = icmp eq i64 %itemsize, 16
  %second.size = select i1 %is.wide.pair, i64 8, i64 0
  %second.at = getelementptr i8, ptr %object, i64 %second.size
  %second.read = call i64 @word(ptr %second.at, i64 2)
  %same.second = select i1 %is.wide.pair, i64 %second.read, i64 0
  br i1 %fine.bits, label %done, label %no
not.same:
  %numpy.bit = and i64 %accepts, {Accepts.NUMPY}
  %numpy.ok = icmp ne i64 %numpy.bit, 0
  br i1 %numpy.ok, label %numpy, label %no
numpy:
  %scalar = call { i64, double, i64 } @scalar(ptr %table, ptr %object, ptr %type)
  %scalar.accept = extractvalue { i64, double, i64 } %scalar, 2
  %scalar.bit = and i64 %accepts, %scalar.accept
  %scalar.ok = icmp ne i64 %scalar.bit, 0
  %scalar.long = extractvalue { i64, double, i64 } %scalar, 0
  %scalar.double = extractvalue { i64, double, i64 } %scalar, 1
  %is.real.scalar = icmp eq i64 %scalar.accept, {Accepts.FLOAT}
  br i1 %scalar.ok, label %numpy.put, label %no
numpy.put:
  br i1 %is.real.scalar, label %real, label %whole
bool:
  %true = call ptr @address(ptr %table, i64 {AddressTable.TRUE})
  %is.true = icmp eq ptr %object, %true
  %bit = zext i1 %is.true to i64
  br label %whole
whole:
  %integer = phi i64 [ %long, %int.read ], [ %bit, %bool ], [ %scalar.long, %numpy.put ]
  %is.integer = icmp eq i64 %form, {NumberForm.INTEGER}
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
  %value = phi double [ %double, %float.read ], [ %converted, %convert ], [ %scalar.double, %numpy.put ]
  %is.wide = icmp eq i64 %form, {NumberForm.FLOAT64}
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
  %bits = phi i64 [ %integer, %range ], [ %wide.bits, %wide ], [ %narrow.bits, %narrow ],
                  [ %same.bits, %copied ], [ %pair.bits, %pair ]
  %second = phi i64 [ 0, %range ], [ 0, %wide ], [ 0, %narrow ], [ %same.second, %copied ], [ 0, %pair ]
  %some = insertvalue { i64, i1, i64 } { i64 0, i1 true, i64 0 }, i64 %bits, 0
  %both = insertvalue { i64, i1, i64 } %some, i64 %second, 2
  ret { i64, i1, i64 } %both
no:
  ret { i64, i1, i64 } zeroinitializer
}

; the first bytes of a scalar's value, as many as it has
define internal i64 @bits_of(ptr %object, i64 %itemsize) alwaysinline {
entry:
  %at = getelementptr i8, ptr %object, i64 {VALUE}
  switch i64 %itemsize, label %eight [ i64 1, label %one  i64 2, label %two  i64 4, label %four ]
one:
  %byte = load i8, ptr %at
  %from.one = zext i8 %byte to i64
  br label %out
two:
  %short = load i16, ptr %at
  %from.two = zext i16 %short to i64
  br label %out
four:
  %int = load i32, ptr %at
  %from.four = zext i32 %int to i64
  br label %out
eight:
  %long = load i64, ptr %at
  br label %out
out:
  %bits = phi i64 [ %from.one, %one ], [ %from.two, %two ], [ %from.four, %four ], [ %long, %eight ]
  ret i64 %bits
}

; two doubles as two floats
define internal i64 @narrowed(ptr %object) noinline {
entry:
  %at = getelementptr i8, ptr %object, i64 {VALUE}
  %next = getelementptr i8, ptr %at, i64 8
  %left = load double, ptr %at
  %right = load double, ptr %next
  %low = fptrunc double %left to float
  %high = fptrunc double %right to float
  %low.bits = bitcast float %low to i32
  %high.bits = bitcast float %high to i32
  %low.wide = zext i32 %low.bits to i64
  %high.wide = zext i32 %high.bits to i64
  %high.place = shl i64 %high.wide, 32
  %bits = or i64 %high.place, %low.wide
  ret i64 %bits
}

; a scalar of NumPy as an integer or a double, and the Accepts of which it is; 0 if it is none of those that convert
define internal { i64, double, i64 } @scalar(ptr %table, ptr %object, ptr %type) noinline {
entry:
  %at = getelementptr i8, ptr %object, i64 {VALUE}
  br label %loop
loop:
  %kind = phi i64 [ 0, %entry ], [ %kind.next, %look ]
  %more = icmp ult i64 %kind, 12
  br i1 %more, label %look, label %no
look:
  %place = add i64 %kind, {AddressTable.SCALARS}
  %known = call ptr @address(ptr %table, i64 %place)
  %kind.next = add i64 %kind, 1
  %is.it = icmp eq ptr %known, %type
  br i1 %is.it, label %found, label %loop
found:
  switch i64 %kind, label %whole [ i64 9, label %half  i64 10, label %single  i64 11, label %double ]
whole:
  ; bool, four signed and four unsigned integers; of each four, the next one is twice as wide
  %is.bool = icmp eq i64 %kind, 0
  %number = sub i64 %kind, 1
  %doublings = and i64 %number, 3
  %log.size = select i1 %is.bool, i64 0, i64 %doublings
  %itemsize = shl i64 1, %log.size
  %unsigned = call i64 @bits_of(ptr %object, i64 %itemsize)
  %width = shl i64 8, %log.size
  %rest = sub i64 64, %width
  %top = shl i64 %unsigned, %rest
  %signed = ashr i64 %top, %rest
  %is.signed = icmp ult i64 %kind, 5
  %integer = select i1 %is.signed, i64 %signed, i64 %unsigned
  %is.small = icmp sge i64 %unsigned, 0
  %fits = or i1 %is.signed, %is.small
  br i1 %fits, label %integral, label %no
integral:
  %sort = select i1 %is.bool, i64 {Accepts.BOOL}, i64 {Accepts.INT}
  %integers = insertvalue { i64, double, i64 } zeroinitializer, i64 %integer, 0
  %with.sort = insertvalue { i64, double, i64 } %integers, i64 %sort, 2
  ret { i64, double, i64 } %with.sort
half:
  %half.value = load i16, ptr %at
  %half.double = call double @from_half(i16 %half.value)
  br label %real
single:
  %single.value = load float, ptr %at
  %single.double = fpext float %single.value to double
  br label %real
double:
  %double.value = load double, ptr %at
  br label %real
real:
  %value = phi double [ %half.double, %half ], [ %single.double, %single ], [ %double.value, %double ]
  %doubles = insertvalue { i64, double, i64 } zeroinitializer, double %value, 1
  %as.real = insertvalue { i64, double, i64 } %doubles, i64 {Accepts.FLOAT}, 2
  ret { i64, double, i64 } %as.real
no:
  ret { i64, double, i64 } zeroinitializer
}

; by integers alone: processors without an instruction for it would call a function that the process may not have
define internal double @from_half(i16 %half) {
entry:
  %bits = zext i16 %half to i64
  %sign.bit = and i64 %bits, 32768
  %sign = shl i64 %sign.bit, 48
  %magnitude = and i64 %bits, 32767
  %is.small = icmp ult i64 %magnitude, 1024
  br i1 %is.small, label %small, label %large
small:
  %count = sitofp i64 %magnitude to double
  %scaled = fmul double %count, 0x3E70000000000000
  %small.bits = bitcast double %scaled to i64
  br label %out
large:
  %moved = shl i64 %magnitude, 42
  %biased = add i64 %moved, 4539628424389459968
  %is.finite = icmp ult i64 %magnitude, 31744
  %special = or i64 %moved, 9218868437227405312
  %large.bits = select i1 %is.finite, i64 %biased, i64 %special
  br label %out
out:
  %unsigned = phi i64 [ %small.bits, %small ], [ %large.bits, %large ]
  %whole = or i64 %unsigned, %sign
  %value = bitcast i64 %whole to double
  ret double %value
}

; true if two arrays have the same extents
define internal i1 @same_shape(ptr %left, ptr %right) {
entry:
  %ndim = call i64 @short_field(ptr %left, i64 {NDIM})
  %right.ndim = call i64 @short_field(ptr %right, i64 {NDIM})
  %same.ndim = icmp eq i64 %ndim, %right.ndim
  br i1 %same.ndim, label %start, label %no
start:
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
  %ndim = call i64 @short_field(ptr %array, i64 {NDIM})
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
  %ndim = call i64 @short_field(ptr %array, i64 {NDIM})
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
  %items = call i64 @word(ptr %table, i64 {AddressTable.ITEMS})
  %name = call ptr @field(ptr %keywords, i64 %items)
  %out = call ptr @address(ptr %table, i64 {AddressTable.OUT})
  %same = icmp eq ptr %name, %out
  ret i1 %same
no:
  ret i1 false
}

; true if every array that is written is disjoint from every other one, or the same elements as those of an input
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
  %place = call i64 @word(ptr %argument, i64 {Argument.PLACE})
  %out.place = call i64 @word(ptr %out.argument, i64 {Argument.PLACE})
  %same.place = icmp eq i64 %place, %out.place
  %a = and i1 %is.input, %same.start
  %ok = and i1 %a, %same.place
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
  %decref = call ptr @address(ptr %table, i64 {AddressTable.DECREF})
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
)
