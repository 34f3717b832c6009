"""Several tools on the same instances, in turn, and published results beside them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fgp_vnn.base.errors import InputError
from fgp_vnn.base.files import write_bytes
from fgp_vnn.bench.answer import Answer, as_record
from fgp_vnn.bench.check import OnnxFile, check_results
from fgp_vnn.bench.facts import machine
from fgp_vnn.bench.instances import Instance
from fgp_vnn.bench.journal import (
    JSON_LINES,
    SETTINGS,
    open_journal,
    read_records,
    read_settings,
    write_results,
)
from fgp_vnn.bench.record import Record
from fgp_vnn.bench.score import Runs
from fgp_vnn.bench.tables import COLUMNS, Key, instance_key, read_result_rows, result_word
from fgp_vnn.bench.tools import Tool, run_tool, unpacked
from fgp_vnn.bench.truth import Truth
from fgp_vnn.property import load_property

COMPARISON = "compare.json"
SINGLE = "fgp-vnn"  # the name of the only tool of a run


@dataclass(frozen=True)
class Step:
    """One result of one tool, and how many results of all there are."""

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
    """Run what has no result yet, all tools on one instance before the next; yield each result."""
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
            waiting = [
                tool
                for tool in _in_turn(tools, turn)
                if instance.key not in journals[tool.name].records
            ]
            done += len(tools) - len(waiting)
            if not waiting:
                continue
            with unpacked(instance, out / "unpacked") as files:
                for tool in waiting:
                    folder = out / tool.name
                    results = (folder / "results.txt").absolute()
                    answer = run_tool(tool, instance, files, results, folder / "log.txt")
                    answer = replace(_checked(answer, results, instance), machine=facts)
                    record = as_record(instance, answer, truth.get(instance.key, ""))
                    done += 1
                    stored = journals[tool.name].append(record, answer.counterexample)
                    yield Step(tool.name, stored, done, total)


def published(path: Path, instances: Iterable[Instance], truth: Truth) -> list[Record]:
    """Return the rows of a results file that are about our instances, under our time limits."""
    answers = read_published(path)
    records = [
        as_record(instance, answers[instance.key], truth.get(instance.key, ""))
        for instance in instances
        if instance.key in answers
    ]
    if not records:
        raise InputError(f"{path}: none of its {len(answers)} rows is one of the instances")
    return records


def read_published(path: Path) -> dict[Key, Answer]:
    """Return the answers in a results file of the competition."""
    answers = {}
    for place, row in read_result_rows(path):
        try:
            key = instance_key(row["category"], row["onnx"], row["vnnlib"])
            prepare_time, run_time = (
                float(row[name] or 0) for name in ("prepare_time", "run_time")
            )
        except (KeyError, ValueError):
            raise InputError(f"{place}: expected {','.join(COLUMNS)}, got {row}") from None
        answers[key] = Answer(result_word(row["result"]), run_time, prepare_time=prepare_time)
    return answers


def write_published(folder: Path, records: Iterable[Record]) -> None:
    """Write published results in the form of a run of our own."""
    if (folder / SETTINGS).exists():
        raise InputError(f"{folder}: holds a run; give the published results another name")
    folder.mkdir(parents=True, exist_ok=True)
    write_results(folder, records)


def write_comparison(out: Path, tools: Sequence[str], benchmark: Path) -> None:
    """Write down which folders belong to the comparison, and in which order."""
    out.mkdir(parents=True, exist_ok=True)
    content = {"tools": list(tools), "benchmark": str(benchmark.resolve())}
    write_bytes(out / COMPARISON, json.dumps(content, indent=2).encode() + b"\n", "comparison")


def read_runs(folder: Path) -> Runs:
    """Return the results of a comparison, or of a run, which counts as the tool SINGLE."""
    if (folder / COMPARISON).is_file():
        tools = read_settings(folder, COMPARISON).get("tools", [])
    elif (folder / JSON_LINES).is_file():
        tools = [SINGLE]
    else:
        raise InputError(f"{folder}: neither a run nor a comparison (no {JSON_LINES})")
    runs = {
        tool: {record.key: record for record in read_records(tool_folder(folder, tool))}
        for tool in tools
    }
    if not any(runs.values()):
        raise InputError(f"{folder}: no results yet")
    return runs


def tool_folder(folder: Path, tool: str) -> Path:
    """Return where the results of one tool of a run or a comparison are."""
    return folder / tool if (folder / COMPARISON).is_file() else folder


def benchmark_of(folder: Path) -> Path:
    """Return the benchmark that a run or a comparison was made on."""
    settings = read_settings(folder) | read_settings(folder, COMPARISON)
    return Path(settings.get("benchmark", ""))


def _in_turn(tools: Sequence[Tool], turn: int) -> list[Tool]:
    """Return the tools with another one first each turn: the second finds files in memory."""
    start = turn % max(1, len(tools))
    return [*tools[start:], *tools[:start]]


def _checked(answer: Answer, results: Path, instance: Instance) -> Answer:
    """Return the answer with what onnxruntime says of its counterexample.

    A counterexample that cannot be read is not valid; a network or a property that we cannot read
    is not the tool's fault.
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
