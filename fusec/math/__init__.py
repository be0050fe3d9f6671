"""Elementary functions as IR: one definition for every target."""

from fusec.math.body import callees
from fusec.math.table import define, integral_power, quotient_by

__all__ = ["callees", "define", "integral_power", "quotient_by"]
