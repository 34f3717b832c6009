"""certify: the function and its counterexamples."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import fgp_vnn
from fgp_vnn.api.certify import Certifier
from fgp_vnn.attack.ball_judge import within
from fgp_vnn.base.errors import InputError
from fgp_vnn.base.robustness import Norm, Robustness
from fgp_vnn.network import Dense, Network, load_network
from fgp_vnn.strategy import Strategy, Walk
from radius_check import case
from tests.helpers.small_networks import random_network, random_point, save_onnx

NORMS: tuple[Norm, ...] = ("l2", "linf", "l1")


def exact_distance(x: np.ndarray, center: np.ndarray, norm: str) -> Fraction:
    """The distance, squared for l2, of the exact values."""
    parts = [abs(Fraction(float(a)) - Fraction(float(c))) for a, c in zip(x, center, strict=True)]
    if norm == "linf":
        return max(parts)
    return sum(parts, Fraction(0)) if norm == "l1" else sum((p * p for p in parts), Fraction(0))


def check_counterexample(
    network: Network,
    result: Robustness,
    x: np.ndarray,
    epsilon: float,
    norm: str,
    clip: tuple[float, float] | None = None,
) -> None:
    assert result.counterexample is not None
    single = result.counterexample.x.astype(np.float32)
    assert (single == result.counterexample.x).all()
    limit = Fraction(epsilon) ** 2 if norm == "l2" else Fraction(epsilon)
    assert exact_distance(result.counterexample.x, x, norm) <= limit
    assert clip is None or (clip[0] <= single.min() and single.max() <= clip[1])
    y = network.to("cpu", torch.float32)(torch.from_numpy(single).unsqueeze(0))[0]
    others = torch.cat([y[: result.label], y[result.label + 1 :]])
    assert bool(others.max() >= y[result.label])


@pytest.mark.parametrize("norm", NORMS)
def test_every_engine_decides_on_both_sides_of_the_exact_radius(norm: Norm) -> None:
    """With and without a clip box, and with the attack off: the search itself has to find it."""
    for number in (2000, 2001, 2002, 2005):
        made = case(number, norm)
        for engine, without in (("auto", {"attack": False}), ("walk", {})):
            certifier = Certifier.of(made.network, engine=engine, lp=True, **without)
            for part, expected in ((0.98, "robust"), (1.02, "not_robust")):
                epsilon = part * made.exact
                result = certifier.certify(made.x, epsilon=epsilon, norm=norm, clip=made.clip)
                assert result.status == expected, (number, engine, part, result.reason)
                if expected == "not_robust":
                    check_counterexample(made.network, result, made.x, epsilon, norm, made.clip)


def test_an_input_gives_one_result_and_a_batch_a_list() -> None:
    network = random_network((6, 8, 3), 0)
    batch = np.stack([random_point(6, seed) for seed in range(4)])
    results = fgp_vnn.certify(network, batch, epsilon=0.8)
    assert isinstance(results, list)
    alone = [fgp_vnn.certify(network, x, epsilon=0.8) for x in batch]
    statuses = [r.status for r in alone if isinstance(r, Robustness)]
    assert [r.status for r in results] == statuses and set(statuses) == {"robust", "not_robust"}


def test_a_path_a_network_and_a_module_get_the_same_answers(tmp_path: Path) -> None:
    torch.manual_seed(0)
    linear = [nn.Linear(5, 8), nn.Linear(8, 6), nn.Linear(6, 3)]
    module = nn.Sequential(linear[0], nn.ReLU(), linear[1], nn.ReLU(), linear[2])
    maps = [
        Dense((k,), (layer.weight.detach().double(),), layer.bias.detach().double())
        for k, layer in enumerate(linear)
    ]
    network = Network(tuple(maps[:-1]), maps[-1], 5)
    path = save_onnx(network, tmp_path / "net.onnx")
    models = (path, str(path), fgp_vnn.load_network(path), network, module)
    certifiers = [Certifier.of(model) for model in models]
    for epsilon, expected in ((0.2, "robust"), (1.0, "not_robust")):
        for seed in range(2):
            results = [c.certify(random_point(5, seed), epsilon=epsilon) for c in certifiers]
            assert [result.status for result in results] == [expected] * len(models)
    assert module.training


def test_a_radius_of_zero_is_robust_and_a_tie_is_not() -> None:
    network = random_network((4, 6, 3), 1)
    result = fgp_vnn.certify(network, random_point(4, 1), epsilon=0.0)
    assert isinstance(result, Robustness) and result.status == "robust"
    for affine in network.maps:
        affine.bias.zero_()
    tie = fgp_vnn.certify(network, np.zeros(4), epsilon=0.1)
    assert isinstance(tie, Robustness) and tie.status == "not_robust"


def test_without_time_no_region_is_walked_and_nothing_is_claimed() -> None:
    network, x = random_network((10, 30, 30, 30, 3), 4), random_point(10, 0)
    walk = Certifier.of(network, engine="walk")
    cut = walk.certify(x, epsilon=3.0, timeout=1e-9)
    assert (cut.status, cut.counterexample, cut.statistics.get("regions", 0)) == (
        "timeout",
        None,
        0,
    )
    whole = walk.certify(x, epsilon=3.0)
    assert whole.status == "not_robust" and whole.statistics["regions"] > 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"epsilon": -1.0}, "epsilon"),
        ({"epsilon": 0.1, "norm": "l7"}, "norm"),
        ({"epsilon": 0.1, "clip": (0.4, 0.5)}, "clip"),
        ({"epsilon": 0.1, "engine": "magic"}, "engine"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, object], words: str) -> None:
    network = random_network((4, 6, 3), 1)
    with pytest.raises(fgp_vnn.InputError, match=words):
        fgp_vnn.certify(network, random_point(4, 1), **arguments)


def test_the_edge_of_a_ball_is_decided_exactly() -> None:
    center = np.zeros(2)
    x = np.array([0.75, 1.0], dtype=np.float32)
    assert within(x, center, 1.25, "l2") and not within(x, center, np.nextafter(1.25, 0), "l2")
    assert within(x, center, 1.75, "l1") and not within(x, center, np.nextafter(1.75, 0), "l1")
    assert within(x, center, 1.0, "linf") and not within(x, center, np.nextafter(1.0, 0), "linf")


@pytest.mark.slow
def test_all_points_of_the_smallest_network_of_the_paper(shared_data: Path) -> None:
    """By the usual engine; by the walk those that are not robust, and as many others."""
    paper = shared_data / "paper"
    with np.load(paper / "mnist100.npz") as archive:
        points, index = archive["x"], archive["index"]
    statuses = np.array(_decided(paper / "mnist20x3.onnx", "auto", points))
    at = {status: np.flatnonzero(statuses == status) for status in ("robust", "not_robust")}
    assert len(at["robust"]) == 91 and len(at["not_robust"]) == 9
    assert {7471, 9481} <= {int(i) for i in index[at["robust"]]}
    some = np.concatenate([at["not_robust"], at["robust"][:9]])
    assert _decided(paper / "mnist20x3.onnx", "walk", points[some]) == [*statuses[some]]


def _decided(model: Path, engine: str, points: np.ndarray) -> list[str]:
    """What an engine says of the balls around points, with counterexamples that are some."""
    certifier = Certifier.of(model, engine=engine)
    results = fgp_vnn.certify(certifier, points, epsilon=0.25)
    assert isinstance(results, list)
    for x, result in zip(points, results, strict=True):
        if result.status == "not_robust":
            check_counterexample(certifier.network, result, x.astype(np.float64), 0.25, "l2")
    return [result.status for result in results]


@pytest.mark.parametrize("clip", [None, (0.0, 1.0)])
@pytest.mark.parametrize("norm", NORMS)
def test_what_the_walk_has_no_patience_for_is_decided_all_the_same(
    norm: Norm, clip: tuple[float, float] | None
) -> None:
    impatient, walked = Strategy(walk=Walk(certify_regions=0)), 0
    for seed in range(4):
        certifier = Certifier.of(random_network((6, 12, 10, 3), seed), attack=False)
        x, epsilon = random_point(6, seed), {"l2": 0.3, "linf": 0.15, "l1": 0.5}[norm]
        usual = certifier.certify(x, epsilon=epsilon, norm=norm, clip=clip)
        hasty = replace(certifier, strategy=impatient)
        other = hasty.certify(x, epsilon=epsilon, norm=norm, clip=clip)
        assert usual.status == other.status and usual.status in ("robust", "not_robust")
        assert other.decided_by in ("bounds", "split")
        walked += usual.decided_by == "walk"
    assert walked


@pytest.mark.parametrize("ask", ["certify", "radius", "attack"])
def test_an_option_that_does_not_exist_is_refused_by_name(ask: str) -> None:
    certifier = Certifier.of(random_network((2, 3, 2), 0))
    size = {} if ask == "radius" else {"epsilon": 0.1}
    with pytest.raises(InputError, match="clpi"):
        getattr(certifier, ask)(np.zeros(2), **size, clpi=(0, 1))


@pytest.mark.parametrize("norm", NORMS)
def test_a_program_is_as_robust_as_its_matrices(norm: Norm, tmp_path: Path) -> None:
    path = save_onnx(random_network((4, 5, 3), 0), tmp_path / "m.onnx")
    programs, matrices = load_network(path, dense_entries=0), load_network(path)
    assert not any(isinstance(affine, Dense) for affine in programs.network.maps)
    x = np.zeros(programs.input_shape)
    found, other = (Certifier.of(one) for one in (programs, matrices))
    assert found.certify(x, norm, epsilon=0.1).status == other.certify(x, norm, epsilon=0.1).status
    assert found.radius(x, norm).lower > 0
