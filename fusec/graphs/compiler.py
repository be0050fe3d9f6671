"""What compiles graphs lies above them, and need not import them to say so."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from fusec.graphs.nodes import ArrayGraph
    from fusec.kernels.public_types import GraphFunction


class GraphCompiler:
    """run: from a graph to its function; set by the package that compiles graphs."""

    run: ClassVar[Callable[[ArrayGraph], GraphFunction]]
