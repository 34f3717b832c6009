"""The minimum-norm attack whose ball shrinks and grows."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from fgp_vnn.api.certify import Certifier
from fgp_vnn.attack.boundary import ORDERS, Starts, Target, polish, starts
from fgp_vnn.attack.decoupled import decouple
from fgp_vnn.base.robustness import NORMS, Norm, other_class
from fgp_vnn.budget.budget import UNLIMITED, Budget
from fgp_vnn.domain.sets import Box, L1Ball, L2Ball
from fgp_vnn.network.model import Dense, Network
from fgp_vnn.regions.forms import gradient
from fgp_vnn.strategy import Attack, Decoupled, Polish, Projected, Strategy
from oracle.network import Chain
from oracle.radius import exact_radius
from reference_walk import layers_of
from tests.helpers.small_networks import balls, random_network, random_point, robustness_query

ROUNDS = Projected.active
INPUTS = 12
DUALS: dict[Norm, float] = {"l2": 2.0, "linf": 1.0, "l1": math.inf}

norms = pytest.mark.parametrize("norm", NORMS)


def linear_target(
    norm: Norm, clipped: bool, seed: int, *, classes: int = 4
) -> tuple[Target, float]:
    """Classes with affine margins, and the exact distance of the nearest one.

    The clip box holds a third of the inputs, those that margins depend on most, where they are and
    leaves the others free: the distance is that in the others.
    """
    x = random_point(INPUTS, seed)
    query = robustness_query(random_network((INPUTS, classes), seed), balls(x, 1.0)["l2"])
    center = torch.from_numpy(x)
    rows = torch.eye(query.network.outputs).double()
    values, slopes = gradient(query.network, center.expand(len(rows), -1), rows)
    clip = None
    if clipped:
        room = torch.full_like(center, 100.0)
        room[slopes.abs().amax(0).topk(INPUTS // 3).indices] = 0.0
        clip = Box(center - room, center + room)
        slopes = slopes * (room > 0)
    size = torch.linalg.vector_norm(slopes, DUALS[norm], dim=-1)
    return Target(query.network, center, norm, ROUNDS, clip), float((values[0] / size).min())


@pytest.mark.parametrize("clipped", [False, True])
@norms
def test_linear_networks_have_their_exact_distances(norm: Norm, clipped: bool) -> None:
    for seed in range(5):
        target, exact = linear_target(norm, clipped, seed)
        found = decouple(target, starts(target, 32, 0), UNLIMITED, Decoupled())
        length = target.distance(found)
        assert 0 < len(found) <= Decoupled().kept
        assert torch.equal(length, length.sort().values)
        assert bool((target.network(found).amin(-1) <= 0).all())
        assert target.clip is None or bool(target.clip.contains(found).all())
        assert exact * (1 - 1e-9) <= float(length[0]) <= 1.1 * exact
        polished = target.distance(polish(target, found, UNLIMITED, Polish()))
        assert float(polished[0]) == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("part", [0.0, 0.5, 1.4])
@norms
def test_a_start_comes_to_the_boundary_from_both_sides(norm: Norm, part: float) -> None:
    for seed in range(5):
        target, exact = linear_target(norm, False, seed, classes=2)
        center, one = target.center, torch.ones(1, 1).double()
        _, slope = gradient(target.network, center.unsqueeze(0), one)
        ball = {
            "l2": L2Ball(center, exact),
            "linf": Box(center - exact, center + exact),
            "l1": L1Ball(center, exact),
        }[norm]
        begin = Starts(center + part * (ball.maximiser(-slope) - center), one)
        found = decouple(target, begin, UNLIMITED, Decoupled(share=1.0))
        assert len(found) == 1
        assert exact * (1 - 1e-9) <= float(target.distance(found)[0]) <= 1.1 * exact


def test_a_tie_at_the_centre_has_distance_0() -> None:
    center = torch.ones(INPUTS).double()
    tie = Dense((0,), (center.unsqueeze(0),), torch.tensor([-float(INPUTS)]).double())
    target = Target(Network((), tie, INPUTS), center, "l2", ROUNDS)
    found = decouple(target, starts(target, 32, 0), UNLIMITED, Decoupled())
    assert float(target.distance(found)[0]) == 0.0


def test_margins_that_never_change_have_no_counterexample() -> None:
    flat = Dense((0,), (torch.zeros(2, INPUTS).double(),), torch.ones(2).double())
    center = torch.from_numpy(random_point(INPUTS, 0))
    for norm in NORMS:
        target = Target(Network((), flat, INPUTS), center, norm, ROUNDS)
        assert not len(decouple(target, starts(target, 32, 0), UNLIMITED, Decoupled()))


@norms
def test_no_time_leaves_only_points_of_other_classes(norm: Norm) -> None:
    target, exact = linear_target(norm, False, 1)
    found = decouple(target, starts(target, 32, 0), Budget.of(0.0, None), Decoupled())
    assert bool((target.network(found).amin(-1) <= 0).all())
    assert bool((target.distance(found) >= exact * (1 - 1e-9)).all())


@pytest.mark.parametrize(
    "attack",
    [Attack(projected=Projected(steps=0)), Attack(decoupled=Decoupled(steps=0))],
    ids=["decoupled", "projected"],
)
@pytest.mark.parametrize("clip", [None, (0.0, 1.0)])
@norms
def test_either_kind_alone_gives_a_confirmed_upper_end(
    norm: Norm, clip: tuple[float, float] | None, attack: Attack
) -> None:
    network, x = random_network((4, 7, 3), 6), random_point(4, 6)
    exact = exact_radius(Chain(tuple(layers_of(network))), x, norm, 4.0, clip)
    certifier = replace(Certifier.of(network, engine="bounds"), strategy=Strategy(attack=attack))
    found = certifier.radius(x, norm=norm, maximum=4.0, clip=clip)
    assert exact * (1 - 1e-4) <= found.upper <= 1.02 * exact
    assert found.counterexample is not None
    point, y = found.counterexample.x, found.counterexample.y
    assert np.linalg.norm(point - x, ORDERS[norm]) == pytest.approx(found.upper, rel=1e-9)
    assert y[other_class(y, found.label)] >= y[found.label]
    assert clip is None or (point.min() >= 0 and point.max() <= 1)
