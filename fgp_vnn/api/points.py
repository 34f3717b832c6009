"""Inputs to certify, from .npy, .npz and .csv files."""

from __future__ import annotations

import csv
import math
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from fgp_vnn.api.arrays import check_layout, in_float32
from fgp_vnn.base.errors import InputError, one_line, os_reason
from fgp_vnn.base.words import plural

_MOST_CLASSES = 2**53  # a larger float is not a count, and int64 does not hold all of them


@dataclass(frozen=True, eq=False)
class Points:
    """Flat inputs, with their true classes if the file has them."""

    path: Path
    x: NDArray[Any]  # [points, inputs]
    y: NDArray[np.int64] | None  # [points]

    def __len__(self) -> int:
        return len(self.x)

    def first(self, count: int | None) -> Points:
        """The first `count` points; all if None."""
        return Points(self.path, self.x[:count], None if self.y is None else self.y[:count])

    def check_classes(self, classes: int) -> None:
        """Refuse a class that is not between 0 and `classes` - 1."""
        for number, label in enumerate(() if self.y is None else self.y.tolist()):
            if not 0 <= label < classes:
                what = f"the class of point {number} is {label}"
                raise InputError(f"{self.path}: {what}, not between 0 and {classes - 1}")


def read_points(path: Path, shape: tuple[int, ...]) -> Points:
    """Read points from a file, for a network whose input has this shape; raises InputError."""
    inputs = math.prod(shape)
    readers = {".npy": _read_npy, ".npz": _read_npz, ".csv": _read_csv}
    if path.suffix not in readers:
        raise InputError(f"{path}: points are read from .npy, .npz and .csv files")
    with _reading(path):
        x, y = readers[path.suffix](path)
    if x.dtype.kind not in "fiu":
        raise InputError(f"{path}: points must be numbers, not {x.dtype}")
    if not x.size:
        raise InputError(f"{path}: has no points")
    one = x.shape if x.size == inputs else x.shape[1:]
    x = x.reshape(1, -1) if x.size == inputs else x.reshape(len(x), -1)
    if y is None and path.suffix == ".csv" and x.shape[1] == inputs + 1:
        x, y = x[:, 1:], x[:, 0]
    if x.shape[1] != inputs:
        raise InputError(
            f"{path}: points with {plural(x.shape[1], 'value')} each do not fit a network "
            f"with {plural(inputs, 'input')}"
        )
    check_layout(f"{path}: a point", one, shape)
    if bad := np.flatnonzero(~in_float32(x).all(axis=1)).tolist():
        raise InputError(f"{path}: point {bad[0]} has values that are not finite in float32")
    return Points(path, x, None if y is None else _classes(path, y, len(x)))


def _classes(path: Path, y: NDArray[Any], count: int) -> NDArray[np.int64]:
    if y.dtype.kind not in "fiub" or y.shape != (count,) or not (y == np.floor(y)).all():
        raise InputError(f"{path}: y must hold one class number for each of the {count} points")
    if (large := y[~(np.abs(y.astype(np.float64)) < _MOST_CLASSES)]).size:
        raise InputError(f"{path}: {large[0]} in y is not the number of a class")
    return y.astype(np.int64)


def _read_npy(path: Path) -> tuple[NDArray[Any], NDArray[Any] | None]:
    with path.open("rb") as file:
        return np.atleast_1d(np.load(file, allow_pickle=False)), None


def _read_npz(path: Path) -> tuple[NDArray[Any], NDArray[Any] | None]:
    arrays = read_npz(path, "x")
    return np.atleast_1d(arrays["x"]), arrays.get("y")


def read_npz(path: Path, *wanted: str) -> dict[str, NDArray[Any]]:
    """The arrays of an .npz file by name; raises InputError if one of the `wanted` is missing."""
    # The file is opened here, as above, since numpy does not close a file that is not an archive.
    with _reading(path), path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        for name in wanted:
            if name not in archive:
                has = ", ".join(archive) or "none"
                raise InputError(f"{path}: has no array {name} (it has {has})")
        return dict(archive)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn an error of numpy, csv or the system while reading a file into an InputError."""
    try:
        yield
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {os_reason(error)}") from None
    except (ValueError, KeyError, EOFError, BadZipFile, zlib.error, csv.Error) as error:
        if "allow_pickle" in str(error):  # numpy suggests loading the pickle, which is unsafe
            reason = f"it holds no arrays of numbers as numpy writes them to {path.suffix} files"
            raise InputError(f"{path}: cannot be read: {reason}") from error
        raise InputError(f"{path}: cannot be read: {one_line(error)}") from error


def _read_csv(path: Path) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Rows of numbers, with or without a header. With one column more than the network has inputs,
    `read_points` takes the first as the class."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = [row for row in csv.reader(file) if row]
    if rows and _is_header(path, rows[0]):
        rows = rows[1:]
    if not rows:
        raise InputError(f"{path}: has no points")
    widths = {len(row) for row in rows}
    if len(widths) > 1:
        raise InputError(f"{path}: its rows have {min(widths)} to {max(widths)} values")
    return np.array(rows, dtype=np.float64), None


def _is_header(path: Path, row: list[str]) -> bool:
    """Whether the first row holds names and not a point; raises InputError in doubt."""
    numbers = [_is_number(cell) for cell in row]
    if all(numbers):
        if len(row) > 2 and [float(cell) for cell in row] == list(range(len(row))):
            counted = f"its first line is 0, 1, ..., {len(row) - 1}"
            raise InputError(f"{path}: {counted}: remove it, it numbers the columns")
        return False
    if not row[0].strip():
        raise InputError(f"{path}: its first column has no name; write it without row numbers")
    if any(numbers):
        wrong = row[numbers.index(False)]
        raise InputError(f"{path}: {wrong[:50]!r} in its first line is not a number")
    return True


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
