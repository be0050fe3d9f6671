"""The two intermediate representations and their companions.

expr: the pure expressions both share. graph: what is computed, over arrays. loops: how, one kernel over scalars.
verify, text and interpret are the checker, the printer and parser, and the NumPy oracle of both.
"""
