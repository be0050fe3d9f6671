"""Replacements for names that CuPy, Numba and JAX have and fusec lacks."""

from __future__ import annotations

OWN = "fusec.kernel indexes its arrays in Python, and fusec.ElementwiseKernel in C, with raw arguments"
ARRAYS = "fusec.fuse compiles functions of arrays, written with NumPy"
LOOPS = "fusec.kernel compiles loops over fusec.grid(...), fusec.elementwise functions of one element"
INSTEAD = {
    **dict.fromkeys(("RawKernel", "RawModule"), OWN),
    "guvectorize": "fusec.stencil reads neighbours, fusec.reduction and fusec.ScanKernel run along axes",
    **dict.fromkeys(("jit", "njit", "autojit", "generated_jit", "cfunc"), LOOPS),
    **dict.fromkeys(("prange", "pndindex", "cuda", "blockIdx", "threadIdx"), LOOPS),
    **dict.fromkeys(("compile", "vmap", "pmap", "Fusion"), ARRAYS),
    **dict.fromkeys(("where", "sin", "exp", "log", "sqrt", "add", "multiply", "array", "asarray", "zeros"), ARRAYS),
    "syncthreads": "fusec.barrier()",
    "shared_memory": "fusec.shared(shape, dtype)",
    "ufunc": "fusec.elementwise makes functions that broadcast",
    "frompyfunc": "fusec.vectorize is called like numpy.vectorize",
    "scan": "fusec.ScanKernel takes any associative combination",
    "reduce": "fusec.reduction takes any combination",
    "numexpr": "fusec.evaluate is called like numexpr.evaluate",
    "average": "fusec.mulsum(x, weights) / fusec.sum(weights)",
    **dict.fromkeys(("dot", "matmul", "einsum"), "fusec.vecdot and fusec.mulsum sum products; matrices are NumPy's"),
}
KEYS = "there is no state: pass a key (the seed) and a counter, which distinguishes the numbers of one key"
RANDOM = {
    **dict.fromkeys(("seed", "default_rng", "Generator", "RandomState", "PRNGKey", "key", "split"), KEYS),
    **dict.fromkeys(
        ("normal", "randn", "standard_normal", "gauss"),
        "fusec.random.normal32(key, counter) and normal64 draw standard normal numbers",
    ),
    **dict.fromkeys(
        ("uniform", "rand", "random", "random_sample", "sample"),
        "fusec.random.uniform32(key, counter) and uniform64 draw numbers in [0, 1)",
    ),
    **dict.fromkeys(
        ("randint", "random_integers", "choice"),
        "fusec.random.integers(key, counter, low, high) draws integers from low to high - 1",
    ),
}
"""What to use instead of names of numpy.random and jax.random that fusec.random does not have."""
LAZY_RANDOM = {
    **dict.fromkeys(
        ("seed", "default_rng", "Generator", "RandomState", "PRNGKey", "key", "split"),
        "there is no state: pass a key (the seed) and an offset, where an earlier draw has ended",
    ),
    **dict.fromkeys(("randn", "standard_normal", "gauss"), "xp.random.normal(size, key) draws normal numbers"),
    **dict.fromkeys(("rand", "random", "random_sample", "sample"), "xp.random.uniform(size, key) draws from [0, 1)"),
    **dict.fromkeys(("randint", "random_integers"), "xp.random.integers(size, key, low, high) draws integers"),
    **dict.fromkeys(("shuffle", "permuted", "choice"), "xp.random.permutation(x, key) makes a new array"),
}
"""The same for xp.random, whose functions make arrays."""
