"""Elementary functions as IR: one definition for every target."""

from fusec.math.body import callees
from fusec.math.table import cube, define

__all__ = ["callees", "cube", "define"]
