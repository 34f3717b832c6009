"""The page of a run or a comparison, and its plots as files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from fgp_vnn.base.errors import InputError
from fgp_vnn.base.files import write_bytes
from fgp_vnn.base.verdict import STATUSES
from fgp_vnn.base.words import plural
from fgp_vnn.bench.comparison import SINGLE, Comparison, read_comparison
from fgp_vnn.bench.instances import read_benchmark
from fgp_vnn.bench.record import Record
from fgp_vnn.bench.score import Disagreement, Runs, all_keys, disagreements
from fgp_vnn.bench.tables import Key
from fgp_vnn.report.figures import PAGE, PAPER, plots_section, save
from fgp_vnn.report.page import Bar, Page, Section, check_libraries, decided_bar, facts_line, render
from fgp_vnn.report.pictures import MAX_PICTURES, Picture, counterexample_picture, pictures_section
from fgp_vnn.report.run_plots import run_plots
from fgp_vnn.report.run_tables import (
    categories_section,
    certificates_section,
    instances_section,
    origin_section,
    summary_section,
)

FILE = "report.html"
SHOWN_CONFLICTS = 50  # the rest can be unfolded


def write_report(folder: Path, *, ours: str | None = None, year: int | None = None) -> Path:
    """Write report.html and plots/ into the folder of a run or a comparison; return the page.

    `ours` is the tool that the scatter plots compare with the others; None means the first. `year`
    chooses the competition's rules; None means those that the comparison was scored by.
    """
    results = read_comparison(folder, year)
    mine = ours or next(iter(results.runs))
    if mine not in results.runs:
        names = ", ".join(results.runs)
        raise InputError(f"{folder}: no tool is named {mine}; there are {names}")
    check_libraries()
    (folder / "plots").mkdir(exist_ok=True)
    for plot in run_plots(results, mine, PAPER):
        save(plot, folder / "plots")
    write_bytes(folder / FILE, run_page(results, mine).encode(), "report")
    return folder / FILE


def run_page(results: Comparison, mine: str) -> str:
    runs = results.runs
    conflicts, keys = disagreements(runs, results.rules), all_keys(runs)
    conflicting = {conflict.key for conflict in conflicts}
    sections = (
        disagreements_section(conflicts, len(keys)),
        summary_section(results),
        plots_section(run_plots(results, mine, PAGE)),
        categories_section(results),
        _breakdown(runs),
        *certificates_section(runs),
        *_counterexamples(results, conflicting),
        origin_section(results),
        instances_section(results, conflicting),
    )
    lead = [plural(len(keys), "instance"), plural(len({key[0] for key in keys}), "folder")]
    if list(runs) != [SINGLE]:
        lead.append(plural(len(runs), "tool"))
    lead.append(f"VNN-COMP {results.rules.year}")
    return render(Page(f"fgp-vnn {results.folder.resolve().name}", lead, sections, _footer(runs)))


def disagreements_section(conflicts: Sequence[Disagreement], instances: int) -> Section:
    values = {"conflicts": conflicts, "instances": instances, "shown": SHOWN_CONFLICTS}
    return Section("disagreements", "Disagreements", "disagreements.html", values)


def _breakdown(runs: Runs) -> Section:
    """Return the section with the verdicts of every tool and, if known, the deciding method."""
    bars = list[Bar]()
    for tool, results in runs.items():
        counts = Counter(record.result for record in results.values())
        bars.append((tool, [(w, counts[w], f"s-{w}") for w in STATUSES if counts[w]]))
        bars += decided_bar(f"{tool}: decided by", (r.decided_by for r in results.values()))
    return Section("breakdown", "Verdicts, and what decided them", "breakdown.html", {"bars": bars})


def _counterexamples(results: Comparison, first: set[Key]) -> Iterator[Section]:
    """Yield the section of pictures, disagreements first, if there is any counterexample."""
    waiting = [
        (tool, record)
        for tool, records in results.runs.items()
        for record in records.values()
        if record.counterexample
    ]
    if not waiting:
        return
    waiting.sort(key=lambda item: item[1].key not in first)
    try:
        pictures = _pictures(waiting, results)
    except InputError as error:
        pictures, note = [], f"No pictures: the benchmark cannot be read ({error})."
    else:
        total = plural(len(waiting), "counterexample")
        note = f"{len(pictures)} of {total}, as images."
        if not pictures:
            note = f"{total}; no input looks like an image."
    yield pictures_section(pictures, note)


def _pictures(found: Sequence[tuple[str, Record]], results: Comparison) -> list[Picture]:
    """Draw the first counterexamples of (tool, record) that are images, at most MAX_PICTURES."""
    benchmark = read_benchmark(results.benchmark, timeout=1.0)
    instances = {instance.key: instance for instance in benchmark.instances}
    made: list[Picture] = []
    for tool, record in found:
        path = results.folders[tool] / record.counterexample
        instance = instances.get(record.key)
        if len(made) == MAX_PICTURES or instance is None or not path.is_file():
            continue
        prefix = "" if tool == SINGLE else f"{tool}: "
        try:
            drawn = counterexample_picture(f"{prefix}{record.onnx} {record.vnnlib}", path, instance)
        except InputError:
            continue  # it cannot be read, and the disagreements say so
        if drawn is not None:
            made.append(drawn)
    return made


def _footer(runs: Runs) -> list[str]:
    """Return versions and machine from the first result that has them."""
    for results in runs.values():
        for record in results.values():
            if record.machine:
                return [facts_line(record.versions), facts_line(record.machine)]
    return ["The results do not say which machine they are from."]
