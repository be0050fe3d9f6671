"""The Python subset: functions of scalars as Python writes them, to programs in the loops IR."""
