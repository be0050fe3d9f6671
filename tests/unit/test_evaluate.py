# ruff: noqa: F841 - the variables are named in texts
"""fusec.evaluate and its relatives take numexpr's calls, and mean by them what numexpr means."""

import gc
import math
import pickle
import sys
import threading
import weakref

import ml_dtypes
import numpy as np
import pytest

import fusec
from fusec.base.diagnostics import instance_of
from fusec.fusion import evaluate

CAPTURED = np.arange(4.0)


def test_names_come_from_the_caller_and_then_from_its_module():
    a, b = np.arange(4.0), 3
    assert np.array_equal(fusec.evaluate("a*b + CAPTURED"), a * 4)
    inner = lambda: fusec.evaluate("CAPTURED + 1")  # noqa: E731
    assert np.array_equal(inner(), CAPTURED + 1)


def test_dictionaries_replace_the_callers_names():
    a = np.arange(4.0)
    assert fusec.evaluate("a + 1", {"a": 2.0}) == 3
    assert fusec.evaluate("a + CAPTURED", {"a": 2.0}, {"CAPTURED": 5}) == 7
    assert np.array_equal(fusec.evaluate("a + CAPTURED", global_dict={"CAPTURED": 5}), np.arange(4.0) + 5)
    with pytest.raises(KeyError, match="'CAPTURED' is defined neither"):
        fusec.evaluate("a + CAPTURED", {"a": 2.0}, {})


def test_names_in_any_script_are_names():
    été, ﬁn, 数 = np.arange(3), 2, np.float32(1)  # the second is fin with a ligature, which Python takes for fin
    assert np.array_equal(fusec.evaluate("été*ﬁn + fin + 数"), été * fin + fin + 数)
    assert ﬁn == 2


def test_a_class_body_and_a_module_are_callers_too():
    namespace = {}
    exec("import fusec\nx = 2\nclass C:\n    y = 3\n    z = fusec.evaluate('x*y')\n    w = y\n", namespace)
    assert namespace["C"].z == 6
    assert namespace["C"].w == 3


def test_the_depth_of_the_caller_may_be_said():
    def helper(text):
        return fusec.evaluate(text, _frame_depth=4), fusec.validate("hidden + 1", _frame_depth=3)

    hidden = 5
    found, problem = helper("hidden * 2")
    assert found == 2 * hidden
    assert problem is None


def test_nothing_keeps_the_callers_variables_alive():
    def call():
        big = np.zeros(1000)
        gone = weakref.ref(big)
        out = np.zeros(1000)
        fusec.evaluate("big + 1", out=out)
        lost = weakref.ref(out)
        del big, out
        gc.collect()
        return gone(), lost(), len(sys._getframe().f_locals)

    assert call()[:2] == (None, None)


def test_a_dictionary_of_locals_stays_what_it_is():
    def call():
        a = 2
        mine = locals()
        assert fusec.evaluate("a + 1") == 3
        return mine, a

    assert call()[0]["a"] == 2


def test_repeated_calls_with_other_kinds_of_arguments_never_mix():
    for a in (
        np.arange(3.0),
        2.5,
        2,
        np.float32(3),
        np.arange(3, dtype="i2"),
        True,
        1j,
        np.arange(6.0)[::2],
        [1, 2, 3],
    ):
        for b in (np.arange(3, dtype="f4"), 0.5, np.int8(4)):
            for _ in range(3):
                found, wanted = fusec.evaluate("a*b + 1"), np.asarray(a) * b + 1
                assert np.array_equal(found, wanted)
    a = np.arange(3, dtype="f4")
    for b in (2, 2.5, True, 2, 2.5, np.float64(3), 2):
        for _ in range(3):
            assert fusec.evaluate("a + b").dtype == (a + b).dtype


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "e", "f", "d", "F", "D"])
@pytest.mark.sampled(3)
def test_every_dtype_keeps_itself(dtype):
    x = np.array([0, 1, 1, 0]).astype(dtype)
    assert fusec.evaluate("x").dtype == x.dtype
    assert fusec.evaluate("x + x").dtype == x.dtype
    assert np.array_equal(fusec.evaluate("x + x"), x + x)
    assert fusec.evaluate("x * 2").dtype == (x * 2).dtype
    assert fusec.evaluate("sum(x)").dtype == x.sum().dtype
    assert np.array_equal(fusec.evaluate("sum(x)"), x.sum())


def test_narrow_floats_of_ml_dtypes_are_dtypes():
    x = np.arange(4).astype(ml_dtypes.bfloat16)
    assert fusec.evaluate("x*x + 0.5").dtype == x.dtype
    assert np.array_equal(fusec.evaluate("x*x + 0.5"), (x.astype("f4") ** 2 + 0.5).astype(x.dtype))
    assert fusec.evaluate("float32(x)").dtype == np.float32


NARROW = [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]


@pytest.mark.parametrize("kind", [*NARROW, np.float32, np.float64, np.complex64])
@pytest.mark.parametrize("text", ["a / {}", "{} * a", "where(a == 3, a, {})", "sum(a * {})", "a + {} * float32(b)"])
def test_a_number_in_the_text_is_rounded_as_a_variable_is(kind, text):
    a, b, c = np.array([3.3, 1.7, 0.3, 100.3]).astype(kind), np.float32([1, 3, 5, 7]), 0.1
    names = {"a": a, "b": b, "c": c, "held": np.asarray(c).astype(kind)}
    found, wanted = (fusec.evaluate(text.format(number), names, {}) for number in ("0.1", "c"))
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found.astype("D"), wanted.astype("D"))
    if "float32" not in text:
        held = fusec.evaluate(text.format("held"), names, {})
        np.testing.assert_array_equal(found.astype("D"), held.astype("D"))


@pytest.mark.parametrize("text", ["a / 0.1", "a * 0.1", "a - 1e-5", "a + 2049", "a * 70000", "a > 0.3", "0.1 - a"])
def test_numbers_meet_float16_as_in_numpy(text):
    a = np.float16([3.3, 1.7, 0.3, 100.3, 1 + 1 / 1024])
    with np.errstate(over="ignore"):
        wanted = eval(text)
    np.testing.assert_array_equal(fusec.evaluate(text), wanted)
    np.testing.assert_array_equal(fusec.elementwise(f"def f(a):\n    return {text}\n")(a), wanted)
    np.testing.assert_array_equal(fusec.fuse(lambda a: eval(text))(a), wanted)


@pytest.mark.parametrize("kind", NARROW)
def test_a_number_used_with_two_dtypes_is_rounded_for_each(kind):
    a, b, c = np.array([3.25, 0.25, 100]).astype(kind), np.float32([1, 3, 5]), 0.1
    found = fusec.evaluate("float32(a / c) + b / c", {"a": a, "b": b, "c": c}, {})
    np.testing.assert_array_equal(found, fusec.evaluate("float32(a / 0.1) + b / 0.1", {"a": a, "b": b}, {}))


@pytest.mark.parametrize("kind", NARROW)
def test_infinity_stays_where_a_narrow_float_has_none(kind):
    a = np.array([3.25, 0.25, -100]).astype(kind)
    assert fusec.evaluate("a < inf", {"a": a, "inf": np.float32(np.inf)}, {}).all()
    found = fusec.elementwise("def f(a):\n    return a if a < math.inf else -a\n", names={"math": math})(a)
    np.testing.assert_array_equal(found, a)


def test_numbers_alone_give_arrays_without_axes_of_numexprs_types():
    for text, dtype in {"2": "i4", "2**31 - 1": "i4", "2**31": "i8", "2**40": "i8", "1.5": "f8", "1 == 1": "?"}.items():
        found = fusec.evaluate(text, {}, {})
        assert isinstance(found, np.ndarray)
        assert (found.dtype, found.shape) == (np.dtype(dtype), ())
        assert found == eval(text)
    a = np.uint32(42)
    assert fusec.evaluate("a - 43", {"a": a}) == -1
    assert fusec.evaluate("sum(a)", {"a": 3.0}) == 3


# --- out, casting, order --------------------------------------------------------------------------------------------


def test_out_receives_the_result_and_is_returned():
    a = np.arange(6.0)
    out = np.empty(6)
    for _ in range(4):
        assert fusec.evaluate("a*2", out=out) is out
        assert np.array_equal(out, a * 2)
    assert fusec.evaluate("a*2 + a", out=a) is a
    assert np.array_equal(a, np.arange(6.0) * 3)
    whole = np.zeros(3, "i4")
    fusec.evaluate("3", out=whole)
    assert np.array_equal(whole, [3, 3, 3])
    total = np.zeros(())
    assert fusec.evaluate("sum(a)", out=total) is total
    assert total == a.sum()


def test_out_of_another_dtype_is_a_question_of_the_rule():
    a = np.array([1.7, -2.2, 300])
    for rule, dtype in {"same_kind": "f4", "unsafe": "i4", "no": "f8", "safe": "D", "equiv": "f8"}.items():
        out = np.zeros(3, dtype)
        assert np.array_equal(fusec.evaluate("a + 0", out=out, casting=rule), a.astype(dtype))
    for rule, dtype in {"same_kind": "i4", "safe": "f4", "no": "f4", "equiv": "D"}.items():
        for _ in range(2):
            with pytest.raises(TypeError, match="Cannot cast the result from float64 to"):
                fusec.evaluate("a + 0", out=np.zeros(3, dtype), casting=rule)
    with pytest.raises(TypeError, match="Cannot cast"):
        fusec.evaluate("sum(a)", out=np.zeros((), "i4"))


def test_an_output_over_an_input_is_as_if_that_had_been_copied():
    x = np.arange(10.0)
    wanted = x[:-1] + x[1:]
    fusec.evaluate("a + b", {"a": x[:-1], "b": x[1:]}, out=x[1:])
    assert np.array_equal(x[1:], wanted)


def test_order_is_that_of_new_results():
    a = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    c = np.arange(6.0).reshape(2, 3)
    names = {"a": a, "c": c, "row": np.ones(3), "x": 2.5, "s": c[:, ::2]}
    for order, text, flag in [
        ("K", "a + 1", "F"), ("C", "a + 1", "C"), ("F", "c + 1", "F"), ("A", "a + 1", "F"), ("A", "a + c", "C"),
        ("A", "c + 1", "C"), ("K", "c + 1", "C"), ("F", "a*x", "F"), ("C", "a + row", "C"), ("F", "c + row", "F"),
        ("C", "s + x", "C"), ("F", "s + 1", "F"), ("A", "row*x", "C"),
    ]:  # fmt: skip
        for _ in range(3):  # the last is a call like one before
            found = fusec.evaluate(text, names, order=order)
            assert found.flags[f"{flag}_CONTIGUOUS"]
            assert np.array_equal(found, eval(text, names.copy()))


def test_what_was_computed_for_some_operands_is_not_taken_for_others():
    array = np.ones(2, "u4")
    for order in "CF":
        for x, dtype in [
            ([1, 2], "i8"), ([1.5, 2], "f8"), (np.uint32(3), "i8"), (array, "u4"), (array[::2], "u4"), (3.5, "f8"),
        ]:  # fmt: skip
            for _ in range(2):
                assert fusec.evaluate("x + 1", {"x": x}, order=order).dtype == dtype
    for x, wanted in [(np.array([1]), True), (np.array([1.5]), False), ([1], True), ([1.5], False)]:
        try:
            fusec.evaluate("x + 1", {"x": x}, out=np.zeros(1, "i8"))
        except TypeError:
            assert not wanted
        else:
            assert wanted


def test_options_that_there_are_not_are_refused():
    a = 1.0
    for wrong in ({"order": "X"}, {"casting": "maybe"}, {"optimization": "full"}, {"truediv": 3}, {"speed": 1}):
        with pytest.raises(ValueError, match=r"order|casting|must be one of|Unknown keyword"):
            fusec.evaluate("a", **wrong)
    assert fusec.evaluate("a", sanitize=False, truediv="auto", optimization="none", disable_cache=True) == 1


def test_operands_are_what_asarray_makes_arrays_of():
    a = [1, 2, 3]
    swapped = np.arange(3, dtype=">f8")
    record = np.zeros(3, [("x", "f4"), ("y", "i2")])
    record["y"] = 7
    y = record["y"]
    assert np.array_equal(fusec.evaluate("a + swapped + y"), [8, 10, 12])


def test_text_is_refused_by_name():
    for a in ("text", b"text", np.array(["a"]), np.array([b"a"]), np.str_("a")):
        with pytest.raises(TypeError, match="'a' is text: fusec computes with numbers only"):
            fusec.evaluate("a == a", {"a": a})
    with pytest.raises(TypeError, match="objects cannot be computed on"):
        fusec.evaluate("a", {"a": np.array([None])})


def test_functions_under_other_names_are_told_by_ours():
    for text, name in (("ln(a)", "log"), ("sqtr(a)", "sqrt"), ("sgn(a)", "sign")):
        assert f"did you mean '{name}'?" in str(fusec.validate(text, {"a": np.ones(3)}, {}))


# --- validate, re_evaluate, NumExpr ----------------------------------------------------------------------------------


def test_validate_returns_what_evaluate_would_raise():
    a, i = np.arange(3.0), np.arange(3)
    names = {"a": a, "i": i}
    for text in ("a +", "zz", "i & a", "i ** -1", "sum(a, axis=1)", "a.T", "sin(a, a)", "a < a < a", "i << 1.5"):
        problem = fusec.validate(text, names, {})
        with pytest.raises(type(problem)) as caught:
            fusec.evaluate(text, names, {})
        assert str(caught.value) == str(problem)
    assert fusec.validate("a + sum(sum(a*i, axis=0) + a, axis=0)") is None
    assert isinstance(fusec.validate("a", names, {}, out=np.zeros(3, "i4")), TypeError)


def test_re_evaluate_repeats_with_what_names_are_now():
    a = np.arange(3.0)
    fusec.evaluate("a*2 + sum(a)")
    a = np.arange(4.0)
    assert np.array_equal(fusec.re_evaluate(), a * 2 + a.sum())
    assert fusec.re_evaluate({"a": 1.0}) == 3
    out = np.zeros(4)
    assert fusec.validate("a + 1", out=out, casting="same_kind") is None
    assert fusec.re_evaluate() is out
    assert np.array_equal(out, a + 1)
    fusec.evaluate("a*3", disable_cache=True)
    assert fusec.re_evaluate() is out


def test_every_thread_has_an_expression_of_its_own():
    seen = {}

    def work(number):
        try:
            fusec.re_evaluate({})
        except RuntimeError as problem:
            seen[number] = [str(problem)]
        fusec.validate(f"a*{number}", {"a": 1.0})
        barrier.wait()
        seen[number].append(float(fusec.re_evaluate({"a": 10.0})))

    barrier = threading.Barrier(6)
    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for number in range(6):
        assert "has not evaluated" in seen[number][0]
        assert seen[number][1] == 10 * number


def test_threads_that_evaluate_the_same_text_agree():
    a, wanted, wrong = np.arange(1000.0), np.arange(1000.0) ** 2 / 7, []

    def work():
        for at in range(20):
            operand = a if at % 2 else a.astype("f4")
            found = fusec.evaluate("a*a / 7 + 0*1", {"a": operand})
            if not np.allclose(found, wanted, rtol=1e-6) or found.dtype != operand.dtype:
                wrong.append(at)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong


def test_a_compiled_expression_has_fixed_types():
    found = fusec.NumExpr("2.0*a + 3*c", [("c", np.float64), ("a", np.float32)])
    assert found.input_names == ("c", "a")
    assert sorted(found.constants) == [2.0, 3]
    assert np.array_equal(found(np.arange(3), np.ones(3, "f4")), [2, 5, 8])
    assert found(1, np.float32(2)) == found.run(1, np.float32(2)) == 7
    for size in (3, 3, 4):
        wanted = np.arange(size) * 3.0 + 2
        assert np.array_equal(found(np.arange(size) * 1.0, np.ones(size, "f4")), wanted)
        assert found(np.arange(size) * 1.0, np.ones(size, "f4"), out=wanted, order="C") is wanted
    with pytest.raises(TypeError, match="Cannot cast 'a' from float64 to float32 according to the rule 'safe'"):
        found(1.0, np.arange(3.0))
    assert np.array_equal(found(1.0, np.arange(3.0), casting="same_kind"), [3, 5, 7])
    with pytest.raises(TypeError, match="takes 2 argument"):
        found(1.0)
    with pytest.raises(ValueError, match=r"the signature names .*, and the expression reads"):
        fusec.NumExpr("a + b", [("a", float)])
    assert fusec.NumExpr("b - a")(np.arange(3), 1).dtype == np.float64
    assert pickle.loads(pickle.dumps(found))(1, np.float32(2)) == 7
    assert repr(found) == "<fusec.NumExpr '2.0*a + 3*c', (c, a)>"


def test_the_texts_that_are_kept_have_a_bound():
    for number in range(evaluate.MAX_KNOWN + 10):
        fusec.validate(f"a + {number}", {"a": 1}, {})
    assert evaluate._known.cache_info().currsize <= evaluate.MAX_KNOWN


# --- functions -------------------------------------------------------------------------------------------------------


def test_functions_of_numexpr_alone():
    x, k = np.arange(4, dtype="f4"), np.arange(4)
    assert np.array_equal(fusec.evaluate("copy(x)"), x)
    assert np.array_equal(fusec.evaluate("ones_like(x*2)"), np.ones(4))
    assert fusec.evaluate("ones_like(x)").dtype == x.dtype
    assert np.array_equal(fusec.evaluate("complex(x, k)"), x + 1j * k)
    assert fusec.evaluate("complex(x, x)").dtype == np.complex64
    assert fusec.evaluate("complex(1, 2)") == 1 + 2j
    assert np.array_equal(fusec.evaluate("complex(x, 1).imag + real(1j*x) + imag(2j*k)"), 1 + 2 * k)


def test_conversions_go_by_the_names_of_dtypes():
    x = np.array([1.9, -1.9])
    for name in ("int8", "uint16", "float16", "float32", "complex64", "bool", "int", "float"):
        wanted = {"int": np.int64, "float": np.float64, "uint16": np.uint16}.get(name, getattr(np, name, None))
        assert fusec.evaluate(f"{name}(abs(x))").dtype == wanted
    assert np.array_equal(fusec.evaluate("int32(x)"), [1, -1])


def test_a_variable_may_be_called_like_a_function_or_a_type():
    sin, sum, float32, out = 2.0, np.arange(3), 5, 1  # noqa: A001
    assert np.array_equal(fusec.evaluate("sin(sum) + sin + float32(sum(sum)) + float32 + out"), np.sin(sum) + 11)


def test_texts_may_have_many_lines_and_comments():
    a = 2.0
    assert (
        fusec.evaluate("""
        a + 1   # one more
          - 3*a
    """)
        == a + 1 - 3 * a
    )


def test_long_sums_are_no_nesting():
    a = np.arange(3.0)
    assert np.array_equal(fusec.evaluate(" + ".join(["a"] * 500)), a * 500)


def test_an_error_while_typing_points_into_the_text():
    with pytest.raises(TypeError) as caught:
        fusec.evaluate("2*x +\n x & 1", {"x": 1.5})
    assert caught.value.span.text == "&"
    assert caught.value.span.line == 2


def test_small_powers_are_products_unless_told_otherwise():
    x = np.linspace(-3, 3, 50)
    assert np.array_equal(fusec.evaluate("x**3"), x * x * x)
    assert np.array_equal(fusec.evaluate("x**4"), (x * x) * (x * x))
    for optimization in ("none", "moderate", "aggressive"):
        np.testing.assert_allclose(fusec.evaluate("x**3", optimization=optimization), x**3, rtol=1e-15)
    assert np.array_equal(fusec.evaluate("x/3.0"), x / 3.0)


def test_a_compiled_expression_shows_its_kernel_for_every_target():
    found = fusec.NumExpr("exp(-a*b) + 数", [("a", "float32"), ("b", "float32"), ("数", "float32")])
    assert "const float* a_data" in found.source("cuda")
    for target in ("metal", "llvm", "ir"):
        assert "evaluate" in found.source(target)
    text = fusec.NumExpr("a/sum(a)").source(shape=(8,))  # two kernels of one name
    assert text.startswith("// evaluate: 2 launches in this order")
    assert "evaluate_1(" in text
    assert "evaluate_2(" in text
    with pytest.raises(ValueError, match="takes no types="):
        fusec.NumExpr("2*a").source("cuda", {"a": "float32"})


@pytest.mark.parametrize("given", [[1], (1, 2), "ab", 5, np.arange(3)], ids=repr)
@pytest.mark.parametrize("text", ["a", "a + b"])
def test_names_are_looked_up_in_dicts_alone(text, given):
    a, b = np.arange(3.0), np.arange(3.0)
    shown = instance_of(given)
    with pytest.raises(fusec.FusecError, match=rf"local_dict= must be a dict, not {shown} \[F507\]"):
        fusec.evaluate(text, local_dict=given)
    with pytest.raises(fusec.FusecError, match=rf"global_dict= must be a dict, not {shown} \[F507\]"):
        fusec.evaluate(text.replace("a", "not_here"), global_dict=given)
    assert (fusec.evaluate(text, local_dict={"a": a, "b": b}) == (a if text == "a" else a + b)).all()


def test_unknown_functions_name_the_page_that_lists_them():
    with pytest.raises(fusec.FusecError, match=r"docs/evaluate\.md and docs/python\.md list the functions"):
        fusec.evaluate("qqqqqqqqq(1)")


@pytest.mark.parametrize(
    ("text", "cure"),
    [
        ("x.sum()", "write sum(x)"),
        ("(x + 1).sum(axis=0)", "write sum((x + 1), axis=0)"),
        ("np.sin(x)", "write sin(x)"),
        ("numpy.maximum(x, 2*x) + 1", "write maximum(x, 2*x)"),
        ("x.mean()", "write sum(x) / n, where n is the number of elements"),
        ("np.linalg.nrom(x)", "docs/evaluate.md and docs/python.md list the functions"),
        ("np.sqtr(x)", "did you mean 'sqrt'?"),
        (f"sum({'x + ' * 20}x) + ({'x + ' * 20}x).sum()", "write sum(x)"),
        ("sin(x)(x)", "e.g. sin(x)"),
    ],
)
def test_methods_and_functions_of_modules_are_told_by_their_plain_names(text, cure):
    problem = fusec.validate(text, {"x": np.ones(3)}, {})
    assert problem.code == "F500"
    assert problem.hint == cure


@pytest.mark.parametrize("name", ["var", "std"])
def test_the_cure_for_a_moment_is_an_expression_with_its_value(name):
    names = {"x": np.array([1.0, 2.0, 4.0]), "n": 3}
    cure = fusec.validate(f"{name}(x)", names, {}).hint.removeprefix("write ").partition(", where")[0]
    assert np.isclose(fusec.evaluate(cure, names, {}), getattr(np, name)(names["x"]))


def test_a_misspelt_keyword_is_told_with_what_is_meant_and_what_there_is():
    x = np.ones(3)
    problem = fusec.validate("x*2", {"x": x}, castng="safe")
    assert str(problem).startswith("Unknown keyword argument 'castng'")
    listed = "a call takes out=, order=, casting=, check=, optimization= and truediv="
    assert problem.hint == f"did you mean 'casting'? {listed}"
    with pytest.raises(fusec.FusecValueError, match="did you mean 'optimization'"):
        fusec.evaluate("x*2", {"x": x}, optimisation="none")
    with pytest.raises(fusec.FusecValueError, match="expressions give the bits of fp="):
        fusec.evaluate("x*2", {"x": x}, fp="fast")
    with pytest.raises(fusec.FusecValueError) as raised:
        fusec.NumExpr("x*2", signatur=[("x", float)])
    assert raised.value.hint.startswith("did you mean 'signature'? a call takes signature=, check=")


def test_a_mean_is_refused_with_the_sum_to_write():
    with pytest.raises(fusec.FusecError, match=r"write sum\(x\) / n, where n is the number of elements"):
        fusec.evaluate("mean(x)", {"x": np.ones(3)})


@pytest.mark.parametrize(
    ("text", "what", "cure"),
    [
        ("a<b<1", "a chain of comparisons", "(a < b) & (b < 1)"),
        ("a+1 <\n (b|c) <= a != 3  # all", "a chain of comparisons", "(a+1 < (b|c)) & ((b|c) <= a) & (a != 3)"),
        ("a | b and c", "'and'", "(a | b) & (c)"),
        ("a and b < c < 1 or c or (a or b)", "'or'", "((a) & ((b < c) & (c < 1))) | (c) | ((a) | (b))"),
        ("a < # less\n b < c", "a chain of comparisons", "(a < b) & (b < c)"),
        ("+".join(["a"] * 100) + " < b < c", "a chain of comparisons", "(a < x) & (x < b)"),
        (" or ".join(["a"] * 1500), "'or'", "(a < x) | (x < b)"),
    ],
    ids=range(7),
)
def test_conditions_are_combined_by_element_in_the_words_of_the_text(text, what, cure):
    with pytest.raises(fusec.FusecTypeError, match="would need one truth value") as raised:
        fusec.evaluate(text, {"a": 1, "b": 2, "c": 3})
    assert str(raised.value).startswith(what)
    assert raised.value.hint == f"write {cure}"
