"""Data sets: scikit-learn's 8x8 digits, or any npz file with arrays x and y."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

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
    def classes(self) -> int:
        return int(max(self.train_y.max(), self.test_y.max())) + 1


def load_dataset(source: str) -> Dataset:
    """`digits`, or the path of an npz file with x [samples, ...] and y [samples]."""
    if source == "digits":
        from sklearn.datasets import load_digits

        digits = load_digits()
        return split(digits.images / 16.0, digits.target)
    path = Path(source)
    if not path.is_file():
        raise ValueError(f"no such data set: {source} (give `digits` or an npz file)")
    with np.load(path) as arrays:
        missing = {"x", "y"} - set(arrays.files)
        if missing:
            raise ValueError(f"{source} has no array {sorted(missing)[0]!r} (needs x and y)")
        return split(arrays["x"], arrays["y"])


def split(x: NDArray[np.generic], y: NDArray[np.generic]) -> Dataset:
    """Check the arrays, give grey images their channel, and cut off the test part."""
    if len(x) != len(y) or y.ndim != 1 or len(y) < 5:
        raise ValueError(f"x {x.shape} and y {y.shape} are not samples with one class each")
    images = np.asarray(x, dtype=np.float32)
    if not np.isfinite(images).all():
        raise ValueError("x has values that are not finite")
    if images.ndim == 3:  # [samples, height, width]
        images = images[:, None]
    inputs, classes = torch.from_numpy(images), torch.from_numpy(np.asarray(y, dtype=np.int64))
    cut = len(y) - int(len(y) * TEST_FRACTION)
    return Dataset(inputs[:cut], classes[:cut], inputs[cut:], classes[cut:])
