"""Run several tools on the same instances, and add published results."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fgp_vnn.base.errors import InputError
from fgp_vnn.base.files import write_bytes
from fgp_vnn.bench.check import Judgement, OnnxFile, judge_results, load_judged
from fgp_vnn.bench.facts import machine
from fgp_vnn.bench.instances import Instance
from fgp_vnn.bench.journal import SETTINGS, open_journal, write_records
from fgp_vnn.bench.record import Answer, Record, as_record
from fgp_vnn.bench.rules import RULES
from fgp_vnn.bench.tables import COLUMNS, Key, Truth, instance_key, read_result_rows, result_word
from fgp_vnn.bench.tools import Files, Tool, run_tool, unpacked_files
from fgp_vnn.bench.warmup import write_smallest

STARTUP = "startup.json"  # seconds for the smallest instance
_STARTUP_LIMIT = 120.0  # seconds
_CATEGORY = "test"  # of the smallest instance: one that every tool of the competition knows


@dataclass(frozen=True)
class ToolResult:
    """One result of one tool, and the number of results so far and in total."""

    tool: str
    record: Record
    done: int
    total: int


def run_tools(
    instances: Sequence[Instance],
    tools: Sequence[Tool],
    truth: Truth,
    out: Path,
    settings: Mapping[str, Any],
    made: Mapping[str, Any],
) -> Iterator[ToolResult]:
    """Run the tools on instances without a result, one instance at a time; yield each result.

    `made` says where, when and how the results are made.
    """
    facts = machine()
    with ExitStack() as stack:
        journals = {
            tool.name: stack.enter_context(
                open_journal(out / tool.name, {**settings, "scripts": str(tool.scripts)}, made=made)
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
            with unpacked_files(instance, out / "unpacked") as files:
                for tool in waiting:
                    answer = replace(_answer(tool, instance, files, out), machine=facts)
                    record = as_record(instance, answer, truth.get(instance.key, ""))
                    done += 1
                    texts = answer.counterexample, answer.log
                    stored = journals[tool.name].append(record, *texts)
                    yield ToolResult(tool.name, stored, done, total)


def measure_startup(tools: Sequence[Tool], out: Path, times: int) -> None:
    """Let each tool solve the smallest instance `times` times, and write the seconds to a file.

    An extra first round, not measured, brings files into memory. Only answers of unsat count. A
    tool that was measured before is skipped.
    """
    waiting = [tool for tool in tools if not (out / tool.name / STARTUP).exists()]
    if not times or not waiting:
        return
    taken: dict[str, list[float]] = {tool.name: [] for tool in waiting}
    with tempfile.TemporaryDirectory(prefix="fgp-vnn-") as name:
        folder = Path(name)
        network, prop = write_smallest(folder)
        files = Files(str(network), prop)
        instance = Instance(
            _CATEGORY, network.name, prop.name, _STARTUP_LIMIT, (str(network),), str(prop)
        )
        for turn in range(times + 1):
            for tool in _in_turn(waiting, turn):
                answer = run_tool(tool, instance, files, folder / "results.txt", folder / "log.txt")
                if turn and answer.status == "unsat":
                    taken[tool.name].append(round(answer.run_time, 4))
    for tool_name, seconds in taken.items():
        (out / tool_name).mkdir(parents=True, exist_ok=True)
        write_bytes(out / tool_name / STARTUP, json.dumps(seconds).encode(), "start-up")


def read_startup(folder: Path) -> tuple[float, ...]:
    """Return the measured seconds of a tool's start-up; empty if it was not measured."""
    path = folder / STARTUP
    return tuple(json.loads(path.read_text())) if path.exists() else ()


def published(path: Path, instances: Iterable[Instance], truth: Truth) -> list[Record]:
    """Return the rows of a results file that are about our instances, under our time limits."""
    answers = read_published(path)
    records = [
        as_record(instance, answers[instance.key], truth.get(instance.key, ""))
        for instance in instances
        if instance.key in answers
    ]
    if not records:
        raise InputError(f"{path}: none of its rows is about one of the instances")
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
    write_records(folder, records)


def _in_turn(tools: Sequence[Tool], turn: int) -> list[Tool]:
    """Return the tools, rotated by one each turn: the first one has to load files from disk."""
    start = turn % max(1, len(tools))
    return [*tools[start:], *tools[:start]]


def _answer(tool: Tool, instance: Instance, files: Files, out: Path) -> Answer:
    """Run a tool on an instance; return its answer with its log and its judged counterexample."""
    folder = (out / tool.name).absolute()
    log = folder / "log.txt"
    log.unlink(missing_ok=True)
    answer = run_tool(tool, instance, files, folder / "results.txt", log)
    answer = replace(answer, log=log.read_text(encoding="utf-8", errors="replace"))
    return _checked(answer, folder / "results.txt", instance)


def _checked(answer: Answer, results: Path, instance: Instance) -> Answer:
    """Return the answer with the judgement of its counterexample.

    A counterexample that cannot be read is not valid. A network or a property that cannot be read
    here is not the tool's fault: the counterexample is then not judged.
    """
    if answer.status != "sat":
        return answer
    try:
        if len(instance.network_files) > 1:
            raise InputError("a property of several networks")
        prop = load_judged(Path(instance.property_file))
        network = OnnxFile(Path(instance.network_files[0]))
    except InputError as error:
        return replace(answer, reason=f"its counterexample cannot be checked: {error}")
    try:
        found = judge_results(results, network, prop)
    except InputError as error:
        found = Judgement(str(error))
    return replace(
        answer,
        confirmed=not found.fault,
        standings=found.standings or {str(year): "invalid" for year in RULES},
        reason=found.fault,
    )
