"""The settings of a search that a user can choose."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib.util import find_spec
from typing import Any, Literal

from fgp_vnn.base.errors import InputError, UnusedSettingError
from fgp_vnn.base.words import either, suggestion
from fgp_vnn.engine.engines import REGISTRY, engines_for, users_of

ENGINES = tuple(REGISTRY)
RADIUS_ENGINES = engines_for("radius")
VARIANTS = ("full-queue", "first-boundary")
DEVICES = ("auto", "cpu", "cuda", "mps")
PRECISIONS = ("float64", "float32")
GAP = 0.01  # default relative gap of a radius
SEEDS = 1 << 63
BATCHES = 1 << 31
MOST_JOBS = 1024
_OPTIONS = ("timeout", "progress", "clip", "mask", "target", "mean", "std")  # not in Settings
_ANYWHERE = ("device", "memory", "seed")
_SEARCH = (*_ANYWHERE, "engine", "variant", "attack", "alternate", "lp")
_WALK = ("stable", "signed", "combined", "cache_first", "batch")
# The settings that each of the library's functions uses.
ROUTES: Mapping[str, tuple[str, ...]] = {
    "verify": (*_SEARCH, "precision", "float32_semantics", "jobs", "cluster"),
    "certify": (*_SEARCH, *_WALK, "reduce"),
    "bounds": _ANYWHERE,
    "radius": (*_ANYWHERE, "engine", "reduce"),
}


@dataclass(frozen=True)
class Settings:
    """How to search; the defaults suit most instances."""

    engine: str = "auto"
    variant: str = "full-queue"  # of the walk: continue past an inconclusive boundary, or stop
    attack: bool = True
    alternate: bool = True  # settle inconclusive boundaries by alternating projections
    lp: bool = False  # solve an LP or a conic program where projections are inconclusive
    device: str = "auto"
    precision: Literal["float64", "float32"] = "float64"
    memory: float | None = None  # gigabytes; None: current use plus half of the free memory
    jobs: int | None = None  # worker processes; None: the number of cores
    cluster: str | None = None  # the address of a Ray cluster to search on, or "local"
    seed: int = 0
    float32_semantics: bool = False  # unsat covers every float32 evaluation of the network
    stable: bool = True  # the walk ignores neurons that never change sign in the domain
    reduce: bool = True  # drop inputs that do not matter; in l2, all but the row space
    signed: bool = True  # the walk drops regions that one constraint separates from the domain
    combined: bool = True  # and regions that several constraints together separate from it
    cache_first: bool = True  # compute the first layer's supports only once
    batch: int | None = None  # regions at a time in the walk; None: the strategy's number

    def __post_init__(self) -> None:
        for name, allowed in (
            ("engine", ENGINES),
            ("variant", VARIANTS),
            ("device", DEVICES),
            ("precision", PRECISIONS),
        ):
            value = getattr(self, name)
            if not isinstance(value, str) or value not in allowed:
                raise InputError(f"{name} is {value!r}; it must be one of {', '.join(allowed)}")
        for field in fields(self):
            if isinstance(field.default, bool) and not isinstance(getattr(self, field.name), bool):
                value = getattr(self, field.name)
                raise InputError(f"{field.name} is {value!r}; it must be True or False")
        if self.lp and not all(find_spec(solver) for solver in ("highspy", "clarabel")):
            raise InputError("--lp needs HiGHS and Clarabel: pip install 'fgp-vnn[lp]'")
        if self.float32_semantics and self.engine == "walk":
            raise InputError(
                "the walk is about real arithmetic; float32 semantics need another engine"
            )
        number = isinstance(self.memory, (int, float)) and 0 < self.memory < math.inf
        for name, fine, wanted in (
            ("memory", number, "a positive number of gigabytes"),
            ("seed", _whole(self.seed, 0, SEEDS), "a whole number below 2^63"),
            ("jobs", _whole(self.jobs, 1, MOST_JOBS + 1), f"a whole number from 1 to {MOST_JOBS}"),
            ("cluster", isinstance(self.cluster, str) and self.cluster, "the address of a cluster"),
            ("batch", _whole(self.batch, 1, BATCHES), "a whole number of at least 1"),
        ):
            value = getattr(self, name)
            if not fine and (value is not None or name == "seed"):
                raise InputError(f"{name} is {value!r}; it must be {wanted}")


def make_settings(route: str, given: Mapping[str, Any]) -> Settings:
    """The settings for one of the ROUTES; raises InputError for a setting that it does not use."""
    known = {field.name for field in fields(Settings)}
    for name in given:
        if name not in known:
            hint = suggestion(name, (*ROUTES[route], *_OPTIONS))
            if name in _OPTIONS:
                hint = "; it is given to certify and radius themselves" * (route == "certify")
            raise InputError(f"there is no setting {name!r}{hint}")
        if name not in ROUTES[route]:
            raise InputError(f"{route} does not use the setting {name!r}")
    settings = Settings(**given)
    if route == "radius" and settings.engine not in RADIUS_ENGINES:
        raise InputError(
            f"engine is {settings.engine!r}; for a radius it must be one of "
            f"{', '.join(RADIUS_ENGINES)}"
        )
    if route != "bounds":
        for name in unusual(given):
            _check_used(name, route, settings)
    return settings


def _check_used(name: str, route: str, settings: Settings) -> None:
    """Raise UnusedSettingError if other settings leave this one without effect."""
    users = users_of(name, route)
    if settings.engine not in users:
        only = f"it is used only by {either(map(repr, users))}"
        message = f"engine {settings.engine!r} does not use the setting {name!r}; {only}"
        raise UnusedSettingError(message, name, "engine", users)
    if name == "seed" and route == "verify" and not settings.attack:
        message = "a search without attacks does not use the setting 'seed'"
        raise UnusedSettingError(message, name, "attack", (True,))
    if name in ("variant", "alternate") and settings.float32_semantics:
        message = f"with float32 semantics there is no walk to use the setting {name!r}"
        raise UnusedSettingError(message, name, "float32_semantics", (False,))


def check_certificate(settings: Settings) -> None:
    """Raise InputError for settings under which no certificate can be written."""
    if settings.float32_semantics:
        raise InputError("a certificate is about real arithmetic: leave out the float32 semantics")
    if settings.engine == "attack":
        raise InputError("engine 'attack' proves nothing that a certificate could contain")


def _whole(value: object, least: int, end: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value < end


def unusual(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that differ from their defaults, sorted by name."""
    usual = vars(Settings())
    return {name: value for name, value in sorted(settings.items()) if value != usual[name]}
