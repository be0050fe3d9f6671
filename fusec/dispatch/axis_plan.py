"""The decisions for a kind of call of a reduction or a scan with host arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusec.base.records import dataclass
from fusec.dispatch.axis_spec import Bound
from fusec.kinds.launch import Launch
from fusec.kinds.slots import Arguments

if TYPE_CHECKING:
    from fusec.base.kernel_abi import Kernel
    from fusec.runtime.cpu.engine import Executable


@dataclass(frozen=True)
class CompiledLaunch:
    """One kernel of a plan, with its arguments; of a composite, all kernels."""

    launch: Launch
    executable: Executable
    arguments: Arguments


@dataclass(frozen=True)
class AxisPlan:
    """A compiled kernel for one combination of dtypes, shapes, strides and axes."""

    bound: Bound
    steps: tuple[CompiledLaunch, ...]  # what runs, in order
    kernels: tuple[Kernel, ...]  # of these, or of the chain that is the only step
