"""Fusing array code: functions of arrays, traced once for each kind of call, run as few kernels."""
