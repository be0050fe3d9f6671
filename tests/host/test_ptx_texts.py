"""The PTX interpreter on texts written by hand: registers without values, jumps, predicates, mistakes."""

import numpy as np
import ptx
import pytest
from ptx_evaluate import HEAD

TEXT = (
    HEAD
    + """.visible .entry k(.param .u64 out) { .reg .b32 %%r<9>; .reg .b64 %%d<5>; .reg .pred %%p<3>;
ld.param.u64 %%d0, [out]; mov.u32 %%r0, %%tid.x; mad.wide.u32 %%d1, %%r0, 4, %%d0;
%s
ret; }"""
)


def run(body: str, threads: int = 8) -> list[int]:
    out = np.zeros(threads, np.int32)
    ptx.launch(ptx.load(TEXT % body), "k", 1, threads, [out])
    return out.tolist()


def test_a_register_nobody_wrote_is_found():
    with pytest.raises(ptx.Uninitialised, match=r"line 6: add\.s32 %r1, %r2, 1;"):
        run("add.s32 %r1, %r2, 1;\nst.global.u32 [%d1], %r1;")
    some = "setp.lt.u32 %p0, %r0, 5;\n@%p0 mov.u32 %r2, 3;\n{};\nst.global.u32 [%d1], %r1;"
    with pytest.raises(ptx.Uninitialised, match="selp"):
        run(some.format("selp.b32 %r1, %r2, 7, %p0"))
    with pytest.raises(ptx.Uninitialised, match=r"st\.global"):
        run(some.format("mov.b32 %r1, %r2"))  # a copy alone is not yet a use
    assert run(some.format("mov.u32 %r1, 7;\n@%p0 add.s32 %r1, %r2, 1")) == [4] * 5 + [7] * 3


def test_a_copy_of_no_value_by_some_threads_leaves_them_without_one():
    body = "mov.u32 %r1, 1; setp.lt.u32 %p0, %r0, 5;\n@%p0 mov.b32 %r1, %r2;\n{} st.global.u32 [%d1], %r1;"
    with pytest.raises(ptx.Uninitialised, match="line 8"):
        run(body.format(""))
    assert run(body.format("@%p0 mov.u32 %r1, 3;\n")) == [3] * 5 + [1] * 3


def test_copies_stay_when_some_threads_change_the_original():
    body = "mov.u32 %r1, 1; setp.lt.u32 %p0, %r0, 5;\n@%p0 mov.u32 %r1, 2;\nmov.b32 %r2, %r1;\n"
    body += "@!%p0 mov.u32 %r1, 9;\n@%p0 add.u32 %r2, %r2, %r1;\nst.global.u32 [%d1], %r2;"
    assert run(body) == [4] * 5 + [1] * 3


def test_narrow_signed_values_fill_a_wider_register_with_their_sign():
    body = "add.s32 %r1, %r0, 125; cvt.s8.s32 %r2, %r1; cvt.u8.s32 %r3, %r1; sub.s32 %r2, %r3, %r2;\n"
    assert run(body + "st.global.u32 [%d1], %r2;") == [0] * 3 + [256] * 5
    loads = "sub.s32 %r1, %r0, 3; st.global.s32 [%d1], %r1; ld.global.s16 %r2, [%d1]; ld.global.u16 %r3, [%d1];\n"
    assert run(loads + "add.s32 %r2, %r2, %r3; st.global.u32 [%d1], %r2;") == [65530, 65532, 65534, 0, 2, 4, 6, 8]


def test_jumps_through_tables_and_guards_take_each_thread_its_way():
    table = "$T: .branchtargets $A, $B, $C;\nand.b32 %r1, %r0, 1; setp.eq.u32 %p1, %r0, 6; selp.b32 %r1, 2, %r1, %p1;"
    body = (
        "\nbrx.idx %r1, $T;\n$A: mov.u32 %r2, 10; bra.uni $E;\n$B: mov.u32 %r2, 20; bra.uni $E;\n$C: mov.u32 %r2, 30;"
    )
    end = "\n$E: setp.eq.u32 %p2, %r0, 3;\n@%p2 ret;\n@!%p1 add.s32 %r2, %r2, 1;\nst.global.u32 [%d1], %r2;"
    assert run(table + body + end) == [11, 21, 11, 0, 11, 21, 30, 21]


def test_loops_end_for_each_thread_in_its_own_time():
    body = "mov.u32 %r1, 0; mov.u32 %r2, 0;\n$L: add.s32 %r2, %r2, %r1; add.s32 %r1, %r1, 1;\n"
    assert run(body + "setp.le.u32 %p0, %r1, %r0;\n@%p0 bra $L;\nst.global.u32 [%d1], %r2;") == [
        n * (n + 1) // 2 for n in range(8)
    ]


def test_predicates_combine_and_come_in_pairs():
    body = "setp.lt.u32 %p0, %r0, 6; setp.gt.and.u32 %p1|%p2, %r0, 2, %p0;\n"
    body += "selp.b32 %r1, 1, 0, %p1; selp.b32 %r2, 2, 0, %p2;"
    assert run(body + "\nor.b32 %r1, %r1, %r2; st.global.u32 [%d1], %r1;") == [2, 2, 2, 1, 1, 1, 0, 0]


@pytest.mark.parametrize("text", ["frobnicate.b32 %r1, %r0;", "add.s32 %r1, %r0;", "bfe.q32 %r1, %r0, 1, 2;"])
def test_what_is_not_understood_is_refused_with_its_line(text):
    with pytest.raises(ptx.Unsupported, match="in k, line 6"):
        run(text)


@pytest.mark.parametrize("name", ["add", "sub"])
def test_carries_run_through_three_words(name):
    loads = "".join(
        f"ld.param.u64 %d{at}, [p{at}]; mad.wide.u32 %d{at}, %t, 12, %d{at};\n" for at in range(3)
    ) + "".join(f"ld.global.u32 %{'ab'[at]}{word}, [%d{at}+{4 * word}];\n" for at in range(2) for word in range(3))
    sums = f"{name}.cc.u32 %c0, %a0, %b0; {name}c.cc.u32 %c1, %a1, %b1; {name}c.u32 %c2, %a2, %b2;\n"
    stores = "".join(f"st.global.u32 [%d2+{4 * word}], %c{word};\n" for word in range(3))
    registers = (
        ".reg .b32 %a<3>; .reg .b32 %b<3>; .reg .b32 %c<3>; .reg .b32 %t; .reg .b64 %d<3>; mov.u32 %t, %tid.x;\n"
    )
    params = ".param .u64 p0, .param .u64 p1, .param .u64 p2"
    module = ptx.load(f"{HEAD}.visible .entry k({params}) {{ {registers}{loads}{sums}{stores}ret; }}")
    words = np.array([0, 1, 2**32 - 1, 2**32 - 2, 2**31], np.uint32)
    a, b = (np.random.default_rng(seed).choice(words, (200, 3)) for seed in (1, 2))
    c = np.zeros_like(a)
    ptx.launch(module, "k", 1, 200, [a, b, c])
    for x, y, z in zip(a.tolist(), b.tolist(), c.tolist(), strict=True):
        whole = [sum(word << 32 * at for at, word in enumerate(row)) for row in (x, y, z)]
        expected = whole[0] + whole[1] if name == "add" else whole[0] - whole[1]
        assert whole[2] == expected % 2**96
