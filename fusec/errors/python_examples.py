"""A mistake and its correction for every error in functions written in Python; ``fusec explain CODE`` shows them.

The lines to try also know the decorators `elementwise`, `stencil` and `reduction`, which take texts too.
"""

PYTHON: dict[str, str] = {
    "F170": """\
A kernel computes numbers from numbers: assignments, if, for over range, while, return and calls. Anything
else is refused, and the error says what to write instead.

    elementwise("def f(x): return [x, x]")             # wrong
    elementwise("def f(x): return x, x")               # right: a tuple makes two arrays""",
    "F171": """\
The text must be Python, though it is never run.

    elementwise("def f(x): return x +")                # wrong
    elementwise("def f(x): return x + 1")              # right""",
    "F172": """\
A line that ends a block has the indentation of an enclosing block.

    elementwise("def f(x):\\n        y = x\\n    return y")      # wrong
    elementwise("def f(x):\\n    y = x\\n    return y")          # right""",
    "F173": """\
The source is read from the file or notebook that defines the function; a function made by exec, or typed at a
plain prompt, has none.

    exec("def f(x): return x"); elementwise(f)         # wrong
    elementwise("def f(x): return x")                  # right""",
    "F174": """\
A decorator takes a function, or the text of one.

    elementwise(3)                                     # wrong
    elementwise("def f(x): return x + 1")              # right""",
    "F175": """\
A variable has one dtype on all paths that meet, and in all iterations of a loop, so its type never
depends on data. A Python number takes the dtype of the other operand.

    elementwise("def f(x):\\n    y = np.int32(0)\\n    if x > 0: y = x\\n    return y")(np.ones(3))   # wrong
    elementwise("def f(x):\\n    y = 0\\n    if x > 0: y = x\\n    return y")(np.ones(3))             # right""",
    "F176": """\
Python would raise UnboundLocalError for some elements; a kernel cannot.

    elementwise("def f(x):\\n    if x > 0: y = x\\n    return y")(np.ones(3))               # wrong
    elementwise("def f(x):\\n    y = 0\\n    if x > 0: y = x\\n    return y")(np.ones(3))    # right""",
    "F177": """\
A result is one array, so it has one dtype.

    elementwise("def f(x):\\n    if x > 0: return np.int32(1)\\n    return x")(np.ones(3))   # wrong
    elementwise("def f(x):\\n    if x > 0: return 1\\n    return x")(np.ones(3))             # right""",
    "F178": """\
Every element needs a result on every path.

    elementwise("def f(x):\\n    if x > 0: return x")(np.ones(3))                    # wrong
    elementwise("def f(x):\\n    if x > 0: return x\\n    return -x")(np.ones(3))     # right""",
    "F179": """\
A Python integer takes the dtype of the other operand, as in NumPy 2, and must fit it.

    elementwise("def f(x): return x + 300")(np.ones(3, "uint8"))               # wrong
    elementwise("def f(x): return np.int32(x) + 300")(np.ones(3, "uint8"))     # right""",
    "F180": """\
Numbers, dtypes, functions, tuples and lists of them, and arrays may be used from outside; they are constants of the
kernel.

    elementwise("def f(x): return x + t[0]", names={"t": {0: 1}})(np.ones(3))     # wrong
    elementwise("def f(x): return x + t[0]", names={"t": (1, 2)})(np.ones(3))     # right""",
    "F181": """\
An annotation fixes a dtype; without one, any dtype is accepted.

    elementwise("def f(x: flaot32): return x")(np.ones(3))                     # wrong
    elementwise("def f(x: float32): return x")(np.ones(3, "float32"))          # right""",
    "F182": """\
Operands are promoted as NumPy promotes them, and some pairs have no common dtype there.

    elementwise("def f(x): return x.astype(float8_e4m3fn) + x.astype(float8_e5m2)")(np.ones(3))   # wrong
    elementwise("def f(x): return x.astype(float8_e4m3fn) + x.astype(float32)")(np.ones(3))       # right""",
    "F183": """\
Some names belong to arguments that every call takes.

    elementwise("def f(out): return out")              # wrong
    elementwise("def f(x): return x")                  # right""",
    "F184": """\
A function returns its results; it writes no arrays.

    elementwise("def f(x):\\n    x[0] = 1\\n    return x")(np.ones(3))      # wrong
    elementwise("def f(x):\\n    x = 1 + x\\n    return x")(np.ones(3))     # right""",
    "F185": """\
As in Python, a tuple has as many values as there are names for them.

    elementwise("def f(x):\\n    a, b = x\\n    return a")(np.ones(3))         # wrong
    elementwise("def f(x):\\n    a, b = x, 1\\n    return a")(np.ones(3))      # right""",
    "F186": """\
Loops run over a range, or over a tuple or an array from outside; an argument is one number.

    elementwise("def f(x):\\n    for k in x: x = x + k\\n    return x")(np.ones(3))                # wrong
    elementwise("def f(x):\\n    for k in (1, 2): x = x + k\\n    return x")(np.ones(3))           # right
    elementwise("def f(x):\\n    for k in range(1, 3): x = x + k\\n    return x")(np.ones(3))      # right""",
    "F187": """\
Arguments without a default must be given, by position or by name.

    elementwise("def f(x, y): return x + y")(np.ones(3))           # wrong
    elementwise("def f(x, y=1): return x + y")(np.ones(3))         # right""",
    "F188": """\
A call takes the parameters of the function, each once. Functions that @fusec.elementwise and
@fusec.reduction make also take out= and stream=, and block_size= or axis=. Methods such as source
take what help() shows. A call of a fused function that does not fit raises Python's TypeError.

    elementwise("def f(x, y): return x + y")(np.ones(3), z=1)      # wrong
    elementwise("def f(x, y): return x + y")(np.ones(3), y=1)      # right""",
    "F189": """\
Results are stored in a given array by NumPy's rules: the width may differ, the kind may not.

    elementwise("def f(x): return x + 0.5")(np.ones(3, int), out=np.ones(3, int))            # wrong
    elementwise("def f(x): return x + 0.5")(np.ones(3, int), out=np.ones(3, "float32"))      # right""",
    "F190": """\
The offsets determine the width of the skipped border, so they must be constants.

    stencil("def f(a, k): return a[k]", boundary="skip")(np.ones(3), 1)           # wrong
    stencil("def f(a): return a[1]", boundary="skip")(np.ones(3))                 # right
    stencil("def f(a, k): return a[k]", boundary="nearest")(np.ones(3), 1)        # right""",
    "F191": """\
Boundaries are those of scipy.ndimage, and "skip".

    stencil("def f(a): return a[1]", boundary="reflekt")         # wrong
    stencil("def f(a): return a[1]", boundary="reflect")         # right""",
    "F192": """\
Neighbours are read from the array itself, so it is not broadcast. Weights, the same for
every element, are numbers of the call, or a tuple or an array from outside of the function.

    stencil("def f(a, b): return a[1] + b[1]")(np.ones(1), np.ones(3))                            # wrong
    stencil("def f(a, b): return a[1] + b[1]")(np.broadcast_to(np.ones(1), 3), np.ones(3))        # right""",
    "F193": """\
The values that map returns, the totals of combine, and the identity have the same parts, of compatible dtypes.

    reduction(map="lambda x: (1, x)", combine="lambda a, b: a[1] + b[1]")(np.ones(3))                       # wrong
    reduction(map="lambda x: (1, x)", combine="lambda a, b: (a[0] + b[0], a[1] + b[1])")(np.ones(3))        # right
    reduction("lambda a, b: a + b", identity=np.int64(0))(np.ones(3))                                       # wrong
    reduction("lambda a, b: a + b", identity=np.float64(0))(np.ones(3))                                     # right""",
    "F194": """\
A reduction combines two totals. map turns an element into a total, and finish turns a total into the result.

    reduction("lambda a: a + 1")                                              # wrong
    reduction("lambda a, b: a + b", finish="lambda a: a + 1")                 # right
    reduction("lambda a, b: a + b", finish="lambda a, n: a / n")              # wrong
    reduction("lambda a, b: a + b", finish="lambda a, count: a / count")      # right""",
}
