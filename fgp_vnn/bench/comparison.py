"""A comparison on disk: its tools, how each was timed, and how to repeat it."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fgp_vnn.base.errors import InputError
from fgp_vnn.base.files import write_bytes
from fgp_vnn.base.words import plural
from fgp_vnn.bench.journal import JSON_LINES, RUNS, read_records, read_settings
from fgp_vnn.bench.rules import NEWEST, RULES, Rules
from fgp_vnn.bench.score import Runs
from fgp_vnn.bench.timing import Timing, Timings, from_dict

COMPARISON = "compare.json"
REPEAT = "repeat.sh"
SINGLE = "fgp-vnn"  # the name of the only tool of a run


def write_comparison(
    out: Path,
    benchmark: str,
    rules: int,
    timings: Timings,
    revisions: Mapping[str, str],
    runs: Sequence[Mapping[str, Any]],
) -> None:
    """Write compare.json, and the script that repeats its last run.

    `rules` is a year, `revisions` the git revisions of the tools, if known, and `runs` says where,
    when and how each run was made, the latest last.
    """
    out.mkdir(parents=True, exist_ok=True)
    content = {
        "tools": list(timings),
        "benchmark": benchmark,
        "rules": rules,
        "timings": {tool: asdict(timing) for tool, timing in timings.items()},
        "revisions": dict(revisions),
        RUNS: list(runs),
    }
    write_bytes(out / COMPARISON, json.dumps(content, indent=2).encode() + b"\n", "comparison")
    if runs:
        write_bytes(out / REPEAT, _script(runs[-1]).encode(), "script")


def earlier_runs(out: Path) -> list[Mapping[str, Any]]:
    """Return where, when and how the runs of a comparison so far were made."""
    return list(read_settings(out, COMPARISON).get(RUNS, []))


def read_runs(folder: Path) -> Runs:
    """Return the results of a comparison, or of a run, which counts as the tool SINGLE."""
    if (folder / COMPARISON).is_file():
        tools = read_settings(folder, COMPARISON).get("tools", [])
    elif (folder / JSON_LINES).is_file():
        tools = [SINGLE]
    else:
        what = f"neither a run nor a comparison (no {JSON_LINES})"
        raise InputError(f"{folder}: {what if folder.exists() else 'does not exist'}")
    runs = {
        tool: {record.key: record for record in read_records(tool_folder(folder, tool))}
        for tool in tools
    }
    if not any(runs.values()):
        raise InputError(f"{folder}: no results yet")
    return runs


def read_timings(folder: Path) -> dict[str, Timing]:
    """Return how each tool of a comparison, or of a run, was timed."""
    settings = read_settings(folder, COMPARISON)
    known = settings.get("timings", {})
    tools = settings.get("tools", [SINGLE])
    return {
        tool: from_dict(known[tool]) if tool in known else run_timing(tool_folder(folder, tool))
        for tool in tools
    }


def run_timing(folder: Path) -> Timing:
    """Return how the results in a run's folder were timed; `published` if nothing is known."""
    runs = read_settings(folder).get(RUNS, [])
    if not runs:
        return Timing("published")
    machines = list(dict.fromkeys(machine_words(run) for run in runs))
    return Timing(runs[-1]["timing"], " and ".join(machines))


def machine_words(made: Mapping[str, Any]) -> str:
    """Return the machine of a run in one line."""
    cores = plural(made["cores"], "core")
    return f"{made['host']}: {made['processor']}, {cores}, {made['memory']}"


def read_rules(folder: Path) -> Rules:
    """Return the rules that a comparison was scored by; the newest if none are recorded."""
    return RULES.get(read_settings(folder, COMPARISON).get("rules", 0), NEWEST)


def read_made(folder: Path) -> Mapping[str, Any]:
    """Return where, when and how a run or a comparison was last made; empty if not recorded."""
    runs = (read_settings(folder) | read_settings(folder, COMPARISON)).get(RUNS, [])
    return dict(runs[-1]) if runs else {}


def tool_folder(folder: Path, tool: str) -> Path:
    """Return the folder with the results of one tool of a run or a comparison."""
    return folder / tool if (folder / COMPARISON).is_file() else folder


def benchmark_of(folder: Path) -> Path:
    """Return the benchmark that a run or a comparison was made on."""
    settings = read_settings(folder) | read_settings(folder, COMPARISON)
    return Path(settings.get("benchmark", ""))


def _script(made: Mapping[str, Any]) -> str:
    """Return a shell script that repeats a run into another folder."""
    command = shlex.join([sys.executable, "-m", "fgp_vnn", *made["command"][1:]])
    return (
        "#!/usr/bin/env bash\n"
        "# Repeats this comparison from its beginning: bash repeat.sh OUT\n"
        'out=$(realpath -m "${1:?usage: bash repeat.sh OUT, a new folder}") || exit\n'
        f'cd {shlex.quote(made["folder"])} && exec {command} --out "$out"\n'
    )
