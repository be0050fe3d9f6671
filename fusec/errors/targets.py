"""Errors of targets: code generation, devices, drivers and caches (codes F300 to F399)."""

from __future__ import annotations

from typing import ClassVar

from fusec.errors.base import FusecError, FusecRuntimeError, FusecTypeError, UserError

# --- settings and the CPU runtime: F300-F319 --------------------------------------------------------------------


class SettingNotUnderstood(UserError):
    """An environment variable holds a value that means nothing."""

    code: ClassVar[str] = "F300"
    message: ClassVar[str] = "{variable} is {value!r}, but must be {expected}"
    hint: ClassVar[str] = "correct it, or unset it to get the default"
    variable: str
    value: str
    expected: str


class JitMissing(UserError):
    """The package that compiles for the CPU cannot be imported."""

    code: ClassVar[str] = "F301"
    message: ClassVar[str] = "the CPU target needs the package 'llvmlite', which cannot be imported: {reason}"
    hint: ClassVar[str] = "pip install 'llvmlite>=0.48'"
    exception: ClassVar[type[FusecError]] = FusecRuntimeError
    reason: str


class JitForbidden(UserError):
    """The system does not let a process make memory executable."""

    code: ClassVar[str] = "F302"
    message: ClassVar[str] = "this system does not let a process run code it has compiled: {reason}"
    hint: ClassVar[str] = "a security policy (SELinux, a hardened run time) must allow executable memory"
    exception: ClassVar[type[FusecError]] = FusecRuntimeError
    reason: str


# --- CUDA C and Metal texts: F320-F349 -------------------------------------------------------------------------


class NoSuchTypeOnTarget(UserError):
    """The target has no such type, and emulating it would not be worth having."""

    code: ClassVar[str] = "F320"
    message: ClassVar[str] = "{where} has dtype {dtype}, which {target} does not have"
    label: ClassVar[str] = "{dtype} here"
    hint: ClassVar[str] = "{cure}"
    about: ClassVar[str] = (
        "Apple's GPUs have no float64 at all. In the language of kernel strings a literal such as 0.5 is float64, as "
        "in C, and makes every expression around it float64."
    )
    exception: ClassVar[type[FusecError]] = FusecTypeError
    where: str
    dtype: str
    target: str
    cure: str


class AtomicUnsupported(UserError):
    """The target has no such atomic operation."""

    code: ClassVar[str] = "F321"
    message: ClassVar[str] = "{target} has no atomic {op} on {dtype}"
    label: ClassVar[str] = "this update"
    hint: ClassVar[str] = "accumulate in int32, uint32 or float32, or reduce with a ReductionKernel"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    op: str
    dtype: str
    target: str


class TooManyArrays(UserError):
    """The kernel binds more arrays than the target has places for."""

    code: ClassVar[str] = "F322"
    message: ClassVar[str] = "kernel '{name}' uses {count} arrays, but {target} binds at most {limit}"
    hint: ClassVar[str] = "split the kernel, or stack arrays of one dtype into a raw array"
    name: str
    count: int
    limit: int
    target: str


# --- the CUDA runtime: F350-F379 --------------------------------------------------------------------------------


class CudaExtraMissing(UserError):
    """The Python packages of the CUDA runtime are not installed, or broken."""

    code: ClassVar[str] = "F350"
    message: ClassVar[str] = "the CUDA target needs the package '{package}', which cannot be imported: {reason}"
    hint: ClassVar[str] = "pip install 'fusec[cuda]'"
    exception: ClassVar[type[FusecError]] = FusecRuntimeError
    package: str
    reason: str


class NoCudaDriver(UserError):
    """libcuda is not on this machine."""

    code: ClassVar[str] = "F351"
    message: ClassVar[str] = "no CUDA driver found: {library} could not be loaded"
    hint: ClassVar[str] = (
        "install the NVIDIA driver (version 580 or newer for CUDA 13); in a container, start it with access to the "
        "GPU (docker run --gpus all); without a GPU, pass NumPy arrays: they run on the CPU with the same bits"
    )
    exception: ClassVar[type[FusecError]] = FusecRuntimeError
    library: str


class NoCudaDevice(UserError):
    """The driver is there, a device is not."""

    code: ClassVar[str] = "F352"
    message: ClassVar[str] = "no CUDA device {ordinal}: the driver reports {count} device(s)"
    hint: ClassVar[str] = (
        "CUDA_VISIBLE_DEVICES={visible} decides which devices a process sees; nvidia-smi lists them all"
    )
    exception: ClassVar[type[FusecError]] = FusecRuntimeError
    ordinal: int
    count: int
    visible: str


class NvrtcMissing(UserError):
    """The run-time compiler of CUDA is not on this machine."""

    code: ClassVar[str] = "F353"
    message: ClassVar[str] = "NVRTC, the run-time compiler of CUDA, could not be loaded: {reason}"
    hint: ClassVar[str] = "pip install 'fusec[cuda]' installs it (the package nvidia-cuda-nvrtc)"
    exception: ClassVar[type[FusecError]] = FusecRuntimeError
    reason: str


class CudaCompileFailed(UserError):
    """NVRTC refused generated text."""

    code: ClassVar[str] = "F354"
    message: ClassVar[str] = "NVRTC refused the text generated for kernel '{kernel}' ({arch})"
    label: ClassVar[str] = "{log}"
    hint: ClassVar[str] = "this is a bug in fusec, not in your kernel: please report it with the text in {path}"
    about: ClassVar[str] = (
        "Every CUDA text that fusec generates should compile. The text and the compiler's log were kept."
    )
    exception: ClassVar[type[FusecError]] = FusecRuntimeError
    kernel: str
    arch: str
    log: str
    path: str


class DriverTooOld(UserError):
    """The driver does not know the CUDA version of the compiled kernel."""

    code: ClassVar[str] = "F355"
    message: ClassVar[str] = "the CUDA driver supports CUDA {driver}, but NVRTC here generates code for CUDA {toolkit}"
    hint: ClassVar[str] = "update the NVIDIA driver, or install an NVRTC of the driver's major version"
    exception: ClassVar[type[FusecError]] = FusecRuntimeError
    driver: str
    toolkit: str


class DeviceUnsupported(UserError):
    """The device is older than what NVRTC can make code for."""

    code: ClassVar[str] = "F356"
    message: ClassVar[str] = "NVRTC {version} generates no code for {arch}; it supports {supported}"
    hint: ClassVar[str] = (
        "an older NVRTC may still support this device; the CPU runs the same kernel with the same bits"
    )
    exception: ClassVar[type[FusecError]] = FusecRuntimeError
    arch: str
    version: str
    supported: str


class LaunchFailed(UserError):
    """The driver refused a launch."""

    code: ClassVar[str] = "F357"
    message: ClassVar[str] = "the CUDA driver refused to launch kernel '{kernel}': {reason} ({name})"
    label: ClassVar[str] = "grid {grid}, block {block}, device {device}"
    hint: ClassVar[str] = (
        "an illegal access or a launch failure may come from a kernel launched earlier: CUDA_LAUNCH_BLOCKING=1 or "
        "compute-sanitizer finds which"
    )
    exception: ClassVar[type[FusecError]] = FusecRuntimeError
    kernel: str
    name: str
    reason: str
    grid: int
    block: int
    device: int


class CudaCallFailed(UserError):
    """Any other call that the driver refused."""

    code: ClassVar[str] = "F358"
    message: ClassVar[str] = "the CUDA driver refused to {what}: {reason} ({name})"
    hint: ClassVar[str] = (
        "a fault may come from a kernel launched earlier (CUDA_LAUNCH_BLOCKING=1 finds which); a process forked after "
        "CUDA was used cannot use it (start it with the method spawn)"
    )
    exception: ClassVar[type[FusecError]] = FusecRuntimeError
    what: str
    name: str
    reason: str


class DeviceMemoryExhausted(UserError):
    """An output does not fit into device memory."""

    code: ClassVar[str] = "F359"
    message: ClassVar[str] = "device {device} has no room for an array of {nbytes} bytes: {reason}"
    hint: ClassVar[str] = "free arrays that are no longer used, or pass the output as out="
    exception: ClassVar[type[FusecError]] = FusecRuntimeError
    device: int
    nbytes: int
    reason: str


class ArraysOnDifferentDevices(UserError):
    """Arrays of one call must share a device."""

    code: ClassVar[str] = "F360"
    message: ClassVar[str] = "arrays of one call must be on one device, but some are on device {first} and on {second}"
    hint: ClassVar[str] = "copy them to one device first"
    first: int
    second: int


class HostArrayAmongDeviceArrays(UserError):
    """A host array was given beside device arrays."""

    code: ClassVar[str] = "F361"
    message: ClassVar[str] = "a {type} in host memory cannot be used together with CUDA arrays"
    hint: ClassVar[str] = "copy it to the device first (cupy.asarray, tensor.to('cuda')); fusec never copies silently"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    type: str


class DeviceArrayRefused(UserError):
    """An array whose export says something fusec cannot honour."""

    code: ClassVar[str] = "F362"
    message: ClassVar[str] = "this {type} cannot be used as a CUDA array: {reason}"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    type: str
    reason: str


class DeviceDtypeUnsupported(UserError):
    """An array of a type that fusec does not know, or of foreign byte order."""

    code: ClassVar[str] = "F363"
    message: ClassVar[str] = "a CUDA array of type {given} is not supported"
    hint: ClassVar[str] = "fusec knows bool, (u)int8-64, float16/32/64, bfloat16, float8 (e4m3fn, e5m2), complex64/128"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    given: str


class NotACudaDevice(UserError):
    """A DLPack array on some other kind of device."""

    code: ClassVar[str] = "F364"
    message: ClassVar[str] = "this {type} is on a device of kind {kind}, not on a CUDA device"
    hint: ClassVar[str] = "copy it to a CUDA device, or to host memory to run on the CPU"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    type: str
    kind: str


class BlockSizeRefused(UserError):
    """A block size that no device, or not this kernel, can run."""

    code: ClassVar[str] = "F365"
    message: ClassVar[str] = "block_size must be {range}, got {given}"
    range: str
    given: str


class StreamRefused(UserError):
    """Something that is not a CUDA stream."""

    code: ClassVar[str] = "F366"
    message: ClassVar[str] = "a {type} is not a CUDA stream"
    hint: ClassVar[str] = (
        "pass a CuPy, PyTorch, Numba or cuda.core stream, or its handle as an int (None: the current one)"
    )
    exception: ClassVar[type[FusecError]] = FusecTypeError
    type: str


class ReadOnlyDeviceArray(UserError):
    """An output that must not be written."""

    code: ClassVar[str] = "F367"
    message: ClassVar[str] = "a read-only {type} cannot be an output"
    hint: ClassVar[str] = "leave the output out to get a new array (JAX arrays never change)"
    type: str
