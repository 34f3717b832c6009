"""Networks that end in an increasing function: verdicts, certificates, and what float32 rounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fgp_vnn
from tests.helpers.network_models import Builder

BOX = (np.full(3, -1.0), np.full(3, 1.0))


def _ended(folder: Path, kind: str, scale: float = 1.0) -> Path:
    """Two layers of ReLUs, and a function of what follows these."""
    b = Builder([1, 3])
    hidden = b.op("Relu", b.op("MatMul", "x", b.random(3, 6)))
    hidden = b.op("Relu", b.op("MatMul", hidden, b.random(6, 4)))
    last = b.op("Mul", b.op("MatMul", hidden, b.random(4, 2)), b.const(scale))
    return b.save(folder / f"{kind}.onnx", b.op(kind, last))


@pytest.mark.parametrize("kind", ["Sigmoid", "Tanh"])
def test_limits_and_comparisons_of_outputs_are_decided_by_regions(
    kind: str, tmp_path: Path
) -> None:
    """The walk refuses smooth networks: it gets here what the function is applied to."""
    path = _ended(tmp_path, kind)
    y = fgp_vnn.variables(path)[1]
    highest = fgp_vnn.maximise(path, BOX, y[0], gap=1e-3)
    room = (1 - highest.upper) / 100
    for limit, status in ((highest.upper + room, "unsat"), (highest.value - room, "sat")):
        found = fgp_vnn.verify(path, inputs=BOX, unsafe=y[0] >= limit, engine="walk")
        assert found.status == status, found.reason
    compared = fgp_vnn.verify(path, inputs=BOX, unsafe=y[0] <= y[1], engine="walk")
    plain = fgp_vnn.verify(_ended(tmp_path, "Identity"), inputs=BOX, unsafe=y[0] <= y[1])
    assert compared.status == plain.status in ("sat", "unsat")


def test_certificates_are_about_the_whole_network(tmp_path: Path) -> None:
    path, proof = _ended(tmp_path, "Sigmoid"), tmp_path / "proof.npz"
    y = fgp_vnn.variables(path)[1]
    found = fgp_vnn.verify(path, inputs=BOX, unsafe=y[0] >= 0.9999, certificate=proof)
    assert found.status == "unsat"
    assert found.certificate and proof.is_file()


def test_a_value_that_only_float32_reaches_is_found(tmp_path: Path) -> None:
    path = _ended(tmp_path, "Sigmoid", scale=1000.0)
    y = fgp_vnn.variables(path)[1]
    assert fgp_vnn.verify(path, inputs=BOX, unsafe=y[0] >= 1.0).status == "sat"


def _behind(folder: Path, kind: str, *steps: tuple[str, float]) -> Path:
    """A function of one input, and what comes behind it."""
    b = Builder([1, 1])
    value = b.op(kind, b.op("MatMul", "x", b.const([[1.0]])))
    for step, number in steps:
        value = b.op(step, value, b.const(number))
    return b.save(folder / "behind.onnx", value)


def _bounded(path: Path, highest: float, limit: float, **options: Any) -> str:
    """The verdict of bounds alone, which end without a time limit."""
    y = fgp_vnn.variables(path)[1]
    box = ([[-1.0]], [[highest]])
    options = {"engine": "bounds", "attack": False, **options}
    return fgp_vnn.verify(path, inputs=box, unsafe=y[0] >= limit, **options).status


def test_sums_that_were_rounded_are_no_numbers_of_the_file(tmp_path: Path) -> None:
    """The sum is s + 0.25 for a sigmoid s of at most 0.8, and s by float64."""
    steps = ("Add", 1e20), ("Add", 0.25), ("Add", -1e20)
    assert _bounded(_behind(tmp_path, "Sigmoid", *steps), 1.3863, 0.9) == "unknown"


@pytest.mark.parametrize(
    ("kind", "times", "limit"),
    [("Sigmoid", 1, 2**14), ("Sigmoid", 20, 2**14), ("Relu", 100, 2**18)],
)
def test_equal_signs_do_not_make_a_sum_exact(
    kind: str, times: int, limit: int, tmp_path: Path
) -> None:
    """Each sum of 2^66 and 2^12 is 2^66 by float64; all of them together pass the limit."""
    steps = ("Mul", 2.0**15), ("Add", 2.0**66), *[("Add", 2.0**12)] * times
    assert _bounded(_behind(tmp_path, kind, *steps), -0.05, float(2**66 + limit)) == "unknown"


def test_classes_that_only_rounding_keeps_apart_are_not_robust(tmp_path: Path) -> None:
    """The second output is greater by 0.25 than what float64 makes of it, and the greatest."""
    b = Builder([1, 1])
    hidden = b.op("Add", b.op("MatMul", "x", b.const([[1.0, 1.0]])), b.const([0.5, 0.0]))
    value = b.op("Sigmoid", hidden)
    for number in (2.0**60, 0.25, -(2.0**60)):
        value = b.op("Add", value, b.const([[0.0, number]]))
    path = b.save(tmp_path / "classes.onnx", value)
    found = fgp_vnn.certify(path, np.zeros((1, 1)), "linf", epsilon=0.1, engine="bounds")
    assert isinstance(found, fgp_vnn.Robustness) and found.status == "unknown"


def test_splits_go_on_where_a_short_walk_leaves_a_boundary_open(tmp_path: Path) -> None:
    random, b = np.random.default_rng(9), Builder([1, 2])
    weights, bias = b.const(random.normal(size=(2, 6))), b.const(random.normal(size=6) * 0.3)
    hidden = b.op("Relu", b.op("Add", b.op("MatMul", "x", weights), bias))
    last = b.op("MatMul", hidden, b.const(random.normal(size=(6, 1))))
    path = b.save(tmp_path / "few.onnx", b.op("Sigmoid", b.op("Add", last, b.const([0.1]))))
    y = fgp_vnn.variables(path)[1]
    box, unsafe = (np.full((1, 2), -1.0), np.full((1, 2), 1.0)), y[0] >= 0.996921580249722
    assert fgp_vnn.verify(path, inputs=box, unsafe=unsafe, engine="walk").status == "unknown"
    assert fgp_vnn.verify(path, inputs=box, unsafe=unsafe).status == "unsat"


def test_a_limit_that_float32_would_move_is_not_passed(tmp_path: Path) -> None:
    """The sigmoid of 16.5 is 1 - 6.8e-8."""
    path = _behind(tmp_path, "Sigmoid")
    assert _bounded(path, 16.5, 0.99999992, precision="float32") == "unknown"
    assert _bounded(path, 16.5, 0.99999994) == "unsat"


def test_limits_beyond_all_numbers_are_limits_too(tmp_path: Path) -> None:
    assert _bounded(_behind(tmp_path, "Exp", ("Mul", 1e-40)), 1.0, 1e300) == "unsat"
    assert _bounded(_behind(tmp_path, "Sigmoid"), 1.0, 1e39, precision="float32") == "unknown"
