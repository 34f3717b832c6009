"""The library: files in, verdicts out."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import fgp_vnn
from fgp_vnn.api.cases import check_fit
from fgp_vnn.base.errors import InputError
from fgp_vnn.base.verdict import Verdict
from fgp_vnn.network import load_network
from fgp_vnn.property import load_property
from tests.helpers.network_models import Builder
from tests.helpers.places import BENCHMARK

with (BENCHMARK / "ground_truth.csv").open(encoding="ascii", newline="") as _file:
    TRUTH = [(row[0], row[1], row[3]) for row in csv.reader(_file)][1:]
# One in four of the instances, and the unusual ones.
CHOSEN = TRUTH[::4] + [row for row in TRUTH if "two_boxes" in row[1] or "conjunction" in row[1]]

TOO_MANY = "conv_6-12-32_pgd_untargeted_0.15"  # regions for the walk alone


def confirmed(verdict: Verdict, model: Path, prop: Path) -> None:
    example = verdict.counterexample
    assert example is not None
    y = load_network(model).runtime.run(example.x.astype(np.float32))
    assert np.array_equal(y, example.y)
    assert load_property(prop).broken_by(example.x.astype(float), example.y.astype(float))


@pytest.mark.parametrize("engine", ["auto", "walk"])
@pytest.mark.parametrize(("model", "prop", "truth"), CHOSEN, ids=[Path(c[1]).stem for c in CHOSEN])
def test_verdicts_are_the_ground_truth(model: str, prop: str, truth: str, engine: str) -> None:
    if engine == "walk" and TOO_MANY in prop:
        pytest.skip("too many regions for the walk alone")
    verdict = fgp_vnn.verify(BENCHMARK / model, BENCHMARK / prop, timeout=30, engine=engine)
    assert verdict.status == truth
    assert verdict.decided_by
    if truth == "sat":
        confirmed(verdict, BENCHMARK / model, BENCHMARK / prop)


@pytest.mark.parametrize(
    ("first", "settings"),
    [
        (0, {"attack": False, "engine": "bounds"}),
        (1, {"precision": "float32", "engine": "bounds"}),
        (2, {"engine": "attack"}),
    ],
    ids=str,
)
def test_no_setting_gives_the_opposite_of_the_truth(first: int, settings: dict[str, Any]) -> None:
    for model, prop, truth in TRUTH[first::12]:
        verdict = fgp_vnn.verify(BENCHMARK / model, BENCHMARK / prop, timeout=5, **settings)
        assert verdict.status in (truth, "unknown", "timeout"), prop


SATS = [row for row in TRUTH if row[2] == "sat" and row[0].startswith("onnx/dense_16")][:3]


@pytest.mark.parametrize(
    "options", [{}, {"variant": "first-boundary"}, {"alternate": False}], ids=str
)
@pytest.mark.parametrize(("model", "prop", "truth"), SATS, ids=[Path(c[1]).stem for c in SATS])
def test_without_the_attack_a_counterexample_is_not_proved_away(
    model: str, prop: str, truth: str, options: dict[str, Any]
) -> None:
    verdict = fgp_vnn.verify(
        BENCHMARK / model, BENCHMARK / prop, timeout=0.3, engine="walk", attack=False, **options
    )
    assert verdict.status != "unsat"
    if verdict.status == "sat":
        confirmed(verdict, BENCHMARK / model, BENCHMARK / prop)


def test_the_same_seed_gives_the_same_counterexample() -> None:
    model, prop, _ = SATS[0]
    first, second = (
        fgp_vnn.verify(BENCHMARK / model, BENCHMARK / prop, timeout=30, seed=5) for _ in range(2)
    )
    assert first.counterexample is not None and second.counterexample is not None
    assert np.array_equal(first.counterexample.x, second.counterexample.x)
    assert first.decided_by == second.decided_by


def test_the_steps_and_the_total_are_timed() -> None:
    model, prop, _ = TRUTH[0]
    seconds = fgp_vnn.verify(str(BENCHMARK / model), str(BENCHMARK / prop)).seconds
    assert {"load", "total"} <= set(seconds)
    assert all(value >= 0 for value in seconds.values())


@pytest.mark.parametrize(
    "settings",
    [
        {"engine": "magic"},
        {"variant": "half-queue"},
        {"device": "abacus"},
        {"precision": "float16"},
        {"seed": -1},
        {"seed": 1 << 80},
        {"seed": 0.5},
        {"colour": "red"},
        {"timeout": 0},
        {"timeout": -1.0},
        {"timeout": float("nan")},
        {"timeout": "soon"},
    ],
    ids=str,
)
def test_a_bad_setting_is_named(settings: dict[str, object]) -> None:
    model, prop, _ = TRUTH[0]
    with pytest.raises(InputError, match=next(iter(settings))):
        fgp_vnn.verify(BENCHMARK / model, BENCHMARK / prop, **settings)  # type: ignore[arg-type]


def identity_model(
    folder: Path, inputs: int = 2, *, softmax: bool = False, hidden: bool = True
) -> Path:
    """y = relu(x) - relu(-x) = x, or its softmax."""
    builder = Builder([1, inputs])
    eye = np.eye(inputs)
    at = "x"
    if hidden:
        both = builder.op("Gemm", "x", builder.const(np.hstack([eye, -eye])))
        at = builder.op("Relu", both)
        at = builder.op("Gemm", at, builder.const(np.vstack([eye, -eye])))
    return builder.save(folder / "model.onnx", builder.op("Softmax", at, axis=1) if softmax else at)


def prop_file(folder: Path, text: str, inputs: int = 2, outputs: int = 2) -> Path:
    lines = [f"(declare-const X_{i} Real)" for i in range(inputs)]
    lines += [f"(declare-const Y_{i} Real)" for i in range(outputs)]
    path = folder / "prop.vnnlib"
    path.write_text("\n".join([*lines, text, ""]))
    return path


def unit_box(low: float = -1.0, high: float = 1.0, inputs: int = 2) -> str:
    return "\n".join(
        f"(assert (>= X_{i} {low}))\n(assert (<= X_{i} {high}))" for i in range(inputs)
    )


@pytest.mark.parametrize("engine", ["auto", "walk", "split"])
@pytest.mark.parametrize(
    ("constraint", "status"),
    [
        ("(<= Y_0 -1.0)", "sat"),  # at the face alone
        ("(<= Y_0 -1.0001)", "unsat"),
        ("(and (>= Y_0 0.5) (<= Y_1 -0.5))", "sat"),
        ("(or (>= Y_0 1.5) (<= Y_1 -0.5))", "sat"),
        ("(or (>= Y_0 1.5) (<= Y_1 -1.5))", "unsat"),
        ("(>= Y_0 Y_1)", "sat"),
    ],
)
def test_small_questions_get_their_answers(
    tmp_path: Path, constraint: str, status: str, engine: str
) -> None:
    model = identity_model(tmp_path)
    prop = prop_file(tmp_path, f"{unit_box()}\n(assert {constraint})")
    verdict = fgp_vnn.verify(model, prop, timeout=20, engine=engine)
    assert verdict.status == status
    if status == "sat":
        confirmed(verdict, model, prop)


def test_one_broken_box_of_several_is_enough(tmp_path: Path) -> None:
    model = identity_model(tmp_path)

    def boxes(*highs: float) -> str:
        parts = [f"(and (>= X_0 0) (<= X_0 {h}) (>= X_1 0) (<= X_1 1) (>= Y_0 2))" for h in highs]
        return f"(assert (or {' '.join(parts)}))"

    safe = fgp_vnn.verify(model, prop_file(tmp_path, boxes(1, 1.5, 1.9)), timeout=20)
    assert safe.status == "unsat"
    prop = prop_file(tmp_path, boxes(1, 1.5, 3, 1.9))
    broken = fgp_vnn.verify(model, prop, timeout=20)
    assert broken.status == "sat"
    confirmed(broken, model, prop)


def test_an_empty_box_is_safe(tmp_path: Path) -> None:
    model = identity_model(tmp_path)
    text = unit_box() + "\n(assert (>= X_0 2.0))\n(assert (<= Y_0 100))"
    assert fgp_vnn.verify(model, prop_file(tmp_path, text), timeout=20).status == "unsat"


@pytest.mark.parametrize("engine", ["auto", "walk", "split", "attack"])
def test_a_property_that_any_output_breaks_is_broken(tmp_path: Path, engine: str) -> None:
    model = identity_model(tmp_path)
    prop = prop_file(tmp_path, unit_box() + "\n(assert (or (>= Y_0 0.0) (<= Y_0 0.0)))")
    assert fgp_vnn.verify(model, prop, timeout=20, engine=engine).status == "sat"
    everything = prop_file(tmp_path, unit_box())
    verdict = fgp_vnn.verify(model, everything, timeout=20, engine=engine)
    assert verdict.status == "sat"
    confirmed(verdict, model, everything)


def test_a_box_that_is_a_point_is_decided(tmp_path: Path) -> None:
    model = identity_model(tmp_path)
    for limit, status in ((0.5, "sat"), (0.75, "unsat")):
        text = unit_box(0.5, 0.5) + f"\n(assert (>= Y_0 {limit}))"
        assert fgp_vnn.verify(model, prop_file(tmp_path, text), timeout=20).status == status


def test_a_box_without_a_float32_is_judged_by_the_digits_written(tmp_path: Path) -> None:
    """0.1 is no float32: its float64 is written, and its float32 is what the network gets."""
    model = identity_model(tmp_path)
    prop = prop_file(tmp_path, unit_box(0.1, 0.1) + "\n(assert (>= Y_0 0.0))")
    verdict = fgp_vnn.verify(model, prop, timeout=20)
    assert verdict.status == "sat" and verdict.counterexample is not None
    assert verdict.counterexample.x.tolist() == [0.1, 0.1]
    assert verdict.counterexample.y.tolist() == [float(np.float32(0.1))] * 2


@pytest.mark.parametrize(("ends", "limit"), [((0, 1), 0.9999999), ((0.5, 0.50000001), 0.5)])
def test_attacks_find_what_lies_next_to_an_open_face(
    tmp_path: Path, ends: tuple[float, float], limit: float
) -> None:
    model, (low, high) = identity_model(tmp_path, 1), ends
    text = f"(assert (> X_0 {low}))(assert (< X_0 {high}))(assert (>= Y_0 {limit}))"
    prop = prop_file(tmp_path, text, 1, 1)
    verdict = fgp_vnn.verify(model, prop, timeout=20, engine="attack")
    assert verdict.status == "sat"
    confirmed(verdict, model, prop)


def test_a_softmax_network_is_compared_before_its_softmax(tmp_path: Path) -> None:
    model = identity_model(tmp_path, softmax=True)
    for low, status in ((0.5, "unsat"), (-0.5, "sat")):
        text = (
            f"(assert (>= X_0 {low}))\n(assert (<= X_0 1))\n(assert (>= X_1 -1))\n"
            "(assert (<= X_1 0.25))\n(assert (>= Y_1 Y_0))"
        )
        prop = prop_file(tmp_path, text)
        verdict = fgp_vnn.verify(model, prop, timeout=20)
        assert verdict.status == status
        if status == "sat":
            confirmed(verdict, model, prop)
            assert verdict.counterexample is not None
            assert float(verdict.counterexample.y.sum()) == pytest.approx(1)  # of the whole network


def test_a_property_of_another_network_is_refused(tmp_path: Path) -> None:
    loaded = load_network(identity_model(tmp_path))
    prop = load_property(prop_file(tmp_path, unit_box(inputs=3) + "(assert (<= Y_0 0))", inputs=3))
    with pytest.raises(InputError, match="3 inputs"):
        check_fit(loaded, prop, "model", "prop")


def test_a_certificate_that_is_no_path_is_refused(tmp_path: Path) -> None:
    _, y = fgp_vnn.variables(model := identity_model(tmp_path))
    with pytest.raises(InputError, match="certificate is 5; it must be the path of a file"):
        fgp_vnn.verify(model, inputs=(0, 1), unsafe=y[0] >= 2, certificate=5)  # type: ignore[arg-type]


def test_a_pair_of_arrays_is_the_box_between_them(tmp_path: Path) -> None:
    model = identity_model(tmp_path)
    _, y = fgp_vnn.variables(model)
    for pair in (([0, 0], [1, 1]), (0, 1), (torch.zeros(1, 2), np.ones(2, np.float32))):
        assert fgp_vnn.verify(model, inputs=pair, unsafe=y[0] >= 1.01).status == "unsat"
        assert fgp_vnn.verify(model, inputs=pair, unsafe=y[0] >= 0.99).status == "sat"
        for prop in (
            fgp_vnn.output_range(model, pair, upper=0.5),
            fgp_vnn.property_of(pair, y[0] >= 1),
        ):
            assert np.array_equal(prop.cases[0].upper, [1, 1])
    with pytest.raises(InputError, match="above its upper bound"):
        fgp_vnn.verify(model, inputs=(1, 0), unsafe=y[0] >= 1)


@pytest.mark.parametrize("prop", [5, b"(assert (<= X_0 1))"])
def test_what_is_no_property_is_refused_by_its_type(tmp_path: Path, prop: Any) -> None:
    with pytest.raises(InputError, match=f"not {type(prop).__name__}"):
        fgp_vnn.verify(identity_model(tmp_path), prop)


@pytest.mark.parametrize("prop", ["y[0] >= y[1]", "(assert (<= X_0 1))" * 100])
def test_a_condition_given_as_text_is_told_how_it_is_written(tmp_path: Path, prop: str) -> None:
    with pytest.raises(InputError, match=r"path of a VNN-LIB file.*fgp_vnn\.variables"):
        fgp_vnn.verify(identity_model(tmp_path), prop)
    with pytest.raises(InputError, match=r"missing\.vnnlib does not exist"):
        fgp_vnn.verify(identity_model(tmp_path), "missing.vnnlib")


def test_the_public_names_are_there() -> None:
    for name in fgp_vnn.__all__:
        assert getattr(fgp_vnn, name) is not None
    assert [name for name in dir(fgp_vnn) if not name.startswith("_")] == sorted(fgp_vnn.__all__)
    with pytest.raises(AttributeError, match="nothing_like_it"):
        _ = fgp_vnn.nothing_like_it  # type: ignore[attr-defined]
