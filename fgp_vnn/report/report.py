"""One HTML page of a run or a comparison, complete in itself, and its plots as files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from fgp_vnn.base.errors import InputError
from fgp_vnn.bench.compare import COMPARISON, SINGLE, read_runs
from fgp_vnn.bench.instances import Instance, read_benchmark
from fgp_vnn.bench.journal import read_settings, write_atomically
from fgp_vnn.bench.record import Record
from fgp_vnn.bench.score import Runs, all_keys, disagreements, scores
from fgp_vnn.bench.tables import Key
from fgp_vnn.report import plots
from fgp_vnn.report.frame import count, facts, frame
from fgp_vnn.report.pictures import Picture, picture
from fgp_vnn.report.sections import (
    breakdown_section,
    disagreement_section,
    instances_section,
    pictures_section,
    plots_section,
    summary_section,
)

PAGE = "report.html"
MAX_PICTURES = 24


def write_report(folder: Path, *, ours: str | None = None) -> Path:
    """Write report.html and plots/ into the folder of a run or a comparison."""
    runs = read_runs(folder)
    mine = ours or next(iter(runs))
    if mine not in runs:
        raise InputError(f"{folder}: no tool is named {mine}; there are {', '.join(runs)}")
    directory = folder / "plots"
    directory.mkdir(exist_ok=True)
    for plot in _plots(runs, mine, plots.PAPER):
        plots.save(plot, directory)
    page = folder / PAGE
    write_atomically(page, render(runs, mine, folder))
    return page


def render(runs: Runs, mine: str, folder: Path) -> str:
    """The text of the page."""
    conflicts = disagreements(runs)
    keys = all_keys(runs)
    ordered = {conflict.key for conflict in conflicts}
    pictures, note = _pictures(runs, folder, first=ordered)
    sections = {
        "Disagreements": disagreement_section(conflicts, len(keys)),
        "Summary": summary_section(scores(runs)),
        "Plots": plots_section(_plots(runs, mine, plots.PAGE)),
        "Verdicts and engines": breakdown_section(runs),
        "Counterexamples": pictures_section(pictures, note) if note else "",
        "Instances": instances_section(runs, ordered),
    }
    name = folder.resolve().name
    parts = [count(len(keys), "instance"), count(len({key[0] for key in keys}), "folder")]
    if list(runs) != [SINGLE]:
        parts.append(count(len(runs), "tool"))
    return frame(
        title=facts({"fgp-vnn": name}),
        lead=" · ".join(parts),
        sections=sections,
        footer=_footer(runs),
        table="instances",
    )


def _plots(runs: Runs, mine: str, palette: plots.Palette) -> Iterator[plots.Plot]:
    yield plots.cactus(runs, palette)
    for other in runs:
        if other != mine and any(key in runs[mine] for key in runs[other]):
            yield plots.scatter(runs, mine, other, palette)


def _footer(runs: Runs) -> str:
    """Versions and machine, as the results have them."""
    records = (record for results in runs.values() for record in results.values())
    record = next((record for record in records if record.machine), None)
    if record is None:
        return "<p>The results do not say which machine they are from.</p>"
    return f"<p>{facts(record.versions)}</p><p>{facts(record.machine)}</p>"


def _pictures(runs: Runs, folder: Path, first: set[Key]) -> tuple[list[tuple[str, Picture]], str]:
    """Named pictures of the counterexamples, disagreements first, and a remark about them."""
    waiting = list(_counterexamples(runs, folder))
    if not waiting:
        return [], ""
    try:
        instances = _instances(folder)
    except InputError as error:
        return [], f"No pictures: the benchmark cannot be read ({error})."
    waiting.sort(key=lambda item: item[1].key not in first)
    made: list[tuple[str, Picture]] = []
    for tool, record, path in waiting:
        if len(made) == MAX_PICTURES:
            break
        instance = instances.get(record.key)
        if instance is None or not path.is_file():
            continue
        try:
            drawn = picture(path, instance)
        except InputError:
            continue  # a counterexample that cannot be read: the disagreements say so
        if drawn is not None:
            prefix = "" if tool == SINGLE else f"{tool}: "
            made.append((f"{prefix}{record.onnx} {record.vnnlib}", drawn))
    if not made:
        return [], f"{len(waiting)} counterexamples; none of the inputs looks like an image."
    return made, f"{len(made)} of {len(waiting)} counterexamples, as images."


def _counterexamples(runs: Runs, folder: Path) -> Iterator[tuple[str, Record, Path]]:
    for tool, results in runs.items():
        home = folder if tool == SINGLE else folder / tool
        for record in results.values():
            if record.counterexample:
                yield tool, record, home / record.counterexample


def _instances(folder: Path) -> Mapping[Key, Instance]:
    """The instances by key, from the benchmark that the run was made on."""
    if (folder / COMPARISON).is_file():
        settings = json.loads((folder / COMPARISON).read_text(encoding="utf-8"))
    else:
        settings = read_settings(folder)
    benchmark = read_benchmark(Path(settings.get("benchmark", "")), timeout=1.0)
    return {instance.key: instance for instance in benchmark.instances}
