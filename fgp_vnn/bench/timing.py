"""Compare times, only if measured in the same way, and only beyond noise."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fgp_vnn.base.words import plural
from fgp_vnn.bench.rules import NEWEST, Rules
from fgp_vnn.bench.score import Runs, right_answers

# Kinds of times, by the process that solves an instance.
KINDS = {
    "cold": "a process of its own for each instance, start-up included",
    "warm": "one process for many instances, start-up left out",
    "published": "a published table",
}
LEAST_NOISE = 0.1  # relative; few measurements of start-up may agree by chance
_LEAST_PAIRS = 6  # fewer do not give a 95 % interval of the median


@dataclass(frozen=True)
class Timing:
    """How the times of a tool were measured."""

    kind: str  # one of KINDS
    machine: str = ""  # description; empty: not known
    startup: tuple[float, ...] = ()  # seconds for the smallest instance, each measurement
    limit: str = ""  # of a published table, as text
    rows: int = 0  # of a published table, on our instances
    cut: int = 0  # published answers that came after our limit

    def __str__(self) -> str:
        words = [KINDS[self.kind], self.machine or "on a machine that is not named"]
        if self.kind == "published":
            words += [self.limit or "under limits that are not stated", plural(self.rows, "row")]
        if self.startup:
            words.append(
                f"start-up {statistics.median(self.startup):.2f} s "
                f"({min(self.startup):.2f} to {max(self.startup):.2f})"
            )
        if self.cut:
            late = plural(self.cut, "published answer")
            words.append(f"{late} came after the limit here: not counted")
        return "; ".join(words)

    @property
    def noise(self) -> float:
        """Relative spread of the start-up seconds, which are runs of the same instance."""
        if len(self.startup) < 2:
            return 0.0
        return (max(self.startup) - min(self.startup)) / min(self.startup)


Timings = Mapping[str, Timing]  # by tool


def from_dict(values: Mapping[str, Any]) -> Timing:
    return Timing(**{**values, "startup": tuple(values.get("startup", ()))})


def unlike(mine: Timing, other: Timing) -> str:
    """Return why two tools' times cannot be compared; empty if they can."""
    if mine.kind != other.kind:
        return f"{mine.kind} times beside {other.kind} times"
    if not mine.machine or mine.machine != other.machine:
        return "times from different machines"
    return ""


@dataclass(frozen=True)
class Speed:
    """The times of two tools on the instances that both solved."""

    mine: str
    other: str
    both: int
    faster: int  # instances on which mine is faster beyond the noise
    slower: int
    ratio: float  # median of other / mine; nan: no such instance
    low: float  # 95 % interval of that median; 0 and infinity: too few instances
    high: float
    noise: float  # relative
    unlike: str  # why the times cannot be compared; empty if they can

    @property
    def winner(self) -> str:
        """The tool that is faster by more than the noise over the whole interval; else empty."""
        if self.unlike:
            return ""
        if self.low > 1 + self.noise:
            return self.mine
        return self.other if self.high * (1 + self.noise) < 1 else ""

    def __str__(self) -> str:
        pair = f"{self.mine} and {self.other}"
        if self.unlike:
            return f"{pair}: {self.unlike}, so neither is called faster."
        if math.isinf(self.high):
            return (
                f"{pair}: {plural(self.both, 'instance')} solved by both, too few to compare times."
            )
        text = f"{pair}, on {plural(self.both, 'instance')} solved by both: "
        ratio = f"times as {self.ratio:.2f} to 1"
        interval = f"95 % interval {self.low:.2f} to {self.high:.2f}, noise {self.noise:.0%}"
        if not self.winner:
            return f"{text}no difference beyond the noise ({ratio}, {interval})."
        counts = f"{self.mine} is faster on {self.faster} of them, slower on {self.slower}"
        return f"{text}{self.winner} is faster ({ratio}, {interval}; {counts})."


def speed(runs: Runs, timings: Timings, pair: tuple[str, str], rules: Rules = NEWEST) -> Speed:
    """Compare the seconds of two tools on the instances that both solved."""
    mine, other = pair
    right = right_answers(runs, rules)
    keys = [key for key in runs[mine] if key in right[mine] and key in right[other]]
    ratios = sorted(_seconds(runs, other, key) / _seconds(runs, mine, key) for key in keys)
    noise = max(LEAST_NOISE, timings[mine].noise, timings[other].noise)
    low, high = _interval(ratios)
    return Speed(
        mine,
        other,
        len(keys),
        sum(ratio > 1 + noise for ratio in ratios),
        sum(ratio * (1 + noise) < 1 for ratio in ratios),
        statistics.median(ratios) if ratios else math.nan,
        low,
        high,
        noise,
        unlike(timings[mine], timings[other]),
    )


def _seconds(runs: Runs, tool: str, key: Any) -> float:
    return max(runs[tool][key].run_time, 1e-3)


def _interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % confidence interval of the median of sorted values.

    It goes from the k-th smallest to the k-th largest value, with k the largest number for which
    fewer than k heads in n tosses of a fair coin have a probability of at most 2.5 %.
    """
    count = len(values)
    if count < _LEAST_PAIRS:
        return 0.0, math.inf
    chance, k = 0.0, 0
    while (chance := chance + math.comb(count, k) / 2**count) <= 0.025:
        k += 1
    return values[k - 1], values[count - k]
