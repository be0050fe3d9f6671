"""How a call becomes launches: arguments, plans, memory that overlaps, fast paths, reports."""
