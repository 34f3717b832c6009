"""Engines: a file is an engine, and its last step gives a verdict for each of its questions."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import fgp_vnn
from fgp_vnn.engine.engines import REGISTRY, engines_for, users_of
from fgp_vnn.engine.settings import ROUTES
from tests.helpers.places import PACKAGE
from tests.helpers.random_cases import exact_confirm, random_case
from tests.helpers.small_networks import random_network, random_point
from tests.helpers.solving import solve
from tests.helpers.ticking import Ticking


def test_every_file_of_the_folder_is_an_engine_and_the_usual_one_is_first() -> None:
    files = {path.stem for path in (PACKAGE / "engine" / "engines").glob("*.py")}
    assert set(REGISTRY) == files - {"__init__"} and next(iter(REGISTRY)) == "auto"


@pytest.mark.parametrize("name", REGISTRY)
def test_an_engine_has_steps_for_the_questions_that_it_names(name: str) -> None:
    engine = REGISTRY[name]
    assert set(engine.SETTINGS) == set(engine.steps()) and all(engine.steps().values())
    for question, used in engine.SETTINGS.items():
        assert set(used) <= {setting for names in ROUTES.values() for setting in names}
        assert name in engines_for(question)


@pytest.mark.parametrize("name", REGISTRY)
def test_every_engine_ends_with_a_verdict(name: str) -> None:
    from fgp_vnn.engine.settings import Settings

    for seed in range(4):
        query = random_case(seed).query
        verdict = solve(query, exact_confirm(query), Settings(engine=name), Ticking(100))
        assert verdict.status in ("sat", "unsat", "unknown", "timeout")
    network, x = random_network((3, 6, 2), 1), random_point(3, 1)
    certifier = fgp_vnn.Certifier.of(network, engine=name)
    for epsilon in (1e-6, 3.0):
        assert certifier.certify(x, epsilon=epsilon, timeout=20).status
    if name in engines_for("radius"):
        assert np.isfinite(certifier.radius(x, maximum=1.0, timeout=20).lower)


def test_a_setting_that_no_engine_names_is_used_by_all() -> None:
    assert users_of("seed", "verify") == tuple(REGISTRY)
    assert users_of("stable", "certify") == ("walk",)


def test_the_names_of_the_engines_are_known_without_torch() -> None:
    code = "import sys, fgp_vnn.engine.settings; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
