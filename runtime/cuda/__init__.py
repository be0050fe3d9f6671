"""The CUDA runtime: NVRTC to cubin, launch through the driver, foreign arrays in and out (extra ``fusec[cuda]``).

Importing it imports no NVIDIA package: the first call does, and says what is missing. It has run on an NVIDIA H200;
tests/gpu lists those runs and the ones that are owed. Without a device the tests run it against a stand-in driver
(tests/host/stub_driver).

>>> from fusec.runtime import cuda
>>> module = cuda.compile(kernel)  # for the current device
>>> stream = cuda.stream_for(arguments)
>>> views = [cuda.describe(each, stream) for each in arguments]
>>> device = cuda.same_device(views)
>>> out = cuda.allocate(arguments[0], shape, dtype, on=cuda.StreamOn(stream, device))
>>> cuda.acquire(views, stream, device)
>>> cuda.launch(module, words, size, cuda.StreamOn(stream, device))
>>> cuda.release([cuda.describe(out)], stream, device)
>>> result = cuda.deliver(arguments[0], out)
"""

from fusec.runtime.cuda.arrays import (
    DeviceArray,
    acquire,
    broadcast,
    check_writable,
    describe,
    is_device_array,
    release,
    same_device,
)
from fusec.runtime.cuda.driver import current_ordinal, device, initialise, is_current
from fusec.runtime.cuda.foreign import (
    allocate,
    deliver,
    in_cupy,
    is_whole,
    lent_to_cupy,
    library_of,
    seen_as,
    stream_for,
)
from fusec.runtime.cuda.launching import (
    MOST_WORDS,
    encode,
    grid_size,
    launch,
    threads_of_block,
    usual_block,
)
from fusec.runtime.cuda.libraries import bindings_version
from fusec.runtime.cuda.memory import (
    CudaArray,
    DeviceLayout,
    allocator,
    borrowed,
    empty,
    fill_with_zeros,
    from_numpy,
    pooled_bytes,
)
from fusec.runtime.cuda.module import MAX_GRID, CompiledModule, compile  # noqa: A004 - always used as cuda.compile
from fusec.runtime.cuda.products import ROWS as PRODUCT_ROWS
from fusec.runtime.cuda.products import Gemm, Products
from fusec.runtime.cuda.products import library as cublas
from fusec.runtime.cuda.products import takes as multiplies
from fusec.runtime.cuda.sequences import LaunchSequence
from fusec.runtime.cuda.sources import VECTOR_BYTES, ArrayLibrary, look, source_of
from fusec.runtime.cuda.streams import LEGACY, StreamOn, handle, is_captured, synchronise
from fusec.runtime.cuda.transforms import MOST_AXES, Placing, Transform, TransformForm, transform_plan
from fusec.runtime.cuda.transforms import Kind as TransformKind
from fusec.runtime.cuda.transforms import library as cufft

__all__ = [
    "LEGACY",
    "MAX_GRID",
    "MOST_AXES",
    "MOST_WORDS",
    "PRODUCT_ROWS",
    "VECTOR_BYTES",
    "ArrayLibrary",
    "CompiledModule",
    "CudaArray",
    "DeviceArray",
    "DeviceLayout",
    "Gemm",
    "LaunchSequence",
    "Placing",
    "Products",
    "StreamOn",
    "Transform",
    "TransformForm",
    "TransformKind",
    "acquire",
    "allocate",
    "allocator",
    "bindings_version",
    "borrowed",
    "broadcast",
    "check_writable",
    "compile",
    "cublas",
    "cufft",
    "current_ordinal",
    "deliver",
    "describe",
    "device",
    "empty",
    "encode",
    "fill_with_zeros",
    "from_numpy",
    "grid_size",
    "handle",
    "in_cupy",
    "initialise",
    "is_captured",
    "is_current",
    "is_device_array",
    "is_whole",
    "launch",
    "lent_to_cupy",
    "library_of",
    "look",
    "multiplies",
    "pooled_bytes",
    "release",
    "same_device",
    "seen_as",
    "source_of",
    "stream_for",
    "synchronise",
    "threads_of_block",
    "transform_plan",
    "usual_block",
]
