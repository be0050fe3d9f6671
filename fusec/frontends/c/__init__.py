"""Kernel strings: tokens, macros, the grammar, types, and the lowering to IR."""
