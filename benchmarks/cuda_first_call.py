"""Run in a fresh process: what it costs to import a library and to call its first CUDA kernel (GELU on 1000 float32).

The device is initialised and the input on it before the clock of the first call starts.
"""

from __future__ import annotations

import json
import os
import sys
import time

GELU = "z = 0.5f * x * (1.0f + tanh(0.7978845608028654f * (x + 0.044715f * x * x * x)))"


def fusec():
    import numpy as np

    import fusec.kernels.elementwise_kernel
    from fusec.runtime import cuda

    imported = time.perf_counter()
    x = cuda.from_numpy(np.ones(1000, "f4"))
    begin = time.perf_counter()
    z = fusec.kernels.elementwise_kernel.ElementwiseKernel("float32 x", "float32 z", GELU, "gelu")(x)
    z.numpy()
    return imported, begin


def cupy():
    import cupy

    imported = time.perf_counter()
    x = cupy.asarray([1.0] * 1000, dtype="f4")
    cupy.cuda.Device().synchronize()
    begin = time.perf_counter()
    cupy.ElementwiseKernel("float32 x", "float32 z", GELU, "gelu")(x).get()
    return imported, begin


def torch_compile():
    import torch

    imported = time.perf_counter()
    x = torch.tensor([1.0] * 1000, device="cuda")
    begin = time.perf_counter()
    gelu = torch.compile(lambda x: 0.5 * x * (1 + torch.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))))
    gelu(x).cpu()
    return imported, begin


def jax():
    import jax

    imported = time.perf_counter()
    x = jax.device_put([1.0] * 1000)
    x = jax.numpy.asarray(x, "float32").block_until_ready()
    begin = time.perf_counter()
    gelu = jax.jit(lambda x: 0.5 * x * (1 + jax.numpy.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))))
    gelu(x).block_until_ready()
    return imported, begin


def numba():
    import math

    import numpy as np

    if not hasattr(np, "row_stack"):
        np.row_stack = np.vstack  # as in cuda_work.py
    from numba import cuda

    imported = time.perf_counter()
    x = cuda.to_device(np.ones(1000, "f4"))
    z = cuda.device_array_like(x)
    begin = time.perf_counter()
    f = np.float32

    @cuda.jit
    def gelu(x, z):
        i = cuda.grid(1)
        if i < z.size:
            v = x[i]
            z[i] = f(0.5) * v * (f(1) + math.tanh(f(0.7978845608028654) * (v + f(0.044715) * v * v * v)))

    gelu[4, 256](x, z)
    cuda.synchronize()
    return imported, begin


def main(name: str, home: str) -> None:
    """Print seconds as JSON."""
    caches = {
        "FUSEC_CACHE_DIR": f"{home}/fusec",
        "CUPY_CACHE_DIR": f"{home}/cupy",
        "TORCHINDUCTOR_CACHE_DIR": f"{home}/inductor",
        "TRITON_CACHE_DIR": f"{home}/triton",
        "JAX_COMPILATION_CACHE_DIR": f"{home}/jax",
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        "NUMBA_CACHE_DIR": f"{home}/numba",
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    }
    os.environ.update(caches)
    start = time.perf_counter()
    imported, begin = globals()[name.replace(".", "_")]()
    end = time.perf_counter()
    print(json.dumps({"import": imported - start, "device": begin - imported, "first": end - begin}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
