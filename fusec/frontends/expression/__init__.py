"""Expressions as texts, for fusec.evaluate: Python's grammar of expressions alone, lowered with NumPy's types.

parse: text to kernels that follow each other, each one tree. lower: a tree to a program or a reduction.
"""
