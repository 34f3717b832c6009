"""The plot and the page that `fgp-vnn radius` writes."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fgp_vnn.base.errors import InputError
from fgp_vnn.report.figures import PAPER
from fgp_vnn.report.pictures import MAX_PICTURES, Picture, draw, image_layout
from fgp_vnn.report.radius_page import RadiusReport, write_radius_page
from fgp_vnn.report.radius_plots import Radii, save_both
from fgp_vnn.report.radius_set import PointRadius

if TYPE_CHECKING:
    from fgp_vnn.api.certify import Certifier
    from fgp_vnn.api.points import Points
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
    try:
        if args.plot is not None:
            save_both(shown, PAPER, args.plot)
        if args.report is not None:
            pictures = list(_pictures(rows, radii, run.certifier, run.points))
            facts = network_facts(args, run.certifier, settings)
            chosen = settings_facts(args, settings)
            write_radius_page(args.report, RadiusReport(shown, facts, chosen, pictures))
    except OSError as error:
        raise InputError(f"{error.filename}: cannot be written: {error.strerror}") from error


def network_facts(
    args: argparse.Namespace, certifier: Certifier, settings: dict[str, Any]
) -> dict[str, object]:
    """Return what the page says of the network."""
    network = certifier.network
    sizes = [layer.outputs for layer in network.layers]
    return {
        "file": args.model.name,
        "sha256": f"{settings['network']}...",
        "inputs": " x ".join(map(str, certifier.input_shape)),
        "classes": network.outputs,
        "ReLU layers": f"{len(sizes)} ({', '.join(map(str, sizes))})",
        "ReLUs": sum(sizes),
    }


def settings_facts(args: argparse.Namespace, settings: dict[str, Any]) -> dict[str, object]:
    """Return what was asked for, under the names of the options."""
    data = f"{args.points.name} (sha256 {settings['data']}...)"
    facts: dict[str, object] = {"points": data, "norm": settings["norm"], "max": settings["max"]}
    facts |= {"gap": settings["gap"], "engine": settings["asked_engine"]}
    clip, timeout = settings["clip"], settings["timeout"]
    facts["clip"] = "none" if clip is None else f"{clip[0]:g} to {clip[1]:g}"
    facts["timeout"] = "none" if timeout is None else f"{timeout:g} s a point"
    return facts | {"seed": settings["seed"]}


def _pictures(
    rows: Sequence[dict[str, Any]],
    radii: Sequence[PointRadius],
    certifier: Certifier,
    points: Points,
) -> Iterator[Picture]:
    """Draw the nearest counterexamples, if the inputs look like images."""
    layout = image_layout(certifier.input_shape, certifier.network.inputs)
    if layout is None:
        return
    found = [pair for pair in zip(radii, rows, strict=True) if pair[1].get("counterexample")]
    limits = float(points.x.min()), float(points.x.max())
    for radius, row in sorted(found, key=lambda pair: pair[0].upper)[:MAX_PICTURES]:
        if radius.point >= len(points):
            continue  # of an earlier run with more points
        values = row["counterexample"]
        x = np.array(values.split() if isinstance(values, str) else values, dtype=np.float64)
        caption = f"distance {radius.upper:.4g}, class {radius.label}"
        caption += f" becomes {row['counterexample_label']}"
        centre = points.x[radius.point].astype(np.float64)
        yield draw(f"point {radius.point}", caption, layout, (centre, x), limits)
