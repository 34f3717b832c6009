"""Data sets: scikit-learn's 8x8 digits, or any npz file with arrays x and y."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

TEST_FRACTION = 0.2


@dataclass(frozen=True, eq=False)
class Dataset:
    """Images with their classes; the last fifth, in the order of the source, is for testing."""

    train_x: Tensor  # [samples, channels, height, width], or [samples, inputs]
    train_y: Tensor  # [samples]
    test_x: Tensor
    test_y: Tensor

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one input, without the batch."""
        return tuple(self.train_x.shape[1:])

    @property
    def range(self) -> tuple[float, float]:
        """The range of values: [0, 1] as for images, extended if the data goes beyond it."""
        return min(0.0, float(self.train_x.min())), max(1.0, float(self.train_x.max()))

    @property
    def classes(self) -> int:
        return int(max(self.train_y.max(), self.test_y.max())) + 1


def load_dataset(source: str) -> Dataset:
    """Load `digits`, or an npz file with x [samples, ...] and y [samples].

    Bytes are read as pixels, with 255 as 1.
    """
    if source == "digits":
        from sklearn.datasets import load_digits

        digits = load_digits()
        return split(digits.images / 16.0, digits.target)
    path = Path(source)
    if not path.is_file():
        raise ValueError(f"no such data set: {source} (give `digits` or an npz file)")
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            given = {name: arrays[name] for name in ("x", "y") if name in arrays}
    except (OSError, EOFError, ValueError, AttributeError, TypeError, BadZipFile) as error:
        raise ValueError(f"{source} is not an npz file with arrays x and y") from error
    for name in ("x", "y"):
        if name not in given:
            raise ValueError(f"{source} has no array {name!r} (needs x and y)")
    return split(given["x"], given["y"])


def split(x: NDArray[np.generic], y: NDArray[np.generic]) -> Dataset:
    """Check the arrays, add the channel dimension to grey images, and split off the test part."""
    if x.ndim < 2 or len(x) != len(y) or y.ndim != 1 or len(y) < 5:
        raise ValueError(f"x {x.shape} and y {y.shape} are not samples with one class each")
    if x.dtype.kind not in "fiub" or y.dtype.kind not in "fiu":
        raise ValueError(f"x and y must be numbers, not {x.dtype} and {y.dtype}")
    images = np.asarray(x, dtype=np.float32)
    if x.dtype == np.uint8:
        images /= 255
    if not np.isfinite(images).all():
        raise ValueError("x has values that are not finite")
    labels = np.asarray(y, dtype=np.int64)
    if (labels != y).any() or labels.min() < 0:
        raise ValueError("y must hold class numbers 0, 1, 2, ...")
    if images.ndim == 3:  # [samples, height, width]
        images = images[:, None]
    inputs, classes = torch.from_numpy(images), torch.from_numpy(labels)
    cut = len(y) - int(len(y) * TEST_FRACTION)
    return Dataset(inputs[:cut], classes[:cut], inputs[cut:], classes[cut:])
