"""The minimum-norm attacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
import torch

from fgp_vnn.attack.boundary import Starts, Target, approach, polish, starts
from fgp_vnn.attack.decoupled import decouple
from fgp_vnn.base.robustness import NORMS, Norm
from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.domain.sets import Box
from fgp_vnn.strategy import Decoupled, Polish, Projected
from oracle.network import Chain
from oracle.radius import exact_radius
from reference_walk import layers_of
from tests.helpers.small_networks import balls, random_network, random_point, robustness_query

ROUNDS = Projected.active
SEEDS = (0, 3, 5, 6, 9, 10, 11)  # all but one with another class within 1, in some norm
KINDS: dict[str, Callable[[Target, Starts], torch.Tensor]] = {
    "projections": lambda target, begin: approach(target, begin, UNLIMITED, Projected()),
    "decoupled": lambda target, begin: decouple(target, begin, UNLIMITED, Decoupled()),
}


@pytest.mark.slow
@pytest.mark.parametrize("clipped", [False, True])
@pytest.mark.parametrize("norm", NORMS)
def test_points_have_another_class_and_most_come_near_to_the_exact_radius(
    norm: Norm, clipped: bool
) -> None:
    asked, near = 0, Counter[str]()
    for seed in SEEDS:
        network, x = random_network((4, 7, 3), seed), random_point(4, seed)
        query = robustness_query(network, balls(x, 1.0)["l2"])
        center = torch.from_numpy(x)
        clip = Box(torch.zeros_like(center), torch.ones_like(center)) if clipped else None
        target = Target(query.network, center, norm, ROUNDS, clip)
        bounds = (0.0, 1.0) if clipped else None
        exact = exact_radius(Chain(tuple(layers_of(network))), x, norm, 1.0, bounds)
        asked += exact <= 1.0
        for kind, attack in KINDS.items():
            raw = attack(target, starts(target, 32, 0))
            assert bool((query.network(raw).amin(-1) <= 0).all())
            assert clip is None or bool(clip.contains(raw).all())
            found = polish(target, raw, UNLIMITED, Polish())
            length = target.distance(found)
            assert torch.equal(length, length.sort().values)
            assert bool((query.network(found).amin(-1) <= 0).all())
            assert clip is None or bool(clip.contains(found).all())
            if exact <= 1.0:
                near[kind] += len(found) > 0 and float(length[0]) <= 1.02 * exact
                assert not len(found) or float(length[0]) >= exact * (1 - 1e-4)
    assert asked >= 4 and min(near[kind] for kind in KINDS) >= 0.75 * asked
