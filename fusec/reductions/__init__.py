"""Reductions: kernels that combine elements to totals, the same totals on every target.

pipeline: texts to machine code. plans: the order of axes and phases. calls: arguments. kernels: what users make.
"""
