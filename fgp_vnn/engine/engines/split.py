"""Splits of neurons and of inputs, with no walk."""

from __future__ import annotations

from fgp_vnn.engine.engines import Question, Steps

SETTINGS: dict[Question, tuple[str, ...]] = {
    "verify": ("lp", "attack", "jobs", "cluster"),
    "certify": ("lp", "attack"),
    "radius": (),
}


def steps() -> Steps:
    """The same steps whether a file or a ball is asked about."""
    from fgp_vnn.engine.radius_search import NEAREST, bound_roughly
    from fgp_vnn.engine.radius_stages import attack_nearest
    from fgp_vnn.engine.search_steps import SPLIT
    from fgp_vnn.engine.steps import BEGIN, TIGHTEN

    return {
        "verify": (*BEGIN, *TIGHTEN, *SPLIT),
        "certify": (*BEGIN, *TIGHTEN, *SPLIT),
        "radius": (attack_nearest, bound_roughly, *NEAREST),
    }
