"""The page of a run or a comparison, and its plots as files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from fgp_vnn.base.errors import InputError
from fgp_vnn.base.files import write_bytes
from fgp_vnn.bench.compare import SINGLE, benchmark_of, read_runs, tool_folder
from fgp_vnn.bench.instances import read_benchmark
from fgp_vnn.bench.record import RESULTS, Record
from fgp_vnn.bench.score import (
    SCORE_TITLES,
    Disagreement,
    Runs,
    Score,
    all_keys,
    disagreements,
    score_texts,
    scores,
)
from fgp_vnn.bench.tables import Key
from fgp_vnn.report.certificates import (
    certificate_cells,
    certificate_titles,
    certificates_section,
    has_certificates,
)
from fgp_vnn.report.figures import PAGE, PAPER, plots_section, save
from fgp_vnn.report.libraries import check_libraries
from fgp_vnn.report.page import Cell, Filter, Page, Row, Section, Table, facts_line, plural, render
from fgp_vnn.report.pictures import (
    MAX_PICTURES,
    Picture,
    counterexample_picture,
    pictures_section,
)
from fgp_vnn.report.run_plots import run_plots

FILE = "report.html"
SHOWN_CONFLICTS = 50  # the rest can be unfolded
_BEHIND = 1e9  # seconds added to what is not solved: it sorts behind all that is


def write_report(folder: Path, *, ours: str | None = None) -> Path:
    """Write report.html and plots/ into the folder of a run or a comparison; return the page.

    `ours` is the tool that the scatter plots compare with the others; None means the first.
    """
    check_libraries()
    runs = read_runs(folder)
    mine = ours or next(iter(runs))
    if mine not in runs:
        raise InputError(f"{folder}: no tool is named {mine}; there are {', '.join(runs)}")
    (folder / "plots").mkdir(exist_ok=True)
    for plot in run_plots(runs, mine, PAPER):
        save(plot, folder / "plots")
    write_bytes(folder / FILE, run_page(runs, mine, folder).encode(), "report")
    return folder / FILE


def run_page(runs: Runs, mine: str, folder: Path) -> str:
    """Return the HTML text of the page."""
    conflicts, keys = disagreements(runs), all_keys(runs)
    conflicting = {conflict.key for conflict in conflicts}
    sections = (
        disagreements_section(conflicts, len(keys)),
        _summary(scores(runs)),
        plots_section(run_plots(runs, mine, PAGE)),
        _breakdown(runs),
        *certificates_section(runs),
        *_counterexamples(runs, folder, conflicting),
        _instances(runs, conflicting, folder),
    )
    lead = [plural(len(keys), "instance"), plural(len({key[0] for key in keys}), "folder")]
    if list(runs) != [SINGLE]:
        lead.append(plural(len(runs), "tool"))
    return render(Page(f"fgp-vnn {folder.resolve().name}", lead, sections, _footer(runs)))


def disagreements_section(conflicts: Sequence[Disagreement], instances: int) -> Section:
    """Return the section that says which verdicts are wrong, those first."""
    values = {"conflicts": conflicts, "instances": instances, "shown": SHOWN_CONFLICTS}
    return Section("disagreements", "Disagreements", "disagreements.html", values)


def _summary(table: Sequence[Score]) -> Section:
    """One line per tool, the best value of a column in bold."""
    medians = [score.median for score in table if score.median is not None]
    best = {
        "solved": max(score.solved for score in table),
        "median": min(medians, default=-1.0),
        "par2": min(score.par2 for score in table),
        "points": max(score.points for score in table),
    }

    def kind(score: Score, name: str) -> str:
        if name == "wrong" and score.wrong:
            return "wrong"
        return "best" if best.get(name) == getattr(score, name) else ""

    rows = [
        (
            score.tool,
            [Cell(text, kind=kind(score, name)) for name, text in score_texts(score).items()],
        )
        for score in table
    ]
    values = {"titles": SCORE_TITLES.values(), "scores": rows}
    return Section("summary", "Summary", "run_summary.html", values)


# A title, and the pieces of a bar: name, count, CSS class.
Bar = tuple[str, list[tuple[str, int, str]]]


def _breakdown(runs: Runs) -> Section:
    """The verdicts of every tool, what decided them where that is known, and categories."""
    bars = [bar for tool, results in runs.items() for bar in _bars(tool, results.values())]
    solved: dict[str, list[str]] = {key[0]: [] for key in all_keys(runs)}
    for category, texts in solved.items():
        for results in runs.values():
            records = [record for key, record in results.items() if key[0] == category]
            texts.append(f"{sum(record.solved for record in records)} / {len(records)}")
    values = {"bars": bars, "categories": solved, "tools": list(runs)}
    return Section("breakdown", "Verdicts and engines", "breakdown.html", values)


def _bars(tool: str, records: Iterable[Record]) -> Iterator[Bar]:
    records = list(records)
    counts = Counter(record.result for record in records)
    yield tool, [(word, counts[word], f"s-{word}") for word in RESULTS if counts[word]]
    engines = Counter(record.decided_by for record in records if record.decided_by).most_common()
    if engines:
        yield f"{tool}: decided by", [(*e, f"s-{n % 8 + 1}") for n, e in enumerate(engines)]


def _counterexamples(runs: Runs, folder: Path, first: set[Key]) -> Iterator[Section]:
    """The section of pictures, disagreements first; none where there is no counterexample."""
    waiting = [
        (tool, record)
        for tool, results in runs.items()
        for record in results.values()
        if record.counterexample
    ]
    if not waiting:
        return
    waiting.sort(key=lambda item: item[1].key not in first)
    try:
        pictures = _pictures(waiting, folder)
    except InputError as error:
        pictures, note = [], f"No pictures: the benchmark cannot be read ({error})."
    else:
        total = plural(len(waiting), "counterexample")
        note = f"{len(pictures)} of {total}, as images."
        if not pictures:
            note = f"{total}; no input looks like an image."
    yield pictures_section(pictures, note)


def _pictures(found: Sequence[tuple[str, Record]], folder: Path) -> list[Picture]:
    """Draw the first few counterexamples of (tool, record) that are images."""
    benchmark = read_benchmark(benchmark_of(folder), timeout=1.0)
    instances = {instance.key: instance for instance in benchmark.instances}
    made: list[Picture] = []
    for tool, record in found:
        path = tool_folder(folder, tool) / record.counterexample
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


def _instances(runs: Runs, conflicting: set[Key], folder: Path) -> Section:
    """Every instance, with columns for a tool's verdict, its time and, if any, its certificate."""
    proved = {
        tool: tool_folder(folder, tool).relative_to(folder).as_posix() + "/"
        for tool, results in runs.items()
        if has_certificates(results)
    }
    titles = ["category", "network", "property", "limit s"]
    for tool in runs:
        titles += [tool, f"{tool} s"]
        titles += certificate_titles(tool) if tool in proved else []
    keys = all_keys(runs)
    categories = list(dict.fromkeys(key[0] for key in keys))
    filters = [Filter("result", "Verdict", RESULTS), Filter("category", "Category", categories)]
    rows = []
    for key in keys:
        cells = []
        for tool, results in runs.items():
            record = results.get(key)
            cells += _result_cells(record)
            cells += certificate_cells(record, proved[tool]) if tool in proved else []
        known = [results[key] for results in runs.values() if key in results]
        rows.append(_row(key, known, cells, key in conflicting))
    return Table("instances", titles, rows, "names, reasons", filters, True).section()


def _row(key: Key, known: Sequence[Record], found: Sequence[Cell], conflict: bool) -> Row:
    limit = known[0].timeout
    names = [Cell(key[0]), Cell(key[1], kind="name"), Cell(key[2], kind="name")]
    row = [*names, Cell(f"{limit:g}", limit, "number"), *found]
    return Row(row, sorted({record.result for record in known}), key[0], conflict)


def _result_cells(record: Record | None) -> list[Cell]:
    """A verdict with its reason, and seconds, by which unsolved instances sort last."""
    if record is None:
        return [Cell("-", kind="result"), Cell("-", 2 * _BEHIND, "number")]
    valid = record.confirmed is not False
    detail = record.decided_by if record.solved and valid else record.reason
    seconds = record.run_time if record.solved else _BEHIND + record.run_time
    return [
        Cell(record.result, None, "result", "" if valid else "not valid", detail),
        Cell(f"{record.run_time:.2f}", seconds, "number"),
    ]


def _footer(runs: Runs) -> list[str]:
    """Versions and machine, as the results have them."""
    for results in runs.values():
        for record in results.values():
            if record.machine:
                return [facts_line(record.versions), facts_line(record.machine)]
    return ["The results do not say which machine they are from."]
