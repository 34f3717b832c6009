"""Radii of many points: one row each, a summary, and certified accuracy against radius."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fgp_vnn.base.errors import InputError
from fgp_vnn.base.words import plural

Shares = NDArray[np.float64]


@dataclass(frozen=True)
class PointRadius:
    """Bounds on the distance R from one point to the nearest other class: lower <= R <= upper."""

    point: int
    y: int | None  # the true class, if known
    label: int  # the network's class
    lower: float
    upper: float  # infinite if no counterexample was found
    ended: str
    decided_by: str
    seconds: float

    @property
    def right(self) -> bool:
        """Whether the network's class is the true class; True if the true class is unknown."""
        return self.y is None or self.y == self.label

    @property
    def tight(self) -> bool:
        """Whether the two bounds are within the requested gap."""
        return self.ended == "tight"

    @property
    def gap(self) -> float:
        """(upper - lower) / upper; infinite if there is no upper bound, or if the search ended at
        the maximum, below which there is nothing to narrow."""
        if math.isinf(self.upper) or self.ended == "max":
            return math.inf
        return (self.upper - self.lower) / self.upper if self.upper else 0.0


def read_row(row: Mapping[str, Any]) -> PointRadius:
    """Parse one row of an output file, CSV or JSON; raise InputError if it is not a radius."""

    def blank(name: str) -> bool:
        return row.get(name) in (None, "")

    try:
        return PointRadius(
            int(row["point"]),
            None if blank("y") else int(row["y"]),
            int(row["label"]),
            float(row["lower"]),
            math.inf if blank("upper") else float(row["upper"]),
            str(row["ended"]),
            str(row["decided_by"]),
            float(row["seconds"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"a row of the output file is not a radius ({error!r})") from None


@dataclass(frozen=True, eq=False)
class CertifiedShare:
    """Bounds on the share of points that are classified correctly and whose R is at least r.

    Both are step functions of r, constant on (radius[i-1], radius[i]]: a bound of exactly r counts
    at r.
    """

    radius: Shares  # [steps], ascending from 0 to the largest requested radius
    lower: Shares  # [steps], share of points with lower >= r: certified
    upper: Shares  # [steps], share of points with upper >= r: possible


def certified_curve(rows: Sequence[PointRadius], maximum: float) -> CertifiedShare:
    """Return certified accuracy against radius; points of unknown class count as correct."""
    ends = {0.0, maximum}
    ends.update(bound for row in rows for bound in (row.lower, row.upper) if bound < maximum)
    radius = np.array(sorted(ends))
    return CertifiedShare(radius, *(accuracy_at(rows, radius, side) for side in ("lower", "upper")))


def accuracy_at(rows: Sequence[PointRadius], radius: Shares, side: str) -> Shares:
    """Return, for each radius, the share of rows that are right and whose bound reaches it.

    `side` is lower or upper; radii and shares are arrays [radii].
    """
    bounds = np.array([getattr(row, side) for row in rows if row.right])
    reached = (bounds[:, None] >= radius[None, :]).sum(0)
    shares: Shares = reached / max(len(rows), 1)
    return shares


def round_radii(rows: Iterable[PointRadius], maximum: float) -> list[float]:
    """Return a few radii with few digits, from 0 to about the largest lower bound."""
    count = 5  # of steps
    farthest = max((row.lower for row in rows), default=0.0) or maximum
    power = 10.0 ** math.floor(math.log10(farthest / count))
    step = next(power * part for part in (1, 2, 5, 10) if power * part * count >= farthest)
    radii = [float(f"{k * step:.6g}") for k in range(count + 1)]
    return [radius for radius in radii if radius <= maximum]


def summarise_radii(rows: Sequence[PointRadius], maximum: float) -> dict[str, Any]:
    """Return counts, means and medians; with true classes also accuracy at a few radii.

    Gaps are relative to the upper bound, and those of points that were certified up to the maximum
    do not count. Times are in seconds. None if there is no value.
    """
    gaps = [row.gap for row in rows if math.isfinite(row.gap) and row.lower < maximum]
    lowers = [row.lower for row in rows]
    summary: dict[str, Any] = {
        "points": len(rows),
        "tight": sum(row.tight for row in rows),
        "maximum": maximum,
        "at_maximum": sum(row.lower >= maximum for row in rows),
        "counterexamples": sum(math.isfinite(row.upper) for row in rows),
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


def describe_radii(summary: Mapping[str, Any]) -> str:
    if not summary["points"]:
        return "0 points"
    gap = summary["median_gap"]
    lines = [
        f"{plural(summary['points'], 'point')}: {summary['tight']} tight, "
        f"{summary['at_maximum']} certified up to {summary['maximum']:g}, "
        f"{summary['counterexamples']} with a counterexample",
        f"mean lower bound {summary['mean_lower']:.6g}, median {summary['median_lower']:.6g}; "
        + ("" if gap is None else f"{gap_title(summary)} {percent(gap)}; ")
        + f"median {summary['median_seconds']:.3f} s",
    ]
    if "accuracy" in summary:
        lines += [f"accuracy {summary['accuracy']:.3f}", "radius    certified  at most"]
        lines += [
            f"{entry['radius']:<8g}  {entry['lower']:9.3f}  {entry['upper']:7.3f}"
            for entry in summary["certified_accuracy"]
        ]
    return "\n".join(lines)


def gap_title(summary: Mapping[str, Any]) -> str:
    """Return what the median gap is called, which depends on the points that it leaves out."""
    return "median gap of the others" if summary["at_maximum"] else "median gap"


def percent(share: float | None) -> str:
    """Return a fraction as a percentage with two digits; `-` if it is None or infinite."""
    if share is None or math.isinf(share):
        return "-"
    digits = np.format_float_positional(
        100 * share, precision=2, unique=False, fractional=False, trim="-"
    )
    return f"{digits} %"
