"""The complete walk of the FGP paper, from region to region."""

from __future__ import annotations

from fgp_vnn.engine.engines import WALK, Question, Steps

SETTINGS: dict[Question, tuple[str, ...]] = {
    "verify": (*WALK, "lp", "attack"),
    "certify": (*WALK, "lp", "stable"),
    "radius": (),
}


def steps() -> Steps:
    """`certify` walks without an attack first."""
    from fgp_vnn.engine.radius_search import bound_roughly, walk_nearest
    from fgp_vnn.engine.radius_stages import attack_nearest
    from fgp_vnn.engine.search_steps import walk
    from fgp_vnn.engine.steps import BEGIN, TIGHTEN, drop_stable, watch_time

    return {
        "verify": (*BEGIN, *TIGHTEN, walk),
        "certify": (drop_stable, watch_time, walk),
        "radius": (attack_nearest, bound_roughly, walk_nearest),
    }
