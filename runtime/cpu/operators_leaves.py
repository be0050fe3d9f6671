"""Leaves of tapes for the native entry of operators, as LLVM IR text: arrays with values that steps read."""

from __future__ import annotations

LEAVES = """
; put an array with a value at a place; whether that went well
define internal i1 @put_leaf(ptr %description, ptr %slots, ptr %places, ptr %place, ptr %value) {
entry:
  %set.item = call ptr @address(ptr %description, i64 {W.SET_ITEM})
  %decref = call ptr @address(ptr %description, i64 {W.DECREF})
  %from.pointer = call ptr @address(ptr %description, i64 {W.FROM_POINTER})
  %identity = call ptr %from.pointer(ptr %value)
  %no.identity = icmp eq ptr %identity, null
  br i1 %no.identity, label %no, label %put
put:
  %at.slot = call i32 %set.item(ptr %slots, ptr %place, ptr %value)
  %at.place = call i32 %set.item(ptr %places, ptr %identity, ptr %place)
  call void %decref(ptr %identity)
  %failures = or i32 %at.slot, %at.place
  %is.put = icmp eq i32 %failures, 0
  ret i1 %is.put
no:
  ret i1 false
}

; the place on a tape of an array with a value, which becomes a leaf if a tape has had such a leaf at this state before;
; null where it does not. form: null for an array that cannot become one.
define internal ptr @leaf_place(ptr %description, ptr %tape, ptr %value, ptr %form) noinline {
entry:
  %get.item = call ptr @address(ptr %description, i64 {W.GET_ITEM})
  %decref = call ptr @address(ptr %description, i64 {W.DECREF})
  %from.pointer = call ptr @address(ptr %description, i64 {W.FROM_POINTER})
  %is.unwritten = call i1 @is_empty(ptr %description, i64 {W.WRITTEN})
  %has.tape = icmp ne ptr %tape, null
  %has.value = icmp ne ptr %value, null
  %is.whole = and i1 %has.tape, %has.value
  %is.plain = and i1 %is.whole, %is.unwritten
  br i1 %is.plain, label %find, label %no
find:
  %identity = call ptr %from.pointer(ptr %value)
  %no.identity = icmp eq ptr %identity, null
  br i1 %no.identity, label %no, label %look
look:
  %places = call ptr @held(ptr %description, ptr %tape, i64 {W.PLACES})
  %known = call ptr %get.item(ptr %places, ptr %identity)
  call void %decref(ptr %identity)
  %is.known = icmp ne ptr %known, null
  br i1 %is.known, label %out, label %new
out:
  ret ptr %known
new:
  %has.form = icmp ne ptr %form, null
  br i1 %has.form, label %step, label %no
step:
  %node = call ptr @held(ptr %description, ptr %tape, i64 {W.NODE})
  %entry.there = call ptr %get.item(ptr %node, ptr %form)
  %is.new = icmp eq ptr %entry.there, null
  br i1 %is.new, label %no, label %claim
claim:
  %after = call ptr @item(ptr %description, ptr %entry.there, i64 0)
  %at = call ptr @item(ptr %description, ptr %entry.there, i64 1)
  %slots = call ptr @held(ptr %description, ptr %tape, i64 {W.SLOTS})
  %holder = call ptr %get.item(ptr %slots, ptr %at)
  %is.free = icmp eq ptr %holder, null
  br i1 %is.free, label %put, label %no
put:
  %is.put = call i1 @put_leaf(ptr %description, ptr %slots, ptr %places, ptr %at, ptr %value)
  br i1 %is.put, label %move, label %no
move:
  call void @swap(ptr %description, ptr %tape, i64 {W.NODE}, ptr %after)
  ret ptr %at
no:
  ret ptr null
}
"""
