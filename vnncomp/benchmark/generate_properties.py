"""Write vnnlib/*.vnnlib and instances.csv for a seed: python generate_properties.py SEED.

Run in the benchmark's folder. The images are the last fifth of scikit-learn's 8x8 digits, which
no network of onnx/ was trained on; only images that a network classifies correctly are used.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from fgp_vnn.api.folders import Folder
from fgp_vnn.property.conditions import Condition, Space, property_of
from fgp_vnn.property.expressions import space_variables

TIMEOUT = 30
TEST_FRACTION = 0.2
CLASSES = 10

# Per network, the l-infinity radii of its instances: some that most images stand, some that few do.
RADII = {
    "conv_deep_pgd": (0.02, 0.05, 0.08, 0.15),
    "conv_small_stable": (0.02, 0.05, 0.08, 0.15),
    "conv_small_standard": (0.01, 0.03, 0.05, 0.12),
    "dense_16x2_pgd": (0.02, 0.05, 0.08, 0.15),
    "dense_16x2_standard": (0.01, 0.03, 0.06, 0.12),
    "dense_20x6_pgd": (0.01, 0.02, 0.04, 0.15),
    "dense_24x3_pgd": (0.02, 0.04, 0.06, 0.15),
    "dense_24x3_standard": (0.01, 0.02, 0.04, 0.1),
    "dense_32x2_mmr": (0.02, 0.05, 0.08, 0.15),
    "dense_32x2_stable": (0.02, 0.05, 0.08, 0.15),
    "dense_48x3_mmr": (0.02, 0.03, 0.05, 0.15),
    "dense_48x3_stable": (0.02, 0.04, 0.08, 0.15),
    "conv_6-12-32_mmr": (0.03, 0.06, 0.08, 0.1, 0.15),
    "conv_6-12-32_pgd": (0.04, 0.08, 0.1, 0.12, 0.15),
    "conv_8-16-40_stable": (0.03, 0.06, 0.08, 0.1, 0.15),
}

# Instances of another shape than one class against all others.
SPECIAL = {
    "conv_small_standard": [("two_boxes", 0.03)],
    "dense_16x2_pgd": [("targeted", 0.06)],
    "dense_16x2_standard": [("two_boxes", 0.06)],
    "dense_24x3_standard": [("conjunction", 0.08)],
    "dense_32x2_mmr": [("conjunction", 0.2)],
    "dense_48x3_mmr": [("targeted", 0.05)],
    "conv_6-12-32_mmr": [("targeted", 0.09)],
    "conv_6-12-32_pgd": [("conjunction", 0.14)],
    "conv_8-16-40_stable": [("two_boxes", 0.05)],
}

PIXELS = 64
X, Y = space_variables(Space((PIXELS,), (CLASSES,)))
Asked = tuple[str, Condition, Condition]  # a title, the inputs, and the unsafe outputs


def main(argv: Sequence[str]) -> int:
    if len(argv) != 1 or not argv[0].isdecimal():
        print("usage: python generate_properties.py SEED   (a whole number)", file=sys.stderr)
        return 2
    generate(Path.cwd(), int(argv[0]))
    return 0


def generate(folder: Path, seed: int) -> None:
    """Replace the properties and the instance list of the folder by those of the seed."""
    chance = random.Random(seed)
    for old in (folder / "vnnlib").glob("*.vnnlib"):
        old.unlink()
    out, rows = Folder(folder, timeout=TIMEOUT), []
    for name, radii in RADII.items():
        network = Network(folder / "onnx" / f"{name}.onnx")
        properties: list[tuple[str, float]] = [("untargeted", radius) for radius in radii]
        properties += SPECIAL.get(name, [])
        for shape, radius in properties:
            title, inputs, unsafe = SHAPES[shape](network, radius, chance)
            file = out.write(f"{name}_{shape}_{radius}", property_of(inputs, unsafe), title)
            rows.append((f"onnx/{name}.onnx", file))
    out.list(rows)


class Network:
    """A network of the benchmark and the test images that it classifies correctly."""

    def __init__(self, path: Path) -> None:
        self._session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        digits = load_digits()
        first = len(digits.target) - int(len(digits.target) * TEST_FRACTION)
        images = digits.data[first:] / 16.0
        self._shape = self._session.get_inputs()[0].shape
        self.images = [
            image
            for image, target in zip(images, digits.target[first:], strict=True)
            if self.ranking(image)[0] == target
        ]

    def ranking(self, image: NDArray[np.float64]) -> list[int]:
        """All classes, the most likely first."""
        point = image.astype(np.float32).reshape(self._shape)
        (output,) = self._session.run(None, {"x": point})
        return [int(label) for label in np.argsort(-np.ravel(output), kind="stable")]


def untargeted(network: Network, radius: float, chance: random.Random) -> Asked:
    """Some other class reaches the right one."""
    image = chance.choice(network.images)
    right = network.ranking(image)[0]
    return f"class {right}, radius {radius}", _box(image, radius), _any_other(right)


def targeted(network: Network, radius: float, chance: random.Random) -> Asked:
    """The second most likely class reaches the right one."""
    image = chance.choice(network.images)
    right, second = network.ranking(image)[:2]
    title = f"class {right} against {second}, radius {radius}"
    return title, _box(image, radius), Y[second] >= Y[right]


def conjunction(network: Network, radius: float, chance: random.Random) -> Asked:
    """The second and the third most likely classes both reach the right one."""
    image = chance.choice(network.images)
    right, *others = network.ranking(image)[:3]
    title = f"class {right} against {others[0]} and {others[1]}, radius {radius}"
    return title, _box(image, radius), Y[others] >= Y[right]


def two_boxes(network: Network, radius: float, chance: random.Random) -> Asked:
    """Near one of two images of a class, some other class reaches it."""
    image = chance.choice(network.images)
    right = network.ranking(image)[0]
    same = [other for other in network.images if network.ranking(other)[0] == right]
    boxes = _box(image, radius) | _box(chance.choice(same), radius)
    return f"class {right} near two images, radius {radius}", boxes, _any_other(right)


SHAPES: dict[str, Callable[[Network, float, random.Random], Asked]] = {
    "untargeted": untargeted,
    "targeted": targeted,
    "conjunction": conjunction,
    "two_boxes": two_boxes,
}


def _any_other(right: int) -> Condition:
    others = [label for label in range(CLASSES) if label != right]
    return (Y[others] >= Y[right]).any()


def _box(image: NDArray[np.float64], radius: float) -> Condition:
    # Ten decimals hide the rounding of image +- radius, whose digits are at most six.
    low = np.maximum(image - radius, 0.0).round(10)
    inside: Condition = (low <= X) & (np.minimum(image + radius, 1.0).round(10) >= X)
    return inside


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
