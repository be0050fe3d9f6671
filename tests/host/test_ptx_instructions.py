"""Every integer instruction of the PTX interpreter computes what Python's integers say of it."""

import operator
from collections.abc import Callable

import numpy as np
import ptx
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from ptx.syntax import WIDTHS
from ptx.types import NUMPY
from ptx_evaluate import evaluate, text_of, wrap

Ints = Callable[..., int]
QUICK = settings(deadline=None, database=None, phases=(Phase.generate,))  # a row of 20 operands is not made smaller


def whole(kind: str) -> st.SearchStrategy[int]:
    """Integers of a type, those at its ends and small ones often."""
    bits = 8 * WIDTHS[kind]
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if kind[0] == "s" else (0, (1 << bits) - 1)
    edges = [low, low + 1, high, high - 1, 0, 1, 2, high // 2, high // 2 + 1, bits - 1, bits, bits + 1]
    edges.append(wrap(0x80FF7F01807FFF00, kind))  # bytes at both ends of their signs
    return st.one_of(st.sampled_from(edges), st.integers(low, high), st.integers(0, 40))


def trunc_divide(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def extract(a: int, at: int, count: int, kind: str) -> int:
    """bfe, bit by bit, as PTX ISA's program for it."""
    bits, at, count = 8 * WIDTHS[kind], at & 255, count & 255
    last = min(at + count - 1, bits - 1)
    sign = 0 if kind[0] == "u" or count == 0 else a >> last & 1
    field = 0
    for bit in range(bits):
        field |= (a >> (at + bit) & 1 if bit < count and at + bit < bits else sign) << bit
    return field


def insert(a: int, b: int, at: int, count: int, kind: str) -> int:
    """bfi, bit by bit."""
    bits, at, count = 8 * WIDTHS[kind], at & 255, count & 255
    for bit in range(count):
        if at + bit < bits:
            b = b & ~(1 << at + bit) | (a >> bit & 1) << at + bit
    return b


def permute(a: int, b: int, selector: int) -> int:
    """prmt in its default mode."""
    eight = (b << 32 | a).to_bytes(8, "little")
    result = []
    for place in range(4):
        choice = selector >> 4 * place & 15
        byte = eight[choice & 7]
        result.append((255 if byte & 128 else 0) if choice & 8 else byte)
    return int.from_bytes(bytes(result), "little")


def highest(a: int, kind: str) -> int:
    return ((~a if a < 0 else a) & (1 << 8 * WIDTHS[kind]) - 1).bit_length() - 1


INTS = ("u16", "s16", "u32", "s32", "u64", "s64")
WORDS = ("u32", "s32", "u64", "s64")
# opcode with * for the type; types; operands' types (* as well); result's type; meaning on Python's integers
RULES: list[tuple[str, tuple[str, ...], tuple[str, ...], str, Ints]] = [
    ("add.*", INTS, ("*", "*"), "*", operator.add),
    ("sub.*", INTS, ("*", "*"), "*", operator.sub),
    ("mul.lo.*", INTS, ("*", "*"), "*", operator.mul),
    ("min.*", INTS, ("*", "*"), "*", min),
    ("max.*", INTS, ("*", "*"), "*", max),
    ("sad.*", WORDS, ("*", "*", "*"), "*", lambda a, b, c: c + abs(a - b)),
    ("mad.lo.*", INTS, ("*", "*", "*"), "*", lambda a, b, c: a * b + c),
    ("and.b16", ("u16",), ("*", "*"), "*", operator.and_),
    ("or.b32", ("u32",), ("*", "*"), "*", operator.or_),
    ("xor.b64", ("u64",), ("*", "*"), "*", operator.xor),
    ("not.b32", ("u32",), ("*",), "*", operator.invert),
    ("cnot.b32", ("u32",), ("*",), "*", lambda a: int(a == 0)),
    ("abs.*", ("s16", "s32", "s64"), ("*",), "*", abs),
    ("neg.*", ("s16", "s32", "s64"), ("*",), "*", operator.neg),
    ("slct.u32.s32", ("s32",), ("u32", "u32", "s32"), "u32", lambda a, b, c: a if c >= 0 else b),
    ("add.sat.s32", ("s32",), ("*", "*"), "*", lambda a, b: max(-(2**31), min(2**31 - 1, a + b))),
    ("sub.sat.s32", ("s32",), ("*", "*"), "*", lambda a, b: max(-(2**31), min(2**31 - 1, a - b))),
    ("prmt.b32", ("u32",), ("*", "*", "*"), "*", permute),
    ("shf.l.wrap.b32", ("u32",), ("*", "*", "*"), "*", lambda a, b, c: (b << 32 | a) << (c & 31) >> 32),
    ("shf.r.wrap.b32", ("u32",), ("*", "*", "*"), "*", lambda a, b, c: (b << 32 | a) >> (c & 31)),
    ("shf.l.clamp.b32", ("u32",), ("*", "*", "*"), "*", lambda a, b, c: (b << 32 | a) << min(c, 32) >> 32),
    ("shf.r.clamp.b32", ("u32",), ("*", "*", "*"), "*", lambda a, b, c: (b << 32 | a) >> min(c, 32)),
    ("popc.b64", ("u64",), ("*",), "u32", int.bit_count),
    ("clz.b32", ("u32",), ("*",), "u32", lambda a: 32 - a.bit_length()),
    ("clz.b64", ("u64",), ("*",), "u32", lambda a: 64 - a.bit_length()),
    ("brev.b32", ("u32",), ("*",), "*", lambda a: int(f"{a:032b}"[::-1], 2)),
    ("brev.b64", ("u64",), ("*",), "*", lambda a: int(f"{a:064b}"[::-1], 2)),
]
RULES += [(f"mul.hi.{k}", (k,), ("*", "*"), "*", lambda a, b, w=WIDTHS[k]: a * b >> 8 * w) for k in INTS]
RULES += [
    (f"mul.wide.{k}", (k,), ("*", "*"), f"{k[0]}{16 * WIDTHS[k]}", operator.mul) for k in ("u16", "s16", "u32", "s32")
]
RULES += [
    (f"mad.wide.{k}", (k,), ("*", "*", f"{k[0]}64"), f"{k[0]}64", lambda a, b, c: a * b + c) for k in ("u32", "s32")
]
RULES += [
    (f"shl.b{8 * WIDTHS[k]}", (k,), ("*", "u32"), "*", lambda a, n: a << min(n, 64)) for k in ("u16", "u32", "u64")
]
RULES += [(f"shr.{k}", (k,), ("*", "u32"), "*", lambda a, n: a >> min(n, 64)) for k in INTS]
RULES += [(f"bfe.{k}", (k,), ("*", "u32", "u32"), "*", lambda a, b, c, k=k: extract(a, b, c, k)) for k in WORDS]
RULES += [
    (f"bfi.b{8 * WIDTHS[k]}", (k,), ("*", "*", "u32", "u32"), "*", lambda a, b, c, d, k=k: insert(a, b, c, d, k))
    for k in ("u32", "u64")
]
RULES += [(f"bfind.{k}", (k,), ("*",), "u32", lambda a, k=k: highest(a, k)) for k in WORDS]
ORDERS = {"eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge"}
RULES += [(f"setp.{order}.*", INTS, ("*", "*"), "pred", getattr(operator, name)) for order, name in ORDERS.items()]
RULES += [(f"setp.{o}.u32", ("u32",), ("*", "*"), "pred", getattr(operator, n)) for o, n in
          {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}.items()]  # fmt: skip
for table in (0x00, 0xE8, 0x96, 0xCA, 0x1B):

    def by_table(a: int, b: int, c: int, table: int = table) -> int:
        return sum((table >> ((a >> k & 1) * 4 + (b >> k & 1) * 2 + (c >> k & 1)) & 1) << k for k in range(32))

    RULES.append((f"lop3.b32 {table:#x}", ("u32",), ("*", "*", "*"), "*", by_table))
CASES = [
    (opcode.replace("*", kind), tuple(each.replace("*", kind) for each in kinds), result.replace("*", kind), meaning)
    for opcode, types, kinds, result, meaning in RULES
    for kind in types
]


@pytest.mark.parametrize(("opcode", "kinds", "result", "meaning"), CASES, ids=[case[0] for case in CASES])
@settings(QUICK, max_examples=2)
@given(data=st.data())
@pytest.mark.sampled(5)
def test_integer_instructions_compute_what_integers_do(opcode, kinds, result, meaning, data):
    rows = data.draw(st.lists(st.tuples(*(whole(kind) for kind in kinds)), min_size=20, max_size=20))
    operands = [np.array(column, NUMPY[kind]) for column, kind in zip(zip(*rows, strict=True), kinds, strict=True)]
    if " " in opcode:  # an immediate behind the operands
        opcode, table = opcode.split()
        text = text_of(opcode, kinds, result).replace("%v2;\nst", f"%v2, {table};\nst")
        found = np.zeros(len(rows), NUMPY[result])
        ptx.launch(ptx.load(text), "k", 1, len(rows), [*operands, found])
    else:
        found = evaluate(opcode, kinds, result, *operands)
    assert found.tolist() == [meaning(*row) if result == "pred" else wrap(meaning(*row), result) for row in rows]


@pytest.mark.parametrize("kind", INTS)
@settings(QUICK, max_examples=8)
@given(data=st.data())
def test_quotients_truncate(kind, data):
    rows = data.draw(st.lists(st.tuples(whole(kind), whole(kind).filter(bool)), min_size=8, max_size=8))
    a, b = (np.array(column, NUMPY[kind]) for column in zip(*rows, strict=True))
    quotients = [trunc_divide(x, y) for x, y in rows]
    assert evaluate(f"div.{kind}", (kind, kind), kind, a, b).tolist() == [wrap(each, kind) for each in quotients]
    rests = [x - y * q for (x, y), q in zip(rows, quotients, strict=True)]
    assert evaluate(f"rem.{kind}", (kind, kind), kind, a, b).tolist() == rests
