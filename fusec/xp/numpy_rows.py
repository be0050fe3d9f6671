"""NumPy's functions that `xp.extra` offers, one row each."""

ROWS = {
    "angle": ("The angle of a complex number.", "xp.extra.angle(xp.asarray([1j]))", "Array([1.57079633])"),
    "average": ("The mean, with weights.", "xp.extra.average(xp.asarray([1.0, 3.0]), weights=[3, 1])", "Array(1.5)"),
    "bincount": (
        "How often each integer from 0 on occurs, or the sums of weights of each; evaluates x.",
        "xp.extra.bincount(xp.asarray([0, 2, 2]))",
        "Array([1, 0, 2])",
    ),
    "cbrt": ("The cube root.", "xp.extra.cbrt(xp.asarray([8.0, -27.0]))", "Array([ 2., -3.])"),
    "corrcoef": (
        "The correlation of rows.",
        "xp.extra.corrcoef(xp.asarray([[1.0, 2.0], [3.0, 5.0]]))",
        "Array([[1., 1.],\n       [1., 1.]])",
    ),
    "cov": ("The covariance of rows.", "xp.extra.cov(xp.asarray([1.0, 3.0]))", "Array(2.)"),
    "cumprod": (
        "The products of the elements up to each one.",
        "xp.extra.cumprod(xp.asarray([1, 2, 3]))",
        "Array([1, 2, 6])",
    ),
    "cumsum": (
        "The sums of the elements up to each one.",
        "xp.extra.cumsum(xp.asarray([1, 2, 3]))",
        "Array([1, 3, 6])",
    ),
    "divmod": (
        "The quotient, rounded down, and the remainder.",
        "xp.extra.divmod(xp.asarray([7]), 2)",
        "(Array([3]), Array([1]))",
    ),
    "exp2": ("2 to the power of the element.", "xp.extra.exp2(xp.asarray([3.0]))", "Array([8.])"),
    "extract": (
        "The elements of x2 where x1 holds, on one axis.",
        "xp.extra.extract(xp.asarray([True, False]), xp.asarray([1, 2]))",
        "Array([1])",
    ),
    "flatnonzero": (
        "Where elements are not zero, in C order; evaluates x.",
        "xp.extra.flatnonzero(xp.asarray([0, 3]))",
        "Array([1])",
    ),
    "float_power": ("x1 to the power of x2 in float64.", "xp.extra.float_power(xp.asarray([2]), 3)", "Array([8.])"),
    "fmax": (
        "The greater one, a nan only if both are.",
        "xp.extra.fmax(xp.asarray([1.0, xp.nan]), 0)",
        "Array([1., 0.])",
    ),
    "fmin": (
        "The lesser one, a nan only if both are.",
        "xp.extra.fmin(xp.asarray([1.0, xp.nan]), 0)",
        "Array([0., 0.])",
    ),
    "fmod": (
        "The remainder of the quotient rounded towards 0: its sign is that of x1.",
        "xp.extra.fmod(xp.asarray([7, -7]), 3)",
        "Array([ 1, -1])",
    ),
    "frexp": (
        "The mantissa in [0.5, 1) and the exponent of 2.",
        "xp.extra.frexp(xp.asarray([6.0]))",
        "(Array([0.75]), Array([3], dtype=int32))",
    ),
    "gcd": ("The greatest common divisor.", "xp.extra.gcd(xp.asarray([12]), 18)", "Array([6])"),
    "histogram": (
        "How many elements lie in each of some intervals, and the borders of these.",
        "xp.extra.histogram(xp.asarray([1, 2, 1]), bins=2)[0]",
        "Array([2, 1])",
    ),
    "inner": (
        "The sums of products along the last axes.",
        "xp.extra.inner(xp.asarray([1, 2]), xp.asarray([3, 4]))",
        "Array(11)",
    ),
    "isneginf": ("Whether it is -inf.", "xp.extra.isneginf(xp.asarray([-xp.inf, 0.0]))", "Array([ True, False])"),
    "isposinf": ("Whether it is inf.", "xp.extra.isposinf(xp.asarray([xp.inf, 0.0]))", "Array([ True, False])"),
    "ix_": (
        "Indices of all combinations, such as rows and columns of a matrix.",
        "xp.extra.ix_(xp.asarray([0, 1]), xp.asarray([2]))[1].shape",
        "(1, 1)",
    ),
    "kron": ("The Kronecker product.", "xp.extra.kron(xp.asarray([1, 2]), xp.asarray([1, 1]))", "Array([1, 1, 2, 2])"),
    "lcm": ("The least common multiple.", "xp.extra.lcm(xp.asarray([4]), 6)", "Array([12])"),
    "ldexp": ("x1 * 2**x2.", "xp.extra.ldexp(xp.asarray([1.5]), 2)", "Array([6.])"),
    "logspace": ("base**y for y at equal distances.", "xp.extra.logspace(0, 2, 3)", "Array([  1.,  10., 100.])"),
    "median": (
        "The middle element, or the mean of the middle two.",
        "xp.extra.median(xp.asarray([3, 1, 2, 9]))",
        "Array(2.5)",
    ),
    "modf": (
        "The part behind the point and the part before it, both with the sign.",
        "xp.extra.modf(xp.asarray([-1.5]))",
        "(Array([-0.5]), Array([-1.]))",
    ),
    "nan_to_num": (
        "Zero for nan, and the greatest numbers for infinities.",
        "xp.extra.nan_to_num(xp.asarray([xp.nan, 1.0]))",
        "Array([0., 1.])",
    ),
    "nanargmax": (
        "The position of the greatest element that is not nan.",
        "xp.extra.nanargmax(xp.asarray([xp.nan, 1.0, 2.0]))",
        "Array(2)",
    ),
    "nanargmin": (
        "The position of the least element that is not nan.",
        "xp.extra.nanargmin(xp.asarray([xp.nan, 1.0, 2.0]))",
        "Array(1)",
    ),
    "nancumprod": (
        "The products of the elements up to each one that are not nan.",
        "xp.extra.nancumprod(xp.asarray([2.0, xp.nan]))",
        "Array([2., 2.])",
    ),
    "nancumsum": (
        "The sums of the elements up to each one that are not nan.",
        "xp.extra.nancumsum(xp.asarray([2.0, xp.nan]))",
        "Array([2., 2.])",
    ),
    "nanmax": ("The greatest element that is not nan.", "xp.extra.nanmax(xp.asarray([xp.nan, 1.0, 2.0]))", "Array(2.)"),
    "nanmean": (
        "The mean of the elements that are not nan.",
        "xp.extra.nanmean(xp.asarray([xp.nan, 1.0, 2.0]))",
        "Array(1.5)",
    ),
    "nanmedian": (
        "The median of the elements that are not nan.",
        "xp.extra.nanmedian(xp.asarray([xp.nan, 1.0, 2.0]))",
        "Array(1.5)",
    ),
    "nanmin": ("The least element that is not nan.", "xp.extra.nanmin(xp.asarray([xp.nan, 1.0, 2.0]))", "Array(1.)"),
    "nanpercentile": (
        "A percentile of the elements that are not nan.",
        "xp.extra.nanpercentile(xp.asarray([xp.nan, 1.0, 2.0]), 50)",
        "Array(1.5)",
    ),
    "nanprod": (
        "The product of the elements that are not nan.",
        "xp.extra.nanprod(xp.asarray([xp.nan, 3.0, 2.0]))",
        "Array(6.)",
    ),
    "nanquantile": (
        "A quantile of the elements that are not nan.",
        "xp.extra.nanquantile(xp.asarray([xp.nan, 1.0, 2.0]), 0.5)",
        "Array(1.5)",
    ),
    "nanstd": (
        "The standard deviation of the elements that are not nan.",
        "xp.extra.nanstd(xp.asarray([xp.nan, 1.0, 3.0]))",
        "Array(1.)",
    ),
    "nansum": (
        "The sum of the elements that are not nan.",
        "xp.extra.nansum(xp.asarray([xp.nan, 1.0, 2.0]))",
        "Array(3.)",
    ),
    "nanvar": (
        "The variance of the elements that are not nan.",
        "xp.extra.nanvar(xp.asarray([xp.nan, 1.0, 3.0]))",
        "Array(1.)",
    ),
    "outer": (
        "The products of all elements with all of another array.",
        "xp.extra.outer(xp.asarray([1, 2]), xp.asarray([3]))",
        "Array([[3],\n       [6]])",
    ),
    "packbits": (
        "Bits, eight in a byte.",
        "xp.extra.packbits(xp.asarray([1, 0, 0, 0, 0, 0, 0, 1]))",
        "Array([129], dtype=uint8)",
    ),
    "pad": ("The array with a margin.", "xp.extra.pad(xp.asarray([1, 2]), 1)", "Array([0, 1, 2, 0])"),
    "percentile": (
        "What so many percent of the elements are below.",
        "xp.extra.percentile(xp.asarray([1, 2, 3]), 50)",
        "Array(2.)",
    ),
    "ptp": ("The greatest element minus the least.", "xp.extra.ptp(xp.asarray([3, 1, 2]))", "Array(2)"),
    "quantile": (
        "What such a part of the elements is below.",
        "xp.extra.quantile(xp.asarray([1, 2, 3]), 0.5)",
        "Array(2.)",
    ),
    "sinc": ("sin(pi x) / (pi x), 1 at 0.", "xp.extra.sinc(xp.asarray([0.0]))", "Array([1.])"),
    "trapezoid": ("The integral by the rule of trapezoids.", "xp.extra.trapezoid(xp.asarray([1.0, 3.0]))", "Array(2.)"),
    "unpackbits": (
        "The bits of bytes.",
        'xp.extra.unpackbits(xp.asarray([129], dtype="uint8"))[:2]',
        "Array([1, 0], dtype=uint8)",
    ),
}
"""NumPy's functions: their sentence, an example, and its result."""
