"""The one way from the command line to a search, which all three questions take."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType

import numpy as np
import pytest

from fgp_vnn.cli.main import main
from fgp_vnn.search.best_first import BestFirst
from fgp_vnn.search.distance import Distance
from fgp_vnn.search.neurons import Decide
from fgp_vnn.search.walk.explore import Ground
from tests.helpers.command_line import box
from tests.helpers.places import BENCHMARK, PACKAGE

HOPS = 8  # functions of ours, from `main` to the one with the loop of a search
MODEL = str(BENCHMARK / "onnx" / "dense_20x6_pgd.onnx")
POINTS = str(BENCHMARK / "points.npz")
EPSILON = 0.102  # around the first point: no counterexample, and linear bounds do not show it
CLASS = 3
FIRST = ["--norm", "linf", "--first", "1"]


class Enough(BaseException):
    """Ends a search whose way is known."""


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Fills with the functions of ours on the stack whenever a search that decides is at work."""
    found: list[list[str]] = []

    def stack() -> list[str]:
        frame: FrameType | None = sys._getframe(1)
        names: list[str] = []
        while frame is not None:
            path = Path(frame.f_code.co_filename)
            if path.is_relative_to(PACKAGE):
                module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
                names.append(f"{module}.{frame.f_code.co_name}")
            frame = frame.f_back
        return names[::-1]

    def run(self: BestFirst, until: Callable[[], bool], run: Callable[..., None]) -> None:
        if len(self.frontier) and isinstance(self.goal, Decide | Distance):
            found.append([*stack(), "search.best_first.run"])
            if len(found) == 20:
                raise Enough
        run(self, until)

    best_first, regions = BestFirst.run, Ground.regions
    monkeypatch.setattr(BestFirst, "run", lambda self, until: run(self, until, best_first))

    def explored(self: Ground, words: object) -> object:
        if stack()[-1].endswith(".explore"):  # the loop itself, and not what it asks for
            found.append(stack())
            if len(found) == 20:
                raise Enough
        return regions(self, words)  # type: ignore[arg-type]

    monkeypatch.setattr(Ground, "regions", explored)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["split", "walk"])
def test_the_three_questions_reach_a_search_by_one_way_of_few_hops(
    engine: str, ways: list[list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    x = np.load(POINTS)["x"][0].astype(float)
    others = " ".join(f"(and (>= Y_{j} Y_{CLASS}))" for j in range(10) if j != CLASS)
    prop = tmp_path / "ball.vnnlib"
    prop.write_text(box([(v - EPSILON, v + EPSILON) for v in x], 10, f"(or {others})"))
    commands = {
        "verify": ["verify", MODEL, str(prop)],
        "certify": ["certify", MODEL, POINTS, "--epsilon", str(EPSILON), *FIRST],
        "radius": ["radius", MODEL, POINTS, *FIRST],
    }
    taken: dict[str, list[list[str]]] = {}
    for name, command in commands.items():
        ways.clear()
        with suppress(Enough):
            assert main([*command, "--engine", engine, "--timeout", "60"]) == 0
        taken[name] = list(ways)
        assert taken[name], f"{name} does not search"
        assert max(map(len, taken[name])) <= HOPS, max(taken[name], key=len)
    loop = {"split": "search.best_first.run", "walk": "search.walk.explore.explore"}
    for name, found in taken.items():
        for way in found:
            assert way[:2] == ["cli.main.main", f"cli.{name}.run"]
            assert way[2].startswith("api.")
            assert way[3] == "engine.run.run" and way[4].startswith("engine.")
            assert way[-1] == loop[engine]
