"""Every network of the shared benchmark data loads, or is refused for the reason we know."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from fgp_vnn.base.errors import InputError, UnsupportedError
from fgp_vnn.cli.networks import find_networks
from fgp_vnn.network import load_network

BENCHMARKS = (
    "acasxu_2023", "cersyve", "collins_rul_cnn_2022", "cora_2024", "linearizenn_2024", "malbeware",
    "metaroom_2023", "mnist_fc", "oval21", "reach_prob_density", "relusplitter",
    "relusplitter_biasfield", "rl_benchmarks", "safenlp_2024", "sat_relu", "sri_resnet_a", "test",
    "tllverifybench_2023", "vnnlib2_samples", "yolo_2023",
)  # fmt: skip
REFUSED = {
    "dist_shift_2023": "Sigmoid",
    "lsnc_relu": "both depend on the input",
    "ml4acopf_2024": "Sigmoid|both depend on the input",
    "traffic_signs_recognition_2023": "Sign",
    "vit_2023": "both depend on the input",
}
PARTLY = {
    "cgan_2023": "Sigmoid|both depend on the input|Tanh",
    "nn4sys": "Pow|Sigmoid|both depend on the input|not an ONNX file",
}


def test_every_benchmark_is_named_here(shared_data: Path) -> None:
    folders = {path.name for path in (shared_data / "vnncomp").iterdir()}
    assert folders == {*BENCHMARKS, *REFUSED, *PARTLY}


def networks_in(folder: Path) -> list[Path]:
    found = list(find_networks(folder))
    assert found
    return found


@pytest.mark.slow
@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_benchmark_loads(shared_data: Path, benchmark: str) -> None:
    for path in networks_in(shared_data / "vnncomp" / benchmark):
        assert_loads(path)


def test_networks_of_the_paper_load(shared_data: Path) -> None:
    for path in networks_in(shared_data / "paper"):
        assert_loads(path)


@pytest.mark.parametrize("benchmark", sorted(REFUSED))
def test_benchmark_that_is_not_piecewise_linear_is_refused(
    shared_data: Path, benchmark: str
) -> None:
    for path in networks_in(shared_data / "vnncomp" / benchmark):
        with pytest.raises(UnsupportedError, match=REFUSED[benchmark]):
            load_network(path)


@pytest.mark.slow
@pytest.mark.parametrize("benchmark", sorted(PARTLY))
def test_networks_that_are_not_piecewise_linear_are_refused_and_the_others_load(
    shared_data: Path, benchmark: str
) -> None:
    refused = 0
    paths = list(find_networks(shared_data / "vnncomp" / benchmark))
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
    actual = model.network(torch.from_numpy(x).double()).numpy()
    np.testing.assert_allclose(actual, expected, rtol=1e-3, atol=1e-3 * abs(expected).max())
