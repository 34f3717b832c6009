"""Properties of classifiers, and the folders of instances that are written from them."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

import fgp_vnn
from fgp_vnn.api.folders import Folder, write_folder
from fgp_vnn.api.points import Points, read_points
from fgp_vnn.base.errors import InputError
from tests.helpers.small_networks import random_network, save_onnx


def saved(folder: Path, outputs: int) -> Path:
    """The file of a network with 4 inputs."""
    path = folder / "net.onnx"
    save_onnx(random_network((4, 6, outputs), 2), path)
    return path


def written(folder: Path, model: Path) -> tuple[int, int]:
    """Write one instance about one point of class 0."""
    np.savez(folder / "points.npz", x=np.full((1, 4), 0.5, np.float32), y=np.zeros(1, int))

    def read(shape: tuple[int, ...]) -> Points:
        return read_points(folder / "points.npz", shape)

    made = write_folder(Folder(folder / "out"), model, read, ["0.1"], {}, keep_wrong=True)
    return made.instances, made.wrong


def test_robustness_of_a_network_with_one_output_is_refused_in_one_line(tmp_path: Path) -> None:
    model = saved(tmp_path, 1)
    with pytest.raises(InputError, match="this one has one output") as told:
        fgp_vnn.robustness(model, np.zeros(4), epsilon=0.1)
    assert "\n" not in str(told.value)


def test_a_folder_about_a_network_with_one_output_is_refused_before_anything_is_written(
    tmp_path: Path,
) -> None:
    with pytest.raises(InputError, match=r"^robustness is for a network with an output for each"):
        written(tmp_path, saved(tmp_path, 1))
    assert not (tmp_path / "out").exists()


def test_a_network_that_cannot_be_copied_is_an_input_error(tmp_path: Path) -> None:
    (tmp_path / "out" / "onnx" / "net.onnx").mkdir(parents=True)
    with pytest.raises(InputError, match=r"network .*net\.onnx cannot be written"):
        written(tmp_path, saved(tmp_path, 3))


def test_a_network_whose_name_stands_for_a_packed_file_is_copied_twice(tmp_path: Path) -> None:
    plain = saved(tmp_path, 3)
    data = plain.read_bytes()
    (tmp_path / "net.onnx.gz").write_bytes(gzip.compress(data))
    plain.unlink()
    for _ in range(2):
        assert written(tmp_path, plain) == (1, 0)
        assert (tmp_path / "out" / "onnx" / "net.onnx").read_bytes() == data


@pytest.mark.parametrize(("keep_wrong", "counts"), [(True, (1, 0, 1)), (False, (0, 1, 1))])
def test_points_of_the_only_target_class_are_left_out_and_counted(
    tmp_path: Path, keep_wrong: bool, counts: tuple[int, int, int]
) -> None:
    model, x = saved(tmp_path, 3), np.full((2, 4), 0.5, np.float32)
    own = fgp_vnn.Certifier.of(model).certify(x[0], epsilon=0.0).label
    points = Points(tmp_path, x, np.array([own, (own + 1) % 3]))
    near = {"target": own}
    made = write_folder(
        Folder(tmp_path / "out"), model, lambda _: points, ["0.1"], near, keep_wrong=keep_wrong
    )
    assert made == counts
