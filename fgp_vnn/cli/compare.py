"""fgp-vnn compare: several tools on the same instances, and published results beside them."""

from __future__ import annotations

import argparse
import csv
import io
import re
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path

from rich.table import Table
from rich.text import Text

from fgp_vnn.base.errors import InputError
from fgp_vnn.base.files import write_bytes
from fgp_vnn.bench.instances import Instance, read_benchmark
from fgp_vnn.bench.progress import Terminal
from fgp_vnn.bench.score import (
    SCORE_TITLES,
    Disagreement,
    Runs,
    Score,
    disagreements,
    score_texts,
    scores,
)
from fgp_vnn.bench.truth import Truth, read_truth
from fgp_vnn.cli.bench import (
    add_selection,
    default_out,
    report_problems,
    selected,
    stop_on_termination,
)
from fgp_vnn.cli.output import complain

EXAMPLE = "fgp-vnn compare benchmarks/mnist_fc --tool ours=. --tool other=/opt/other"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_selection(parser)
    parser.add_argument(
        "--tool",
        action="append",
        default=[],
        metavar="NAME=FOLDER",
        help="a tool with VNN-COMP's scripts, here or in vnncomp/ or vnncomp_scripts/ (repeat)",
    )
    parser.add_argument(
        "--results",
        action="append",
        default=[],
        metavar="NAME=CSV",
        help="a published results file in place of a run (repeat)",
    )


def run(args: argparse.Namespace) -> int:
    """Return 0 if all agrees with what is known, 1 if a verdict is wrong, 2 for bad input."""
    from fgp_vnn.bench.compare import read_runs, write_comparison

    folders, files = _pairs("--tool", args.tool), _pairs("--results", args.results)
    names = [*folders, *files]
    if not names:
        raise InputError("name at least one --tool NAME=FOLDER or --results NAME=CSV")
    if folders.keys() & files.keys():
        raise InputError(f"{', '.join(folders.keys() & files.keys())}: named twice")
    benchmark = read_benchmark(args.benchmark, timeout=args.timeout)
    if report_problems(benchmark, keep_going=args.keep_going):
        return 2
    instances = selected(benchmark, args)
    truth = read_truth(benchmark.folders, args.expect)
    out = args.out or default_out(args.benchmark)
    stop_on_termination()
    console = Terminal()
    write_comparison(out, names, args.benchmark)
    _run_all(args, folders, files, instances, truth, out, console)
    runs = _only(read_runs(out), instances)
    table, conflicts = scores(runs), disagreements(runs)
    write_bytes(out / "summary.csv", summary_csv(table).encode(), "summary")
    if not args.quiet:
        console.print(summary_table(table))
    for conflict in conflicts:
        console.print(_sentence(conflict), soft_wrap=True)
    return 1 if any(conflict.wrong for conflict in conflicts) else 0


def _run_all(
    args: argparse.Namespace,
    folders: dict[str, Path],
    files: dict[str, Path],
    instances: Sequence[Instance],
    truth: Truth,
    out: Path,
    console: Terminal,
) -> None:
    from fgp_vnn.bench.compare import compare, published, write_published
    from fgp_vnn.bench.tools import find_tool

    tools = [find_tool(name, folder) for name, folder in folders.items()]
    tables = {name: published(path, instances, truth) for name, path in files.items()}
    for name, records in tables.items():
        write_published(out / name, records)
    settings = {"benchmark": str(args.benchmark.resolve()), "timeout": args.timeout}
    try:
        for step in compare(instances, tools, truth, out, settings):
            if not args.quiet:
                record = step.record
                name = f"{record.category} {record.onnx} {record.vnnlib}"
                line = f"[{step.done}/{step.total}] {step.tool}: {record.result}"
                line += f" {record.run_time:.2f} s  {name}"
                text = Text(f"{line}  ({record.reason})" if record.reason else line)
                console.print(text, soft_wrap=True)
    except (KeyboardInterrupt, OSError):
        complain(f"what is done is in {out}: the same command resumes")
        raise


def summary_table(table: Sequence[Score]) -> Table:
    """Return the scores as a table for a terminal."""
    result = Table()
    result.add_column("tool")
    for title in SCORE_TITLES.values():
        result.add_column(title, justify="right")
    for score in table:
        style = "bold red" if score.wrong else None
        result.add_row(score.tool, *score_texts(score).values(), style=style)
    return result


def summary_csv(table: Sequence[Score]) -> str:
    """Return the scores as CSV, one column per field."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [field.name for field in fields(Score)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(score) for score in table)
    return text.getvalue()


def _sentence(conflict: Disagreement) -> Text:
    claims = ", ".join(f"{tool} says {claim}" for tool, claim in conflict.claims.items())
    name = " ".join(conflict.key)
    if not conflict.wrong:
        return Text(f"DISAGREEMENT: {name}: {claims}; nothing here decides it", style="yellow")
    why = "".join(f"; {tool}: {reason}" for tool, reason in conflict.reasons.items())
    truth = f"; it is {conflict.truth} by {conflict.evidence}" if conflict.truth else ""
    text = f"WRONG VERDICT by {', '.join(conflict.wrong)}: {name}: {claims}{truth}{why}"
    return Text(text, style="bold white on red")


def _pairs(option: str, values: Sequence[str]) -> dict[str, Path]:
    """Read NAME=PATH options; return paths by names, which are names of folders."""
    pairs: dict[str, Path] = {}
    for value in values:
        name, separator, path = value.partition("=")
        if not separator or not path or not re.fullmatch(r"\w[\w.+-]*", name):
            raise InputError(f"{option} {value!r}: expected NAME=PATH, NAME of letters and digits")
        if name in pairs or name == "unpacked":
            raise InputError(f"{option} {value!r}: the name {name} is taken")
        pairs[name] = Path(path)
    return pairs


def _only(runs: Runs, instances: Sequence[Instance]) -> Runs:
    wanted = {instance.key for instance in instances}
    return {
        tool: {key: record for key, record in results.items() if key in wanted}
        for tool, results in runs.items()
    }
