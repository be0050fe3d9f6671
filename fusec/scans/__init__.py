"""Scans: kernels that give every element its running total, the same on every target.

pipeline: texts to machine code. plans: the order of axes, and which kernels run. chains: several kernels as one, which
reads long rows once, on a CPU. calls, device_calls: arguments.
entries: repeated calls. kernels: what users make. showing: texts and reports. cumulative: what is built in.
"""
