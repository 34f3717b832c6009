"""A setting is used by the route and the engine that take it, and refused by name elsewhere."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fgp_vnn
from fgp_vnn.api.boxes import BoxProblems
from fgp_vnn.api.certify import Certifier
from fgp_vnn.base.errors import InputError
from fgp_vnn.bench.instances import read_benchmark
from fgp_vnn.cli.main import main
from fgp_vnn.engine.settings import ENGINES, ROUTES, Settings, make_settings
from fgp_vnn.network import load_network
from fgp_vnn.property import load_property
from tests.helpers.places import BENCHMARK
from tests.helpers.solving import solve_boxes
from tests.helpers.ticking import Ticking

# Another value than the usual one of every setting.
UNUSUAL: dict[str, Any] = {
    "engine": "walk",
    "variant": "first-boundary",
    "attack": False,
    "alternate": False,
    "lp": True,
    "device": "cpu",
    "precision": "float32",
    "memory": 2.0,
    "seed": 3,
    "float32_semantics": True,
    "stable": False,
    "reduce": False,
    "signed": False,
    "combined": False,
    "cache_first": False,
    "batch": 7,
    "jobs": 3,
    "cluster": "local",
}
# What is spent before a problem is made: the caller's own, and read where it is.
AT_THE_DOOR = {
    "verify": {"device", "memory", "precision", "float32_semantics", "engine", "jobs", "cluster"},
    # The seed is also that of `Certifier.attack`; the row space is made for all engines.
    "certify": {"device", "memory", "engine", "seed", "reduce"},
}
# Decided by an attack, by splits of neurons and, without an attack, by the walk.
SPLIT = "conv_6-12-32_pgd_untargeted_0.08"
INSTANCES = (
    ("dense_16x2_standard_untargeted_0.12", True),
    (SPLIT, True),
    ("dense_32x2_mmr_conjunction_0.2", False),
)


def refused(route: str, given: dict[str, Any]) -> str:
    try:
        make_settings(route, given)
    except InputError as error:
        return str(error)
    return ""


def watched(settings: Settings, seen: set[str]) -> Settings:
    """The same settings, which note in `seen` what is read of them."""
    names = {field.name for field in fields(Settings)}

    def get(self: Any, name: str) -> Any:
        if name in names:
            seen.add(name)
        return object.__getattribute__(self, name)

    kind = type("Watched", (Settings,), {"__getattribute__": get})
    made: Settings = kind(**vars(settings))
    seen.clear()
    return made


@cache
def instance(name: str) -> tuple[Path, Path]:
    found = read_benchmark(BENCHMARK, timeout=60.0).instances
    chosen = next(i for i in found if Path(i.vnnlib).stem == name)
    return Path(chosen.network_files[0]), Path(chosen.property_file)


def read_by_verify(engine: str) -> set[str]:
    seen: set[str] = set()
    for name, attack in INSTANCES:
        model, prop = instance(name)
        loaded, asked, now = load_network(model), load_property(prop), set[str]()
        settings = watched(Settings(engine=engine, attack=attack), now)
        solve_boxes(BoxProblems(settings), loaded, asked, Ticking(80))
        seen |= now
    return seen


def read_by_certify(engine: str) -> set[str]:
    seen: set[str] = set()
    for name, attack in INSTANCES:
        model, prop = instance(name)
        case, now = load_property(prop).cases[0], set[str]()
        certifier = Certifier.of(model)
        certifier = replace(
            certifier, settings=watched(Settings(engine=engine, attack=attack), now)
        )
        middle, epsilon = (case.lower + case.upper) / 2, float((case.upper - case.lower).max())
        for radius in (epsilon / 4, epsilon):
            certifier.certify(middle, epsilon=radius, timeout=0.5)
        seen |= now
    return seen


def test_every_setting_has_another_value_here() -> None:
    assert set(UNUSUAL) == {field.name for field in fields(Settings)}
    for name, value in UNUSUAL.items():
        assert value != getattr(Settings(), name)


@pytest.mark.parametrize("route", ROUTES)
def test_a_setting_that_a_route_does_not_use_is_refused_by_name(route: str) -> None:
    for name, value in UNUSUAL.items():
        said = refused(route, {name: value} | ({"engine": "walk"} if name == "stable" else {}))
        no = "" if name in ROUTES[route] else f"{route} does not use the setting {name!r}"
        assert said == no


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("route", ["verify", "certify"])
def test_what_an_engine_takes_is_read_in_some_search_and_the_rest_is_refused(
    route: str, engine: str
) -> None:
    read = {"verify": read_by_verify, "certify": read_by_certify}[route](engine)
    for name in set(ROUTES[route]) - AT_THE_DOOR[route]:
        taken = not refused(route, {"engine": engine, name: UNUSUAL[name]})
        assert not taken or name in read, f"{name} is taken and dropped"


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"attack": False, "seed": 3}, "seed"),
        ({"float32_semantics": True, "variant": "first-boundary"}, "variant"),
        ({"float32_semantics": True, "alternate": False}, "alternate"),
    ],
)
def test_a_setting_that_another_one_makes_useless_is_refused_by_name(
    given: dict[str, Any], name: str
) -> None:
    assert name in refused("verify", given)


def test_a_radius_refuses_what_its_certifier_has_and_it_does_not_use() -> None:
    model, _ = instance(SPLIT)
    for name in set(ROUTES["certify"]) - set(ROUTES["radius"]) - {"engine"}:
        more = {"engine": "walk"} if name == "stable" else {}
        certifier = Certifier.of(model, **{name: UNUSUAL[name]}, **more)
        with pytest.raises(InputError, match="does not use the setting"):
            certifier.radius(np.zeros(64))


@pytest.mark.parametrize("setting", [{"engine": "attack"}, {"float32_semantics": True}])
def test_a_certificate_is_refused_where_none_can_be_written(
    setting: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="certificate"):
        fgp_vnn.verify(*instance(SPLIT), certificate=tmp_path / "proof.npz", **setting)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["bench", str(BENCHMARK), "--certificates", "--engine", "attack"], "certificate"),
        (["bench", str(BENCHMARK), "--certificates", "--float32-semantics"], "certificate"),
        (["bench", str(BENCHMARK), "--no-attack", "--seed", "3"], "seed"),
        (["bench", str(BENCHMARK), "--engine", "bounds", "--lp"], "lp"),
        (["certify", "m.onnx", "p.npz", "--epsilon", "1", "--paper", "--engine", "split"], "paper"),
        (["radius", "m.onnx", "p.npz", "--exact", "--gap", "0.1"], "--gap"),
    ],
)
def test_an_option_that_a_command_would_drop_is_refused_before_the_work(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert said in capsys.readouterr().err


UNUSED = {
    "certify --without stable": "--without stable is used only by --engine walk",
    "certify --engine walk --no-attack": "--no-attack is used only by --engine auto or split",
    "certify --engine split --without alternate": "--without alternate is used only by --engine",
    "certify --engine split --no-alternate": "--no-alternate is used only by --engine auto or walk",
    "certify --engine split --batch 7": "--batch is used only by --engine auto or walk",
    "verify --engine attack --lp": "--lp is used only by --engine auto, split or walk",
    "verify --no-attack --seed 3": "--seed has no effect with --no-attack",
    "verify --float32-semantics --no-alternate": "--no-alternate has no effect with --float32-sem",
}


@pytest.mark.parametrize("words", UNUSED)
def test_an_option_that_another_one_makes_useless_is_named_as_it_was_typed(
    words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, prop = instance(SPLIT)
    np.save(tmp_path / "points.npy", np.zeros((1, 64)))
    command, *options = words.split()
    files = [tmp_path / "points.npy", "--epsilon", 1] if command == "certify" else [prop]
    assert main([str(word) for word in (command, model, *files, *options)]) == 2
    err = capsys.readouterr().err
    assert UNUSED[words] in err and err.count("\n") == 1
