"""Training runs, its regularisers and the ONNX files it writes."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from numpy.typing import NDArray

from train import BUNDLED, main
from training.architectures import build, input_shape
from training.ball import NORMS, Ball
from training.data import Dataset, load_dataset, split
from training.export import to_onnx
from training.fit import Recipe, train
from training.linear import affine_forms, interval_bounds, samples_at_once
from training.methods import METHODS, Goal, attack, mmr

ARCHITECTURES = ["6x2", "conv_small", "conv_deep", "conv_paper", "conv_2-3-5", "resnet_2-2-3-5"]


@cache
def digits() -> Dataset:
    """Not loaded with this file: each worker would import scikit-learn."""
    return load_dataset("digits")


def inputs(architecture: str, count: int) -> torch.Tensor:
    return digits().test_x[:count].reshape(-1, *input_shape(architecture, digits().shape))


def fresh(architecture: str) -> torch.nn.Sequential:
    torch.manual_seed(0)
    return build(architecture, digits().shape, digits().classes)


@pytest.mark.parametrize(
    ("method", "architecture"),
    [("standard", name) for name in ARCHITECTURES]
    + [(name, "conv_small") for name in METHODS if name != "standard"],
)
def test_a_trained_network_is_the_same_in_onnxruntime(method: str, architecture: str) -> None:
    model = train(Recipe(architecture, method, epochs=1), digits())
    shape = input_shape(architecture, digits().shape)
    exported = to_onnx(model, shape, name="test").SerializeToString()
    session = onnxruntime.InferenceSession(exported, providers=["CPUExecutionProvider"])
    assert session.get_inputs()[0].shape == [1, *shape]
    for x in inputs(architecture, 20):
        (actual,) = session.run(None, {"x": x[None].numpy()})
        np.testing.assert_allclose(actual, model(x[None]).detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_a_seed_decides_the_network(method: str) -> None:
    first, again, other = (
        to_onnx(
            train(Recipe("6x2", method, epochs=1, seed=seed), digits()), (64,), name="n"
        ).SerializeToString()
        for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


def test_training_leaves_the_random_numbers_of_the_caller_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    train(Recipe("4x1", "pgd", epochs=1), digits())
    assert torch.equal(torch.rand(3), expected)


def test_training_learns() -> None:
    model = train(Recipe("16x2", "standard", epochs=15), digits())
    right = model(digits().test_x.flatten(1)).argmax(1) == digits().test_y
    assert right.float().mean() > 0.7


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_affine_forms_are_the_network_and_its_gradient(architecture: str) -> None:
    model, x = fresh(architecture), inputs(architecture, 4)
    *_, (value, rows) = affine_forms(model, x)
    torch.testing.assert_close(value, model(x))
    jacobian = torch.func.vmap(torch.func.jacrev(lambda p: model(p[None])[0]))(x)
    torch.testing.assert_close(rows, jacobian.reshape(rows.shape))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_interval_bounds_hold_for_sampled_points(architecture: str) -> None:
    model, x = fresh(architecture), inputs(architecture, 4)
    bounds = list(interval_bounds(model, x - 0.1, x + 0.1))
    for _ in range(50):
        point = x + 0.1 * (2 * torch.rand_like(x) - 1)
        *hidden, _ = affine_forms(model, point)
        for (value, _), (lower, upper) in zip(hidden, bounds, strict=True):
            assert ((lower - 1e-5 <= value) & (value <= upper + 1e-5)).all()


def test_the_paper_s_network_has_its_layers() -> None:
    paper, named = (build(name, (3, 32, 32), 10) for name in ("conv_paper", "conv_16-32-100"))
    shapes = [tuple(p.shape) for p in paper.parameters() if p.dim() > 1]
    assert shapes == [(16, 3, 4, 4), (32, 16, 4, 4), (100, 2048), (10, 100)]
    assert shapes == [tuple(p.shape) for p in named.parameters() if p.dim() > 1]
    assert all(layer.stride == (2, 2) for layer in paper if isinstance(layer, torch.nn.Conv2d))


def test_a_residual_network_of_tinyimagenet_s_size_has_as_many_neurons() -> None:
    model = build("resnet_16-32-32-64-128", (3, 56, 56), 200)
    with torch.no_grad():
        bounds = interval_bounds(model, torch.zeros(1, 3, 56, 56), torch.ones(1, 3, 56, 56))
        sizes = [lower.shape[1] for lower, _ in bounds]
    assert sizes == [50176, 25088, 25088, 25088, 25088, 12544, 12544, 128]


@pytest.mark.parametrize("architecture", ["6x2", "conv_2-3-5"])
@pytest.mark.parametrize("norm", NORMS)
def test_the_attack_stays_in_the_ball_and_in_the_image(norm: str, architecture: str) -> None:
    x, y = inputs(architecture, 50), digits().test_y[:50]
    model, ball = fresh(architecture), Ball(norm, 0.05)
    point = attack(model, x, y, ball)
    step = (point - x).flatten(1)
    length = step.abs().amax(1) if norm == "linf" else step.norm(dim=1)
    assert length.max() <= 0.05 + 1e-6
    assert point.min() >= 0 and point.max() <= 1
    loss = torch.nn.functional.cross_entropy
    assert loss(model(point), y) > loss(model(x), y)


@pytest.mark.parametrize("norm", NORMS)
def test_the_distance_to_a_hyperplane_is_where_the_ball_touches_it(norm: str) -> None:
    rows = torch.randn(3, 4, 5)
    value = torch.rand(3, 4) + 0.5
    radius = Ball(norm, 1.0).distance(value, rows)
    steepest = rows.sign() if norm == "linf" else rows / rows.norm(dim=-1, keepdim=True)
    touched = value - (rows * steepest).sum(-1) * radius
    torch.testing.assert_close(touched, torch.zeros(3, 4))


def test_the_margin_loss_of_a_batch_is_the_mean_of_its_parts() -> None:
    """So that a batch may be taken in parts that fit into memory."""
    x, y = inputs("conv_2-3-5", 7), digits().test_y[:7]
    model, goal = fresh("conv_2-3-5"), Goal(Ball("l2", 0.4), 0.05, 0.5)
    whole, first, rest = (
        mmr(model, x[s], y[s], goal, 0.7) for s in (slice(7), slice(3), slice(3, 7))
    )
    torch.testing.assert_close(whole, (3 * first + 4 * rest) / 7)


def test_fewer_samples_are_taken_at_once_of_larger_images() -> None:
    small, large = (
        samples_at_once(build("conv_paper", shape, 10), torch.zeros(1, *shape))
        for shape in ((1, 8, 8), (3, 32, 32))
    )
    assert 1 <= large < small


def test_the_l1_weight_makes_weights_smaller() -> None:
    plain, sparse = (
        train(Recipe("6x2", "standard", epochs=3, l1=l1), digits()) for l1 in (0.0, 1e-2)
    )
    size = [sum(float(p.detach().abs().sum()) for p in m.parameters()) for m in (plain, sparse)]
    assert size[1] < 0.8 * size[0]


def test_the_regularisers_do_what_they_are_for() -> None:
    """MMR moves region boundaries away; the stability loss leaves fewer unstable neurons."""
    x = inputs("16x2", 100)
    plain, margin, stable = (
        train(Recipe("16x2", method, epochs=6), digits())
        for method in ("standard", "mmr", "stable")
    )
    euclidean = train(Recipe("16x2", "mmr", epochs=6, norm="l2", epsilon=0.4), digits())

    @torch.no_grad()
    def nearest(model: torch.nn.Sequential, norm: str = "linf") -> float:
        *hidden, _ = affine_forms(model, x)
        scaled = [Ball(norm, 1.0).distance(value.abs(), rows) for value, rows in hidden]
        return float(torch.cat(scaled, 1).amin(1).mean())

    @torch.no_grad()
    def unstable(model: torch.nn.Sequential) -> float:
        bounds = interval_bounds(model, x - 0.05, x + 0.05)
        return sum(float(((low < 0) & (high > 0)).sum(1).float().mean()) for low, high in bounds)

    assert nearest(margin) > 1.5 * nearest(plain)
    assert nearest(euclidean, "l2") > 1.5 * nearest(plain, "l2")
    assert unstable(stable) < 0.7 * unstable(plain)


def test_the_command_writes_a_network_for_an_npz_data_set(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    generator = np.random.default_rng(0)
    np.savez(tmp_path / "data.npz", x=generator.random((50, 5)), y=np.arange(50) % 3)
    options = ["--architecture", "4x2", "--method", "mmr", "--epochs", "1", "--data"]
    assert main([*options, str(tmp_path / "data.npz"), str(tmp_path / "out")]) == 0
    graph = onnx.load(str(tmp_path / "out" / "dense_4x2_mmr.onnx")).graph
    assert [d.dim_value for d in graph.input[0].type.tensor_type.shape.dim] == [1, 5]
    assert [d.dim_value for d in graph.output[0].type.tensor_type.shape.dim] == [1, 3]
    assert "test accuracy" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--data", "nowhere.npz"], "nowhere.npz"),
        (["--architecture", "0x3"], "0x3"),
        (["--architecture", "resnet"], "resnet"),
        (["--architecture", "conv_4"], "conv_4"),
        (["--architecture", "resnet_4"], "resnet_4"),
        (["--architecture", "conv_2-2-2-2-2-4"], "too small"),
        (["--epochs", "0"], "epoch"),
    ],
)
def test_bad_options_are_refused_in_one_line(
    options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*options, str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


@pytest.mark.parametrize(
    ("x", "y", "said"),
    [
        (np.zeros((9, 4)), np.zeros(8), "one class each"),
        (np.full((9, 4), np.nan), np.zeros(9), "not finite"),
        (np.zeros((9, 4)), np.full(9, -1), "class numbers"),
        (np.zeros((9, 4)), np.full(9, 0.5), "class numbers"),
        (np.full((9, 4), "a"), np.zeros(9), "numbers"),
    ],
)
def test_arrays_that_are_no_data_set_are_refused(
    x: NDArray[Any], y: NDArray[Any], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        split(x, y)


@pytest.mark.parametrize("data", [b"", b"nothing", b"PK\x03\x04 truncated"])
def test_a_file_that_is_no_archive_is_refused(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "data.npz").write_bytes(data)
    with pytest.raises(ValueError, match="not an npz file"):
        load_dataset(str(tmp_path / "data.npz"))


def test_bytes_are_pixels_and_other_numbers_keep_their_range() -> None:
    grey = split(np.full((10, 6, 6), 255, dtype=np.uint8), np.arange(10) % 2)
    assert grey.shape == (1, 6, 6) and float(grey.train_x.max()) == 1 and grey.range == (0, 1)
    assert split(np.linspace(-2, 3, 20).reshape(10, 2), np.arange(10)).range[0] == -2
    assert digits().range == (0, 1)


def test_a_convolution_needs_images() -> None:
    with pytest.raises(ValueError, match="needs images"):
        build("conv_small", (64,), 10)


def test_the_bundled_networks_have_different_names() -> None:
    assert len({recipe.name for recipe in BUNDLED}) == len(BUNDLED) == 15
