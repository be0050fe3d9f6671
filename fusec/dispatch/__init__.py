"""From calls to launches: arguments, plans, overlapping memory, fast paths, reports."""
