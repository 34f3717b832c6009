"""Common parts of the pages of `certify` and `radius`: network facts, pictures, and --report."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fgp_vnn.base.errors import InputError
from fgp_vnn.base.files import check_writable

if TYPE_CHECKING:
    from fgp_vnn.cli.point_runs import PointRun
    from fgp_vnn.report.pictures import Picture
    from fgp_vnn.report.point_page import AboutPoints

# By option: the suffixes of its files, and the beginning of an error message.
DRAWN = {
    "report": ((".html", ".htm"), "a page is"),
    "plot": ((".png", ".svg", ".pdf"), "pictures are"),
}


def add_report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--report", type=Path, metavar="FILE", help="write an HTML report (default: none)"
    )


def check_drawn(option: str, path: Path | None) -> None:
    """Refuse, before the work begins, a page or a picture that could not be written."""
    if path is None:
        return
    suffixes, what = DRAWN[option]
    if path.suffix not in suffixes:
        raise InputError(f"--{option} is {path}; {what} written as {', '.join(suffixes)}")
    check_writable(path, option)
    from fgp_vnn.report.page import check_libraries

    check_libraries()


def about_points(
    args: argparse.Namespace,
    run: PointRun,
    settings: dict[str, Any],
    names: Iterable[str],
    found: Iterable[tuple[dict[str, Any], str]],
) -> AboutPoints:
    """Return the page's facts about the network, the settings in `names`, and pictures of the
    counterexamples in `found`, which are pairs (row, caption)."""
    from fgp_vnn.report.point_page import AboutPoints

    network = run.certifier.network
    sizes = [layer.outputs for layer in network.layers]
    facts: dict[str, object] = {
        "file": args.model.name,
        "sha256": f"{settings['network']}...",
        "inputs": " x ".join(map(str, run.certifier.input_shape)),
        "classes": network.outputs,
        "hidden layers": f"{len(sizes)} ({', '.join(map(str, sizes))})",
        "neurons": sum(sizes),
        "activations": ", ".join(sorted({f.name for f in network.activations})) or "none",
    }
    shown: dict[str, object] = {"points": f"{args.points.name} (sha256 {settings['data']}...)"}
    shown |= {name: settings[name] for name in names}
    clip, timeout = settings["clip"], settings["timeout"]
    shown["clip"] = "none" if clip is None else f"{clip[0]:g} to {clip[1]:g}"
    shown["timeout"] = "none" if timeout is None else f"{timeout:g} s a point"
    return AboutPoints(facts, shown, list(_pictures(found, run)))


def _pictures(found: Iterable[tuple[dict[str, Any], str]], run: PointRun) -> Iterator[Picture]:
    """Draw the first counterexamples of (row, caption), if the inputs look like images."""
    from fgp_vnn.report.pictures import MAX_PICTURES, draw, image_layout

    layout = image_layout(run.certifier.input_shape, run.certifier.network.inputs)
    if layout is None:
        return
    limits = float(run.points.x.min()), float(run.points.x.max())
    for row, caption in islice(found, MAX_PICTURES):
        number, values = int(row["point"]), row["counterexample"]
        if number >= len(run.points):
            continue  # of an earlier run with more points
        x = np.array(values.split() if isinstance(values, str) else values, dtype=np.float64)
        centre = run.points.x[number].astype(np.float64)
        classes = f"class {row['label']} becomes {row['counterexample_label']}"
        text = f"{caption}, {classes}" if caption else classes
        yield draw(f"point {number}", text, layout, (centre, x), limits)
