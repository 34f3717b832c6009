"""The settings of a search that a user can choose."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
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
                raise _must_be(name, value, f"one of {', '.join(allowed)}")
        for field in fields(self):
            if isinstance(field.default, bool) and not isinstance(getattr(self, field.name), bool):
                value = getattr(self, field.name)
                raise _must_be(field.name, value, "True or False")
        if self.lp and not all(find_spec(solver) for solver in ("highspy", "clarabel")):
            raise InputError("--lp needs HiGHS and Clarabel: pip install 'fgp-vnn[lp]'")
        if self.float32_semantics and self.engine == "walk":
            raise InputError(
                "the walk is about real arithmetic; float32 semantics need another engine"
            )
        if not _whole(self.seed, 0, SEEDS):
            raise _must_be("seed", self.seed, "a whole number below 2^63")
        memory, jobs, cluster, batch = self.memory, self.jobs, self.cluster, self.batch
        if memory is not None and not (isinstance(memory, (int, float)) and 0 < memory < math.inf):
            raise _must_be("memory", memory, "a positive number of gigabytes")
        if jobs is not None and not _whole(jobs, 1, MOST_JOBS + 1):
            raise _must_be("jobs", jobs, f"a whole number from 1 to {MOST_JOBS}")
        if cluster is not None and not (isinstance(cluster, str) and cluster):
            raise _must_be("cluster", cluster, "the address of a cluster")
        if batch is not None and not _whole(batch, 1, BATCHES):
            raise _must_be("batch", batch, "a whole number of at least 1")


def _must_be(name: str, value: object, wanted: str) -> InputError:
    return InputError(f"{name} is {value!r}; it must be {wanted}")


def split_options(
    options: Mapping[str, Any], names: Collection[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split keyword arguments into those with the given names and the others."""
    mine = {name: value for name, value in options.items() if name in names}
    return mine, {name: value for name, value in options.items() if name not in names}


def make_settings(route: str, given: Mapping[str, Any]) -> Settings:
    """The settings for one of the ROUTES; raises InputError for a setting that it does not use."""
    known = {field.name for field in fields(Settings)}
    for name in given:
        if name not in known:
            if name not in _OPTIONS:
                hint = suggestion(name, (*ROUTES[route], *_OPTIONS))
            elif route == "certify":
                hint = "; it is given to certify and radius themselves"
            else:
                hint = ""
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
    """Whether this is a whole number, at least `least` and below `end`."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value < end


def unusual(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that differ from their defaults, sorted by name."""
    usual = vars(Settings())
    return {name: value for name, value in sorted(settings.items()) if value != usual[name]}
