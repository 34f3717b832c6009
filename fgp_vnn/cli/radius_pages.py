"""The plot and the page that `fgp-vnn radius` writes."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fgp_vnn.base.errors import InputError
from fgp_vnn.cli.point_pages import counterexample_pictures, network_facts, settings_facts
from fgp_vnn.report.figures import PAPER
from fgp_vnn.report.radius_page import RadiusReport
from fgp_vnn.report.radius_plots import Radii, save_both
from fgp_vnn.report.radius_set import PointRadius

if TYPE_CHECKING:
    from fgp_vnn.cli.point_runs import PointRun


def write_pages(
    args: argparse.Namespace,
    rows: Sequence[dict[str, Any]],
    radii: Sequence[PointRadius],
    run: PointRun,
    settings: dict[str, Any],
) -> None:
    """Write the files that --plot and --report name."""
    shown = Radii(radii, args.norm, args.max)
    found = [pair for pair in zip(radii, rows, strict=True) if pair[1].get("counterexample")]
    found.sort(key=lambda pair: pair[0].upper)
    nearest = [(row, f"distance {radius.upper:.4g}") for radius, row in found]
    try:
        if args.plot is not None:
            save_both(shown, PAPER, args.plot)
        if args.report is not None:
            pictures = list(counterexample_pictures(nearest, run))
            facts = network_facts(args.model, run, settings["network"])
            names = ("norm", "max", "gap", "asked_engine", "seed")
            chosen = settings_facts(args.points, settings, *names)
            RadiusReport(facts, chosen, pictures, shown).write(args.report)
    except OSError as error:
        raise InputError(f"{error.filename}: cannot be written: {error.strerror}") from error
