"""What a user can choose about the search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Literal

from fgp_vnn.errors import InputError

ENGINES = ("auto", "walk", "split", "bounds", "attack")
RADIUS_ENGINES = ("auto", "walk", "bundles", "bounds")
VARIANTS = ("full-queue", "first-boundary")
DEVICES = ("auto", "cpu", "cuda", "mps")
PRECISIONS = ("float64", "float32")
SEEDS = 1 << 63


@dataclass(frozen=True)
class Settings:
    """How to search; every field has a value that suits most instances."""

    engine: str = "auto"
    variant: str = "full-queue"  # of the walk: go on past an inconclusive boundary, or stop
    attack: bool = True
    alternate: bool = True  # settle inconclusive boundaries by alternating projections
    lp: bool = False  # hand what projections leave inconclusive to an LP or a cone program
    device: str = "auto"
    precision: Literal["float64", "float32"] = "float64"
    memory: float | None = None  # gigabytes for the whole process; None: half of what is free more
    seed: int = 0
    float32_semantics: bool = False  # unsat is about every float32 evaluation of the network
    stable: bool = True  # the walk leaves neurons alone that never change sign in the domain
    reduce: bool = True  # the walk works in the row space of the first layer, for l2
    signed: bool = True  # the walk drops regions that miss the domain by one constraint
    joint: bool = True  # and those that miss it by several constraints together
    cache_first: bool = True  # the first layer's supports are computed once
    batch: int = 4096  # regions at a time

    def __post_init__(self) -> None:
        for name, allowed in (
            ("engine", ENGINES),
            ("variant", VARIANTS),
            ("device", DEVICES),
            ("precision", PRECISIONS),
        ):
            value = getattr(self, name)
            if value not in allowed:
                raise InputError(f"{name} is {value!r}; it must be one of {', '.join(allowed)}")
        if self.lp and not all(find_spec(solver) for solver in ("highspy", "clarabel")):
            raise InputError("--lp needs HiGHS and Clarabel: pip install 'fgp-vnn[lp]'")
        if self.float32_semantics and self.engine == "walk":
            raise InputError(
                "the walk is about real arithmetic; float32 semantics need another engine"
            )
        if self.memory is not None and not self.memory > 0:
            raise InputError(
                f"memory is {self.memory!r}; it must be a positive number of gigabytes"
            )
        if not isinstance(self.seed, int) or not 0 <= self.seed < SEEDS:
            raise InputError(f"seed is {self.seed!r}; it must be a whole number below 2^63")


def unusual(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Those that differ from what they are when nothing is said, in the order of their names."""
    usual = vars(Settings())
    return {name: value for name, value in sorted(settings.items()) if value != usual[name]}
