"""bounds and maximise: proofs whenever they are stopped, against the exact oracle."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import fgp_vnn
import values_check
from fgp_vnn.base.errors import InputError
from fgp_vnn.network import Dense, Network, load_network
from tests.helpers.small_networks import random_network, random_point, save_onnx

METHODS = ("plain", "optimised", "split")


# All shapes in small boxes, and small ones in larger boxes: the others take the oracle too long.
NUMBERS = (*range(8), 12)


@pytest.mark.parametrize("number", NUMBERS)
def test_maxima_and_ranges_agree_with_the_exact_oracle(number: int) -> None:
    made = values_check.case(number)
    exact = made.exact(120)
    assert exact is not None
    faults, tight = values_check.faults(made, exact, 120, 1e-4)
    assert not faults and tight


@pytest.mark.parametrize("method", METHODS)
def test_values_of_a_program_are_those_of_its_matrices(method: str, tmp_path: Path) -> None:
    path = save_onnx(random_network((4, 5, 3), 0), tmp_path / "m.onnx")
    programs, matrices = load_network(path, dense_entries=0), load_network(path)
    assert not any(isinstance(affine, Dense) for affine in programs.network.maps)
    sides = (np.zeros(programs.input_shape), np.ones(programs.input_shape))
    found, other = (fgp_vnn.bounds(one, sides, method=method) for one in (programs, matrices))
    np.testing.assert_allclose(found.lower, other.lower, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("ball", "clip"),
    [
        (("l2", 0.5), (0.0, 1.0)),
        (("l1", 0.9), (0.0, 1.0)),
        (("linf", 0.3), None),
    ],
)
def test_ranges_over_balls_hold_at_their_points_and_narrow_with_the_method(
    ball: tuple[str, float], clip: tuple[float, float] | None
) -> None:
    norm, epsilon = ball
    network, x = random_network((4, 8, 6, 2), 3), random_point(4, 3)
    where = fgp_vnn.Ball(x, epsilon, norm, clip)
    gaps: list[dict[str, Any]] = [{"gap": 1e-2} if m == "split" else {} for m in METHODS]
    pairs = zip(METHODS, gaps, strict=True)
    found = [fgp_vnn.bounds(network, where, method=m, timeout=20, **gap) for m, gap in pairs]
    chance = np.random.default_rng(0)
    offsets = chance.normal(size=(4000, 4))
    order = {"l2": 2, "l1": 1, "linf": np.inf}[norm]
    offsets *= epsilon / np.linalg.norm(offsets, order, axis=1, keepdims=True)
    points = x + offsets * chance.uniform(0, 1, (4000, 1))
    points = points if clip is None else np.clip(points, *clip)
    y = network(torch.from_numpy(points)).numpy()
    for ranges in found:
        assert (ranges.lower <= y.min(0)).all() and (y.max(0) <= ranges.upper).all()
    for wide, narrow in pairwise(found):
        assert (wide.lower <= narrow.lower + 1e-12).all()
        assert (narrow.upper <= wide.upper + 1e-12).all()
    best = fgp_vnn.maximise(network, where, [1.0, -1.0], gap=1e-2, timeout=20)
    assert best.value <= best.upper and best.value >= float((y[:, 0] - y[:, 1]).max()) - 0.05
    size = np.linalg.norm(best.x.astype(np.float64) - x, order)
    assert size <= epsilon * (1 + 1e-12)


def test_hidden_neurons_have_ranges_too() -> None:
    network, x = random_network((3, 6, 5, 2), 5), random_point(3, 5)
    box = x - 0.2, x + 0.2
    points = np.random.default_rng(1).uniform(*box, (3000, 3))
    seen = network.preactivations(torch.from_numpy(points))
    for layer in (0, 1):
        ranges = fgp_vnn.bounds(network, box, layer=layer)
        z = seen[layer].numpy()
        assert ranges.lower.shape == (network.widths[layer],)
        assert (ranges.lower <= z.min(0)).all() and (z.max(0) <= ranges.upper).all()
        assert (ranges.slack <= 1e-4 * np.maximum(1, np.abs(ranges.lower))).all()


@pytest.mark.parametrize("number", [0, 1, 4, 6])
def test_a_gap_that_rounding_keeps_open_ends_the_search(number: int) -> None:
    made = values_check.case(number)
    box = made.lower, made.upper
    ranges = fgp_vnn.bounds(made.network, box, gap=1e-16)
    assert ranges.ended == "rounding" and float(ranges.slack.max()) < 1e-11
    assert "boxes" not in ranges.statistics
    best = fgp_vnn.maximise(made.network, box, made.factors, gap=1e-16)
    assert best.ended == "rounding" and best.value <= best.upper <= best.value + 1e-5


def test_weights_that_cancel_leave_a_gap_of_rounding_and_end() -> None:
    """1e14 (relu(x) - relu(x - 1e-3)) loses 14 digits; its largest value is 1e11."""
    as_tensor = partial(torch.tensor, dtype=torch.float64)
    first = Dense((0,), (as_tensor([[1.0], [1.0]]),), as_tensor([0.0, -1e-3]))
    last = Dense((1,), (as_tensor([[1e14, -1e14]]),), as_tensor([-1e11]))
    ranges = fgp_vnn.bounds(Network((first,), last, 1), ([-1.0], [1.0]), gap=1e-12)
    assert ranges.ended == "rounding"
    assert -1e11 - 9 <= ranges.lower.item() <= -1e11 and 0.0 <= ranges.upper.item() < 9


@pytest.mark.slow
def test_bounds_hold_whenever_the_search_is_stopped() -> None:
    network, x = random_network((8, 40, 40, 2), 2), random_point(8, 2)
    box, heard = (x - 1.0, x + 1.0), list[tuple[float, float]]()
    final = fgp_vnn.maximise(
        network, box, [1.0, 0.0], timeout=1, progress=lambda *ends: heard.append(ends)
    )
    short = fgp_vnn.maximise(network, box, [1.0, 0.0], timeout=1e-3)
    assert short.value <= final.upper and final.value <= short.upper
    assert len(heard) > 1
    for value, upper in heard:
        assert value <= final.upper + 1e-9 and upper >= final.value - 1e-9
    uppers = [upper for _, upper in heard]
    assert uppers == sorted(uppers, reverse=True)


def identity(factor: float, bias: float) -> Network:
    """relu(x) * factor + bias."""
    eye = torch.ones(1, 1, dtype=torch.float64)
    first = Dense((0,), (eye,), torch.zeros(1, dtype=torch.float64))
    last = Dense((1,), (factor * eye,), torch.full((1,), bias, dtype=torch.float64))
    return Network((first,), last, 1)


@pytest.mark.parametrize("factor", [0.1, 1 / 3, 1e-30, 1e30])
def test_ends_are_rounded_outwards(factor: float) -> None:
    from fractions import Fraction

    network = identity(factor, 0.7)
    y = fgp_vnn.variables(network)[1]
    found = fgp_vnn.maximise(network, ([-1.0], [0.3]), 3 * y[0] + 0.1)
    top = 3 * (Fraction(factor) * Fraction(0.3) + Fraction(0.7)) + Fraction(0.1)
    at = 3 * (Fraction(factor) * Fraction(float(found.x[0])) + Fraction(0.7)) + Fraction(0.1)
    assert Fraction(found.value) <= at <= top <= Fraction(found.upper)
    ranges = fgp_vnn.bounds(network, ([-1.0], [0.3]), timeout=5)
    assert Fraction(float(ranges.lower[0])) <= Fraction(0.7)
    assert Fraction(float(ranges.upper[0])) >= Fraction(factor) * Fraction(0.3) + Fraction(0.7)


def test_what_overflows_is_infinite_and_no_bound() -> None:
    found = fgp_vnn.bounds(identity(1e308, 0.0), ([0.0], [1e30]), timeout=0.3)
    assert found.upper[0] == math.inf and found.lower[0] <= 0
    assert found.slack.item() == math.inf
    json.dumps(found.as_dict(), allow_nan=False)  # JSON has no infinity


def test_a_maximum_that_overflows_is_not_called_tight() -> None:
    best = fgp_vnn.maximise(identity(1e8, 0.0), ([-1.0], [1.0]), [1e308], timeout=0.3)
    assert (best.value, best.upper) == (-math.inf, math.inf)
    assert not best.tight
    assert best.as_dict()["upper"] is None  # JSON has no infinity


def test_several_boxes_are_one_set(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    save_onnx(random_network((2, 6, 2), 1), path)
    x, y = fgp_vnn.variables(path)
    left, right = (x >= -1) & (x <= -0.5), (x >= 0.5) & (x <= 1)
    both = fgp_vnn.bounds(path, left | right)
    parts = [fgp_vnn.bounds(path, part) for part in (left, right)]
    assert np.allclose(both.upper, np.maximum(*(part.upper for part in parts)), atol=1e-3)
    best = fgp_vnn.maximise(path, left | right, y[0] - 2 * y[1])
    assert best.upper <= best.value + 1e-4 * max(1, abs(best.value))
    assert (best.x >= 0.5).all() or (best.x <= -0.5).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda n: fgp_vnn.bounds(n, ([1.0, 1.0], [0.0, 0.0])), "above its upper"),
        (lambda n: fgp_vnn.bounds(n, 3), "a pair"),
        (lambda n: fgp_vnn.bounds(n, ([0.0] * 2, [1.0] * 2), method="best"), "plain, optimised"),
        (lambda n: fgp_vnn.bounds(n, ([0.0] * 2, [1.0] * 2), layer=7), "activation layers 0 to 0"),
        (lambda n: fgp_vnn.bounds(n, ([0.0] * 2, [1.0] * 2), gap=0), "positive"),
        (lambda n: fgp_vnn.bounds(n, ([0.0] * 2, [1.0] * 2), engine="walk"), "does not use"),
        (lambda n: fgp_vnn.maximise(n, ([0.0] * 2, [1.0] * 2), [1.0] * 3), "3 factors"),
        (lambda n: fgp_vnn.bounds(n, fgp_vnn.variables(n)[1] >= 0), "no lower bound"),
    ],
)
def test_what_is_no_question_is_refused(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call(random_network((2, 3, 2), 0))


@pytest.mark.parametrize("end", [torch.nn.Softmax(-1), torch.nn.LogSoftmax(-1)])
def test_values_of_outputs_are_those_behind_a_softmax(end: torch.nn.Module) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2), end)
    box = np.zeros(2), np.ones(2)
    found = fgp_vnn.bounds(model, box, gap=1e-2, timeout=20)
    best = fgp_vnn.maximise(model, box, [1.0, -1.0], gap=1e-2, timeout=20)
    with torch.no_grad():
        y = model(torch.rand(2000, 2)).numpy()
    assert (found.lower <= y.min(0) + 1e-6).all() and (found.upper >= y.max(0) - 1e-6).all()
    assert (found.lower >= y.min(0) - 0.05).all() and (found.upper <= y.max(0) + 0.05).all()
    assert best.upper >= (y[:, 0] - y[:, 1]).max() - 1e-6 and best.ended == "tight"
    assert best.value == pytest.approx(float(best.y[0, 0] - best.y[0, 1]), abs=1e-5)
    assert fgp_vnn.bounds(model, box, layer=0).lower.shape == (3,)


def test_the_shape_of_a_module_s_input_is_that_of_the_set() -> None:
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(72, 2)
    )
    x = torch.full((1, 8, 8), 0.5)
    ball = fgp_vnn.bounds(model, fgp_vnn.Ball(x, 0.01, norm="linf"), method="plain")
    box = fgp_vnn.bounds(model, (x - 0.01, x + 0.01), method="plain")
    np.testing.assert_allclose(ball.lower, box.lower, atol=1e-5)
    np.testing.assert_allclose(ball.upper, box.upper, atol=1e-5)
    with pytest.raises(InputError, match="how large its inputs are"):
        fgp_vnn.bounds(model, (0.0, 1.0))


def test_a_network_without_its_softmax_is_not_taken_for_one_with_it() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Softmax(-1))
    loaded = fgp_vnn.load_model(model, torch.zeros(2))
    box = [0.0, 0.0], [1.0, 1.0]
    assert fgp_vnn.bounds(loaded, box, method="plain").upper.max() <= 1.001
    with pytest.raises(InputError, match="softmax was left out"):
        fgp_vnn.bounds(replace(loaded, source=None), box)


@pytest.mark.parametrize("method", ["plain", "optimised"])
def test_a_gap_is_refused_by_methods_that_do_not_use_it(method: str) -> None:
    with pytest.raises(InputError, match="gap is used only by the method 'split'"):
        fgp_vnn.bounds(torch.nn.Linear(2, 1), ([0.0] * 2, [1.0] * 2), method=method, gap=0.5)


@pytest.mark.parametrize("gap", ["a", None, 0, float("nan")])
def test_a_gap_that_is_not_a_positive_number_is_refused(gap: Any) -> None:
    with pytest.raises(InputError, match="gap is "):
        fgp_vnn.bounds(random_network((2, 3, 2), 0), ([0.0, 0.0], [1.0, 1.0]), gap=gap)
