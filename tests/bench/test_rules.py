from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fgp_vnn.bench.check import OnnxFile, judge_results
from fgp_vnn.bench.rules import NEWEST, RULES, Evidence, standing
from fgp_vnn.property import load_property
from fgp_vnn.property.model import Property
from tests.helpers.bench_folders import PROPERTY, identity


@pytest.fixture
def prop(tmp_path: Path) -> Property:
    """On the unit square, broken where Y_0 >= Y_1."""
    (tmp_path / "prop.vnnlib").write_text(PROPERTY)
    return load_property(tmp_path / "prop.vnnlib")


def judged(prop: Property, year: int, x: list[float], y: list[float], ran: list[float]) -> str:
    evidence = Evidence(np.array(x), np.array(y), np.array(ran))
    return standing(evidence, prop, RULES[year])


INSIDE, NEAR, FAR = [1.0, 0.0], [1.0 + 1.4e-8, 0.0], [1.0 + 2e-4, 0.0]


@pytest.mark.parametrize("year", RULES)
@pytest.mark.parametrize(
    ("x", "expected"), [(INSIDE, "valid"), (NEAR, "tolerated"), (FAR, "invalid")]
)
def test_an_input_may_lie_outside_by_a_ten_thousandth(
    prop: Property, year: int, x: list[float], expected: str
) -> None:
    assert judged(prop, year, x, [1.0, 0.0], [1.0, 0.0]) == expected


@pytest.mark.parametrize(
    ("year", "expected"), [(2023, "tolerated"), (2025, "tolerated"), (2026, "invalid")]
)
def test_an_output_may_miss_only_before_2026(prop: Property, year: int, expected: str) -> None:
    assert judged(prop, year, INSIDE, [1.0, 1.0 + 5e-5], [1.0, 1.0 + 5e-5]) == expected


@pytest.mark.parametrize(
    ("year", "written", "expected"),
    [
        (2025, [1.0, 0.0], "valid"),
        (2025, [1.0 + 1e-6, 0.0], "tolerated"),  # not what onnxruntime gives, and near it
        (2025, [1.1, 0.0], "invalid"),
        (2025, [1.0], "invalid"),
        (2026, [7.0, 9.0], "valid"),  # what a tool writes is not looked at
    ],
)
def test_written_outputs_count_before_2026(
    prop: Property, year: int, written: list[float], expected: str
) -> None:
    assert judged(prop, year, INSIDE, written, [1.0, 0.0]) == expected


def test_outputs_that_are_missing_count_against_a_tool_before_2026(prop: Property) -> None:
    evidence = Evidence(np.array(INSIDE), None, np.array([1.0, 0.0]))
    found = {year: standing(evidence, prop, rules) for year, rules in RULES.items()}
    assert found == {2023: "invalid", 2024: "invalid", 2025: "invalid", 2026: "valid"}


@pytest.mark.parametrize("x", [[float("inf"), 0.0], [float("nan"), 0.0]])
def test_numbers_that_are_not_finite_never_count(prop: Property, x: list[float]) -> None:
    assert judged(prop, NEWEST.year, x, [1.0, 0.0], [1.0, 0.0]) == "invalid"


def test_a_results_file_is_judged_strictly_and_by_every_year(
    tmp_path: Path, prop: Property
) -> None:
    (tmp_path / "net.onnx").write_bytes(identity())
    results = tmp_path / "results.txt"
    results.write_text("sat\n((X_0 1.00001)\n(X_1 0.0)\n(Y_0 1.00001)\n(Y_1 0.0))\n")
    found = judge_results(results, OnnxFile(tmp_path / "net.onnx"), prop)
    assert found.fault.startswith("counterexample outside the box by 1e-05: X_0")
    assert found.standings == dict.fromkeys(map(str, RULES), "tolerated")
    results.write_text("sat\n")
    assert judge_results(results, OnnxFile(tmp_path / "net.onnx"), prop).standings == {}
