"""What a user can choose, and what is refused by name."""

from __future__ import annotations

import math
from typing import Any

import pytest

import fgp_vnn
from fgp_vnn.base.errors import InputError
from fgp_vnn.engine.engines import users_of
from fgp_vnn.engine.settings import ROUTES, Settings, make_settings


def test_settings_are_the_fields_of_settings() -> None:
    assert make_settings("verify", {"engine": "walk", "seed": 3}).engine == "walk"
    with pytest.raises(InputError, match="colour"):
        make_settings("verify", {"colour": 1})


@pytest.mark.parametrize("name", ["batch", "signed", "combined", "cache_first", "stable", "reduce"])
def test_what_verify_does_not_use_is_refused_by_name(name: str) -> None:
    for value in (getattr(Settings(), name), 1):
        given: dict[str, Any] = {name: value}
        with pytest.raises(InputError, match=f"verify does not use the setting '{name}'"):
            fgp_vnn.verify("model.onnx", "property.vnnlib", **given)


@pytest.mark.parametrize(
    ("route", "given", "word"),
    [
        ("certify", {"precision": "float32"}, "precision"),
        ("certify", {"float32_semantics": True}, "float32_semantics"),
        ("certify", {"engine": "split", "batch": 7}, "batch"),
        ("verify", {"engine": "bounds", "lp": True}, "lp"),
        ("verify", {"engine": ["walk"]}, "engine"),
        ("verify", {"lp": "no"}, "lp is 'no'"),
        ("verify", {"seed": True}, "seed"),
        ("verify", {"memory": math.inf}, "memory is inf"),
        ("verify", {"memory": math.nan}, "memory is nan"),
        ("verify", {"memory": "1"}, "memory is '1'"),
        ("verify", {"memory": 0}, "memory is 0"),
        ("certify", {"batch": 0}, "batch is 0"),
        ("certify", {"batch": 2.5}, "batch is 2.5"),
        ("certify", {"batch": 1 << 70}, "batch is"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused_by_name(
    route: str, given: dict[str, Any], word: str
) -> None:
    with pytest.raises(InputError, match=word):
        make_settings(route, given)


def test_a_setting_of_other_engines_is_refused_with_the_engines_that_use_it() -> None:
    with pytest.raises(InputError, match=r"'auto' does not use .*'stable'; .* only by 'walk'$"):
        make_settings("certify", {"stable": False})
    with pytest.raises(InputError, match=r"'lp'; .* only by 'auto', 'split' or 'walk'$"):
        make_settings("verify", {"engine": "attack", "lp": True})


def test_every_setting_of_a_command_is_used_by_an_engine() -> None:
    for route in ("verify", "certify", "radius"):
        assert all(users_of(name, route) for name in ROUTES[route])


@pytest.mark.parametrize(
    ("route", "name", "meant"),
    [("verify", "engin", "engine"), ("certify", "time_out", "timeout"), ("radius", "sed", "seed")],
)
def test_a_setting_that_is_misspelt_is_refused_with_the_one_that_was_meant(
    route: str, name: str, meant: str
) -> None:
    with pytest.raises(InputError, match=f"no setting '{name}'; did you mean '{meant}'"):
        make_settings(route, {name: 1})


@pytest.mark.parametrize("name", ["quuux", "epsilon"])
def test_a_setting_like_no_other_is_refused_without_a_suggestion(name: str) -> None:
    with pytest.raises(InputError, match=f"no setting '{name}'$"):
        make_settings("verify", {name: 1})


def test_an_option_of_a_call_is_not_taken_for_a_misspelt_setting() -> None:
    with pytest.raises(InputError, match=r"'timeout'; it is given to certify and radius"):
        make_settings("certify", {"timeout": 6.0})
    with pytest.raises(InputError, match=r"no setting 'clip'$"):
        make_settings("verify", {"clip": (0, 1)})
