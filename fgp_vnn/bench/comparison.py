"""A comparison on disk: its tools, how each was timed, and how to repeat it."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from fgp_vnn.base.errors import InputError
from fgp_vnn.base.files import write_bytes
from fgp_vnn.base.words import plural
from fgp_vnn.bench.journal import JSON_LINES, RUNS, read_records, read_settings
from fgp_vnn.bench.rules import NEWEST, RULES, Rules
from fgp_vnn.bench.score import Runs
from fgp_vnn.bench.timing import Timing, Timings, from_dict, unlike

COMPARISON = "compare.json"
REPEAT = "repeat.sh"
SINGLE = "fgp-vnn"  # the name of the only tool of a run


@dataclass(frozen=True)
class Comparison:
    """A comparison of tools, or a run, which counts as one of the tool SINGLE."""

    folder: Path
    folders: Mapping[str, Path]  # with the results of each tool
    runs: Runs
    rules: Rules
    timings: Timings
    benchmark: Path
    made: Mapping[str, Any]  # where, when and how it was last made; empty if not recorded

    @property
    def comparable(self) -> bool:
        """Whether the times of all tools were measured in the same way."""
        return not any(unlike(a, b) for a, b in pairwise(self.timings.values()))


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


def read_comparison(folder: Path, year: int | None = None) -> Comparison:
    """Return what bench or compare has written into a folder. `year` chooses the competition's
    rules; None means those that it was scored by."""
    if (folder / COMPARISON).is_file():
        told = read_settings(folder, COMPARISON)
        folders = {tool: folder / tool for tool in told.get("tools", [])}
    elif (folder / JSON_LINES).is_file():
        told, folders = read_settings(folder), {SINGLE: folder}
    else:
        what = f"neither a run nor a comparison (no {JSON_LINES})"
        raise InputError(f"{folder}: {what if folder.exists() else 'does not exist'}")
    runs = {tool: {r.key: r for r in read_records(place)} for tool, place in folders.items()}
    if not any(runs.values()):
        raise InputError(f"{folder}: no results yet")
    known = told.get("timings", {})
    timings = {
        tool: from_dict(known[tool]) if tool in known else run_timing(place)
        for tool, place in folders.items()
    }
    rules = rules_of(told) if year is None else RULES[year]
    made = told.get(RUNS) or [{}]
    benchmark = Path(told.get("benchmark", ""))
    return Comparison(folder, folders, runs, rules, timings, benchmark, made[-1])


def rules_of(told: Mapping[str, Any]) -> Rules:
    """Return the rules that a comparison was scored by; the newest if none are recorded."""
    return RULES.get(told.get("rules", 0), NEWEST)


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


def _script(made: Mapping[str, Any]) -> str:
    """Return a shell script that repeats a run into another folder."""
    command = shlex.join([sys.executable, "-m", "fgp_vnn", *made["command"][1:]])
    return (
        "#!/usr/bin/env bash\n"
        "# Repeats this comparison from its beginning: bash repeat.sh OUT\n"
        'out=$(realpath -m "${1:?usage: bash repeat.sh OUT, a new folder}") || exit\n'
        f'cd {shlex.quote(made["folder"])} && exec {command} --out "$out"\n'
    )
