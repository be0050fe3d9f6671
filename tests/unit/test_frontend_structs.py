"""Structs with constructors and functions, enumerations, loops over values and functions of raw arrays, as in C++."""

import numpy as np
import pytest

import fusec
from fusec.errors import FusecError
from tests.unit.test_frontend_semantics import run, value

PAIR = "struct pair { float a; int b; };"


def number(body: str, preamble: str = "", **inputs: object) -> float:
    """What the statements leave in z, a float64."""
    given = {name: np.asarray([each]) for name, each in inputs.items()}
    result = np.zeros(1)
    params = ", ".join(f"{array.dtype} {name}" for name, array in given.items())
    run(params, "float64 z", body, given, {"z": result}, preamble=preamble)
    return result[0]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("counter c; z = c.n;", -1),
        ("counter c(5); z = c.n * 10 + c.step;", 52),
        ("counter c{5, 3}; z = c.n * 10 + c.step;", 53),
        ("counter c = 7; z = c.n;", 7),
        ("counter c = {1, 4}; z = c.step;", 4),
        ("counter c = counter(1, 9); z = c.step;", 9),
        ("z = counter(3).n + counter{2, 5}.step + counter().n;", 7),
        ("counter c(1); c = counter(c.n + 1, 6); z = c.n * 10 + c.step;", 26),
        ("counter c(1); c = 4; z = c.n;", 4),
        ("counter c(1); counter d = c; d.n = 8; z = c.n * 10 + d.n;", 18),
        ("counter c(1); c.add(); c.add(); z = c.n;", 5),
        ("counter c(1); z = c.add() * 100 + c.n;", 303),
        ("counter c(2); z = c.twice() + c.sum(counter(5));", 11),
        ("counter c(2); z = c.again().n;", 4),
        ("counter c(1, 1); bump(c, 4); bump(&c, 3); z = c.n;", 8),
        ("counter c(1), d(2); swap(c, d); z = c.n * 10 + d.n;", 21),
        ("counter c(1); both(c, c); z = c.n;", 4),
        ("counter c(6); z = total(c) + total(9);", 15),
        ("z = counter::make(3).n + counter::LIMIT + counter::base;", 3 + 10 + 100),
        ("const counter c(3); z = c.twice() + c.n;", 9),
        ("counter c(3); counter& r = c; r.n = 5; r.add(); z = c.n;", 7),
        ("counter c(3); int& n = c.n; n = 12; z = c.n;", 12),
        ("counter c(3); inc(c.n); inc2(&c.n); z = c.n;", 6),
        ("counter c(1); for (int k = 0; k < 4; ++k) if (k != 2) c.add(); z = c.n;", 7),
        ("z = (true ? counter(4) : counter(5)).n;", 4),
        ("copied c(3); z = c.n + c.m;", 9),
        ("early c(-1); z = c.n; early d(2); z += d.n * 10;", 199),
    ],
)
def test_constructors_and_functions_of_structs(body, expected):
    preamble = """
    struct counter {
        static constexpr int base = 100;
        enum { LIMIT = 10 };
        int n;
        int step = 2;
        __device__ counter() : n(-1) { }
        __device__ explicit counter(int v) : n(v) { }
        __device__ counter(int v, int s) : n(v), step{s} { }
        __device__ int add() { n += step; return this->n; }
        __device__ int twice() const { return 2 * n; }
        __device__ int sum(const counter& other) const { return twice() + other.n - this->n; }
        __device__ counter& unused(counter& c);
        __device__ counter again() { counter old(*this); add(); return *this; }
        static __device__ counter make(int v) { return counter(v); }
    };
    struct copied { int n; int m; copied(int v) : copied(v, 2 * v) {} copied(int n, int m) : n(n), m(m) { } };
    struct early { int n; early(int v) : n(v) { if (v < 0) { n = 99; return; } n *= 5; } };
    __device__ void bump(counter& c, int by) { c.n += by; }
    __device__ void bump(counter* c, int by) { c->n += by; (*c).step = 7; }
    __device__ void swap(counter& a, counter& b) { counter t = a; a = b; b = t; }
    __device__ void both(counter& a, const counter& b) { a.n = 4; a.n = b.n; }
    __device__ int total(const counter& c) { return c.n; }
    __device__ void inc(int& v) { v += 1; }
    __device__ void inc2(int* v) { *v += 2; }
    """
    assert number(body, preamble) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("pair p = {1.5f, 2}; z = p.a * p.b;", 3),
        ("pair p = {1.5f}; z = p.b;", 0),
        ("line l = {{1, 2}, {3, 4}, 5}; z = l.from.a + l.to.b * 10 + l.w * 100;", 541),
        ("line l; l.from.a = 2; l.to = l.from; l.to.b = 7; z = l.to.a * 10 + l.to.b + l.from.b;", 27),
        ("pair p = {4, 5}; line l = {p, {1, 1}}; z = l.from.b + l.w;", 8),
        ("line l = {}; z = l.w + l.to.a;", 3),
        ("line l{{1, 2}, {3, 4}}; pair q = l.to; q.a = 9; z = l.to.a * 10 + q.a;", 39),
        ("line l; deep d = {l, 3}; d.l.to.a = 6; z = d.l.to.a + d.k;", 9),
        ("line l; set(l.from); set(l.to); z = l.from.b + l.to.b;", 84),
        ("point p = {1, 2}; inner q = {3}; z = p.y + q.v + p.in.v;", 5),
        ("outer o; o.child.v = 4; outer::child_t c = o.child; z = c.v + o.d;", 5.5),
    ],
)
def test_structs_hold_structs(body, expected):
    preamble = (
        PAIR
        + """
    struct line { pair from, to; float w = 3; };
    struct deep { line l; int k; };
    typedef struct inner_s { float v; } inner;
    typedef struct { float x, y; inner in; } point;
    struct outer { struct child_t { float v; } child; double d = 1.5; };
    __device__ void set(pair& p) { p.b = 42; }
    """
    )
    assert number(body, preamble) == expected


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "float16", "uint8"])
@pytest.mark.parametrize(("name", "best"), [("my_argmax", np.argmax), ("my_argmin", np.argmin)])
@pytest.mark.sampled(3)
def test_reductions_with_a_struct_template_of_value_and_index(dtype, name, best):
    """The struct has the shape of the one that CuPy's own extremes have."""
    sign = ">=" if name == "my_argmax" else "<="
    preamble = f"""
    template <typename T>
    struct found_st {{
        T value;
        IndexT index;
        __device__ found_st() : index(-1) {{ }}
        __device__ found_st(T v) : value(v), index(0) {{ }}
        __device__ found_st(T v, IndexT(i)) : value(v), index(i) {{ }}
    }};
    template <typename T>
    __device__ found_st<T> {name}(const found_st<T>& a, const found_st<T>& b) {{
        if (a.index == -1) return b;
        if (b.index == -1) return a;
        if (a.value == b.value) return found_st<T>(a.value, min(a.index, b.index));
        return (a.value {sign} b.value) ? a : b;
    }}
    """
    kernel = fusec.ReductionKernel(
        "T x", "int64 y", "found_st<T>(x, _J)", f"{name}(a, b)", "y = a.index", "", "find",
        "found_st<T>", preamble=preamble,
    )  # fmt: skip
    x = np.random.default_rng(3).integers(0, 50, (40, 30)).astype(dtype)
    assert np.array_equal(kernel(x, axis=1), best(x, axis=1))
    assert np.array_equal(kernel(x, axis=0), best(x, axis=0))
    assert kernel(x) == best(x)


def test_a_struct_template_may_hold_a_typedef_and_count():
    preamble = """
    template <typename T>
    struct mean_st {
        typedef long long ll;
        T value;
        ll count;
        __device__ mean_st() : value(0), count(0) { }
        __device__ mean_st(T v) :
            value(isnan(v) ? T(0) : v), count(isnan(v) ? 0 : 1) { }
        __device__ mean_st(T v, ll c) : value(v), count(c) { }
    };
    template <typename T>
    __device__ mean_st<T> join(const mean_st<T>& a, const mean_st<T>& b) {
        return mean_st<T>(a.value + b.value, a.count + b.count);
    }
    """
    kernel = fusec.ReductionKernel(
        "T x", "T y", "x", "join(a, b)", "y = a.value / T(a.count)", "mean_st<T>()", "mean", "mean_st<T>",
        preamble=preamble,
    )  # fmt: skip
    x = np.arange(12.0).reshape(3, 4)
    x[1, 2] = np.nan
    assert np.array_equal(kernel(x, axis=1), np.nanmean(x, axis=1))


def test_templates_of_structs_with_values_and_defaults():
    preamble = """
    template<typename T, int N = 2> struct scaled {
        T v;
        template<typename U> __device__ scaled(U u) : v(u * N) { }
        template<typename U> __device__ U as(U sample) const { return U(v) + sample; }
    };
    template<typename T, int N> __device__ T open(scaled<T, N> s) { return s.v + N; }
    typedef scaled<float, 5> five;
    """
    assert number("scaled<float> s(3); z = open(s);", preamble) == 8
    assert number("five s(3.5); z = open(s) + s.as(0.25);", preamble) == 22.5 + 17.75
    assert number("scaled<int, 3> s(x); z = s.v;", preamble, x=1.75) == 5


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("z = GREEN * 10 + BLUE;", 76),
        ("color c = RED; switch (c) { case RED: z = 1; break; case GREEN: z = 2; break; default: z = 3; }", 1),
        ("enum color c = color::BLUE; z = c;", 6),
        ("z = int(mode::fast) + (int)mode::slow;", 4),
        ("mode m = mode::slow; z = m == mode::slow;", 1),
        ("enum { A = 3, B = A * 2 }; int v[B] = {1, 2}; z = v[1] + B;", 8),
        ("enum local { L1 = 1 << 4, L2 }; z = L2;", 17),
        ("int v[COUNT] = {4}; z = v[0] + COUNT;", 7),
        ("z = small::big;", -1),
        ("z = kind();", 7),
    ],
)
def test_enumerations(body, expected):
    preamble = """
    enum color { RED, GREEN = 7, BLUE = GREEN - 1, };
    enum class mode : unsigned char { fast = 1, slow = 3 };
    enum small : signed char { big = 255 };
    typedef enum { ONE = 1, COUNT = 3 } counts;
    __device__ color kind() { return GREEN; }
    """
    assert number(body, preamble) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("int v[] = {1, 2, 3}; z = 0; for (int k : v) z = z * 10 + k;", 123),
        ("float v[3] = {1, 2, 3}; for (auto& k : v) k *= 2; z = v[0] + v[1] * 10 + v[2] * 100;", 642),
        ("float v[3] = {1, 2, 3}; for (auto k : v) k *= 2; z = v[2];", 3),
        ("z = 0; for (const auto& k : TABLE) { if (k == 4) continue; if (k > 8) break; z += k; }", 2 + 8),
        ("z = 0; for (double k : {0.5, 1.5, 2.0}) z += k;", 4),
        ("z = 0; for (auto a : {1, 2}) for (auto b : {10, 20, 30}) z += a * b;", 180),
        ("z = first(2);", 2),
        ("int v[2] = {5, 6}; int k = 1; for (int k : v) z = k; z = z * 10 + k;", 61),
    ],
)
def test_loops_over_values(body, expected):
    preamble = """__constant__ int TABLE[] = {2, 4, 8, 16};
    __device__ int first(int v) { for (int t : TABLE) if (t >= v) return t; return 0; }
    """
    assert number(body, preamble) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("float4 v = make_float4(1, 2, 3, 4); z = v.x + v.y * 10 + v.z * 100 + v.w * 1000;", 4321),
        ("int2 v = make_int2(2.9, -3.9); z = v.x * 10 + v.y;", 17),
        ("uchar3 v = make_uchar3(255, 256, 257); z = v.x + v.y + v.z;", 256),
        ("double2 v = {1.5, 2}; v.x += 0.25; z = v.x * v.y;", 3.5),
        ("longlong1 v = make_longlong1(1LL << 40); z = v.x;", 2.0**40),
        ("float3 v = cross(make_float3(1, 0, 0), float3{0, 1, 0}); z = v.z;", 1),
        ("float3 v; v.y = 2; scale(v, 3); z = v.y;", 6),
    ],
)
def test_vector_types_of_cuda(body, expected):
    preamble = """
    __device__ float3 cross(float3 a, const float3& b) {
        return make_float3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
    }
    __device__ void scale(float3& v, float by) { v.x *= by; v.y *= by; v.z *= by; }
    """
    assert number(body, preamble) == expected


def test_a_preamble_has_its_own_vector_type():
    preamble = "struct float2 { float x, y, z; }; __device__ float2 make_float2(float a) { return float2{a, a, 5}; }"
    assert number("float2 v = make_float2(2); z = v.x + v.z;", preamble) == 7


@pytest.mark.parametrize("links", [41, 57, 58, 300])
def test_long_chains_of_else_if(links):
    chain = " else ".join(f"if (x == {k}) y = {k * k};" for k in range(links))
    x = np.arange(-2, links + 2)
    y = np.full(x.shape, -1)
    run("int64 x", "int64 y", f"y = 0; {chain} else y = -7;", {"x": x}, {"y": y})
    assert np.array_equal(y, np.where((x >= 0) & (x < links), x * x, -7))


def test_a_long_chain_evaluates_a_condition_only_where_those_before_it_failed():
    chain = " else ".join(f"if (k++ == {links}) y = k;" if links % 9 else "if (k > x) y = -k;" for links in range(100))
    x = np.arange(40)
    y = np.zeros(40, int)
    run("int64 x", "int64 y", f"int k = 0; {chain} y += 1000 * k;", {"x": x}, {"y": y})

    def expected(x: int) -> int:
        k = 0
        for link in range(100):
            if link % 9:
                k += 1
                if k - 1 == link:
                    return k + 1000 * k
            elif k > x:
                return -k + 1000 * k
        return 1000 * k

    assert y.tolist() == [expected(each) for each in range(40)]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("last(a)", lambda a, i: a[-1]),
        ("at(a, i)", lambda a, i: a[i]),
        ("search(a, a[i])", lambda a, i: i),
        ("search(a, 1000)", lambda a, i: -1),
        ("search(a, a[2]) + search(a, a[3]) * 10 + at(a, 0)", lambda a, i: 32 + a[0]),
        ("i < 4 ? at(a, i + 1) : last(a)", lambda a, i: a[i + 1] if i < 4 else a[-1]),
        ("nested(a, b, i)", lambda a, i: a[i] + 2 * (9 - i) + i),
        ("typed<float>(a, i)", lambda a, i: a[i] + 0.5),
    ],
)
def test_functions_of_raw_arrays(call, expected):
    preamble = """
    template<typename A> __device__ auto_t last(const A& a) { return a[a.size() - 1]; }
    template<typename A> __device__ double at(A a, long long k) { return a[k]; }
    template<typename A> __device__ int search(const A& a, double v) {
        for (int k = 0; k < a.size(); ++k) {
            while (true) { if (a[k] == v) return k; break; }
        }
        return -1;
    }
    template<typename A, typename B> __device__ double nested(const A& a, B& b, int k) {
        double found = at(a, k);
        found += 2 * at(b, k);
        int where = search(a, at(a, k));
        return found + where;
    }
    template<typename T, typename A> __device__ T typed(A a, int k) { return a[k] + T(0.5); }
    """.replace("auto_t", "double")
    a, b = np.arange(10) * 3.0 + 1, np.arange(10)[::-1].copy()
    z = np.zeros(10)
    run(
        "raw float64 a, raw int64 b",
        "float64 z",
        f"z = {call};",
        {"a": a, "b": b},
        {"z": z},
        size=10,
        preamble=preamble,
    )
    assert z.tolist() == [float(expected(a, i)) for i in range(10)]


def test_functions_store_into_raw_arrays():
    preamble = """
    template<typename A> __device__ void put(A& a, int k, float v, int* count) {
        if (v < 0) return;
        a[k] = v;
        *count += 1;
    }
    """
    x = np.array([1, -2, 3], np.float32)
    y, z = np.zeros(3, np.float32), np.zeros(3, np.int32)
    body = "int count = 10; put(y, 2 - i, x, &count); put(y, 2 - i, x, &count); z = count;"
    run("float32 x", "raw float32 y, int32 z", body, {"x": x}, {"y": y, "z": z}, preamble=preamble)
    assert y.tolist() == [3, 0, 1]
    assert z.tolist() == [12, 10, 12]


def test_a_function_of_raw_arrays_may_be_lowered_for_several_in_turn():
    x, y = np.arange(5.0), np.arange(5.0)[::-1]
    preamble = "template<typename A> __device__ double get(A a, int k) { return a[k]; }"
    kernel = fusec.ElementwiseKernel("raw T x, raw T y", "T z", "z = get(x, i) * 10 + get(y, i)", preamble=preamble)
    assert np.array_equal(kernel(x, y, size=5), x * 10 + y)


def test_names_with_an_underscore_and_one_letter_are_free():
    x = np.arange(6.0)
    scaled = fusec.ElementwiseKernel("T _m, T _j", "T _z", "_z = _m * _j")
    assert np.array_equal(scaled(x, x), x * x)
    total = fusec.ReductionKernel("T _j, T _m", "T y", "_j * _m", "a + b", "y = a", "0")
    assert total(x, x) == (x * x).sum()


def test_a_reduction_knows_the_place_of_an_element():
    """``_j`` is the position where the reduced axes come first, ``_i`` that among the results."""
    x = np.zeros((3, 4, 5))
    total = fusec.ReductionKernel("T x", "int64 y", "_j", "a + b", "y = a", "0")
    place = fusec.ReductionKernel("T x", "int64 y", "_i", "max(a, b)", "y = a", "-1")
    assert np.array_equal(total(x, axis=1), np.arange(60).reshape(4, 3, 5).sum(0))
    assert np.array_equal(total(x, axis=(0, 2)), np.arange(60).reshape(15, 4).sum(0))
    assert total(x) == np.arange(60).sum()
    assert np.array_equal(place(x, axis=1), np.arange(15).reshape(3, 5))
    first = fusec.ReductionKernel("T x, int64 n", "int64 y", "x == T(0) ? n : _j", "min(a, b)", "y = a", "n")
    assert first(np.array([0, 0, 3, 0, 1.0]), 5) == 2


def test_the_type_of_the_total_has_a_name():
    mean = fusec.ReductionKernel(
        "T x", "T y", "x", "a + b", "y = a / _type_reduce(_in_ind.size() / _out_ind.size())", "0"
    )
    assert np.array_equal(mean(np.arange(6.0).reshape(2, 3), axis=1), [1, 4])


@pytest.mark.parametrize(
    "body",
    ["z = &x[i] == &x[0];", "z = (long long)&x[i] == 0;", "const float* p = &x[0]; const float* q = &x[1]; z = q - p;",
     "const float* p = &x[0]; z = p + 1 < &x[2];", "z = (size_t)x > 4;"],
)  # fmt: skip
def test_addresses_are_no_numbers(body):
    kernel = fusec.ElementwiseKernel("raw float32 x", "float32 z", body)
    with pytest.raises(FusecError, match=r"may_share_memory|index it"):
        kernel(np.zeros(4, np.float32), size=4)


def test_value_helper_sees_structs():
    assert value("pair{2, 3}.b + make_int2(4, 5).y", preamble=PAIR) == 8
