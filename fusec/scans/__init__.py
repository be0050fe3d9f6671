"""Scans: kernels that give every element its running total, the same on every target.

pipeline: texts to machine code. plans: the order of axes, and which kernels run. calls, device_calls: arguments.
kernels: what users make. cumulative: what is built in.
"""
