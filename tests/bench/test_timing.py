from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import asdict, replace

import pytest

from fgp_vnn.bench.record import Record
from fgp_vnn.bench.score import Runs
from fgp_vnn.bench.timing import Speed, Timing, from_dict, speed

COLD = Timing("cold", "here", (1.0, 1.05))


def runs(**times: Sequence[float]) -> Runs:
    return {
        tool: {
            record.key: record
            for record in (
                Record("cat", str(n), "p", 100.0, "unsat", seconds)
                for n, seconds in enumerate(tool_times)
            )
        }
        for tool, tool_times in times.items()
    }


def compared(a: Sequence[float], b: Sequence[float], x: Timing = COLD, y: Timing = COLD) -> Speed:
    return speed(runs(a=a, b=b), {"a": x, "b": y}, ("a", "b"))


def test_a_clear_difference_is_said() -> None:
    found = compared([1.0] * 10, [2.0] * 10)
    assert (found.winner, found.faster, found.slower) == ("a", 10, 0)
    assert "a is faster (times as 2.00 to 1" in str(found)
    assert compared([2.0] * 10, [1.0] * 10).winner == "b"


@pytest.mark.parametrize("seed", range(20))
def test_the_same_tool_twice_is_not_faster_than_itself(seed: int) -> None:
    """Times that scatter by a quarter about the same means, on 20 instances."""
    draw = random.Random(seed)
    means = [draw.uniform(1, 20) for _ in range(20)]
    a, b = ([mean * draw.uniform(0.8, 1.25) for mean in means] for _ in range(2))
    found = compared(a, b)
    assert found.winner == ""
    assert "no difference beyond the noise" in str(found)


def test_a_difference_within_the_noise_of_start_up_is_none() -> None:
    unsteady = replace(COLD, startup=(1.0, 1.6))
    assert compared([1.0] * 10, [1.5] * 10).winner == "a"
    assert compared([1.0] * 10, [1.5] * 10, COLD, unsteady).winner == ""


def test_a_few_instances_decide_nothing() -> None:
    found = compared([1.0] * 5, [9.0] * 5)
    assert found.winner == ""
    assert "too few" in str(found)


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (replace(COLD, kind="warm"), "cold times beside warm times"),
        (replace(COLD, kind="published"), "cold times beside published times"),
        (replace(COLD, machine="there"), "times from different machines"),
    ],
)
def test_unlike_times_are_not_compared(other: Timing, reason: str) -> None:
    found = compared([1.0] * 10, [9.0] * 10, COLD, other)
    assert found.winner == ""
    assert reason in str(found)
    assert "neither is called faster" in str(found)


def test_tables_without_a_machine_are_unlike_each_other() -> None:
    assert compared([1.0] * 10, [9.0] * 10, Timing("published"), Timing("published")).unlike


def test_only_instances_that_both_solved_count() -> None:
    table = runs(a=[1.0] * 8, b=[2.0] * 8)
    missed = {key: replace(r, result="timeout") for key, r in list(table["b"].items())[:3]}
    found = speed(
        {"a": table["a"], "b": {**table["b"], **missed}}, {"a": COLD, "b": COLD}, ("a", "b")
    )
    assert found.both == 5


def test_a_timing_says_what_a_reader_has_to_know() -> None:
    text = str(Timing("published", "a large machine", limit="100 s", rows=12, cut=3))
    assert text == (
        "a published table; a large machine; 100 s; 12 rows; "
        "3 published answers came after the limit here: not counted"
    )
    assert "start-up 1.02 s (1.00 to 1.05)" in str(COLD)
    assert "not named" in str(Timing("published"))


def test_a_timing_comes_back_from_a_file() -> None:
    assert from_dict(asdict(COLD)) == COLD
