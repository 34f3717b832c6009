"""Every network of the shared benchmark data loads, or is refused for the reason we know."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from fgp_vnn.base.errors import InputError
from fgp_vnn.cli.networks import find_networks
from fgp_vnn.network import load_network
from fgp_vnn.network.onnx.opaque import FLAT_OPERATORS

BENCHMARKS = (
    "acasxu_2023", "cersyve", "cgan_2023", "collins_rul_cnn_2022", "cora_2024", "dist_shift_2023",
    "linearizenn_2024", "lsnc_relu", "malbeware", "metaroom_2023", "ml4acopf_2024", "mnist_fc",
    "oval21", "reach_prob_density", "relusplitter", "relusplitter_biasfield", "rl_benchmarks",
    "safenlp_2024", "sat_relu", "sri_resnet_a", "test", "tllverifybench_2023",
    "traffic_signs_recognition_2023", "vit_2023", "vnnlib2_samples", "yolo_2023",
)  # fmt: skip
SMALL = 200_000  # bytes
PARTLY = {"nn4sys": "not an ONNX file"}  # a file that is cut off


def test_every_benchmark_is_named_here(shared_data: Path) -> None:
    folders = {path.name for path in (shared_data / "vnncomp").iterdir()}
    assert folders == {*BENCHMARKS, *PARTLY}


def networks_in(folder: Path) -> list[Path]:
    found = list(find_networks(folder))
    assert found
    return found


@pytest.mark.slow
@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_benchmark_loads(shared_data: Path, benchmark: str) -> None:
    """The smallest network of a folder, and the one in the middle by size if it is small: the
    others are of their make."""
    found = networks_in(shared_data / "vnncomp" / benchmark)
    found.sort(key=lambda path: path.stat().st_size)
    middle = found[(len(found) - 1) // 2]
    for path in {found[0], middle if middle.stat().st_size < SMALL else found[0]}:
        assert_loads(path)


def test_networks_of_the_paper_load(shared_data: Path) -> None:
    for path in networks_in(shared_data / "paper"):
        assert_loads(path)


@pytest.mark.slow
@pytest.mark.parametrize("benchmark", sorted(PARTLY))
def test_files_that_are_cut_off_are_refused_and_the_others_load(
    shared_data: Path, benchmark: str
) -> None:
    """The small ones: a large one has a small one of its make beside it."""
    refused = 0
    found = find_networks(shared_data / "vnncomp" / benchmark)
    paths = [path for path in found if path.stat().st_size < SMALL]
    for path in paths:
        try:
            assert_loads(path)
        except InputError as error:
            assert re.search(PARTLY[benchmark], str(error)), error
            refused += 1
    assert 0 < refused < len(paths)


def assert_loads(path: Path) -> None:
    model = load_network(path)
    x = np.random.default_rng(4).uniform(size=(3, model.network.inputs)).astype(np.float32)
    expected = np.stack([model.runtime.run(row) for row in x])
    if FLAT_OPERATORS & model.operators.keys():
        return  # a rounding may be a whole step apart
    actual = model.network(torch.from_numpy(x).double()).numpy()
    np.testing.assert_allclose(actual, expected, rtol=1e-3, atol=1e-3 * abs(expected).max())
