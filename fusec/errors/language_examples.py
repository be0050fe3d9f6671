"""A mistake and its correction for the errors in kernel texts; ``fusec explain CODE`` shows them, see examples.py."""

LANGUAGE: dict[str, str] = {
    "F100": """\
A parameter is '[raw] TYPE NAME'; commas separate parameters.

    ElementwiseKernel("float64 x; float64 y", "float64 z", "z = x + y")  # wrong
    ElementwiseKernel("float64 x, float64 y", "float64 z", "z = x + y")  # right""",
    "F101": """\
Only 'raw' (the body indexes the array itself) and '_non_const' (the body may change the input) may stand before
the type; inputs are const anyway.

    ElementwiseKernel("const float64 x", "float64 z", "z = x")  # wrong
    ElementwiseKernel("float64 x", "float64 z", "z = x")        # right""",
    "F102": """\
A type is a dtype of NumPy by name, or one letter: a placeholder, which each call binds to a dtype.

    ElementwiseKernel("flot32 x", "float64 z", "z = x")   # wrong
    ElementwiseKernel("float32 x", "float64 z", "z = x")  # right
    ElementwiseKernel("T x", "T z", "z = x")              # right""",
    "F103": """\
Keywords and types of the language cannot be names, nor can i, the index of the element. Names with a
leading underscore are reserved.

    ElementwiseKernel("float64 if", "float64 z", "z = if")                # wrong
    ElementwiseKernel("float64 condition", "float64 z", "z = condition")  # right""",
    "F104": """\
The inputs and outputs of a kernel are known to its body by name.

    ElementwiseKernel("float64 x", "float64 x", "x = x + 1")  # wrong
    ElementwiseKernel("float64 x", "float64 z", "z = x + 1")  # right""",
    "F105": """\
Options change the meaning of a text. There is no fast math: results are the same everywhere.

    ElementwiseKernel("float64 x", "float64 z", "z = x", options=('--use_fast_math',))    # wrong
    ElementwiseKernel("float64 x", "float64 z", "z = x * SCALE", options=('-DSCALE=2',))  # right""",
    "F115": """\
Outside of comments a text is ASCII.

    ElementwiseKernel("float64 x", "float64 z", "z = x × 2")  # wrong
    ElementwiseKernel("float64 x", "float64 z", "z = x * 2")  # right""",
    "F116": """\
A comment, a string or a character must be closed.

    ElementwiseKernel("float64 x", "float64 z", "z = x /* twice")    # wrong
    ElementwiseKernel("float64 x", "float64 z", "z = x /* once */")  # right""",
    "F117": """\
Numbers are written as in C: a leading zero makes a number octal, and f and u are suffixes.

    ElementwiseKernel("float64 x", "float64 z", "z = 08").source("cuda")           # wrong
    ElementwiseKernel("float64 x", "float64 z", "z = 8").source("cuda")            # right
    ElementwiseKernel("float64 x", "float64 z", "z = 0.5f + 1e-3").source("cuda")  # right""",
    "F118": """\
Lines that start with # are directives of C's preprocessor.

    ElementwiseKernel("float64 x", "float64 z", "z = x", preamble="#defin SCALE 2")           # wrong
    ElementwiseKernel("float64 x", "float64 z", "z = x * SCALE", preamble="#define SCALE 2")  # right""",
    "F119": """\
Nothing is read from disk; the headers of C and CUDA that have a portable counterpart are accepted.

    ElementwiseKernel("float64 x", "float64 z", "z = x", preamble="#include <mine.h>")      # wrong
    ElementwiseKernel("float64 x", "float64 z", "z = sin(x)", preamble="#include <cmath>")  # right""",
    "F120": """\
Commas outside of brackets separate the arguments of a macro.

    ElementwiseKernel("float64 x", "float64 z", "z = TWICE(x, x)", preamble="#define TWICE(a) (a + a)")  # wrong
    ElementwiseKernel("float64 x", "float64 z", "z = TWICE(x)", preamble="#define TWICE(a) (a + a)")     # right""",
    "F125": """\
The language has the syntax of C; Python's conditional, ** and def have counterparts: ?:, pow, __device__.

    ElementwiseKernel("float64 x", "float64 z", "z = x if x > 0 else 1")  # wrong
    ElementwiseKernel("T x", "T z", "T a = x z = a")                      # wrong
    ElementwiseKernel("float64 x", "float64 z", "z = x > 0 ? x : 1")      # right
    ElementwiseKernel("T x", "T z", "T a = x; z = a")                     # right""",
    "F126": """\
A text ends after a complete statement; only its last semicolon may be missing.

    ElementwiseKernel("float64 x", "float64 z", "z = x +")    # wrong
    ElementwiseKernel("float64 x", "float64 z", "z = x + 1")  # right""",
    "F127": """\
Brackets come in pairs.

    ElementwiseKernel("float64 x", "float64 z", "z = sin(x")   # wrong
    ElementwiseKernel("float64 x", "float64 z", "z = sin(x)")  # right""",
    "F128": """\
The language has the parts of C++ that run with the same bits on every target. The error for any other part
says what to write instead.

    ElementwiseKernel("float64 x", "float64 z", "try { z = x; } catch (int e) { }")  # wrong
    ElementwiseKernel("float64 x", "float64 z", "z = isnan(x) ? 0 : x")              # right""",
    "F129": """\
An elementwise kernel has no threads and blocks; elements share nothing but atomics on raw arrays.

    ElementwiseKernel("float64 x", "float64 z", "z = threadIdx.x")  # wrong
    ElementwiseKernel("float64 x", "float64 z", "z = i")            # right""",
    "F135": """\
Names are parameters, locals, i (the index of the element), n (their number) and C's constants.

    ElementwiseKernel("float64 x", "float64 z", "z = alpha * x")                 # wrong
    ElementwiseKernel("float64 x", "float64 z", "z = np.sin(x)")                 # wrong
    ElementwiseKernel("float64 x", "float64 z", "z = x * pi")                    # wrong
    ElementwiseKernel("float64 x, float64 alpha", "float64 z", "z = alpha * x")  # right
    ElementwiseKernel("float64 x", "float64 z", "z = sin(x) * M_PI")             # right""",
    "F136": """\
Types are C's, NumPy's by name, the placeholders that the parameters declare, and structs of the preamble.

    ElementwiseKernel("float64 x", "float64 z", "flaot a = x; z = a")  # wrong
    ElementwiseKernel("float64 x", "float64 z", "float a = x; z = a")  # right
    ElementwiseKernel("float64 x", "float64 z", "z = Pair{x, 2}.a")            # wrong
    ElementwiseKernel("float64 x", "float64 z", "z = Pair{x, 2}.a", preamble="struct Pair { double a; int b; };")""",
    "F137": """\
Functions are those of C's math, some of CUDA's and the Array API's, and those of the preamble.

    twice = "__device__ double twice(double a) { return a + a; }"
    ElementwiseKernel("float64 x", "float64 z", "z = where(x > 0, x, 1)")        # wrong
    ElementwiseKernel("float64 x", "float64 z", "z = x > 0 ? x : 1")             # right
    ElementwiseKernel("float64 x", "float64 z", "z = twice(x)", preamble=twice)  # right""",
    "F138": """\
Raw arrays have size(), shape(), strides() and ndim; complex values real() and imag().

    ElementwiseKernel("raw float64 x", "float64 z", "z = x.length()").source("cuda")  # wrong
    ElementwiseKernel("raw float64 x", "float64 z", "z = x.size()").source("cuda")    # right""",
    "F139": """\
A name is declared once in each pair of braces.

    ElementwiseKernel("float64 x", "float64 z", "double a = x; double a = 2; z = a").source("cuda")  # wrong
    ElementwiseKernel("float64 x", "float64 z", "double a = x; a = 2; z = a").source("cuda")         # right""",
    "F140": """\
An output is assigned, not declared: a variable of its name would hide it, and the output would stay zero.

    ElementwiseKernel("float64 x", "float64 z", "double z = x;")  # wrong
    ElementwiseKernel("float64 x", "float64 z", "z = x;")         # right""",
    "F145": """\
Bitwise operators and % take integers, and complex values have no order.

    ElementwiseKernel("float64 x", "float64 z", "z = x ^ 2").source("cuda")       # wrong
    ElementwiseKernel("float64 x", "float64 z", "z = x * x").source("cuda")       # right
    ElementwiseKernel("float64 x", "float64 z", "z = pow(x, 3)").source("cuda")   # right
    ElementwiseKernel("float64 x", "float64 z", "z = fmod(x, 3)").source("cuda")  # right""",
    "F146": """\
Numbers convert to each other as in C; a complex value is never converted to a real one silently.

    ElementwiseKernel("complex128 x", "float64 z", "z = x").source("cuda")         # wrong
    ElementwiseKernel("complex128 x", "float64 z", "z = x.real()").source("cuda")  # right""",
    "F147": """\
Inputs, numbers and variables declared const are read-only.

    ElementwiseKernel("float64 x", "float64 z", "x += 1; z = x").source("cuda")                # wrong
    ElementwiseKernel("float64 x", "float64 z", "double a = x; a += 1; z = a").source("cuda")  # right
    ElementwiseKernel("float64 x", "float64 z", "z = x; z += 1").source("cuda")                # right""",
    "F148": """\
The left side of = is a variable, an element of an array or a field.

    ElementwiseKernel("float64 x", "float64 z", "max(x, 1) = z").source("cuda")  # wrong
    ElementwiseKernel("float64 x", "float64 z", "z = x + 1").source("cuda")      # right""",
    "F149": """\
Each function takes a fixed number of arguments; C's max takes two.

    ElementwiseKernel("float64 x", "float64 z", "z = max(x, 1, 2)").source("cuda")       # wrong
    ElementwiseKernel("float64 x", "float64 z", "z = max(max(x, 1), 2)").source("cuda")  # right""",
    "F150": """\
Some functions take only integers, and most take no complex values.

    ElementwiseKernel("complex128 x", "float64 z", "z = floor(x)").source("cuda")         # wrong
    ElementwiseKernel("complex128 x", "float64 z", "z = floor(x.real())").source("cuda")  # right""",
    "F151": """\
A method gives a value only when it is called.

    ElementwiseKernel("raw float64 x", "float64 z", "z = x.size").source("cuda")    # wrong
    ElementwiseKernel("raw float64 x", "float64 z", "z = x[i]").source("cuda")      # right
    ElementwiseKernel("raw float64 x", "float64 z", "z = x.size()").source("cuda")  # right""",
    "F152": """\
A raw array takes one flat index, or a local array with one index for each axis.

    ElementwiseKernel("raw float64 x", "float64 z", "z = x[i, 1]").source("cuda")                           # wrong
    ElementwiseKernel("float64 x", "float64 z", "z = x[i]").source("cuda")                                  # wrong
    ElementwiseKernel("raw float64 x", "float64 z", "ptrdiff_t idx[] = {i, 1}; z = x[idx]").source("cuda")  # right
    ElementwiseKernel("raw float64 x", "float64 z", "z = x[i]").source("cuda")                              # right""",
    "F153": """\
The length of a local array and the labels of a switch must be constants.

    ElementwiseKernel("float64 x", "float64 z", "double a[n]; z = x").source("cuda")                   # wrong
    ElementwiseKernel("float64 x", "float64 z", "double a[8]; z = x").source("cuda")                   # right
    ElementwiseKernel("float64 x", "float64 z", "const int k = 8; double a[k]; z = x").source("cuda")  # right""",
    "F154": """\
The types of a template follow from the arguments of a call, or are given in it.

    one = "template<class A> __device__ A one(int a) { return a; }"
    ElementwiseKernel("float64 x", "float64 z", "z = one(3)", preamble=one).source("cuda")         # wrong
    ElementwiseKernel("float64 x", "float64 z", "z = one<float>(3)", preamble=one).source("cuda")  # right""",
    "F155": """\
There is no call stack; every function is part of the kernel.

    calls = "__device__ double f(double a) { return a < 1 ? a : f(a - 1); }"
    loops = "__device__ double f(double a) { while (a >= 1) a -= 1; return a; }"
    ElementwiseKernel("float64 x", "float64 z", "z = f(x)", preamble=calls).source("cuda")  # wrong
    ElementwiseKernel("float64 x", "float64 z", "z = f(x)", preamble=loops).source("cuda")  # right""",
    "F160": """\
break leaves a loop or a switch; to end an element's work, return.

    ElementwiseKernel("float64 x", "float64 z", "if (x < 0) break; z = x").source("cuda")   # wrong
    ElementwiseKernel("float64 x", "float64 z", "if (x < 0) return; z = x").source("cuda")  # right""",
    "F161": """\
Each case ends with break, continue or return, and several labels may share one.

    ElementwiseKernel("int64 x", "float64 z", "switch (x) { case 0: z = 1; case 1: z = 2; }").source("cuda")  # wrong
    ElementwiseKernel("int64 x", "float64 z", "switch (x) { case 0: case 1: z = 2; }").source("cuda")  # right""",
    "F162": """\
The operation assigns its outputs; only functions return values.

    ElementwiseKernel("float64 x", "float64 z", "return x;").source("cuda")       # wrong
    ElementwiseKernel("float64 x", "float64 z", "z = x; return;").source("cuda")  # right""",
    "F163": """\
A declaration needs a type that has values; an array also needs its length or its values.

    ElementwiseKernel("float64 x", "float64 z", "auto a; z = x").source("cuda")                      # wrong
    ElementwiseKernel("float64 x", "float64 z", "auto a = x; z = a").source("cuda")                  # right
    ElementwiseKernel("float64 x", "float64 z", "double a[] = {1, 2}; z = a[i % 2]").source("cuda")  # right""",
    "F164": """\
A statement that computes a value and drops it is a mistake.

    ElementwiseKernel("float64 x", "float64 z", "z == x")          # wrong
    ElementwiseKernel("float64 x", "float64 z", "z = x; z + 1")    # wrong
    ElementwiseKernel("float64 x", "float64 z", "z = x")           # right
    ElementwiseKernel("float64 x", "float64 z", "z = x; z += 1")   # right
    ElementwiseKernel("float64 x", "float64 z", "z = x; (void)x")  # right""",
}
