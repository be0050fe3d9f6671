"""Reductions: kernels that combine elements to totals, the same totals on every target.

pipeline: texts to machine code. plans: the order of axes and phases. calls, device_calls: arguments.
device_steps: kernels on a device in order, those of scans too. sequences: the same on a CPU as one executable. entries,
device_entries: repeated calls. kernels: what users make.
"""
