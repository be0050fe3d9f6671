"""Threads that take turns do what they do together: random block programs give the same, whatever crosses barriers."""

import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fusec import passes
from fusec.ir.interpret import interpret
from fusec.ir.uniform import uniformity
from fusec.ir.verify import verify
from fusec.passes.blocks import serialise_blocks
from fusec.passes.bounds import WORDS, check_bounds
from tests.support.parse_ir import parse_program

HEAD = """\
kernel f(x: int64 raw[1] read, out: int64 raw[1] read written, n: int64, m: int64) block({block}) {{
    shared tile: int64[{threads}]
    array own: int64[3]
    let t: int64 = {thread}
    let i: int64 = ((_.coordinate[int64(0)] * int64({threads})) + t)
    let b: int64 = (_.coordinate[int64(0)] + int64(1))
    let mine: int64 = load(&x[i])
"""
BLOCKS = {
    (6,): "_.thread[int64(0)]",
    (3, 2): "((_.thread[int64(0)] * int64(2)) + _.thread[int64(1)])",
}


class Writer:
    """Writes statements. Uniform names are u0, u1, ...; the others v0, v1, ..., and `mine`."""

    def __init__(self, rng: random.Random, threads: int) -> None:
        self.rng, self.threads = rng, threads
        self.lines: list[str] = []
        self.count = 0

    def line(self, text: str, depth: int) -> None:
        self.lines.append("    " * depth + text)

    def value(self, names: list[str]) -> str:
        """A small expression; results stay small, so that indices made of them are cheap to bound."""
        left, right = (self.rng.choice([*names, f"int64({self.rng.randint(0, 9)})"]) for _ in range(2))
        op = self.rng.choice(["+", "-", "^", "&", "|"])
        return f"(({left} {op} {right}) & int64(255))"

    def declare(self, kind: str, value: str, scope: list[str], depth: int) -> None:
        name = f"{kind}{self.count}"
        self.count += 1
        self.line(f"let {name}: int64 = {value}", depth)
        scope.append(name)

    def exchange(self, scope: list[str], depth: int) -> None:
        """A thread gives a value, and takes that of another."""
        given = self.rng.choice(scope)
        self.line(f"store offset(&tile, t) = {given}", depth)
        self.line("barrier", depth)
        other = f"((t + int64({self.rng.randint(1, self.threads)})) % int64({self.threads}))"
        self.declare("v", f"load(offset(&tile, {other}))", scope, depth)
        self.line("barrier", depth)

    def block(self, uniform: list[str], varying: list[str], depth: int, together: bool, in_loop: bool) -> None:
        """Statements; together: all threads of the block come here, so that barriers may stand here."""
        uniform, varying = list(uniform), list(varying)
        for _ in range(self.rng.randint(1, 5)):
            self.statement(uniform, varying, depth, together, in_loop)

    def statement(self, uniform: list[str], varying: list[str], depth: int, together: bool, in_loop: bool) -> None:
        every = uniform + varying
        what = self.rng.choice(["declare", "assign", "if", "loop", "own", "out", "exchange", "exchange", "uniform"])
        if what == "uniform" and together:
            mutable = [name for name in uniform if name[0] == "u"]
            if mutable and self.rng.random() < 0.6:
                self.line(f"{self.rng.choice(mutable)} = {self.value(uniform)}", depth)
            else:
                self.declare("u", self.value(uniform), uniform, depth)
        elif what == "exchange" and together:
            self.exchange(varying, depth)
        elif what == "own":
            place = f"offset(&own, ({self.rng.choice(every)} & int64(1)))"
            self.line(f"store {place} = (load(offset(&own, int64(1))) + {self.rng.choice(every)})", depth)
            self.line(f"mine = (mine ^ load({place}))", depth)
        elif what == "out":
            self.line(f"store &out[i] = {self.value(every)}", depth)
        elif what == "assign":
            self.line(f"{self.rng.choice([name for name in varying if name[0] in 'vm'])} = {self.value(every)}", depth)
        elif what == "if" and depth < 4:
            alike = together and self.rng.random() < 0.5
            condition = self.value(uniform if alike else every)
            self.line(f"if ({condition} > int64({self.rng.randint(0, 120)})) {{", depth)
            self.block(uniform, varying, depth + 1, alike, in_loop)
            if in_loop and self.rng.random() < 0.3:
                self.line(self.rng.choice(["continue", "break"]), depth + 1)
            elif self.rng.random() < 0.1:
                self.line("return", depth + 1)
            self.line("}", depth)
        elif what == "loop" and depth < 3:
            alike = together and self.rng.random() < 0.7
            counter = f"k{self.count}"
            self.count += 1
            limit = f"({self.rng.choice(uniform if alike else every)} & int64(3))"
            self.line(f"let {counter}: int64 = int64(0)", depth)
            self.line(f"while ({counter} < {limit}) {{", depth)
            self.block([*uniform, counter], varying, depth + 1, alike, True)
            self.line("} step {", depth)
            self.line(f"{counter} = ({counter} + int64(1))", depth + 1)
            self.line("}", depth)
        else:
            self.declare("v", self.value(every), varying, depth)


def program_of(seed: int):
    """A random program, or None if threads part before a barrier."""
    rng = random.Random(seed)
    block, thread = rng.choice(list(BLOCKS.items()))
    writer = Writer(rng, 6)
    writer.block(["n", "m", "b"], ["mine", "t", "i"], 1, True, False)
    writer.line("store &out[i] = ((load(&out[i]) ^ mine) + load(offset(&own, int64(1))))", 1)
    head = HEAD.format(block=", ".join(map(str, block)), threads=6, thread=thread)
    program = parse_program(head + "\n".join(writer.lines) + "\n}\n")
    verify(program)
    return None if uniformity(program).partings else program


def outcome(program, more=()):
    x = np.arange(18, dtype="i8") * 37 % 101
    arrays = {"x": x, "out": np.zeros(18, "i8"), **dict(more)}
    interpret(program, arrays, {"n": 2, "m": 77}, (3, 1)[: 1 + (len(program.block) == 2)])
    return arrays["out"]


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 1 << 40))
def test_threads_in_turn_do_what_they_do_together(seed):
    program = program_of(seed)
    if program is None:
        return
    expected = outcome(program)
    for each in (program, passes.run(program, check=True)):
        turned = serialise_blocks(each)
        verify(turned)
        arrays = {"x": np.arange(18, dtype="i8") * 37 % 101, "out": np.zeros(18, "i8")}
        interpret(turned, arrays, {"n": 2, "m": 77}, (3, 1)[: len(each.block)])
        np.testing.assert_array_equal(arrays["out"], expected)


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 1 << 40))
def test_checks_change_nothing_where_there_is_nothing_to_find(seed):
    program = program_of(seed)
    if program is None:
        return
    expected = outcome(program)
    checked, _ = check_bounds(program)
    verify(checked)
    assert not uniformity(checked).partings
    fault = np.zeros(WORDS, "u4")
    np.testing.assert_array_equal(outcome(checked, {"fusec_fault": fault}), expected)
    assert not fault.any()
    turned = serialise_blocks(checked)
    arrays = {"x": np.arange(18, dtype="i8") * 37 % 101, "out": np.zeros(18, "i8"), "fusec_fault": fault}
    interpret(turned, arrays, {"n": 2, "m": 77}, (3, 1)[: len(program.block)])
    np.testing.assert_array_equal(arrays["out"], expected)
