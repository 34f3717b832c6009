"""The cheapest steps first, then the search that suits the problem left after linear bounds."""

from __future__ import annotations

from fgp_vnn.engine.engines import WALK, Question, Steps

SETTINGS: dict[Question, tuple[str, ...]] = {
    "verify": (*WALK, "lp", "attack", "jobs", "cluster"),
    "certify": (*WALK, "lp", "attack"),
    "radius": (),
}


def steps() -> Steps:
    """For `certify`, bounds and a short walk come first, since they decide most questions."""
    from fgp_vnn.engine.radius_search import NEAREST, bound_roughly
    from fgp_vnn.engine.radius_stages import attack_nearest
    from fgp_vnn.engine.search_steps import SPLIT, walk_few, walk_first
    from fgp_vnn.engine.steps import BEGIN, TIGHTEN, attack_quickly, bound_for_walk, watch_time

    return {
        "verify": (*BEGIN, *TIGHTEN, walk_few, *SPLIT),
        "certify": (bound_for_walk, watch_time, attack_quickly, walk_first, *TIGHTEN, *SPLIT),
        "radius": (attack_nearest, bound_roughly, *NEAREST),
    }
