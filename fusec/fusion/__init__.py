"""Functions of arrays, compiled into few kernels; see `fusec.fusion.fuse`. It compiles graphs, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusec.graphs.compiler import GraphCompiler

if TYPE_CHECKING:
    from fusec.graphs.nodes import ArrayGraph
    from fusec.kernels.public_types import GraphFunction


def compiled(built: ArrayGraph) -> GraphFunction:
    """The function of a graph; what runs it is imported when the first one is compiled."""
    from fusec.fusion.graph_calls import CompiledGraph

    return CompiledGraph(built)


GraphCompiler.run = staticmethod(compiled)
