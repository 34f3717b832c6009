"""Radii: two valid ends, narrowed by every engine in every norm."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import fgp_vnn
from fgp_vnn.api.certify import Certifier
from fgp_vnn.base.errors import InputError, UnsupportedError
from fgp_vnn.base.radius import Radius
from fgp_vnn.base.robustness import NORMS, Norm, other_class
from fgp_vnn.cli.main import main
from fgp_vnn.search import distance
from fgp_vnn.search.waiting_bounds import over_caps
from oracle.radius import TOLERANCE
from radius_check import ENGINES, LARGER, MAXIMUM, as_if_large, case, results, wrong
from tests.helpers.small_networks import random_network, random_point, save_onnx

ORDERS: dict[Norm, float] = {"l2": 2, "linf": np.inf, "l1": 1}


@pytest.mark.parametrize(
    ("number", "norm"), [(200, "linf"), (2002, "l2"), (2006, "linf"), (2006, "l1")]
)  # 200: no open neurons
def test_every_search_ends_around_the_exact_radius_and_bounds_alone_come_near(
    norm: Norm, number: int
) -> None:
    made = case(number, norm)
    for engine, found in results(made, None):
        assert not wrong(found, made), (engine, found.lower, found.upper, made.exact)
        if engine == "bounds":
            assert 0.3 * made.exact < found.lower and found.upper <= MAXIMUM[norm]
        else:
            assert found.ended == "tight" and found.tight, (engine, found.lower, found.upper)


@pytest.mark.slow
@pytest.mark.parametrize("norm", NORMS)
def test_hardly_any_memory_takes_the_walk_only_and_leaves_its_ends_valid(
    norm: Norm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fgp_vnn.budget.budget.LEAST", 0)
    made = case(2001, norm)
    for engine in ("walk", "split"):
        certifier = Certifier.of(made.network, memory=1e-9, engine=engine)
        for either in (certifier, as_if_large(certifier)):
            found = either.radius(made.x, norm=norm, maximum=MAXIMUM[norm], clip=made.clip)
            assert not wrong(found, made), (found.lower, found.upper, made.exact)
            assert 0.3 * made.exact < found.lower and found.upper <= MAXIMUM[norm]
            assert engine == "walk" or found.ended == "tight"


@pytest.mark.parametrize("engine", ["walk", "split"])
@pytest.mark.parametrize("number", [2007, 2010])
def test_exact_ends_meet_at_the_exact_radius_in_l2(number: int, engine: str) -> None:
    made = case(number, "l2")
    certifier = Certifier.of(made.network, engine=engine)
    found = certifier.radius(made.x, maximum=MAXIMUM["l2"], gap=1e-6)
    if made.exact > MAXIMUM["l2"]:
        assert found.ended == "max" and found.lower == MAXIMUM["l2"]
    else:
        assert found.ended == "tight" and found.upper - found.lower <= 1e-6 * found.upper * 1.001
        assert found.lower <= made.exact * (1 + 1e-9) and found.upper >= made.exact * (1 - 1e-9)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("seed", [1])
def test_bundles_handed_on_to_larger_radii_cover_the_ball(norm: Norm, seed: int) -> None:
    """Without patience for a proof at the goal, the radius has to grow."""
    network, x = random_network((5, 10, 8, 4), seed), random_point(5, seed)
    maximum = MAXIMUM[norm]
    growing, walking = (Certifier.of(network, engine=engine) for engine in ("split", "walk"))
    grown = as_if_large(growing).radius(x, norm=norm, maximum=maximum)
    walked = walking.radius(x, norm=norm, maximum=maximum, timeout=0.3)
    assert grown.lower <= walked.upper and walked.lower <= grown.upper
    assert grown.ended in ("tight", "max")


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0])
def test_bounds_made_anew_where_levels_rise_are_sound(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is done for large networks, on one that the walk decides."""
    made: list[int] = []

    def counted(*args: Any) -> Any:
        made.append(len(args[3]))
        return over_caps(*args)

    monkeypatch.setattr(distance, "over_caps", counted)
    network, x = random_network((6, 14, 12, 10, 4), seed), random_point(6, seed)
    splitting, walking = (
        replace(Certifier.of(network, engine=engine), strategy=LARGER)
        for engine in ("split", "walk")
    )
    split = splitting.radius(x, maximum=2.0)
    walked = walking.radius(x, maximum=2.0, timeout=0.5)
    assert split.lower <= walked.upper and walked.lower <= split.upper
    assert split.ended in ("tight", "max") and made


def test_growing_radii_are_several_and_their_bounds_only_rise() -> None:
    network, x = random_network((8, 16, 14, 5), 1), random_point(8, 1)
    heard: list[tuple[float, float]] = []
    found = as_if_large(Certifier.of(network, engine="split")).radius(
        x,
        maximum=2.0,
        timeout=20,
        progress=lambda lower, upper: heard.append((lower, upper)),
    )
    assert found.statistics["radii"] > 1
    lowers, uppers = zip(*heard, strict=True)
    assert list(lowers) == sorted(lowers) and list(uppers) == sorted(uppers, reverse=True)
    assert all(lower <= upper for lower, upper in heard)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_counterexample_is_at_the_upper_end_and_has_another_class(
    norm: Norm, engine: str
) -> None:
    network, x = random_network((4, 7, 6, 3), 2), random_point(4, 2)
    certifier = Certifier.of(network, engine=engine)
    found = certifier.radius(x, norm=norm, maximum=2.0, clip=(0, 1), timeout=3)
    assert found.counterexample is not None
    point, y = found.counterexample.x, found.counterexample.y
    assert np.linalg.norm(point - x, ORDERS[norm]) == pytest.approx(found.upper, rel=1e-9)
    assert y[other_class(y, found.label)] >= y[found.label]
    assert point.min() >= 0 and point.max() <= 1


@pytest.mark.parametrize("engine", ["walk", "split"])
def test_the_ends_are_valid_whenever_the_search_is_cut(engine: str) -> None:
    made = case(2005, "l2")
    heard: list[tuple[float, float]] = []
    certifier = Certifier.of(made.network, engine=engine)
    as_if_large(certifier).radius(
        made.x,
        maximum=MAXIMUM["l2"],
        clip=made.clip,
        progress=lambda lower, upper: heard.append((lower, upper)),
    )
    assert len(set(heard)) > 2
    slack = TOLERANCE["l2"] * made.exact
    assert all(lower - slack <= made.exact <= upper + slack for lower, upper in heard)
    cut = certifier.radius(made.x, maximum=0.5, timeout=1e-9)
    assert (cut.ended, cut.tight, cut.statistics.get("regions", 0)) == ("timeout", False, 0)


def test_the_library_takes_a_file_and_gives_a_radius_for_each_input(tmp_path: Path) -> None:
    model = save_onnx(random_network((4, 6, 3), 0), tmp_path / "net.onnx")
    points = np.stack([random_point(4, seed) for seed in range(2)])
    results: Any = fgp_vnn.radius(model, points, "linf", maximum=0.3)
    assert [type(found) for found in results] == [Radius, Radius]
    alone: Any = fgp_vnn.radius(Certifier.of(model), points[0], norm="linf", maximum=0.3)
    assert alone.lower == results[0].lower
    assert json.loads(json.dumps(alone.as_dict()))["lower"] == alone.lower


def test_certify_and_radius_take_the_norm_in_the_same_place_and_l2_is_the_usual_one() -> None:
    network, x = random_network((4, 6, 3), 0), random_point(4, 0)
    certifier = Certifier.of(network)
    radii: Any = [fgp_vnn.radius(network, x, *norm, maximum=3.0) for norm in ((), ("l2",), ("l1",))]
    assert radii[0].lower == radii[1].lower < radii[2].lower
    for found, norm in zip(radii, ((), ("l2",), ("l1",)), strict=True):
        assert certifier.radius(x, *norm, maximum=3.0).lower == found.lower
        farther: Any = fgp_vnn.certify(network, x, *norm, epsilon=1.01 * found.upper)
        assert farther.status == "not_robust"
        assert certifier.certify(x, *norm, epsilon=0.99 * found.lower).status == "robust"
        assert certifier.attack(x, *norm, epsilon=0.99 * found.lower) is None


def test_progress_of_a_radius_is_that_of_ranges_the_two_ends() -> None:
    network, x = random_network((4, 6, 3), 0), random_point(4, 0)
    heard: list[tuple[float, float]] = []
    found: Any = fgp_vnn.radius(
        network, x, maximum=3.0, progress=lambda lower, upper: heard.append((lower, upper))
    )
    assert heard[-1] == (found.lower, found.upper)
    with pytest.raises(InputError, match="hear"):
        fgp_vnn.radius(network, x, hear=print)


@pytest.mark.parametrize(
    ("options", "word"),
    [({"gap": 0.0}, "gap"), ({"maximum": -1.0}, "maximum"), ({"engine": "attack"}, "engine")],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], word: str) -> None:
    with pytest.raises(InputError, match=word):
        fgp_vnn.radius(random_network((4, 6, 3), 0), random_point(4, 0), **options)


def test_what_a_radius_does_not_use_is_refused_by_name() -> None:
    network, x = random_network((4, 6, 3), 0), random_point(4, 0)
    for name in ("lp", "alternate", "precision", "batch"):
        given: dict[str, Any] = {name: 1}
        with pytest.raises(InputError, match=name):
            fgp_vnn.radius(network, x, **given)
    with pytest.raises(InputError, match="variant"):
        fgp_vnn.radius(Certifier.of(network, variant="first-boundary"), x)
    with pytest.raises(InputError, match="memory"):
        fgp_vnn.radius(Certifier.of(network), x, memory=1.0)


def test_the_command_writes_each_point(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    network = random_network((4, 6, 3), 0)
    model = str(save_onnx(network, tmp_path / "net.onnx"))
    np.save(tmp_path / "x.npy", np.stack([random_point(4, s) for s in range(3)]))
    output = tmp_path / "out.json"
    points = str(tmp_path / "x.npy")
    code = main(["radius", model, points, "--max", "0.3", "--json", "--output", str(output)])
    assert code == 0
    summary = json.loads(capsys.readouterr().out)
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert summary["points"] == len(rows) == 3
    for seed, row in enumerate(rows):
        found = Certifier.of(model).radius(random_point(4, seed), maximum=0.3)
        assert (row["lower"], row["ended"]) == (found.lower, found.ended)
        assert found.lower > 0 and found.ended in ("tight", "max")


def test_a_limit_that_is_none_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = str(save_onnx(random_network((4, 6, 3), 0), tmp_path / "net.onnx"))
    np.save(tmp_path / "x.npy", random_point(4, 0))
    assert main(["radius", model, str(tmp_path / "x.npy"), "--max", "0"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


class Gated(torch.nn.Module):
    """sigmoid(A x) * tanh(B x), and a last layer."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.a, self.b, self.c = (torch.nn.Linear(*n) for n in ((3, 6), (3, 6), (6, 3)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.c(torch.sigmoid(2 * self.a(x)) * torch.tanh(2 * self.b(x)))
        return result


@pytest.mark.parametrize("norm, order", [("linf", np.inf), ("l2", 2), ("l1", 1)])
@pytest.mark.parametrize("engine", ["auto", "bounds"])
def test_radii_of_smooth_networks_hold_at_samples(norm: str, order: float, engine: str) -> None:
    model, x = Gated(), np.full(3, 0.3, dtype=np.float32)
    found = fgp_vnn.Certifier.of(model, x=x, engine=engine).radius(
        x, norm=norm, maximum=2.0, gap=0.2, timeout=1
    )
    assert 0 < found.lower <= found.upper < 2
    random = np.random.default_rng(0)
    moves = random.normal(size=(20_000, 3))
    moves[::2] = np.sign(moves[::2])  # corners of a box
    lengths = np.linalg.norm(moves, order, axis=-1, keepdims=True)
    points = x + moves / lengths * random.uniform(0.8, 1.0, (20_000, 1)) * found.lower
    with torch.no_grad():
        classes = model(torch.from_numpy(points).float()).argmax(-1)
    assert (classes == found.label).all()


def test_splits_of_inputs_make_radii_of_smooth_networks_tight() -> None:
    x = np.full(3, 0.3, dtype=np.float32)
    certifier = fgp_vnn.Certifier.of(Gated(), x=x)
    assert certifier.radius(x, norm="linf", maximum=2.0, gap=0.05, timeout=60).ended == "tight"


def test_the_walk_refuses_radii_of_smooth_networks() -> None:
    x = np.full(3, 0.3, dtype=np.float32)
    with pytest.raises(UnsupportedError, match="the walk is for piecewise-linear networks"):
        fgp_vnn.Certifier.of(Gated(), x=x, engine="walk").radius(x, maximum=1.0)
