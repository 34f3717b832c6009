"""Radii of many points: a row for each, their summary, and certified accuracy against radius."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fgp_vnn.base.errors import InputError

Shares = NDArray[np.float64]


@dataclass(frozen=True)
class PointRadius:
    """What is known of the distance R from one point to another class: lower <= R <= upper."""

    point: int
    y: int | None  # the true class, where it is given
    label: int  # the network's
    lower: float
    upper: float  # infinite if no adversarial example was found
    tight: bool
    ended: str
    engine: str
    seconds: float

    @property
    def right(self) -> bool:
        """Classified rightly, as far as that is known."""
        return self.y is None or self.y == self.label

    @property
    def gap(self) -> float:
        """The bounds' distance as a part of the upper one; infinite if there is none."""
        if math.isinf(self.upper):
            return math.inf
        return (self.upper - self.lower) / self.upper if self.upper else 0.0


def read_row(row: Mapping[str, Any]) -> PointRadius:
    """One line of an output file, CSV or JSON; raises InputError."""

    def blank(name: str) -> bool:
        return row.get(name) in (None, "")

    try:
        return PointRadius(
            int(row["point"]),
            None if blank("y") else int(row["y"]),
            int(row["label"]),
            float(row["lower"]),
            math.inf if blank("upper") else float(row["upper"]),
            str(row["tight"]) == "True",
            str(row["ended"]),
            str(row["engine"]),
            float(row["seconds"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"a row of the output file is no radius ({error!r})") from None


@dataclass(frozen=True, eq=False)
class Curve:
    """The share of points that are right and whose R is at least r, between two step functions.

    Both are constant on (radius[i-1], radius[i]]: a bound of exactly r counts at r.
    """

    radius: Shares  # [steps], ascending from 0 to the largest radius asked for
    lower: Shares  # [steps], certified: lower >= r
    upper: Shares  # [steps], not excluded: upper >= r


def certified_curve(rows: Sequence[PointRadius], maximum: float) -> Curve:
    """Certified accuracy against radius; without true classes every point counts as right."""
    ends = {0.0, maximum}
    ends.update(bound for row in rows for bound in (row.lower, row.upper) if bound < maximum)
    radius = np.array(sorted(ends))
    return Curve(radius, *(accuracy_at(rows, radius, side) for side in ("lower", "upper")))


def accuracy_at(rows: Sequence[PointRadius], radius: Shares, side: str) -> Shares:
    """The share of rows that are right and whose bound of that side is at least each radius."""
    bounds = np.array([getattr(row, side) for row in rows if row.right])
    reached = (bounds[:, None] >= radius[None, :]).sum(0)
    shares: Shares = reached / max(len(rows), 1)
    return shares


def round_radii(rows: Iterable[PointRadius], maximum: float, *, count: int = 5) -> list[float]:
    """A few radii with short names, from 0 to about the largest lower bound."""
    farthest = max((row.lower for row in rows), default=0.0) or maximum
    power = 10.0 ** math.floor(math.log10(farthest / count))
    step = next(power * part for part in (1, 2, 5, 10) if power * part * count >= farthest)
    radii = [float(f"{k * step:.6g}") for k in range(count + 1)]
    return [radius for radius in radii if radius <= maximum]


def summarise(rows: Sequence[PointRadius], maximum: float) -> dict[str, Any]:
    """Counts, means and medians; with true classes also certified accuracy at a few radii."""
    gaps = [row.gap for row in rows if math.isfinite(row.gap)]
    lowers = [row.lower for row in rows]
    summary: dict[str, Any] = {
        "points": len(rows),
        "tight": sum(row.tight for row in rows),
        "maximum": maximum,
        "at_maximum": sum(row.lower >= maximum for row in rows),
        "counterexamples": len(gaps),
        "mean_lower": statistics.fmean(lowers) if lowers else None,
        "median_lower": statistics.median(lowers) if lowers else None,
        "median_gap": statistics.median(gaps) if gaps else None,
        "median_seconds": statistics.median(row.seconds for row in rows) if rows else None,
    }
    if rows and all(row.y is not None for row in rows):
        radii = round_radii(rows, maximum)
        bounds = (accuracy_at(rows, np.array(radii), side) for side in ("lower", "upper"))
        summary["accuracy"] = sum(row.right for row in rows) / len(rows)
        summary["certified_accuracy"] = [
            {"radius": r, "lower": float(low), "upper": float(high)}
            for r, low, high in zip(radii, *bounds, strict=True)
        ]
    return summary


def describe(summary: Mapping[str, Any]) -> str:
    """The summary in a few lines."""
    if not summary["points"]:
        return "0 points"
    gap = summary["median_gap"]
    points = "1 point" if summary["points"] == 1 else f"{summary['points']} points"
    lines = [
        f"{points}: {summary['tight']} tight, {summary['at_maximum']} certified up to "
        f"{summary['maximum']:g}, "
        f"{summary['counterexamples']} with an adversarial example",
        f"mean lower bound {summary['mean_lower']:.6g}, median {summary['median_lower']:.6g}; "
        f"median gap {'-' if gap is None else f'{100 * gap:.2g} %'}; "
        f"median {summary['median_seconds']:.3f} s",
    ]
    if "accuracy" in summary:
        lines.append(f"accuracy {summary['accuracy']:.3f}; certified, and at most, at radius")
        lines += [
            f"  {entry['radius']:<8g} {entry['lower']:.3f}  {entry['upper']:.3f}"
            for entry in summary["certified_accuracy"]
        ]
    return "\n".join(lines)
