"""The paper's tables with our results beside the published ones, and a cactus plot.

    python scripts/evaluation/paper_tables.py FOLDER [--tables l2 linf variants] [--output OUT]

FOLDER holds the paper's networks (NAME.onnx) and points (mnist100.npz, fmnist100.npz). Writes
tables.md, one CSV per run (finished points are not run again), and cactus.png if matplotlib is
installed. Our times are measured on this machine, the published ones are in `paper_results.py`.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from fgp_vnn.api.certify import Certifier
from fgp_vnn.api.points import read_points
from fgp_vnn.base.errors import InputError
from fgp_vnn.base.point_table import PointTable
from fgp_vnn.cli.certify import COLUMNS, certify_row, run_settings, search_options, summarise
from fgp_vnn.cli.point_runs import PointRun
from markdown_tables import table_lines
from paper_results import NETWORKS, Published

EPSILON = {"l2": 0.25, "linf": 0.01}
CLIP: dict[str, tuple[float, float] | None] = {"l2": None, "linf": (0.0, 1.0)}
WALK = {"engine": "walk"}
PAPER = {**WALK, **dict.fromkeys(("alternate", "combined", "signed", "stable"), False)}
TABLES: dict[str, dict[str, dict[str, Any]]] = {  # table -> column -> settings
    "l2": {"ours": {}, "ours, walk only": WALK},
    "linf": {"ours": {}, "ours, walk only": WALK},
    "variants": {
        "paper's rules, first boundary": {**PAPER, "variant": "first-boundary"},
        "paper's rules, full queue": PAPER,
        "with alternating projections": {**PAPER, "alternate": True},
    },
}
Rows = list[dict[str, Any]]
NOTE = (
    "Counts are robust/not robust/unknown/timeout. Every `not robust` of ours has a counterexample "
    "in its CSV file, in the ball by exact arithmetic and confirmed by running the network; every "
    "`robust` is a proof. A published upper bound below our verified accuracy contradicts these "
    "proofs. Two causes are known: the original program accepts points whose two greatest "
    "probabilities differ by 1e-3, and with its cache of the first layer it projects onto the "
    "wrong hyperplane."
)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="The paper's tables, ours beside theirs.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=["l2", "linf"])
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=list(NETWORKS))
    parser.add_argument("--points", type=int, default=100)
    parser.add_argument("--budget", type=float, default=30.0, help="seconds for each point")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--output", type=Path, default=Path("paper_tables"))
    args = parser.parse_args(argv)
    torch.set_num_threads(args.threads)
    try:
        args.output.mkdir(parents=True, exist_ok=True)
        runs = {
            (table, name, column): _run(args, table, name, column, settings)
            for table in args.tables
            for name in _networks(args, table)
            for column, settings in TABLES[table].items()
        }
    except (OSError, InputError) as error:
        print(f"paper_tables.py: {error}", file=sys.stderr)
        return 2
    text = "\n\n".join(_table(args, table, runs) for table in args.tables) + "\n"
    (args.output / "tables.md").write_text(text)
    Console().print(text, markup=False, soft_wrap=True)
    _plot(args.output / "cactus.png", runs)
    return 0


def _networks(args: argparse.Namespace, table: str) -> list[str]:
    """The networks of a table: for some, only one norm was published."""
    chosen = [name for name in args.networks if table != "linf" or NETWORKS[name].linf]
    return [name for name in chosen if table != "variants" or NETWORKS[name].first_boundary]


def _run(
    args: argparse.Namespace, table: str, name: str, column: str, settings: dict[str, Any]
) -> Rows:
    """Results for all points of one network, from the file if they are there already."""
    norm = "linf" if table == "linf" else "l2"
    slug = column.replace(",", "").replace("'", "").replace(" ", "-")
    model, data = args.folder / f"{name}.onnx", args.folder / f"{NETWORKS[name].data}.npz"
    options = {"norm": norm, "epsilon": EPSILON[norm], "clip": CLIP[norm], "timeout": args.budget}
    fixed = run_settings(model, data, options, settings)
    output = args.output / f"{table}-{name}-{slug}.csv"
    results = PointTable(output, COLUMNS, resume=True, fixed=fixed)
    certifier = Certifier.of(model, **settings)
    points = read_points(data, certifier.input_shape).first(args.points)
    run = PointRun(certifier, points, results)
    for point in run.waiting():
        result = certifier.certify(point.x, **search_options(options))
        run.add(certify_row(certifier, point, result, options))
    return run.rows


def _table(args: argparse.Namespace, table: str, runs: dict[tuple[str, str, str], Rows]) -> str:
    """One Markdown table: robust/not robust/unknown/timeout, median time, VRA."""
    norm = "linf" if table == "linf" else "l2"
    ours = list(TABLES[table])
    theirs = {"l2": ["FGP", "GeoCert", "MIP"], "linf": ["FGP", "ERAN+MIP", "GeoCert"]}
    published = theirs.get(table, ["FGP, first boundary: unknown", "FGP"])
    clipped = f", inputs in {list(CLIP[norm] or ())}" if CLIP[norm] else ""
    budget = f"{args.budget:g} s a point (published: 120 s)"
    title = f"{norm}, epsilon {EPSILON[norm]}{clipped}, {budget}"
    head = ["network", *ours, *published]
    if table == "l2":
        head.append("VRA at most: ours / published")
    rows = []
    for name in _networks(args, table):
        network = NETWORKS[name]
        cells = [name, *(_ours(runs[table, name, column]) for column in ours)]
        if table == "variants" and network.first_boundary:
            seconds, unknown = network.first_boundary
            cells += [f"{unknown}, {seconds:g} s", str(network.l2["FGP"])]
        else:
            figures = network.linf if table == "linf" else network.l2
            cells += [str(figures[tool]) for tool in published]
        if table == "l2":
            bound = summarise(runs[table, name, ours[0]])["vra_upper_bound"]
            cells.append(f"{bound:.2f} / {network.vra_upper_bound:.2f}")
        rows.append(cells)
    lines = [f"**{title}**", "", *table_lines(head, rows)]
    if table == "l2":
        lines += ["", NOTE]
    return "\n".join(lines)


def _ours(rows: Rows) -> str:
    summary = summarise(rows)
    return str(
        Published(
            round(summary["median_seconds"], 4),
            summary["robust"],
            summary["not_robust"],
            summary["unknown"],
            summary["timeout"],
            summary["vra"],
        )
    )


def _plot(path: Path, runs: dict[tuple[str, str, str], Rows]) -> None:
    """Plot how many points each run decides within a given time per point."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        print("no plot: matplotlib is not installed (pip install fgp-vnn[report])")
        return
    figure, axes = pyplot.subplots(figsize=(9, 6))
    for (table, name, column), rows in runs.items():
        decided = [r for r in rows if r["status"] in ("robust", "not_robust")]
        times = sorted(float(row["seconds"]) for row in decided)
        dashes = "-" if column == next(iter(TABLES[table])) else ":"
        median = statistics.median(times) if times else float("nan")
        label = f"{table} {name} {column} ({len(times)}, median {median:.2g} s)"
        axes.step(range(1, len(times) + 1), times, dashes, label=label, where="mid")
    axes.set_yscale("log")
    axes.set_xlabel("points decided")
    axes.set_ylabel("seconds for the slowest of them")
    axes.legend(fontsize=6)
    figure.savefig(path, dpi=150, bbox_inches="tight")
    pyplot.close(figure)


if __name__ == "__main__":
    sys.exit(main())
