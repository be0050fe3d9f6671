"""Kernels of which some arrays run along another axis than the result: squares in shared memory, in words or not."""

import ml_dtypes
import numpy as np
from programs import Case
from text_programs import case_of

SUM = "z = x + y * (T)3;"
SKIPS = "if (x < y) { continue; } z = x - y;"
PICKED = "z = table[(int)(x - least)] + y;"
COSTLY = "z = cbrt(sin(cos((float)x)));"
TWO = "z = x * y; w = x < y;"
ADDED = "z += x;"


def turned_cases() -> list[Case]:
    """Sides that words divide and sides that they do not, rows with gaps, elements of different widths."""
    rng = np.random.default_rng(11)

    def whole(shape: tuple[int, ...], dtype: object, order: tuple[int, ...] | None = None) -> np.ndarray:
        """Small numbers. order: of the axes in memory, as arguments of transpose."""
        values = rng.integers(0, 2 if dtype is bool else 90, shape if order is None else [shape[at] for at in order])
        found = values.astype(dtype)
        return found if order is None else found.transpose(np.argsort(order))

    def gaps(shape: tuple[int, ...], dtype: object) -> np.ndarray:
        rows, columns = shape
        return whole((rows, columns + 3), dtype)[:, :columns]

    found = []
    shapes = ((68, 132), (45, 70), (33, 2, 65))
    for at, dtype in enumerate(("uint8", "int8", "float16", ml_dtypes.bfloat16, "int16", bool)):
        for shape in (shapes[at % 3], shapes[(at + 1) % 3]):
            order = (1, 0) if len(shape) == 2 else (2, 1, 0)
            arrays = {"x": whole(shape, dtype, order), "y": whole(shape, dtype), "z": np.zeros(shape, dtype)}
            body = "z = x != y;" if dtype is bool else SUM
            found.append(case_of(f"turned {np.dtype(dtype).name} {shape}", body, arrays, wide=at == 0))
    for one, other, third, shape in (
        ("uint8", "float32", "float32", (64, 68)),
        ("float32", "float32", bool, (35, 47)),
        ("int16", "uint8", "int16", (64, 68)),
        ("int16", "uint8", "int16", (35, 47)),
        ("float32", "float64", "float64", (35, 47)),
    ):
        arrays = {"x": whole(shape, one, (1, 0)), "y": whole(shape, other), "z": np.zeros(shape, third)}
        name = f"turned {one}, {other}, {np.dtype(third).name} {shape}"
        found.append(case_of(name, "z = x > y;" if third is bool else "z = x - y;", arrays))
    for shape in ((40, 64), (41, 65)):
        arrays = {"x": whole(shape, "int8", (1, 0)), "y": whole(shape, "int8"), "z": whole(shape, "int8")}
        found.append(case_of(f"turned, some stored {shape}", SKIPS, arrays))
        arrays = {"x": whole(shape, "int8", (1, 0)), "y": whole(shape, "int16", (1, 0)), "z": np.zeros(shape, "int16")}
        found.append(case_of(f"two turned, two results {shape}", TWO, {**arrays, "w": np.zeros(shape, bool)}))
        x, y, table = whole(shape, "uint8", (1, 0)) + np.uint8(50), whole(shape, "int16"), np.arange(90, dtype="int16")
        arrays = {"x": x, "y": y, "table": table, "z": np.zeros(shape, "int16")}
        found.append(case_of(f"turned in a table {shape}", PICKED, arrays, {"least": 50}))
    arrays = {"x": whole(shape, "int8", (1, 0)), "z": whole(shape, "int8")}
    found.append(case_of("turned in place", ADDED, arrays))
    arrays = {"x": whole(shape, "int8", (1, 0)), "y": whole((shape[0], 1), "int8"), "z": gaps(shape, "int8")}
    found.append(case_of("turned beside one column", SUM, arrays))
    arrays = {"x": gaps(shape[::-1], "uint8").T, "y": whole(shape[1:], "uint8"), "z": np.zeros(shape, "uint8")}
    found.append(case_of("turned beside one row", SUM, arrays))
    arrays = {"x": whole(shape, "int8", (1, 0)), "z": np.zeros(shape, "float32")}
    found.append(case_of("turned and costly", COSTLY, arrays))
    return found
