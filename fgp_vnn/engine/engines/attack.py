"""Attacks only, which prove nothing."""

from __future__ import annotations

from fgp_vnn.engine.engines import Question, Steps

SETTINGS: dict[Question, tuple[str, ...]] = {"verify": (), "certify": ()}


def steps() -> Steps:
    """A short attack and a longer one."""
    from fgp_vnn.engine.steps import attack_longer, attack_quickly, leave_open, read_property

    nothing = leave_open("the attack found nothing, and it proves nothing")
    attacks = (read_property, attack_quickly, attack_longer, nothing)
    return {"verify": attacks, "certify": attacks}
