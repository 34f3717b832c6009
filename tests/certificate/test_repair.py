"""Trees of boxes that the checker refuses, and what is made of them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fgp_vnn.base.errors import InputError
from fgp_vnn.certificate.checker.check import check, check_files
from fgp_vnn.certificate.checker.network import CheckedNetwork
from fgp_vnn.certificate.checker.proof import Certificate, ProofStep
from fgp_vnn.certificate.checker.trees import LEAF
from fgp_vnn.certificate.prove import prove
from fgp_vnn.certificate.repair import repair_boxes
from fgp_vnn.property.load import parse_property
from fgp_vnn.property.model import Case, Conjunction, Property
from tests.certificate.maps import affine
from tests.helpers.network_models import Builder

Array = NDArray[np.float64]
LOWER, UPPER = np.full(3, -1.0), np.ones(3)


def network(seed: int) -> CheckedNetwork:
    generator = np.random.default_rng(seed)
    maps = []
    for k, (before, after) in enumerate(pairwise([3, 8, 8, 2])):
        weight, bias = generator.normal(size=(after, before)), generator.normal(size=after)
        maps.append(affine({k: weight}, bias))
    return CheckedNetwork(tuple(maps), 3)


def outputs(model: CheckedNetwork, x: Array) -> Array:
    for k, part in enumerate(model.maps):
        x = (np.maximum(x, 0) if k else x) @ part.weights[k].T + part.bias
    return x


def at_most(rows: Array, limits: Array) -> Conjunction:
    return Conjunction(rows, limits, np.zeros(len(limits), dtype=bool))


def question(model: CheckedNetwork, room: float) -> Case:
    """Whether the first output, or both, can be less than what a grid reaches, by so much."""
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, 21)] * 3), -1).reshape(-1, 3)
    least = outputs(model, grid).min(0)
    rows, limits = np.eye(2), least - room
    return Case(LOWER, UPPER, (at_most(rows[:1], limits[:1]), at_most(rows, limits)))


def unsplit(case: Case) -> ProofStep:
    rows = sum(len(part.limits) for part in case.unsafe)
    arrays: dict[str, NDArray[Any]] = {
        "disjuncts": np.arange(len(case.unsafe), dtype=np.int32),
        "tree": np.array([LEAF], dtype=np.int32),
        "cuts": np.zeros(0),
        "weights": np.ones((1, rows), dtype=np.float32),
    }
    return ProofStep("boxes", 0, arrays)


@pytest.mark.parametrize("seed", range(4))
def test_a_tree_that_is_too_small_is_split_until_it_is_accepted(seed: int) -> None:
    model = network(seed)
    case = question(model, 0.5)
    prop = Property((case,), 3, 2)
    before = unsplit(case)
    with pytest.raises(InputError, match="not greater than 0"):
        check(Certificate("", "", (before,)), model, prop)
    after = repair_boxes(model, case, before, lambda: None)
    checked = check(Certificate("", "", (after,)), model, prop)
    assert checked.margin > 0
    assert checked.leaves == len(after.arrays["weights"]) > 1


def test_leaves_that_the_checker_closes_stay_as_they_are() -> None:
    model = network(0)
    case = question(model, 0.5)
    once = repair_boxes(model, case, unsplit(case), lambda: None)
    again = repair_boxes(model, case, once, lambda: None)
    assert all((again.arrays[name] == once.arrays[name]).all() for name in once.arrays)


def test_what_is_false_is_split_until_it_is_told_to_stop() -> None:
    model = network(1)
    case = question(model, -0.1)
    turns = iter(range(40))

    def watch() -> None:
        if next(turns, None) is None:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        repair_boxes(model, case, unsplit(case), watch)


def test_a_box_that_cannot_be_halved_is_said_to_be_too_small() -> None:
    model = network(1)
    always = Case(LOWER, np.nextafter(LOWER, 0), (at_most(np.eye(2), np.full(2, 1e6)),))
    with pytest.raises(LookupError, match="too small"):
        repair_boxes(model, always, unsplit(always), lambda: None)


def test_a_proof_of_boxes_is_repaired_before_it_is_written() -> None:
    model = network(2)
    case = question(model, 0.5)
    builder, end = Builder([1, 3]), "x"
    for k, part in enumerate(model.maps):
        end = builder.op("Relu", end) if k else end
        end = builder.op("Gemm", end, builder.const(part.weights[k].T), builder.const(part.bias))
    lines = [f"(declare-const {name} Real)" for name in ("X_0", "X_1", "X_2", "Y_0", "Y_1")]
    lines += [f"(assert (>= X_{i} -1.0)) (assert (<= X_{i} 1.0))" for i in range(3)]
    lines += [f"(assert (<= Y_0 {case.unsafe[0].limits[0]}))"]
    files = builder.model(end).SerializeToString(), "\n".join(lines).encode()
    prop = parse_property(files[1])
    data, checked = prove([unsplit(prop.cases[0])], *files, prop, lambda: None)
    assert checked.leaves > 1
    assert check_files(data, *files).leaves == checked.leaves
