"""A neural network (64-128-128-10) that reads digits. Adam trains it with hand-written gradients, one plan a step.

The digits are scikit-learn's if it is installed; otherwise they are drawn. The same functions train with NumPy arrays
and with lazy arrays. Prints the kernels of a step, the learning curve, and the time of a step beside NumPy's.
"""

from itertools import pairwise
from time import perf_counter

import numpy as np

import fusec.xp as fxp

SIZES, BATCH, EPOCHS, RATE = (64, 128, 128, 10), 64, 11, 2e-3
GLYPHS = """
.###. ..#.. .###. .###. ...#. ##### ..##. ##### .###. .###.
#...# .##.. #...# #...# ..##. #.... .#... ....# #...# #...#
#..## ..#.. ....# ....# .#.#. ####. #.... ...#. #...# #...#
#.#.# ..#.. ...#. ..##. #..#. ....# ####. ..#.. .###. .####
##..# ..#.. ..#.. ....# ##### ....# #...# .#... #...# ....#
#...# ..#.. .#... #...# ...#. #...# #...# .#... #...# ...#.
.###. .###. ##### .###. ...#. .###. .###. .#... .###. .##..
"""


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Pictures of 8 x 8 pixels from 0 to 1, as rows, and the digits that they show."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        return drawn(1797, np.random.default_rng(0))
    pictures, shown = load_digits(return_X_y=True)
    return pictures / 16, shown


def drawn(count: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Glyphs at random places, of random brightness, with noise."""
    rows = [row.split() for row in GLYPHS.split("\n")[1:-1]]
    glyphs = np.array([[[pixel == "#" for pixel in row[at]] for row in rows] for at in range(10)], float)
    shown = generator.integers(0, 10, count)
    pictures = generator.normal(0, 0.15, (count, 8, 8))
    for picture, digit in zip(pictures, shown, strict=True):
        down, right = generator.integers(0, 2), generator.integers(0, 4)
        picture[down : down + 7, right : right + 5] += glyphs[digit] * generator.uniform(0.5, 1)
    return np.clip(pictures, 0, 1).reshape(count, 64), shown


def beginning(xp, seed: int) -> list[list]:
    """The weights and biases of each layer, and the two moments of each."""
    generator, found = np.random.default_rng(seed), []
    for above, below in pairwise(SIZES):
        weights = generator.normal(0, (2 / above) ** 0.5, (above, below))
        found += [xp.asarray(weights.astype(np.float32)), xp.zeros(below, dtype="float32")]
    return [found, [each * 0 for each in found], [each * 0 for each in found]]


def gradients(xp, weights: list, x, wanted) -> tuple:
    """The mean cross-entropy, and its derivatives with respect to all weights and biases."""
    w1, b1, w2, b2, w3, b3 = weights
    first = xp.maximum(x @ w1 + b1, 0)
    second = xp.maximum(first @ w2 + b2, 0)
    scores = second @ w3 + b3
    scores = scores - xp.max(scores, axis=1, keepdims=True)
    powers = xp.exp(scores)
    total = xp.sum(powers, axis=1, keepdims=True)
    loss = xp.mean(xp.log(total[:, 0]) - xp.sum(scores * wanted, axis=1))
    d3 = (powers / total - wanted) / x.shape[0]
    d2 = (d3 @ w3.T) * (second > 0)
    d1 = (d2 @ w2.T) * (first > 0)
    sums = [xp.sum(each, axis=0) for each in (d1, d2, d3)]
    return loss, (x.T @ d1, sums[0], first.T @ d2, sums[1], second.T @ d3, sums[2])


def update(xp, state: list[list], count: int, x, wanted, decay: float = 0.9, slow: float = 0.999):
    """Replace the state by that after Adam's step number `count`. Returns the loss before the step."""
    weights, means, squares = state
    loss, slopes = gradients(xp, weights, x, wanted)
    rate = RATE * (1 - slow**count) ** 0.5 / (1 - decay**count)
    for at, slope in enumerate(slopes):
        means[at] = decay * means[at] + (1 - decay) * slope
        squares[at] = slow * squares[at] + (1 - slow) * slope * slope
        weights[at] = weights[at] - rate * means[at] / (xp.sqrt(squares[at]) + 1e-8)
    return loss


def step(xp, state: list[list], count: int, x, wanted):
    """An update that is computed at once."""
    loss = update(xp, state, count, x, wanted)
    if xp is fxp:
        xp.compute(loss, *(each for part in state for each in part))
    return loss


def accuracy(weights: list, x, shown: np.ndarray) -> float:
    """The fraction of pictures that are classified correctly."""
    for at in range(0, 6, 2):
        x = x @ weights[at] + weights[at + 1]
        x = fxp.maximum(x, 0) if at < 4 else x
    return float(np.mean(np.argmax(np.asarray(x), axis=1) == shown))


def milliseconds(xp, batch: int) -> float:
    """The time of the fastest of several steps."""
    state, times = beginning(xp, 0), []
    x, wanted = xp.asarray(pictures[:batch]), xp.asarray(targets[:batch])
    for count in range(1, 21):
        start = perf_counter()
        step(xp, state, count, x, wanted)
        times.append(perf_counter() - start)
    return 1e3 * min(times)


pictures, shown = digits()
order = np.random.default_rng(0).permutation(len(shown))
pictures, shown = pictures[order].astype(np.float32), shown[order]
targets = np.eye(10, dtype=np.float32)[shown]
half = len(shown) * 4 // 5  # the rest is the test set

state = beginning(fxp, 0)
loss = update(fxp, state, 1, fxp.asarray(pictures[:BATCH]), fxp.asarray(targets[:BATCH]))
kernels = fxp.explain(loss, *(each for part in state for each in part)).kernels
print(f"a step is {kernels} kernels and 8 products")

state = beginning(fxp, 0)
print("epoch    loss  accuracy")
generator, count = np.random.default_rng(0), 0
for epoch in range(EPOCHS):
    order, losses = generator.permutation(half), []
    for start in range(0, half - BATCH + 1, BATCH):
        chosen, count = order[start : start + BATCH], count + 1
        x, wanted = fxp.asarray(pictures[chosen]), fxp.asarray(targets[chosen])
        losses.append(step(fxp, state, count, x, wanted))
    right = accuracy(state[0], fxp.asarray(pictures[half:]), shown[half:])
    print(f"{epoch + 1:5}  {float(sum(losses)) / len(losses):6.4f}  {right:8.4f}")
assert right > 0.955, "two layers suffice for these digits"

for batch in (64, 1024):
    print(f"a step of {batch}: fusec {milliseconds(fxp, batch):.2f} ms   NumPy {milliseconds(np, batch):.2f} ms")
