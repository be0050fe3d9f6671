"""Programs over every kind of memory layout."""

import numpy as np
from programs import (
    Case,
    element,
    hard_values,
    inputs,
    output,
)

from fusec.base.dtypes import COMPLEX64, FLOAT16, FLOAT32, FLOAT64, UINT8, DType, real_type
from fusec.base.source import SourceFile
from fusec.ir.expr import apply, convert
from fusec.ir.loops import (
    Assign,
    Declare,
    Local,
    Program,
    ScalarParam,
    Store,
)

SAXPY_TEXT = SourceFile("kernel 'saxpy', operation", "float d = a * x;\nz = d + y; \\\n")


def saxpy(dtype: DType = FLOAT32) -> Program:
    params, reads = inputs(x=dtype, y=dtype)
    product = apply("multiply", Local("a", dtype), Local("x", dtype))
    return Program(
        "saxpy",
        (ScalarParam("a", dtype), *params, output("z", dtype)),
        (
            *reads,
            Declare("z", dtype),
            Declare("d", dtype, product, line=1),
            Assign("z", apply("add", Local("d", dtype), Local("y", dtype)), line=2),
            Store(element("z", dtype), Local("z", dtype)),
        ),
        source=SAXPY_TEXT,
    )


def layout_cases() -> list[Case]:
    """One program over every kind of memory layout."""
    rng = np.random.default_rng(3)

    def floats(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float32)

    cases = []
    for size in (0, 1, 3, 4, 5, 383, 384, 385, 1000):
        arrays = {"x": floats(size), "y": floats(size), "z": floats(size)}
        cases.append(Case(f"saxpy on {size}", saxpy(), arrays, (size,), {"a": 3}))
    shapes = {
        "strided": {"x": floats(60)[::2], "y": floats(90)[::-3], "z": floats(30)},
        "repeated": {"x": floats(1), "y": floats(30), "z": floats(30)},
        "strided output": {"x": floats(30), "y": floats(30), "z": floats(60)[::2]},
        "transposed": {"x": floats(20, 30).T, "y": floats(20), "z": floats(30, 20)},
        "turned in squares": {"x": floats(33, 40).T, "y": floats(33), "z": floats(40, 33)},
        "turned beside others": {"x": floats(33, 2, 35).T, "y": floats(33, 1, 35).T, "z": floats(35, 2, 33)},
        "broadcast rows": {"x": floats(1, 20), "y": floats(30, 1), "z": floats(30, 20)},
        "one row for all": {"x": floats(3, 5, 8), "y": floats(8), "z": floats(3, 5, 8)},
        "padded rows": {"x": floats(7, 12)[:, :9], "y": floats(7, 1), "z": floats(7, 12)[:, :9]},
        "three axes": {"x": floats(4, 5, 6)[:, ::-1], "y": floats(5, 1), "z": floats(6, 5, 4).T},
        "no axes": {"x": floats(), "y": floats(), "z": floats()},
        "no elements": {"x": floats(3, 0), "y": floats(0), "z": floats(3, 0)},
    }
    for name, arrays in shapes.items():
        for wide in (False, True):
            shape = arrays["z"].shape
            cases.append(Case(f"saxpy {name}{' wide' * wide}", saxpy(), arrays, shape, {"a": 3}, wide))
    arrays = {"x": floats(100), "y": floats(100), "z": floats(100)}
    cases.append(Case("saxpy misaligned", saxpy(), arrays, (100,), {"a": 3}, aligned=4))
    cases.append(Case("saxpy wide", saxpy(), arrays, (100,), {"a": 3}, wide=True))
    for dtype in (FLOAT64, FLOAT16, UINT8, COMPLEX64):
        params, reads = inputs(x=dtype)
        body = (*reads, Store(element("z", dtype), Local("x", dtype)))
        copy = Program("copy", (*params, output("z", dtype)), body)
        for size in (1, 15, 16, 17, 1001):
            values = hard_values(dtype, 1001, 2)[:size]
            cases.append(Case(f"copy of {size} {dtype}", copy, {"x": values, "z": np.zeros_like(values)}, (size,)))
    params, reads = inputs(x=UINT8)
    body = (
        *reads,
        Store(element("z", FLOAT64), convert(Local("x", UINT8), FLOAT64)),
        Store(element("w", UINT8), Local("x", UINT8)),
    )
    widened = Program("widen", (*params, output("z", FLOAT64), output("w", UINT8)), body)
    added, more = inputs(x=FLOAT64, y=UINT8)
    total = apply("add", Local("x", FLOAT64), convert(Local("y", UINT8), FLOAT64))
    mixed = Program("mixed", (*added, output("z", FLOAT64)), (*more, Store(element("z", FLOAT64), total)))
    for size in (1, 5, 6, 8):  # groups of 4 float64 are longer than one aligned block of 16 bytes
        small = np.arange(size, dtype=np.uint8)
        arrays = {"x": small, "z": np.zeros(size), "w": np.zeros(size, np.uint8)}
        cases.append(Case(f"widen {size}", widened, arrays, (size,)))
        arrays = {"x": np.arange(size) + 0.5, "y": small, "z": np.zeros(size)}
        cases.append(Case(f"mixed widths {size}", mixed, arrays, (size,)))
    return [*cases, *_ragged_cases(widened, mixed)]


def _ragged_cases(widened: Program, mixed: Program) -> list[Case]:
    """Rows whose elements begin at other addresses than groups of 16 bytes, and differently in each array."""
    cases = []
    for dtype in (FLOAT64, FLOAT32, FLOAT16, UINT8, COMPLEX64):
        params, reads = inputs(x=dtype)
        copy = Program("copy", (*params, output("z", dtype)), (*reads, Store(element("z", dtype), Local("x", dtype))))
        aligned = min(real_type(dtype).nbytes, 8)
        for rows, columns, behind in ((1, 77, 0), (5, 67, 0), (5, 67, 1), (4, 31, 3), (3, 5, 2), (7, 1, 1)):
            source = hard_values(dtype, 400, 2)[: rows * columns].reshape(rows, columns)
            target = np.zeros((rows, columns + behind), source.dtype)[:, :columns]
            for wide in (False, True):
                name = f"copy of {rows} ragged rows of {columns} {dtype} into rows {behind} longer{' wide' * wide}"
                arrays = {"x": source, "z": target}
                cases.append(Case(name, copy, arrays, source.shape, wide=wide, aligned=aligned, ragged=True))
        for count in (1, 3, 16, 50):
            values = hard_values(dtype, 400, 4)[:count]
            arrays = {"x": values, "z": np.zeros_like(values)}
            cases.append(Case(f"copy of {count} ragged {dtype}", copy, arrays, (count,), aligned=aligned, ragged=True))
    x, y = np.arange(7 * 41.0, dtype=np.float32).reshape(7, 41), np.arange(41, dtype=np.float32)
    arrays = {"x": x, "y": y, "z": np.zeros_like(x)}
    cases.append(Case("saxpy of ragged rows", saxpy(), arrays, x.shape, {"a": 3}, aligned=4, ragged=True))
    cases.append(
        Case(
            "saxpy of a ragged column",
            saxpy(),
            {**arrays, "y": x[:, :1].copy()},
            x.shape,
            {"a": 3},
            aligned=4,
            ragged=True,
        )
    )
    wide = np.arange(7 * 123.0, dtype=np.float32).reshape(7, 41, 3)
    arrays = {"x": wide[..., 0], "y": wide[..., 2], "z": np.zeros_like(x)}
    for ragged in (False, True):
        name = f"saxpy of channels into {'ragged' if ragged else 'other'} rows"
        target = arrays if ragged else {**arrays, "z": np.zeros((7, 44), np.float32)[:, :41]}
        cases.append(Case(name, saxpy(), target, x.shape, {"a": 3}, aligned=4 if ragged else 16, ragged=ragged))
    in_place = {"x": wide[..., 1], "y": wide[..., 1], "z": np.zeros((7, 82), np.float32)[:, ::2]}
    cases.append(Case("saxpy of channels into a channel", saxpy(), in_place, x.shape, {"a": 3}))
    small = np.arange(3 * 43, dtype=np.uint8).reshape(3, 43)
    arrays = {"x": small, "z": np.zeros(small.shape), "w": np.zeros_like(small)}
    cases.append(Case("widen ragged rows", widened, arrays, small.shape, aligned=8, ragged=True))
    arrays = {"x": small + 0.5, "y": small, "z": np.zeros(small.shape)}
    cases.append(Case("mixed widths of ragged rows", mixed, arrays, small.shape, aligned=8, ragged=True))
    return cases
