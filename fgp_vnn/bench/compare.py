"""Several tools on the same instances, in turn, and published results beside them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fgp_vnn.base.errors import InputError
from fgp_vnn.bench.answer import Answer, as_record
from fgp_vnn.bench.check import OnnxFile, check_results
from fgp_vnn.bench.facts import machine
from fgp_vnn.bench.instances import Instance
from fgp_vnn.bench.journal import (
    JSON_LINES,
    SETTINGS,
    Journal,
    open_journal,
    read_records,
    write_atomically,
)
from fgp_vnn.bench.record import Record
from fgp_vnn.bench.score import Runs
from fgp_vnn.bench.tables import read_results_table
from fgp_vnn.bench.tools import Tool, run_tool, unpacked
from fgp_vnn.bench.truth import Truth
from fgp_vnn.property import load_property

COMPARISON = "compare.json"
SINGLE = "fgp-vnn"  # the name of the only tool of a plain run


@dataclass(frozen=True)
class Step:
    """One result of one tool, as it comes."""

    tool: str
    record: Record
    done: int
    total: int


def compare(
    instances: Sequence[Instance],
    tools: Sequence[Tool],
    truth: Truth,
    out: Path,
    settings: Mapping[str, Any],
) -> Iterator[Step]:
    """Run what is missing, every tool on one instance before the next, and yield each result."""
    facts = machine()
    with ExitStack() as stack:
        journals = {
            tool.name: stack.enter_context(
                open_journal(out / tool.name, {**settings, "scripts": str(tool.scripts)})
            )
            for tool in tools
        }
        total = len(instances) * len(tools)
        done = 0
        for turn, instance in enumerate(instances):
            waiting = [t for t in _in_turn(tools, turn) if _is_missing(journals[t.name], instance)]
            done += len(tools) - len(waiting)
            if not waiting:
                continue
            with unpacked(instance, out / "unpacked") as files:
                for tool in waiting:
                    folder = out / tool.name
                    results = (folder / "results.txt").absolute()
                    trial = run_tool(tool, instance, files, results, folder / "log.txt")
                    answer = _checked(trial.answer, results, instance)
                    record = as_record(instance, answer, truth.get(instance.key, ""))
                    record = replace(record, prepare_time=trial.prepare_time, machine=facts)
                    done += 1
                    stored = journals[tool.name].append(record, answer.counterexample)
                    yield Step(tool.name, stored, done, total)


def published(path: Path, instances: Iterable[Instance], truth: Truth) -> list[Record]:
    """Rows of a results file that are about our instances, as results under our time limits."""
    rows = {row.key: row for row in read_results_table(path)}
    records = []
    for instance in instances:
        row = rows.get(instance.key)
        if row is not None:
            answer = Answer(row.result, row.run_time)
            record = as_record(instance, answer, truth.get(instance.key, ""))
            records.append(replace(record, prepare_time=row.prepare_time))
    if not records:
        raise InputError(f"{path}: none of its {len(rows)} rows is one of the instances")
    return records


def write_published(folder: Path, records: Iterable[Record]) -> None:
    """Results of elsewhere, in the form of a run of our own."""
    if (folder / SETTINGS).exists():
        raise InputError(f"{folder}: holds a run; give the published results another name")
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(record.as_dict()) + "\n" for record in records]
    write_atomically(folder / JSON_LINES, "".join(lines))


def write_comparison(out: Path, tools: Sequence[str], benchmark: Path) -> None:
    """Say which folders belong to the comparison, and in which order."""
    out.mkdir(parents=True, exist_ok=True)
    content = {"tools": list(tools), "benchmark": str(benchmark.resolve())}
    write_atomically(out / COMPARISON, json.dumps(content, indent=2) + "\n")


def read_runs(folder: Path) -> Runs:
    """The results of a comparison or of a plain run."""
    if (folder / COMPARISON).is_file():
        tools = json.loads((folder / COMPARISON).read_text(encoding="utf-8"))["tools"]
        folders = {tool: folder / tool for tool in tools}
    elif (folder / JSON_LINES).is_file():
        folders = {SINGLE: folder}
    else:
        raise InputError(f"{folder}: neither a run nor a comparison (no {JSON_LINES})")
    runs = {
        tool: {record.key: record for record in read_records(path)}
        for tool, path in folders.items()
    }
    if not any(runs.values()):
        raise InputError(f"{folder}: no results yet")
    return runs


def _in_turn(tools: Sequence[Tool], turn: int) -> list[Tool]:
    """Nobody is always first: what the first reads from disk, the second finds in memory."""
    start = turn % max(1, len(tools))
    return [*tools[start:], *tools[:start]]


def _is_missing(journal: Journal, instance: Instance) -> bool:
    return instance.key not in journal.records


def _checked(answer: Answer, results: Path, instance: Instance) -> Answer:
    """The answer with onnxruntime's word on its counterexample.

    What we cannot read is not held against the tool; what it wrote is.
    """
    if answer.status != "sat":
        return answer
    try:
        if len(instance.network_files) > 1:
            raise InputError("a property of several networks")
        prop = load_property(Path(instance.property_file))
        network = OnnxFile(Path(instance.network_files[0]))
    except InputError as error:
        return replace(answer, reason=f"its counterexample cannot be checked: {error}")
    try:
        found = check_results(results, network, prop)
    except InputError as error:
        found = str(error)
    return replace(answer, confirmed=not found, reason=found)
