"""Linear bounds without a search, the cheap baseline; `verify` and `radius` also attack."""

from __future__ import annotations

from fgp_vnn.engine.engines import Question, Steps

SETTINGS: dict[Question, tuple[str, ...]] = {"verify": ("attack",), "certify": (), "radius": ()}


def steps() -> Steps:
    """Attacks, except in `certify`, and bounds, without a search of what they leave open."""
    from fgp_vnn.engine.radius_search import bound_finely
    from fgp_vnn.engine.radius_stages import attack_nearest
    from fgp_vnn.engine.steps import BEGIN, TIGHTEN, bound_for_walk, leave_open, watch_time

    still_open = leave_open("linear bounds leave it open")
    return {
        "verify": (*BEGIN, *TIGHTEN, still_open),
        "certify": (bound_for_walk, watch_time, still_open),
        "radius": (attack_nearest, bound_finely),
    }
