"""Arrays, numbers and names as people have them; what one gives is what one gets back."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import fgp_vnn
from fgp_vnn.api.arrays import read_inputs, read_mask, read_norm, read_number, read_numbers
from fgp_vnn.base.errors import InputError
from fgp_vnn.base.robustness import Robustness
from tests.helpers.small_networks import random_network, save_onnx

SHAPE = (1, 2, 2, 2)  # two channels of 2 x 2


@pytest.fixture(scope="module")
def conv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network that takes images with two channels, and gives three classes."""
    torch.manual_seed(0)
    layers = nn.Conv2d(2, 3, 2, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(27, 3)
    path = tmp_path_factory.mktemp("conv") / "conv.onnx"
    example = (torch.zeros(SHAPE),)
    with pytest.warns(DeprecationWarning):
        torch.onnx.export(nn.Sequential(*layers), example, str(path), dynamo=False)
    return path


@pytest.fixture(scope="module")
def flat(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network that takes eight values in a row."""
    path = tmp_path_factory.mktemp("flat") / "flat.onnx"
    save_onnx(random_network((8, 6, 3), 1), path)
    return path


IMAGE = np.linspace(0.1, 0.8, 8)
FORMS: dict[str, Any] = {
    "list": IMAGE.tolist(),
    "float64": IMAGE,
    "float32": IMAGE.astype(np.float32),
    "float16": IMAGE.astype(np.float16),
    "integers": np.arange(8) // 4,
    "image": IMAGE.reshape(2, 2, 2),
    "batch of one": IMAGE.reshape(SHAPE),
    "flat batch of one": IMAGE.reshape(1, 8),
    "torch": torch.from_numpy(IMAGE),
    "torch image": torch.from_numpy(IMAGE).float().reshape(2, 2, 2),
    "bfloat16": torch.from_numpy(IMAGE).bfloat16(),
    "gradient": torch.from_numpy(IMAGE).float().requires_grad_(),
    "not contiguous": np.asfortranarray(IMAGE.reshape(2, 2, 2)),
}


@pytest.mark.parametrize("form", FORMS)
def test_one_input_of_any_kind_gives_one_result_of_its_own_shape(conv: Path, form: str) -> None:
    given = FORMS[form]
    certifier = fgp_vnn.Certifier.of(conv)
    for result in (
        fgp_vnn.certify(conv, given, epsilon=3.0, norm="linf"),
        certifier.certify(given, epsilon=3.0, norm="linf"),
    ):
        assert isinstance(result, Robustness)
        assert result.status == "not_robust" and result.counterexample is not None
        x = result.counterexample.x
        assert tuple(x.shape) == np.shape(np.empty(0) if given is None else given)
        if isinstance(given, torch.Tensor):
            wide = given.dtype if given.dtype in (torch.float32, torch.float64) else torch.float32
            assert isinstance(x, torch.Tensor) and x.dtype == wide
        else:
            dtype = np.asarray(given).dtype
            assert x.dtype == (dtype if dtype in (np.float32, np.float64) else np.float32)
    assert certifier.radius(given, norm="linf", maximum=4.0).upper < 4


def test_an_input_of_the_shape_of_an_image_is_one_input_of_a_flat_network(flat: Path) -> None:
    assert isinstance(fgp_vnn.certify(flat, IMAGE.reshape(1, 2, 4), epsilon=0.1), Robustness)


def test_a_batch_gives_a_list_with_a_result_for_each_input(conv: Path) -> None:
    batch = np.stack([IMAGE, IMAGE / 2, IMAGE / 3]).reshape(3, 2, 2, 2).astype(np.float32)
    seen: list[tuple[int, int]] = []
    results = fgp_vnn.certify(
        conv, batch, epsilon=0.01, y=[0, 0, 1], progress=lambda done, of: seen.append((done, of))
    )
    assert isinstance(results, list) and [r.label for r in results] == [0, 0, 1]
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_a_wrong_class_is_not_robust_and_the_input_itself_shows_it(conv: Path) -> None:
    own = fgp_vnn.certify(conv, IMAGE.astype(np.float32), epsilon=0)
    assert isinstance(own, Robustness)
    other = (own.label + 1) % 3
    result = fgp_vnn.certify(conv, IMAGE.astype(np.float32), epsilon=0.001, y=other)
    assert isinstance(result, Robustness) and result.counterexample is not None
    assert (result.status, result.label, result.decided_by) == ("not_robust", other, "class")
    assert (result.counterexample.x == IMAGE.astype(np.float32)).all()
    radius = fgp_vnn.radius(conv, IMAGE.astype(np.float32), y=other)
    assert isinstance(radius, fgp_vnn.Radius) and radius.lower == radius.upper == 0


@pytest.mark.parametrize(
    ("norm", "name"),
    [
        *(("l2", "l2"), (2, "l2"), (2.0, "l2"), (1, "l1"), ("1", "l1")),
        *((np.inf, "linf"), ("inf", "linf"), ("Linf", "linf"), (float("inf"), "linf")),
    ],
)
def test_a_norm_has_many_names(norm: Any, name: str) -> None:
    assert read_norm(norm) == name


def test_numbers_may_be_written_as_fractions_and_for_each_channel_or_input() -> None:
    assert read_number("8/255", "epsilon") == 8 / 255 == read_number(Fraction(8, 255), "epsilon")
    assert read_number("0.5/255", "epsilon") == 0.5 / 255
    assert read_numbers(0.5, "epsilon", SHAPE, 8) == 0.5
    channels = np.repeat([0.1, 0.2], 4)
    for given in ([0.1, 0.2], torch.tensor([0.1, 0.2], dtype=torch.float64), ["1/10", "1/5"]):
        assert np.array_equal(read_numbers(given, "epsilon", SHAPE, 8), channels)
    assert np.array_equal(read_numbers([[[0.1]], [[0.2]]], "epsilon", SHAPE, 8), channels)
    assert np.array_equal(read_numbers(IMAGE.reshape(2, 2, 2), "epsilon", SHAPE, 8), IMAGE)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: read_inputs(np.zeros((32, 32, 3)), (1, 3, 32, 32), 3072), "transpose"),
        (lambda: read_inputs(np.zeros((5, 32, 32, 3)), (1, 3, 32, 32), 3072), "transpose"),
        (lambda: read_mask(np.zeros((4, 4, 3)), (1, 3, 4, 4), 48), "mask of shape .* transpose"),
        (lambda: read_numbers(np.zeros((4, 4, 3)), "epsilon", (3, 4, 4), 48), "transpose"),
        (lambda: read_inputs(np.zeros(7), SHAPE, 8), "do not fit"),
        (lambda: read_inputs(np.zeros((0, 8)), SHAPE, 8), "no input"),
        (lambda: read_inputs(["a"] * 8, SHAPE, 8), "numbers"),
        (lambda: read_inputs(np.zeros(8, complex), SHAPE, 8), "real"),
        (lambda: read_number("8/0", "epsilon"), "must be a number"),
        (lambda: read_number("nan", "epsilon"), "must be finite"),
        (lambda: read_number(True, "epsilon"), "epsilon is True; it must be a number"),
        (lambda: read_number("1e999999999", "epsilon"), "must be finite"),
        (lambda: read_numbers(None, "epsilon", SHAPE, 8), "epsilon must be an array of numbers"),
        (lambda: read_inputs(None, SHAPE, 8), "inputs must be an array of numbers"),
        (lambda: read_inputs("3", SHAPE, 8), "inputs must be real numbers, not text"),
        (lambda: read_numbers([1.0, 2.0, 3.0], "epsilon", SHAPE, 8), "each channel"),
        (lambda: read_mask([1, 2], SHAPE, 8), "True and False"),
        (lambda: read_norm(3), "l2, linf, l1"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_would(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


def exact_box(result: Any, center: np.ndarray, reach: np.ndarray) -> None:
    """Every coordinate of the counterexample is as near as it has to be, by exact arithmetic."""
    x = result.counterexample.x
    for a, c, e in zip(x.ravel(), center.ravel(), reach.ravel(), strict=True):
        assert abs(Fraction(float(a)) - Fraction(float(c))) <= Fraction(float(e))


@pytest.mark.parametrize("norm", ["linf", "l2", "l1"])
def test_only_the_inputs_of_a_mask_move(flat: Path, norm: str) -> None:
    mask = np.array([True, False] * 4)
    free = fgp_vnn.certify(flat, IMAGE, epsilon=5.0, norm=norm)
    held = fgp_vnn.certify(flat, IMAGE, epsilon=5.0, norm=norm, mask=mask)
    assert isinstance(free, Robustness) and isinstance(held, Robustness)
    assert free.status == held.status == "not_robust" and held.counterexample is not None
    # Also a float64 that is no float32 stays what it is, where it may not move.
    assert (held.counterexample.x == IMAGE)[~mask].all()
    none = fgp_vnn.certify(
        flat, IMAGE.astype(np.float32), epsilon=5.0, norm=norm, mask=~mask & mask
    )
    assert isinstance(none, Robustness) and none.status == "robust"


@pytest.mark.parametrize("norm", ["linf", "l2", "l1"])
@pytest.mark.parametrize("seed", range(4))
def test_a_mask_is_the_same_as_a_network_of_the_other_inputs(norm: str, seed: int) -> None:
    network = random_network((6, 8, 7, 3), seed)
    x = np.random.default_rng(seed).uniform(0, 1, 6).astype(np.float32)
    mask = np.array([1, 0, 1, 1, 0, 0])
    first = network.layers[0]
    fixed = torch.from_numpy(np.where(mask, 0, x)).double()
    weight = first.weights[0]  # type: ignore[attr-defined]
    inner = type(first)((0,), (weight[:, mask > 0],), first.bias + weight @ fixed)  # type: ignore[call-arg]
    small = type(network)((inner, *network.layers[1:]), network.output, 3)
    for epsilon in (0.1, 0.4, 1.5):
        one = fgp_vnn.certify(network, x, epsilon=epsilon, norm=norm, mask=mask)
        two = fgp_vnn.certify(small, x[mask > 0], epsilon=epsilon, norm=norm)
        assert isinstance(one, Robustness) and isinstance(two, Robustness)
        assert one.status == two.status
        if one.counterexample is not None:
            assert (one.counterexample.x == x)[mask == 0].all()


def test_each_channel_has_its_own_epsilon_and_clip(conv: Path) -> None:
    x = IMAGE.reshape(2, 2, 2).astype(np.float32)
    result = fgp_vnn.certify(
        conv, x, epsilon=[3.0, 0.0], norm="linf", clip=([-1.0, 0.0], np.array([2.0, 1.0]))
    )
    assert isinstance(result, Robustness)
    if result.counterexample is not None:
        found = result.counterexample.x
        assert (found[1] == x[1]).all() and found[0].min() >= -1 and found[0].max() <= 2
        exact_box(result, x, np.repeat([3.0, 0.0], 4))
    with pytest.raises(InputError, match="linf"):
        fgp_vnn.certify(conv, x, epsilon=[0.1, 0.2], norm="l2")


@pytest.mark.slow
def test_a_target_counts_alone_and_a_set_of_all_is_the_same_as_none(flat: Path) -> None:
    x = IMAGE.astype(np.float32)
    certifier = fgp_vnn.Certifier.of(flat)
    own = certifier.certify(x, epsilon=0).label
    others = [c for c in range(3) if c != own]
    for epsilon in (0.2, 1.0):
        whole = certifier.certify(x, epsilon=epsilon, norm="linf").status
        each = [certifier.certify(x, epsilon=epsilon, norm="linf", target=t) for t in others]
        assert whole == certifier.certify(x, epsilon=epsilon, norm="linf", target=others).status
        assert (whole == "robust") == all(result.status == "robust" for result in each)
        for target, result in zip(others, each, strict=True):
            if result.counterexample is not None:
                assert result.counterexample.y[target] >= result.counterexample.y[own]
    with pytest.raises(InputError, match="itself"):
        certifier.certify(x, epsilon=0.1, target=own)


def test_a_normalisation_in_front_is_the_same_as_a_module_that_has_it(conv: Path) -> None:
    mean, std = [0.3, 0.5], [0.5, 0.25]
    x = IMAGE.reshape(2, 2, 2).astype(np.float32)
    certifier = fgp_vnn.Certifier.of(conv, mean=mean, std=std)
    shape = (2, 1, 1)
    inner = (x - np.reshape(mean, shape).astype(np.float32)) / np.reshape(std, shape)
    plain = fgp_vnn.load_network(conv).runtime.run(inner.astype(np.float32).ravel())
    assert np.allclose(certifier.run(x.ravel()), plain, atol=1e-5)
    for epsilon in (0.01, 0.05, 0.5):
        scaled = (epsilon / np.array(std)).tolist()
        one = certifier.certify(x, epsilon=epsilon, norm="linf")
        two = fgp_vnn.certify(conv, inner, epsilon=scaled, norm="linf")
        assert isinstance(two, Robustness) and one.status == two.status
    linear = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 2))
    wrapped = fgp_vnn.Certifier.of(linear, mean=0.5, std=2.0)
    with torch.inference_mode():
        expected = linear((torch.ones(1, 2) - 0.5) / 2.0)[0].numpy()
    assert np.allclose(wrapped.run(np.ones(2, np.float32)), expected, atol=1e-6)
    for bad in ({"std": 0.0}, {"std": -1.0}, {"mean": float("nan")}):
        with pytest.raises(InputError, match="std positive"):
            fgp_vnn.Certifier.of(conv, **bad)


@pytest.mark.parametrize("value", [10**400, np.inf])
def test_numbers_of_any_size_are_refused_in_words(value: Any) -> None:
    network = random_network((2, 3, 2), 0)
    for options in ({"y": [value]}, {"target": [value]}, {"clip": ([-value, 0], [value, 1])}):
        with pytest.raises(InputError, match=next(iter(options))):
            fgp_vnn.certify(network, [0.0, 0.0], epsilon=0.1, **options)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e39])
def test_inputs_that_are_not_finite_are_refused_by_name(value: float) -> None:
    with pytest.raises(InputError, match="inputs have values that are not finite"):
        fgp_vnn.certify(random_network((2, 3, 2), 0), [0.0, value], epsilon=0.1)
