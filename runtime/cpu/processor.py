"""The processor that kernels are compiled for: the host's, or a lesser one that FUSEC_CPU names.

FUSEC_CPU: "native" (the default), "generic" (any processor of the architecture), on x86-64 also "sse2" (the same as
generic) and "avx2" (x86-64-v3: with FMA and F16C).
"""

from __future__ import annotations

from functools import cache

from fusec.base import locks
from fusec.base.locks import fork_safe
from fusec.base.records import dataclass
from fusec.environment import settings
from fusec.runtime.cpu.memory import look_for_room

LLVM_BYTES = 192 << 20  # of addresses, for its library and the first module
AVX2_LEVEL = ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")  # what x86-64-v3 adds to v2


@dataclass(frozen=True)
class Processor:
    """A code generation target: LLVM's triple, CPU name and feature string, and the width of its vectors."""

    triple: str
    name: str
    features: str
    vector_bits: int

    @property
    def architecture(self) -> str:
        """The first part of the triple, e.g. ``x86_64`` or ``aarch64``."""
        return self.triple.split("-", 1)[0]

    @property
    def permutes(self) -> int:
        """Width in bits of the registers that an instruction permutes by variable indices; 0 if none does.

        512: of 32 and 64 bits each (AVX-512F), 256: of 32 bits (AVX2).
        """
        return self.vector_bits if self.architecture == "x86_64" and self.vector_bits > 128 else 0

    @property
    def converts_halves(self) -> bool:
        """True if instructions convert between float16 and float32; otherwise LLVM calls functions of a C runtime."""
        if self.architecture == "x86_64":
            return self.name == "x86-64-v3" or "+f16c" in self.features.split(",")
        return self.architecture in ("aarch64", "arm64")


def processor() -> Processor:
    """The selected processor. Raises SettingNotUnderstood for a FUSEC_CPU that this machine cannot run."""
    return _processor(settings.text_of("FUSEC_CPU").lower() or "native")


@cache
@fork_safe
def _processor(level: str) -> Processor:
    try:
        import llvmlite.binding as llvm  # 25 ms: only where something is compiled or loaded
    except (ImportError, OSError) as error:
        look_for_room(LLVM_BYTES, "to load LLVM")  # which says the same of a library that has no room
        from fusec.errors.targets import JitMissing  # the catalogue takes longer to import than a kernel to load

        raise JitMissing(str(error)).at() from error
    with locks.llvm:
        triple, name, features = llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features()
    x86 = triple.startswith("x86_64")
    avx2 = x86 and all(features.get(name, False) for name in AVX2_LEVEL)
    allowed = ["native", "generic"] + ["sse2"] * x86 + ["avx2"] * avx2
    if level not in allowed:
        raise settings.refusal("FUSEC_CPU", "one of " + ", ".join(allowed))
    if level == "avx2":
        return Processor(triple, "x86-64-v3", "", 256)
    if level != "native":
        return Processor(triple, "x86-64" if x86 else "generic", "", 128)
    bits = 512 if features.get("avx512f", False) else 256 if features.get("avx2", False) else 128
    return Processor(triple, name, features.flatten(), bits)
