"""Files of inputs that cannot be read: one line that names the file, whatever is wrong with it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from fgp_vnn.api.points import read_points
from fgp_vnn.base.errors import InputError


def packed(path: Path) -> bytes:
    np.savez_compressed(path, x=np.arange(400, dtype=np.float32).reshape(100, 4))
    return path.read_bytes()


def test_points_are_read(tmp_path: Path) -> None:
    packed(tmp_path / "points.npz")
    assert len(read_points(tmp_path / "points.npz", (4,))) == 100


@pytest.mark.parametrize("name", ["points.npz", "points.npy"])
@pytest.mark.parametrize("content", [b"", b"PK\x03\x04junk", b"\x93NUMPY", b"\x00" * 50])
def test_a_damaged_file_is_one_line(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=name) as caught:
        read_points(path, (4,))
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_named_once(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot be read: No such file or directory$"):
        read_points(tmp_path / "points.npz", (4,))


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9])
def test_a_file_that_was_cut_off_is_one_line(tmp_path: Path, part: float) -> None:
    path = tmp_path / "points.npz"
    content = packed(path)
    path.write_bytes(content[: int(part * len(content))])
    with pytest.raises(InputError, match="cannot be read"):
        read_points(path, (4,))


def test_a_changed_byte_in_the_data_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "points.npz"
    content = bytearray(packed(path))
    content[120:130] = bytes(255 - b for b in content[120:130])
    path.write_bytes(bytes(content))
    with pytest.raises(InputError, match="cannot be read"):
        read_points(path, (4,))


@pytest.mark.parametrize("text", [200_000 * "1", '1,"2\n' + 50_000 * "3,4\n"])
def test_a_csv_cell_that_is_too_long_is_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "points.csv").write_text(text)
    with pytest.raises(InputError, match=r"points.csv: cannot be read: field larger"):
        read_points(tmp_path / "points.csv", (4,))


def test_a_file_without_points_says_so(tmp_path: Path) -> None:
    np.save(tmp_path / "none.npy", np.zeros((0, 4), dtype=np.float32))
    with pytest.raises(InputError, match=r"none.npy: has no points$"):
        read_points(tmp_path / "none.npy", (4,))


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e39])
def test_a_value_that_is_not_finite_is_said_to_be_of_its_point(
    tmp_path: Path, value: float
) -> None:
    x = np.zeros((3, 4))
    x[1, 2] = value
    np.save(tmp_path / "points.npy", x)
    with pytest.raises(InputError, match="point 1 has values that are not finite"):
        read_points(tmp_path / "points.npy", (4,))


@pytest.mark.parametrize("objects", [True, False])
def test_nobody_is_told_to_load_what_may_run_code(tmp_path: Path, objects: bool) -> None:
    path = tmp_path / "points.npz"
    if objects:
        np.savez(path, x=np.array([{}], dtype=object))
    else:
        path.write_text("some text")
    with pytest.raises(InputError, match="holds no arrays of numbers") as caught:
        read_points(path, (4,))
    assert "pickle" not in str(caught.value)


def saved_csv(folder: Path, content: bytes) -> Path:
    path = folder / "points.csv"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf", b"a,b\n", b"\xef\xbb\xbfa,b\n"])
def test_no_point_of_a_csv_file_is_lost(tmp_path: Path, start: bytes) -> None:
    points = read_points(saved_csv(tmp_path, start + b"0.9,0.1\n0.2,0.8\n"), (2,))
    assert points.x.tolist() == [[0.9, 0.1], [0.2, 0.8]] and points.y is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"O.9,0.1\n0.2,0.8\n", "'O.9' in its first line is not a number"),
        (b"0.9,x\n0.2,0.8\n", "'x' in its first line is not a number"),
        (b",a,b\n0,0.2,0.8\n1,0.9,0.1\n", "its first column has no name"),
        (b"0,1,2\n1,0.2,0.8\n", "it numbers the columns"),
    ],
)
def test_a_first_line_that_may_or_may_not_be_a_header_is_refused(
    tmp_path: Path, content: bytes, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        read_points(saved_csv(tmp_path, content), (2,))


@pytest.mark.parametrize("y", [["0", "1"], [0j, 1j], [0.5, 1.0], [0]])
def test_classes_are_one_whole_number_for_each_point(tmp_path: Path, y: list[object]) -> None:
    np.savez(tmp_path / "points.npz", x=np.zeros((2, 4)), y=np.array(y))
    with pytest.raises(InputError, match="y must hold one class number for each of the 2 points"):
        read_points(tmp_path / "points.npz", (4,))


@pytest.mark.parametrize("y", [np.inf, -np.inf, 1e19, 2**64 - 1])
def test_a_class_beyond_every_integer_type_is_named(tmp_path: Path, y: float) -> None:
    np.savez(tmp_path / "points.npz", x=np.zeros((1, 4)), y=np.array([y]))
    with pytest.raises(InputError, match=re.escape(f"{np.array([y])[0]} in y is not the number")):
        read_points(tmp_path / "points.npz", (4,))


def test_images_with_channels_last_are_refused(tmp_path: Path) -> None:
    images, shape = np.arange(96.0).reshape(2, 3, 4, 4), (1, 3, 4, 4)
    for points in (images, images[:1], images.reshape(2, 48), images[0]):
        np.save(tmp_path / "points.npy", points)
        assert read_points(tmp_path / "points.npy", shape).x[0].tolist() == list(range(48))
    last = images.transpose(0, 2, 3, 1)
    for points in (last, last[0]):
        np.save(tmp_path / "points.npy", points)
        with pytest.raises(InputError, match=r"a point of shape \(4, 4, 3\) does not .* transpose"):
            read_points(tmp_path / "points.npy", shape)
