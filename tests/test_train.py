"""Training runs, its regularisers and the ONNX files it writes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from train import BUNDLED, main
from training.architectures import build, input_shape
from training.ball import Ball
from training.data import load_dataset, split
from training.export import to_onnx
from training.fit import Recipe, train
from training.linear import affine_forms, interval_bounds
from training.methods import METHODS, attack

DIGITS = load_dataset("digits")
ARCHITECTURES = ["6x2", "conv_small", "conv_deep", "conv_paper"]


def inputs(architecture: str, count: int) -> torch.Tensor:
    return DIGITS.test_x[:count].reshape(-1, *input_shape(architecture, DIGITS.shape))


def fresh(architecture: str) -> torch.nn.Sequential:
    torch.manual_seed(0)
    return build(architecture, DIGITS.shape, DIGITS.classes)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("method", METHODS)
def test_a_trained_network_is_the_same_in_onnxruntime(method: str, architecture: str) -> None:
    model = train(Recipe(architecture, method, epochs=1), DIGITS)
    shape = input_shape(architecture, DIGITS.shape)
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
            train(Recipe("6x2", method, epochs=2, seed=seed), DIGITS), (64,), name="n"
        ).SerializeToString()
        for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


def test_training_leaves_the_random_numbers_of_the_caller_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    train(Recipe("4x1", "pgd", epochs=1), DIGITS)
    assert torch.equal(torch.rand(3), expected)


def test_training_learns() -> None:
    model = train(Recipe("16x2", "standard", epochs=15), DIGITS)
    right = model(DIGITS.test_x.flatten(1)).argmax(1) == DIGITS.test_y
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


def test_the_attack_stays_in_the_ball_and_in_the_image() -> None:
    x, y = inputs("6x2", 50), DIGITS.test_y[:50]
    point = attack(fresh("6x2"), x, y, Ball("linf", 0.05))
    assert (point - x).abs().max() <= 0.05 + 1e-6
    assert point.min() >= 0 and point.max() <= 1


def test_the_regularisers_do_what_they_are_for() -> None:
    """MMR moves region boundaries away; the stability loss leaves fewer unstable neurons."""
    x = inputs("16x2", 100)
    plain, margin, stable = (
        train(Recipe("16x2", method, epochs=20), DIGITS) for method in ("standard", "mmr", "stable")
    )

    @torch.no_grad()
    def nearest(model: torch.nn.Sequential) -> float:
        *hidden, _ = affine_forms(model, x)
        scaled = [value.abs() / rows.abs().sum(2).clamp(min=1e-6) for value, rows in hidden]
        return float(torch.cat(scaled, 1).amin(1).mean())

    @torch.no_grad()
    def unstable(model: torch.nn.Sequential) -> float:
        bounds = interval_bounds(model, x - 0.05, x + 0.05)
        return sum(float(((low < 0) & (high > 0)).sum(1).float().mean()) for low, high in bounds)

    assert nearest(margin) > 1.5 * nearest(plain)
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
    ],
)
def test_bad_options_are_refused_in_one_line(
    options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*options, str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


def test_arrays_that_are_no_data_set_are_refused() -> None:
    with pytest.raises(ValueError, match="one class each"):
        split(np.zeros((9, 4)), np.zeros(8))
    with pytest.raises(ValueError, match="not finite"):
        split(np.full((9, 4), np.nan), np.zeros(9))


def test_a_convolution_needs_images() -> None:
    with pytest.raises(ValueError, match="needs images"):
        build("conv_small", (64,), 10)


def test_the_bundled_networks_have_different_names() -> None:
    assert len({recipe.name for recipe in BUNDLED}) == len(BUNDLED) == 12
