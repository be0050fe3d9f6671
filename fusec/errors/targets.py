"""Errors of targets: code generation, devices, drivers and caches (codes F300 to F399)."""

from __future__ import annotations

from fusec.errors.base import FusecRuntimeError, FusecTypeError, Named, UserError

# --- settings and the CPU runtime: F300-F319 --------------------------------------------------------------------


class SettingNotUnderstood(UserError, code="F300"):
    """An environment variable with a value that has no meaning."""

    message = "{variable} is {value!r}, but must be {expected}"
    hint = "correct it, or unset it to get the default"
    variable: str
    value: str
    expected: str


class JitMissing(UserError, code="F301", exception=FusecRuntimeError):
    """The package that compiles for the CPU cannot be imported."""

    message = "the CPU target needs the package 'llvmlite', which cannot be imported: {reason}"
    hint = "pip install 'llvmlite>=0.48'"
    reason: str


class JitForbidden(UserError, code="F302", exception=FusecRuntimeError):
    """The system does not let a process execute memory that it has written."""

    message = "this system does not let a process run code it has compiled: {reason}"
    hint = "a security policy (SELinux, a hardened run time) must allow executable memory"
    reason: str


# --- CUDA C and Metal texts: F320-F349 -------------------------------------------------------------------------


class NoSuchTypeOnTarget(UserError, code="F320", exception=FusecTypeError):
    """A type that the target does not have."""

    message = "{where} has dtype {dtype}, which {target} does not have"
    label = "{dtype} here"
    about = (
        "Apple's GPUs have no float64 at all. In the language of kernel strings a literal such as 0.5 is float64, as "
        "in C, and makes every expression around it float64."
    )
    where: str
    dtype: str
    target: str
    cure: str


class AtomicUnsupported(UserError, code="F321", exception=FusecTypeError):
    """An atomic operation that the target does not have."""

    message = "{target} has no atomic {op} on {dtype}"
    label = "this update"
    hint = "accumulate in int32, uint32 or float32, or reduce with a ReductionKernel"
    op: str
    dtype: str
    target: str


class TooManyArrays(Named, code="F322"):
    """A kernel with more arrays than the target can bind."""

    message = "kernel '{name}' uses {count:array}, but {target} binds at most {limit}"
    hint = "split the kernel, or stack arrays of one dtype into a raw array"
    count: int
    limit: int
    target: str


# --- the CUDA runtime: F350-F379 --------------------------------------------------------------------------------


class CudaExtraMissing(UserError, code="F350", exception=FusecRuntimeError):
    """The Python packages of the CUDA runtime are not installed, or broken."""

    message = "the CUDA target needs the package '{package}', which cannot be imported: {reason}"
    hint = "pip install 'fusec[cuda]'"
    package: str
    reason: str


class NoCudaDriver(UserError, code="F351", exception=FusecRuntimeError):
    """libcuda is not on this machine."""

    message = "no CUDA driver found: {library} could not be loaded"
    hint = (
        "install the NVIDIA driver (version 580 or newer for CUDA 13); in a container, start it with access to the "
        "GPU (docker run --gpus all); without a GPU, pass NumPy arrays: they run on the CPU with the same bits"
    )
    library: str


class NoCudaDevice(UserError, code="F352", exception=FusecRuntimeError):
    """The driver is installed, but there is no such device."""

    message = "no CUDA device {ordinal}: the driver reports {count:device}"
    hint = "CUDA_VISIBLE_DEVICES={visible} decides which devices a process sees; nvidia-smi lists them all"
    ordinal: int
    count: int
    visible: str


class NvrtcMissing(UserError, code="F353", exception=FusecRuntimeError):
    """The run-time compiler of CUDA is not on this machine."""

    message = "NVRTC, the run-time compiler of CUDA, could not be loaded: {reason}"
    hint = "pip install 'fusec[cuda]' installs it (the package nvidia-cuda-nvrtc)"
    reason: str


class CudaMathMissing(UserError, code="F368", exception=FusecRuntimeError):
    """A library of CUDA's for mathematics, such as cuBLAS, is not on this machine."""

    message = "lib{library}, which computes this on CUDA devices, could not be loaded: {reason}"
    hint = "pip install 'fusec[cuda-math]'"
    library: str
    reason: str


class CudaMathRefused(UserError, code="F369", exception=FusecRuntimeError):
    """A call refused by one of CUDA's libraries for mathematics, such as cuBLAS."""

    message = "{library} refused to {what}: {name}"
    hint = (
        "a fault may come from a kernel launched earlier (CUDA_LAUNCH_BLOCKING=1 finds which); before a CUDA graph "
        "captures a call of a library, call the function once"
    )
    library: str
    what: str
    name: str


class CudaCompileFailed(Named, code="F354", exception=FusecRuntimeError):
    """NVRTC refused a generated text."""

    message = "NVRTC refused the text generated for kernel '{name}' ({arch})"
    label = "{log}"
    hint = "this is a bug in fusec, not in your kernel: please report it with the text in {path}"
    about = "Every CUDA text that fusec generates should compile. The text and the compiler's log were kept."
    arch: str
    log: str
    path: str


class DriverTooOld(UserError, code="F355", exception=FusecRuntimeError):
    """The driver does not know the CUDA version of the compiled kernel."""

    message = "the CUDA driver supports CUDA {driver}, but NVRTC here generates code for CUDA {toolkit}"
    hint = "update the NVIDIA driver, or install an NVRTC of the driver's major version"
    driver: str
    toolkit: str


class DeviceUnsupported(UserError, code="F356", exception=FusecRuntimeError):
    """A device for which NVRTC cannot generate code."""

    message = "NVRTC {version} generates no code for {arch}; it supports {supported}"
    hint = "an older NVRTC may still support this device; the CPU runs the same kernel with the same bits"
    arch: str
    version: str
    supported: str


class LaunchFailed(UserError, code="F357", exception=FusecRuntimeError):
    """The driver refused a launch."""

    message = "the CUDA driver refused to launch kernel '{kernel}': {reason} ({name})"
    label = "grid {grid}, block {block}, device {device}"
    hint = (
        "an illegal access or a launch failure may come from a kernel launched earlier: CUDA_LAUNCH_BLOCKING=1 or "
        "compute-sanitizer finds which"
    )
    kernel: str
    name: str
    reason: str
    grid: int
    block: int
    device: int


class CudaCallFailed(UserError, code="F358", exception=FusecRuntimeError):
    """Any other call refused by the driver."""

    message = "the CUDA driver refused to {what}: {reason} ({name})"
    hint = (
        "a fault may come from a kernel launched earlier (CUDA_LAUNCH_BLOCKING=1 finds which); a process forked after "
        "CUDA was used cannot use it (start it with the method spawn)"
    )
    what: str
    name: str
    reason: str


class DeviceMemoryExhausted(UserError, code="F359", exception=FusecRuntimeError):
    """An output that does not fit into device memory."""

    message = "device {device} has no room for an array of {nbytes} bytes: {reason}"
    hint = "free arrays that are no longer used, or pass the output as out="
    device: int
    nbytes: int
    reason: str


class ArraysOnDifferentDevices(UserError, code="F360"):
    """A call with arrays on several devices."""

    message = "arrays of one call must be on one device, but some are on device {first} and on {second}"
    hint = "copy them to one device first"
    first: int
    second: int


class HostArrayAmongDeviceArrays(UserError, code="F361", exception=FusecTypeError):
    """A host array among device arrays."""

    message = "{type:a} in host memory cannot be used together with CUDA arrays"
    hint = "copy it to the device first (cupy.asarray, tensor.to('cuda')); fusec never copies silently"
    type: str


class DeviceArrayRefused(UserError, code="F362", exception=FusecTypeError):
    """A device array that fusec cannot use as it is exported."""

    message = "this {type} cannot be used as a CUDA array: {reason}"
    type: str
    reason: str


class DeviceDtypeUnsupported(UserError, code="F363", exception=FusecTypeError):
    """A device array of an unsupported dtype or a foreign byte order."""

    message = "a CUDA array of type {given} is not supported"
    hint = "fusec knows bool, (u)int8-64, float16/32/64, bfloat16, float8 (e4m3fn, e5m2), complex64/128"
    given: str


class NotACudaDevice(UserError, code="F364", exception=FusecTypeError):
    """A DLPack array on another kind of device."""

    message = "this {type} is on a device of kind {kind}, not on a CUDA device"
    hint = "copy it to a CUDA device, or to host memory to run on the CPU"
    type: str
    kind: str


class StreamRefused(UserError, code="F366", exception=FusecTypeError):
    """An object that is not a CUDA stream."""

    message = "{type:a} is not a CUDA stream"
    hint = "pass a CuPy, PyTorch, Numba or cuda.core stream, or its handle as an int (None: the current one)"
    type: str


class ReadOnlyDeviceArray(UserError, code="F367"):
    """A device array that is read-only and cannot be an output."""

    message = "a read-only {type} cannot be an output"
    hint = "leave the output out to get a new array (JAX arrays never change)"
    type: str
