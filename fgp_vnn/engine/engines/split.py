"""Neuron splits and input splits, without a walk."""

from __future__ import annotations

from fgp_vnn.engine.engines import Question, Steps

SETTINGS: dict[Question, tuple[str, ...]] = {
    "verify": ("lp", "attack", "jobs", "cluster"),
    "certify": ("lp", "attack"),
    "radius": (),
}


def steps() -> Steps:
    """The same steps for `verify` and `certify`."""
    from fgp_vnn.engine.radius_search import NEAREST, bound_roughly
    from fgp_vnn.engine.radius_stages import attack_nearest
    from fgp_vnn.engine.search_steps import SPLIT
    from fgp_vnn.engine.steps import BEGIN, TIGHTEN

    return {
        "verify": (*BEGIN, *TIGHTEN, *SPLIT),
        "certify": (*BEGIN, *TIGHTEN, *SPLIT),
        "radius": (attack_nearest, bound_roughly, *NEAREST),
    }
