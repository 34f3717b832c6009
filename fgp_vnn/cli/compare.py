"""fgp-vnn compare: several tools on the same instances, and published results beside them."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.text import Text

from fgp_vnn.base.errors import InputError
from fgp_vnn.base.files import write_bytes
from fgp_vnn.bench.compare import (
    measure_startup,
    published,
    read_startup,
    run_tools,
    write_published,
)
from fgp_vnn.bench.comparison import (
    COMPARISON,
    Comparison,
    machine_words,
    read_comparison,
    rules_of,
    run_timing,
    write_comparison,
)
from fgp_vnn.bench.facts import provenance, revision
from fgp_vnn.bench.instances import Instance
from fgp_vnn.bench.journal import RUNS, read_settings
from fgp_vnn.bench.progress import Terminal
from fgp_vnn.bench.record import Record
from fgp_vnn.bench.score import disagreements, known_answers, scores, within
from fgp_vnn.bench.tables import Truth
from fgp_vnn.bench.timing import Timing, speed
from fgp_vnn.bench.tools import DECLINED, Tool, find_tool
from fgp_vnn.cli.arguments import add_rules, whole
from fgp_vnn.cli.bench import add_selection, choose, default_out, stop_on_termination
from fgp_vnn.cli.output import complain
from fgp_vnn.cli.score_lines import disagreement_line, score_csv, score_lines

EXAMPLE = "fgp-vnn compare benchmarks/mnist_fc --tool ours=. --tool other=/opt/other"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add_selection(parser)
    add(
        "--tool",
        action="append",
        default=[],
        metavar="NAME=FOLDER",
        help="a tool to run; its VNN-COMP scripts are in FOLDER, FOLDER/vnncomp or "
        "FOLDER/vnncomp_scripts (can be repeated; default: none)",
    )
    add(
        "--results",
        action="append",
        default=[],
        metavar="NAME=CSV",
        help="a tool that is not run, and its published results file (can be repeated; default: "
        "none)",
    )
    add(
        "--about",
        action="append",
        default=[],
        metavar="NAME=MACHINE[;LIMIT]",
        help="machine and time limit that a published results file was measured with (can be "
        "repeated; default: unknown)",
    )
    add_rules(parser)
    add(
        "--startup",
        type=whole,
        default=3,
        metavar="N",
        help="how often to measure the start-up time of each tool, on a tiny instance (default: "
        "%(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    """Return 0 if no verdict contradicts a known answer, 1 if one does, 2 for bad input or if no
    tool could be run."""
    sources = _sources(args)
    chosen = choose(args)
    if chosen is None:
        return 2
    instances, truth = chosen
    args.out = args.out or default_out(args.benchmark)
    args.out.mkdir(parents=True, exist_ok=True)  # fail now, before the work
    stop_on_termination()
    console = Terminal()
    try:
        _run_all(args, sources, instances, truth, console)
    except (KeyboardInterrupt, OSError):
        complain(f"the results so far are in {args.out}: the same command resumes")
        raise
    found = read_comparison(args.out)
    found = replace(found, runs=within(found.runs, {instance.key for instance in instances}))
    return _report(args, found, len(instances), console) or _complain_of_failed(found, sources)


@dataclass(frozen=True)
class _Sources:
    """The sources of results: tools to run, and published tables."""

    tools: Sequence[Tool]
    tables: Mapping[str, Path]  # published results, by the name of the tool
    about: Mapping[str, str]  # machine and limit of published results, by the name of the tool


def _sources(args: argparse.Namespace) -> _Sources:
    """Return the tools and tables that the options name; raise InputError if they do not fit."""
    folders, files = _pairs("--tool", args.tool), _pairs("--results", args.results)
    about = _pairs("--about", args.about)
    if not (folders or files):
        raise InputError("name at least one --tool NAME=FOLDER or --results NAME=CSV")
    if folders.keys() & files.keys():
        raise InputError(f"{', '.join(folders.keys() & files.keys())}: named twice")
    if strange := about.keys() - files.keys():
        raise InputError(f"--about {', '.join(strange)}: no --results has that name")
    tools = [find_tool(name, Path(folder)) for name, folder in folders.items()]
    return _Sources(tools, {name: Path(path) for name, path in files.items()}, about)


def _run_all(
    args: argparse.Namespace,
    sources: _Sources,
    instances: Sequence[Instance],
    truth: Truth,
    console: Terminal,
) -> None:
    """Run the instances that have no result yet; before and after, write the description of the
    comparison (tools, machines, rules)."""
    out, made = args.out, provenance(args.command_line, "cold")
    before = read_settings(out, COMPARISON)
    tables = {name: published(path, instances, truth) for name, path in sources.tables.items()}
    for name, records in tables.items():
        write_published(out / name, records)
    revisions = {tool.name: revision(tool.scripts / "run_instance.sh") for tool in sources.tools}
    runs = [*before.get(RUNS, []), made]
    year, benchmark = args.rules or rules_of(before).year, str(args.benchmark.resolve())

    def write_description() -> None:
        timings = _timings(sources, tables, out, machine_words(made))
        write_comparison(out, benchmark, year, timings, revisions, runs)

    write_description()
    measure_startup(sources.tools, out, args.startup)
    settings = {"benchmark": benchmark, "timeout": args.timeout}
    for step in run_tools(instances, sources.tools, truth, out, settings, made):
        if not args.quiet:
            record = step.record
            line = f"[{step.done}/{step.total}] {step.tool}: {record.result}"
            line += f" {record.run_time:.2f} s  {record}"
            text = Text(f"{line}  ({record.reason})" if record.reason else line)
            console.print(text, soft_wrap=True)
    write_description()


def _timings(
    sources: _Sources, tables: Mapping[str, Sequence[Record]], out: Path, here: str
) -> dict[str, Timing]:
    """Return how the times of each tool were measured, by name. A tool whose earlier results name
    no machine gets `here`; for a published table, --about precedes what its folder says."""
    timings = {}
    for tool in sources.tools:
        measured = run_timing(out / tool.name)
        machine = measured.machine or here
        startup = read_startup(out / tool.name)
        timings[tool.name] = replace(measured, kind="cold", machine=machine, startup=startup)
    for name, records in tables.items():
        source = run_timing(sources.tables[name].parent)
        machine, _, limit = sources.about.get(name, "").partition(";")
        timings[name] = replace(
            source,
            machine=machine.strip() or source.machine,
            limit=limit.strip(),
            rows=len(records),
            cut=sum(bool(record.late) for record in records),
        )
    return timings


def _report(args: argparse.Namespace, found: Comparison, instances: int, console: Terminal) -> int:
    """Print scores, times and disagreements of all results; return 1 if a verdict is wrong."""
    runs, rules, timings = found.runs, found.rules, found.timings
    table, conflicts = scores(runs, rules), disagreements(runs, rules)
    write_bytes(args.out / "summary.csv", score_csv(table).encode(), "summary")
    if not args.quiet:
        for row in score_lines(table):
            console.print(row, soft_wrap=True)
        lines = [f"{rules}; {known_answers(runs, rules)} of {instances} answers are known"]
        lines += [f"{tool}: {timing}" for tool, timing in timings.items()]
        first, *others = runs
        lines += [str(speed(runs, timings, (first, other), rules)) for other in others]
        for line in lines:
            console.print(Text(line), soft_wrap=True)
    for conflict in conflicts:
        console.print(disagreement_line(conflict), soft_wrap=True)
    return 1 if any(conflict.wrong for conflict in conflicts) else 0


def _complain_of_failed(found: Comparison, sources: _Sources) -> int:
    """Name each tool that failed on or declined every instance; return 2 if these are all tools."""
    failed = 0
    for tool in sources.tools:
        records = found.runs[tool.name].values()
        if all(r.result == "error" or r.reason.startswith(DECLINED) for r in records):
            failed += 1
            *_, last = (record.reason for record in records)
            again = f"delete {found.folders[tool.name]} to run it again"
            complain(f"{tool.name} did not run on any instance: {last} ({again})")
    return 2 if failed and failed == len(sources.tools) else 0


def _pairs(option: str, values: Sequence[str]) -> dict[str, str]:
    """Read NAME=PATH options; return paths by name. Names must be usable as folder names."""
    pairs: dict[str, str] = {}
    for value in values:
        name, separator, path = value.partition("=")
        if not separator or not path or not re.fullmatch(r"\w[\w.+-]*", name):
            raise InputError(f"{option} {value!r}: expected NAME=PATH, NAME of letters and digits")
        if name in pairs or name == "unpacked":
            raise InputError(f"{option} {value!r}: the name {name} is taken")
        pairs[name] = path
    return pairs
