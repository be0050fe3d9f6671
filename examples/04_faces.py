"""200 photographs of faces and other things, each made of mean 0 and variance 1, then compared with the average face.

The photographs are scikit-image's excerpt of Labeled Faces in the Wild. Prints how many kernels each step ran.
"""

from timeit import repeat

import numpy as np
from skimage import data

import fusec
from fusec.reductions.normalise import layer_norm_kernel

faces = data.lfw_subset().astype(np.float32)  # the first 100 are faces
count, height, width = faces.shape

normal = fusec.layer_norm(faces, axis=(1, 2), eps=1e-8)
kernel = layer_norm_kernel(faces.dtype, scales=False, shifts=False)
print(kernel.explain(faces, 1e-8, axis=(1, 2)))

mean, var = fusec.mean_var(normal, axis=(1, 2))
before = fusec.var(faces, axis=(1, 2))
assert abs(mean).max() < 1e-4
assert np.allclose(var, before / (before + 1e-8), rtol=1e-3), "1, but for images that are nearly of one colour"

average = fusec.mean(normal[:100], axis=0)
distance = fusec.ReductionKernel("T x, T y", "T z", "(x - y) * (x - y)", "a + b", "z = sqrt(a / 625)", "0", "distance")
far = distance(normal, average, axis=(1, 2))
print(distance.explain(normal, average, axis=(1, 2)))


def with_numpy(x: np.ndarray) -> np.ndarray:
    """The same normalisation."""
    centred = x - x.mean((1, 2), keepdims=True)
    return centred / np.sqrt((centred * centred).mean((1, 2), keepdims=True) + np.float32(1e-8))


def best(call, number: int = 20) -> float:
    """Milliseconds of the fastest of a few runs."""
    return 1e3 * min(repeat(call, number=number, repeat=5)) / number


assert np.allclose(normal, with_numpy(faces), atol=1e-4), "not what NumPy computes"
print(f"{count} images of {height} x {width}; distance from the average face:")
print(f"faces {fusec.mean(far[:100]):.3f}, others {fusec.mean(far[100:]):.3f}")
print(f"{fusec.sum(far[:100] < fusec.median(far))} of the 100 faces are among the nearer half")
mine = best(lambda: fusec.layer_norm(faces, axis=(1, 2), eps=1e-8))
print(f"normalised in {mine:.3f} ms by fusec, {best(lambda: with_numpy(faces)):.3f} ms by NumPy")
