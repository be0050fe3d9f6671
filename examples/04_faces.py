"""200 photographs of faces and other things, each made of mean 0 and variance 1, then compared with the average face.

The photographs are scikit-image's excerpt of Labeled Faces in the Wild. Prints how many kernels each step ran, and the
time of the normalisation beside NumPy, which runs the same function.
"""

from timeit import repeat

import numpy as np
from skimage import data

import fusec


def normalise(images):
    """Every image less its mean, by its standard deviation; 1e-8 for those of one colour."""
    centred = images - images.mean(axis=(1, 2), keepdims=True)
    variance = (centred * centred).mean(axis=(1, 2), keepdims=True)
    return centred / np.sqrt(variance + np.float32(1e-8))


@fusec.reduction(map=lambda x, y: (x - y) ** 2, finish=lambda total, count: np.sqrt(total / count), identity=0)
def distance(a, b):
    """The root of the mean square of what two images differ by."""
    return a + b


faces = data.lfw_subset().astype(np.float32)  # 200 images of 25 x 25; the first 100 are faces
fused = fusec.fuse(normalise)
normal = fused(faces)
average = fusec.mean(normal[:100], axis=0)
far = distance(normal, average, axis=(1, 2))

print(fused.explain(faces))
print(distance.explain(normal, average, axis=(1, 2)))
assert np.allclose(normal, normalise(faces), atol=1e-4), "not what NumPy computes"
assert np.allclose(far, np.sqrt(((normal - average) ** 2).mean((1, 2))), rtol=1e-5), "not what NumPy computes"

print(f"{len(faces)} images of {faces.shape[1]} x {faces.shape[2]}; distance from the average face:")
print(f"faces {fusec.mean(far[:100]):.3f}, others {fusec.mean(far[100:]):.3f}")
print(f"{fusec.sum(far[:100] < fusec.median(far))} of the 100 faces are among the nearer half")


def best(call, number: int = 20) -> float:
    """Milliseconds of the fastest of a few runs."""
    return 1e3 * min(repeat(call, number=number, repeat=5)) / number


times = f"{best(lambda: fused(faces)):.3f} ms by fusec, {best(lambda: normalise(faces)):.3f} ms by NumPy"
print(f"normalised in {times}")
