"""The paper's Table 2b (certified lower bounds on large networks) beside our results.

    python scripts/evaluation/radius_table.py OUT [--networks 500x4 500x5 1000x3] [--points 10]

The networks of this table are not public, so networks of the same sizes are trained first, with PGD
like the paper's, on the bundled digits or on an npz file with x and y (--data). OUT gets the
networks, the test part as points.npz, a CSV per network and engine (finished points are not run
again) and table.md.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

import numpy as np
import torch
from rich.console import Console

from fastlin import fastlin_radius
from fgp_vnn.api.certify import Certifier
from fgp_vnn.api.points import Points, read_points
from fgp_vnn.base.point_table import PointTable
from fgp_vnn.cli.point_runs import PointRun, fixed_columns
from fgp_vnn.cli.radius import COLUMNS, radius_row, shown
from fgp_vnn.report.radius_set import PointRadius, read_row
from markdown_tables import table_lines
from paper_results import LOWER_BOUNDS
from reference_walk import layers_of
from train import train_all
from training.data import load_dataset
from training.fit import Recipe

BASELINE, OURS = "bounds", "auto"  # values of --engine
POINTS = "points.npz"
PUBLISHED_HEAD = ("network", "FGP, mean", "FastLin, mean", "median FastLin/FGP")
HEAD = (
    "network",
    "ours, mean",
    "CROWN, mean",
    "median CROWN/ours",
    "FastLin, mean",
    "median FastLin/ours",
    "ours/CROWN: median",
    "least",
    "at most",
    "tight",
)
NOTE = (
    "Measured on other networks of the same sizes, on other data: the means of the two tables are "
    "not comparable, but the ratios are. *ours*: `--engine auto`. *CROWN*: the largest radius that "
    "`--engine bounds` proves, by linear bounds propagated backward, with a lower line chosen for "
    "each ReLU (Zhang et al. 2018); computed by this program, not by its authors'. *FastLin* (Weng "
    "et al. 2018): two parallel lines for every ReLU, by `scripts/evaluation/fastlin.py`, not by "
    "its authors' program, and ignoring rounding. *at most*: the median distance of the nearest "
    "counterexample found, over CROWN's bound; no method can have a larger ratio on that point."
)


@dataclass(frozen=True)
class Triple:
    """The bounds of one point: two baselines and ours."""

    fastlin: float
    crown: PointRadius
    ours: PointRadius

    @property
    def ratio(self) -> float:
        """Our lower bound over CROWN's."""
        return _quotient(self.ours.lower, self.crown.lower)

    @property
    def ceiling(self) -> float:
        """Upper bound on the ratio, by the nearest counterexample."""
        return _quotient(min(self.ours.upper, self.crown.upper), self.crown.lower)


def _quotient(a: float, b: float) -> float:
    """a / b; 1 if both are 0."""
    if a == b:
        return 1.0
    return a / b if b else math.inf


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
    """Train the networks that are missing and write OUT/points.npz; return all networks."""
    data = load_dataset(args.data)
    np.savez(args.out / POINTS, x=data.test_x.flatten(1).numpy(), y=data.test_y.numpy())
    models = {}
    for name in args.networks:
        recipe = Recipe(name, args.method, args.epsilon, args.epochs, args.seed)
        models[name] = args.out / f"{recipe.name}.onnx"
        if not models[name].exists():
            train_all([recipe], data, args.out)
    return models


def run_network(args: argparse.Namespace, name: str, model: Path) -> list[Triple]:
    """All bounds for all points of one network, the cheap ones first."""
    certifier = Certifier.of(model)
    points = read_points(args.out / POINTS, certifier.input_shape)
    found = [_run(args, name, model, points, engine) for engine in (BASELINE, OURS)]
    layers = layers_of(certifier.network)
    return [
        Triple(
            fastlin_radius(layers, points.x[crown.point].astype(float), args.norm, args.max),
            crown,
            ours,
        )
        for crown, ours in zip(*found, strict=True)
    ]


def _run(
    args: argparse.Namespace, name: str, model: Path, points: Points, engine: str
) -> list[PointRadius]:
    """The radii by one engine, from its file if they are there already."""
    certifier = Certifier.of(model, engine=engine)
    shared = {"norm": args.norm, "gap": 0.01, "clip": None, "timeout": args.timeout}
    options: dict[str, Any] = {**shared, "maximum": args.max}
    settings = fixed_columns(
        model, args.out / POINTS, **shared, max=args.max, engine=engine, seed=args.seed
    )
    output = args.out / f"{name}-{engine}.csv"
    results = PointTable(output, COLUMNS, resume=True, fixed=settings)
    run = PointRun(certifier, points.first(args.points), results)
    for point in run.waiting():
        run.add(radius_row(point, certifier.radius(point.x, **options, progress=shown(point))))
    radii = sorted(map(read_row, run.rows), key=lambda row: row.point)
    return [row for row in radii if row.point < args.points]


def table(rows: dict[str, list[Triple]], norm: str, timeout: float) -> str:
    """The published and the measured tables, in Markdown."""
    points = len(next(iter(rows.values()), []))
    published = []
    for name, row in LOWER_BOUNDS.items():
        figures = (row.fgp_mean, row.fastlin_mean, row.median_ratio)
        published.append([f"fmnist{name}", *(f"{figure:g}" for figure in figures)])
    measured = [[name, *_measured(triples)] for name, triples in rows.items()]
    return "\n".join(
        [
            "**Published (Fromherz et al. 2021, Table 2b): l2, 60 s a point, Fashion-MNIST**",
            "",
            *table_lines(PUBLISHED_HEAD, published),
            "",
            f"**Measured: {norm}, {timeout:g} s a point, {points} points**",
            "",
            *table_lines(HEAD, measured),
            "",
            NOTE,
        ]
    )


def _measured(triples: Sequence[Triple]) -> list[str]:
    fastlin = [_quotient(triple.fastlin, triple.ours.lower) for triple in triples]
    crown = [_quotient(triple.crown.lower, triple.ours.lower) for triple in triples]
    ceiling = statistics.median(triple.ceiling for triple in triples)
    return [
        f"{statistics.fmean(triple.ours.lower for triple in triples):.4g}",
        f"{statistics.fmean(triple.crown.lower for triple in triples):.4g}",
        f"{statistics.median(crown):.3f}",
        f"{statistics.fmean(triple.fastlin for triple in triples):.4g}",
        f"{statistics.median(fastlin):.3f}",
        f"{statistics.median(triple.ratio for triple in triples):.2f}",
        f"{min(triple.ratio for triple in triples):.2f}",
        "-" if math.isinf(ceiling) else f"{ceiling:.2f}",
        f"{sum(triple.ours.tight for triple in triples)} of {len(triples)}",
    ]


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
    parser.add_argument("--epsilon", type=float, default=0.2, help="l-infinity, of training")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    return parser


if __name__ == "__main__":
    sys.exit(main())
