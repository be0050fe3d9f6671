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
        "there is no state: every draw takes a key (the seed); offset=n continues after n numbers",
    ),
    "choice": (
        "with replacement, write x[xp.random.integers(size, key, high=len(x))];"
        " without, xp.random.permutation(x, key)[:size]"
    ),
    **dict.fromkeys(("randn", "standard_normal", "gauss"), "xp.random.normal(size, key) draws normal numbers"),
    **dict.fromkeys(("rand", "random", "random_sample", "sample"), "xp.random.uniform(size, key) draws from [0, 1)"),
    **dict.fromkeys(("randint", "random_integers"), "xp.random.integers(size, key, low, high) draws integers"),
    **dict.fromkeys(("shuffle", "permuted"), "xp.random.permutation(x, key) makes a new array"),
}
"""The same for xp.random, whose functions make arrays."""
IN_HOST_MEMORY = "np.asarray(x) computes it; write np.asarray(x.to_device('cpu')) if x may be on a device"
OF_NUMPY = "an array that is not computed yet has no memory; np.asarray(x).{} is that of its elements"
LAZY_ARRAY = {
    **dict.fromkeys(("get", "numpy", "asnumpy"), IN_HOST_MEMORY),
    "cpu": "write x.to_device('cpu')",
    **dict.fromkeys(("to", "cuda"), "write x.to_device('cuda:0'), or x.astype(dtype) for another dtype"),
    **{name: OF_NUMPY.format(name) for name in ("strides", "flags", "base", "ctypes", "data", "setflags")},
    "flat": "x.reshape(-1) has all elements along one axis, and is a view if that is possible",
    **{name: f"np.asarray(x).{name}(...) does it" for name in ("tofile", "dump", "dumps", "byteswap", "getfield")},
    **dict.fromkeys(("tostring", "to_bytes"), "write x.tobytes()"),
    "resize": "the size of an array does not change: xp.reshape and xp.pad make new arrays",
    "newbyteorder": "elements are in the machine's byte order: np.asarray(x).view(x.dtype.newbyteorder()) has others",
    **dict.fromkeys(("block_until_ready", "evaluate", "eval", "realize"), "write x.compute()"),
    "at": "arrays can be written: x[i] = y, or np.add.at(x, i, y)",
    "unsqueeze": "write xp.expand_dims(x, axis=0), or x[None]",
    "permute": "write x.transpose(axes)",
    "clone": "write x.copy()",
    "numel": "write x.size",
    "dim": "write x.ndim",
    **dict.fromkeys(("detach", "backward", "grad", "requires_grad"), "there are no gradients of lazy arrays"),
    **{
        name: f"write xp.{name}(x)"
        for name in "abs ceil cos exp floor isnan log log1p sign sin sqrt square tan tanh unique".split()
    },
    **{name: f"write xp.extra.{name}(x)" for name in ("sigmoid", "softmax")},
    "map": "write the operation on the whole array, such as x * 2",
}
"""What to write instead of attributes that arrays of NumPy, CuPy, PyTorch or JAX have, and lazy arrays lack."""
