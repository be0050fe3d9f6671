"""Loops that count."""

from __future__ import annotations

from collections.abc import Callable

from fusec.codegen.llvm.values import Builder, Value


def repeat(b: Builder, start: str, step: int | str, body: Callable[[str], None], end: str) -> None:
    """Repeat from `start`, at least once, while before `end`."""
    slot, head, after = b.alloca("i64"), b.label("loop"), b.label("after")
    b.line(f"store i64 {start}, ptr {slot}")
    b.jump(head)
    b.place(head)
    position = b.let(f"load i64, ptr {slot}")
    body(position)
    following = b.let(f"add i64 {position}, {step}")
    b.line(f"store i64 {following}, ptr {slot}")
    b.fork(b.compare("icmp slt", Value("i64", following), Value("i64", end)), head, after)
    b.place(after)
