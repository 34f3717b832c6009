"""The property files of the competition's benchmarks."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from fgp_vnn.base.errors import InputError, UnsupportedError
from fgp_vnn.property import Case, Property, load_property

# Inputs that a benchmark has; None where they differ from file to file.
BENCHMARKS = {
    "test": None,
    "acasxu_2023": 5,
    "mnist_fc": 784,
    "cora_2024": 784,
    "oval21": 3072,
    "sri_resnet_a": 3072,
    "malbeware": 4096,
    "relusplitter": None,
    "safenlp_2024": 30,
    "rl_benchmarks": None,
    "reach_prob_density": None,
    "collins_rul_cnn_2022": None,
    "tllverifybench_2023": 2,
    "sat_relu": None,
    "cersyve": None,
    "linearizenn_2024": 4,
    "dist_shift_2023": 792,
    "lsnc_relu": 6,
}

SOME = 5  # files of a benchmark, or a few more: its others are of the same make
# Samples of 2.0 that are refused, and why; all others are read.
REFUSED: dict[str, tuple[type[InputError], str]] = {
    "adaptive_cruise_control_non_linear_2026/vnnlib/instance_1": (
        UnsupportedError,
        "line 15: a product of two variables",
    ),
    "isomorphic_acasxu_2026/vnnlib/instance_0": (UnsupportedError, "line 11: 2 networks"),
    "monotonic_acasxu_2026/vnnlib/instance_0": (InputError, "line 30, column 10: syntax error"),
    "standard_tests/acc": (UnsupportedError, "line 14: a constraint that relates inputs"),
    "standard_tests/initialized": (UnsupportedError, "line 1: version '<2.1>'"),
    "standard_tests/intermediate_nodes": (UnsupportedError, "line 4: hidden layers"),
    "standard_tests/mnist": (
        UnsupportedError,
        "X[0,1] has no lower bound (inputs without one: 782)",
    ),
    "standard_tests/multiple_networks": (UnsupportedError, "line 7: 3 networks"),
    "standard_tests/single_network": (UnsupportedError, "line 13: a constraint that relates"),
    "standard_tests/test_linearise": (UnsupportedError, "line 40: a constraint that relates"),
}


def same_case(first: Case, second: Case) -> bool:
    same = np.array_equal(first.lower, second.lower) and np.array_equal(first.upper, second.upper)
    for a, b in zip(first.unsafe, second.unsafe, strict=True):
        same &= np.array_equal(a.rows, b.rows) and np.array_equal(a.limits, b.limits)
        same &= np.array_equal(a.strict, b.strict)
    return same


def assert_same(first: Property, second: Property) -> None:
    assert (first.inputs, first.outputs) == (second.inputs, second.outputs)
    assert len(first.cases) == len(second.cases)
    assert all(map(same_case, first.cases, second.cases))


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_properties_of_a_benchmark_are_read(shared_data: Path, benchmark: str) -> None:
    files = sorted((shared_data / "vnncomp" / benchmark / "vnnlib").rglob("*.vnnlib*"))
    assert files
    for file in files[:: max(1, len(files) // SOME)]:
        prop = load_property(file)
        assert prop.version == "1.0" and prop.warnings == () and prop.cases
        assert BENCHMARKS[benchmark] in (None, prop.inputs)
        for case in prop.cases:
            assert case.lower.shape == case.upper.shape == (prop.inputs,)
            assert case.contains((case.lower + case.upper) / 2)
            assert case.unsafe and all(len(c.rows) for c in case.unsafe)


def test_every_sample_of_2_0_is_read_or_refused_for_its_reason(shared_data: Path) -> None:
    folder = shared_data / "vnncomp" / "vnnlib2_samples"
    refused = set()
    for file in sorted(folder.rglob("*.vnnlib*")):
        name = str(file.relative_to(folder)).partition(".vnnlib")[0]
        if name in REFUSED:
            kind, reason = REFUSED[name]
            with pytest.raises(kind) as caught:
                load_property(file)
            assert reason in str(caught.value) and "\n" not in str(caught.value)
            refused.add(name)
            continue
        prop = load_property(file)
        assert prop.cases and prop.warnings == ()
        assert prop.version == ("1.0" if "same_in_1.0" in str(file) else "2.0")
    assert refused == set(REFUSED)


def test_acasxu_means_the_same_in_1_0_and_2_0(shared_data: Path) -> None:
    new = shared_data / "vnncomp" / "vnnlib2_samples" / "acasxu_2023" / "vnnlib"
    old = shared_data / "vnncomp" / "acasxu_2023" / "vnnlib"
    common = [file for file in sorted(new.iterdir()) if (old / file.name).exists()]
    assert len(common) >= 3
    for file in common:
        prop = load_property(file)
        assert_same(prop, load_property(old / file.name))
        assert [(v.name, v.type, v.shape) for v in prop.input_variables] == [
            ("X", "float32", (1, 1, 1, 5))
        ]


def test_a_property_of_3072_inputs_means_the_same_in_1_0_and_2_0(shared_data: Path) -> None:
    folder = shared_data / "vnncomp" / "vnnlib2_samples" / "challenging_certified_training_2026"
    (new,) = (folder / "vnnlib").rglob("*.vnnlib.gz")
    (old,) = (folder / "same_in_1.0").rglob("*.vnnlib.gz")
    assert_same(load_property(new), load_property(old))


def test_acasxu_property_6_has_two_boxes_with_four_conjunctions(shared_data: Path) -> None:
    folder = shared_data / "vnncomp" / "vnnlib2_samples" / "acasxu_2023" / "vnnlib"
    prop = load_property(folder / "prop_6.vnnlib.gz")
    assert [case.lower[1] for case in prop.cases] == [0.11140846, -0.499999896]
    assert [len(case.unsafe) for case in prop.cases] == [4, 4]


def test_collins_rul_fixes_most_inputs(shared_data: Path) -> None:
    folder = shared_data / "vnncomp" / "collins_rul_cnn_2022"
    with (folder / "instances.csv").open() as file:
        name = next(csv.reader(file))[1]
    (case,) = load_property(folder / f"{name}.gz").cases
    assert np.mean(case.lower == case.upper) > 0.5


def test_the_mixed_disjunction_of_test_small_is_a_box_with_its_own_row(shared_data: Path) -> None:
    prop = load_property(shared_data / "vnncomp" / "test" / "vnnlib" / "test_small.vnnlib.gz")
    (case,) = prop.cases
    assert (case.lower.tolist(), case.upper.tolist()) == ([-1.0], [1.0])
    assert prop.broken_by(np.array([1.0]), np.array([100.0]))
    assert not prop.broken_by(np.array([1.0]), np.array([99.0]))
