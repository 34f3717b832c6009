"""The paper's Table 2b, certified lower bounds on large networks, with ours beside the published.

    python scripts/radius_table.py OUT [--networks 500x4 500x5 1000x3] [--points 10] [--timeout 60]

The paper's networks of this table are not public, so networks of the same sizes are trained first,
by PGD as the paper's were, on the bundled digits or on an npz file with x and y (--data). OUT gets
the networks, the test part as points.npz, a CSV per network and engine (points that are done are
not run again) and table.md.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console

from fgp_vnn.certifier import Certifier
from fgp_vnn.commands.progress import points_bar
from fgp_vnn.commands.radius import COLUMNS, point_row, run_settings
from fgp_vnn.points import read_points
from fgp_vnn.radius_set import PointRadius, read_row
from fgp_vnn.records import Records
from paper_results import LOWER_BOUNDS
from train import train_all
from training.data import load_dataset
from training.fit import Recipe

BASELINE, OURS = "bounds", "auto"  # values of --engine
HEAD = (
    "hidden layers",
    "FGP, mean (published)",
    "FastLin, mean (published)",
    "median FastLin/FGP (published)",
    "ours, mean",
    "CROWN, mean",
    "median CROWN/ours",
    "median ours/CROWN",
    "least ours/CROWN",
    "tight",
)
NOTE = (
    "Published: Fromherz et al. 2021, Table 2b, networks trained on Fashion-MNIST, 60 s a point. "
    "Ours are other networks of the same sizes, on other data: means are not comparable between "
    "the two halves, ratios are in kind. FastLin (Weng et al. 2018) bounds a ReLU by two parallel "
    "lines. CROWN here is `--engine bounds`: linear bounds carried backward in which the lower "
    "line of a ReLU is chosen neuron by neuron (Zhang et al. 2018), the largest radius at which "
    "they still prove the class, computed by this program and not by its authors'. They report "
    "larger bounds than FastLin's, so it is the harder baseline."
)


@dataclass(frozen=True)
class Pair:
    """The bounds of one point: the baseline's and ours."""

    baseline: PointRadius
    ours: PointRadius

    @property
    def ratio(self) -> float:
        """Ours to the baseline's; both 0 counts as equal."""
        if self.baseline.lower == self.ours.lower:
            return 1.0
        return self.ours.lower / self.baseline.lower if self.baseline.lower else float("inf")


def main(argv: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    try:
        args.out.mkdir(parents=True, exist_ok=True)
        models = _train(args)
        rows = {name: run_network(args, name, path) for name, path in models.items()}
    except (OSError, ValueError) as error:
        print(f"radius_table.py: {error}", file=sys.stderr)
        return 2
    text = table(rows, args.norm, args.timeout) + "\n"
    (args.out / "table.md").write_text(text)
    Console().print(text, markup=False, soft_wrap=True)
    return 0


def _train(args: argparse.Namespace) -> dict[str, Path]:
    """The networks, trained where they are not there yet, and OUT/points.npz."""
    data = load_dataset(args.data)
    np.savez(args.out / "points.npz", x=data.test_x.flatten(1).numpy(), y=data.test_y.numpy())
    models = {}
    for name in args.networks:
        recipe = Recipe(name, args.method, args.epsilon, args.epochs, args.seed)
        models[name] = args.out / f"{recipe.name}.onnx"
        if not models[name].exists():
            train_all([recipe], data, args.out)
    return models


def run_network(args: argparse.Namespace, name: str, model: Path) -> list[Pair]:
    """Both engines on all points of one network, the cheap one first."""
    certifier = Certifier.of(model)
    found = [_run(args, name, model, certifier, engine) for engine in (BASELINE, OURS)]
    return [Pair(*pair) for pair in zip(*found, strict=True)]


def _run(
    args: argparse.Namespace, name: str, model: Path, certifier: Certifier, engine: str
) -> list[PointRadius]:
    """One engine, from its file as far as that goes."""
    options: dict[str, Any] = {"norm": args.norm, "maximum": args.max, "gap": 0.01, "exact": False}
    options |= {"engine": engine, "clip": None, "timeout": args.timeout}
    path = args.out / "points.npz"
    points = read_points(path, certifier.network.inputs)
    settings = run_settings(model, path, args.seed, options)
    output = args.out / f"{name}-{engine}.csv"
    records = Records(output, COLUMNS, resume=True, fixed=settings)
    rows = list(records.done)
    done = {int(row["point"]) for row in rows}
    count = min(args.points, len(points))
    with points_bar(count, len(done)) as bar:
        for number in range(count):
            if number not in done:
                row = point_row(certifier, points, number, options, bar.note)
                records.add(row)
                rows.append(row)
                bar.advance()
    radii = sorted(map(read_row, rows), key=lambda row: row.point)
    return [row for row in radii if row.point < count]


def table(rows: dict[str, list[Pair]], norm: str, timeout: float) -> str:
    """The table in Markdown."""
    points = len(next(iter(rows.values()), []))
    title = f"**Certified lower bounds, {norm}, {timeout:g} s a point, {points} points**"
    lines = [title, "", _line(HEAD), _line(["---"] * len(HEAD))]
    for name, pairs in rows.items():
        lines.append(_line([name, *_published(name, norm), *_measured(pairs)]))
    return "\n".join([*lines, "", NOTE])


def _published(name: str, norm: str) -> list[str]:
    if name not in LOWER_BOUNDS or norm != "l2":
        return ["-"] * 3
    published = LOWER_BOUNDS[name]
    return [f"{v:g}" for v in (published.fgp_mean, published.fastlin_mean, published.median_ratio)]


def _measured(pairs: Sequence[Pair]) -> list[str]:
    ratio = statistics.median(pair.ratio for pair in pairs)
    return [
        f"{statistics.fmean(pair.ours.lower for pair in pairs):.4g}",
        f"{statistics.fmean(pair.baseline.lower for pair in pairs):.4g}",
        f"{1 / ratio:.3f}",
        f"{ratio:.2f}",
        f"{min(pair.ratio for pair in pairs):.2f}",
        f"{sum(pair.ours.tight for pair in pairs)} of {len(pairs)}",
    ]


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="The paper's Table 2b, ours beside theirs.")
    parser.add_argument("out", type=Path, help="folder for networks, points and tables")
    parser.add_argument("--networks", nargs="+", default=list(LOWER_BOUNDS))
    parser.add_argument("--points", type=int, default=10)
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for each point")
    parser.add_argument("--norm", choices=("l2", "linf", "l1"), default="l2")
    parser.add_argument("--max", type=float, default=2.0, help="the largest radius of interest")
    parser.add_argument("--data", default="digits", help="digits, or an npz file with x and y")
    parser.add_argument("--method", default="pgd", help="of training, as in train.py")
    parser.add_argument("--epsilon", type=float, default=0.1, help="l-infinity, of training")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    return parser


if __name__ == "__main__":
    sys.exit(main())
