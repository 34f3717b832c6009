"""The sections of the report: pure functions from results to HTML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape

from fgp_vnn.bench.record import Record
from fgp_vnn.bench.score import Disagreement, Runs, Score, all_keys
from fgp_vnn.bench.tables import Key
from fgp_vnn.report.frame import big_table, choice, controls, count, scrolling, section
from fgp_vnn.report.pictures import Picture
from fgp_vnn.report.plots import Plot, inline_svg

SHOWN_CONFLICTS = 50  # the rest can be unfolded
WORDS = ("sat", "unsat", "unknown", "timeout", "error")


def disagreement_section(conflicts: Sequence[Disagreement], instances: int) -> str:
    """First of all: who is wrong."""
    wrong = [conflict for conflict in conflicts if conflict.wrong]
    if wrong:
        text = f"{count(len(wrong), 'instance')} with a wrong verdict."
        banner = f'<p class="banner bad" role="alert">{text}</p>'
    elif conflicts:
        text = "Tools contradict each other; nothing here decides who is wrong."
        banner = f'<p class="banner warn">{text}</p>'
    else:
        text = f"None among {count(instances, 'instance')}."
        banner = f'<p class="banner good">{text}</p>'
    ordered = sorted(conflicts, key=lambda conflict: not conflict.wrong)
    first, rest = ordered[:SHOWN_CONFLICTS], ordered[SHOWN_CONFLICTS:]
    content = banner + _conflicts(first)
    if rest:
        content += f"<details><summary>and {len(rest)} more</summary>{_conflicts(rest)}</details>"
    return section("disagreements", "Disagreements", content)


def _conflicts(conflicts: Sequence[Disagreement]) -> str:
    items = "".join(map(_conflict, conflicts))
    return f'<ul class="conflicts">{items}</ul>' if items else ""


def _conflict(conflict: Disagreement) -> str:
    claims = ", ".join(
        f"{escape(tool)} says {_word(claim)}" for tool, claim in conflict.claims.items()
    )
    lines = [f"<strong>{escape(' · '.join(conflict.key))}</strong>", claims]
    if conflict.truth:
        lines.append(f"It is {_word(conflict.truth)}, by {escape(conflict.evidence)}.")
    if conflict.wrong:
        names = escape(", ".join(conflict.wrong))
        lines.append(f'<span class="wrong-mark">Wrong: {names}</span>')
    lines += [f"{escape(tool)}: {escape(why)}" for tool, why in conflict.reasons.items()]
    kind = ' class="wrong"' if conflict.wrong else ""
    return f"<li{kind}>" + "".join(f"<p>{line}</p>" for line in lines) + "</li>"


def summary_section(table: Sequence[Score]) -> str:
    """One line per tool; the best of each column in bold."""
    titles = ("solved", "sat", "unsat", "unique", "wrong", "median s", "PAR-2 s", "score")
    head = "".join(f'<th scope="col" class="number">{title}</th>' for title in titles)
    best = (
        max(score.solved for score in table),
        min((score.median for score in table if score.median is not None), default=None),
        min(score.par2 for score in table),
        max(score.points for score in table),
    )
    rows = "".join(_summary_row(number, score, best) for number, score in enumerate(table))
    note = (
        '<p class="note">Solved: rightly and in time. PAR-2: mean seconds, an unsolved instance '
        "counting twice its limit. Score: 10 for a right verdict, -150 for a wrong one.</p>"
    )
    titles_row = f'<thead><tr><th scope="col">tool</th>{head}</tr></thead>'
    return section(
        "summary",
        "Summary",
        scrolling("Summary table", f"<table>{titles_row}<tbody>{rows}</tbody></table>") + note,
    )


def _summary_row(number: int, score: Score, best: tuple[int, float | None, float, int]) -> str:
    solved, median, par2, points = best
    cells = [
        (f"{score.solved} / {score.instances}", score.solved == solved),
        (str(score.sat), False),
        (str(score.unsat), False),
        (str(score.unique), False),
        (str(score.wrong), False),
        ("-" if score.median is None else f"{score.median:.2f}", score.median == median),
        (f"{score.par2:.2f}", score.par2 == par2),
        (f"{score.points}", score.points == points),
    ]
    html = ""
    for position, (text, is_best) in enumerate(cells):
        bad = position == 4 and score.wrong
        kind = "number wrong" if bad else "number best" if is_best else "number"
        html += f'<td class="{kind}">{text}</td>'
    swatch = f'<span class="swatch s-{number % 8 + 1}"></span>'
    return f'<tr><th scope="row">{swatch}{escape(score.tool)}</th>{html}</tr>'


def plots_section(plots: Iterable[Plot]) -> str:
    figures = "".join(
        f"<figure><h3>{escape(plot.title)}</h3>{inline_svg(plot)}"
        f"<figcaption>{escape(plot.description)}</figcaption></figure>"
        for plot in plots
    )
    return section("plots", "Plots", f'<div class="plots">{figures}</div>')


def breakdown_section(runs: Runs) -> str:
    """Verdicts of every tool, what decided them where that is known, and categories."""
    parts = []
    for tool, results in runs.items():
        words = Counter(record.result for record in results.values())
        pieces = [(word, words[word], f"s-{word}") for word in WORDS if words[word]]
        parts.append(f"<div><h3>{escape(tool)}</h3>{_bar(pieces)}</div>")
        engines = Counter(record.decided_by for record in results.values() if record.decided_by)
        if engines:
            ranked = enumerate(engines.most_common())
            shares = [(name, count, f"s-{n % 8 + 1}") for n, (name, count) in ranked]
            parts.append(f"<div><h3>{escape(tool)}: decided by</h3>{_bar(shares)}</div>")
    content = f'<div class="bars">{"".join(parts)}</div>{_categories(runs)}'
    return section("breakdown", "Verdicts and engines", content)


def _bar(pieces: Sequence[tuple[str, int, str]]) -> str:
    total = sum(count for _, count, _ in pieces) or 1
    spans = "".join(
        f'<span class="{style}" style="flex:{count}" title="{escape(name)}: {count}"></span>'
        for name, count, style in pieces
    )
    labels = "".join(
        f'<li><span class="swatch {style}"></span>{escape(name)} {count}'
        f" ({100 * count / total:.0f}%)</li>"
        for name, count, style in pieces
    )
    return f'<div class="bar" aria-hidden="true">{spans}</div><ul class="legend">{labels}</ul>'


def _categories(runs: Runs) -> str:
    """Solved instances by category, where there are several."""
    categories = list(dict.fromkeys(key[0] for key in all_keys(runs)))
    if len(categories) < 2:
        return ""
    head = "".join(f'<th scope="col" class="number">{escape(tool)}</th>' for tool in runs)
    rows = ""
    for category in categories:
        cells = ""
        for results in runs.values():
            of_category = [r for key, r in results.items() if key[0] == category]
            solved = sum(record.solved for record in of_category)
            cells += f'<td class="number">{solved} / {len(of_category)}</td>'
        rows += f'<tr><th scope="row">{escape(category)}</th>{cells}</tr>'
    titles = f'<thead><tr><th scope="col">category</th>{head}</tr></thead>'
    table = scrolling("Categories", f"<table>{titles}<tbody>{rows}</tbody></table>")
    return f'<h3 style="margin-top:1.2rem">Solved by category</h3>{table}'


def pictures_section(pictures: Sequence[tuple[str, Picture]], note: str) -> str:
    """The counterexamples that are images; the captions say what changed."""
    figures = ""
    for name, picture in pictures:
        images = "".join(
            f'<div><img src="{source}" alt="{label} of {escape(name)}"><span>{label}</span></div>'
            for source, label in (
                (picture.original, "original"),
                (picture.found, "adversarial"),
                (picture.difference, "difference"),
            )
        )
        figures += (
            f'<figure><div class="triple">{images}</div>'
            f"<figcaption>{escape(name)}: {escape(picture.caption)}</figcaption></figure>"
        )
    content = f'<p class="note">{escape(note)}</p><div class="pictures">{figures}</div>'
    return section("counterexamples", "Counterexamples", content)


def instances_section(runs: Runs, conflicting: set[Key]) -> str:
    """Every instance, with controls that the page's script makes work."""
    titles = ["category", "network", "property", "limit s"]
    for tool in runs:
        titles += [tool, f"{tool} s"]
    rows = "".join(_instance_row(key, runs, titles, key in conflicting) for key in all_keys(runs))
    content = _controls(runs, titles) + big_table("instances", titles, rows)
    return section("instances", "Instances", content)


def _controls(runs: Runs, titles: Sequence[str]) -> str:
    categories = dict.fromkeys(key[0] for key in all_keys(runs))
    filters = choice("result", "Verdict", WORDS) + choice("category", "Category", categories)
    check = (
        '<label class="check"><input id="conflicts-only" type="checkbox"> disagreements only'
        "</label>"
    )
    return controls(titles, "names, reasons", filters, check)


def _instance_row(key: Key, runs: Runs, titles: Sequence[str], conflict: bool) -> str:
    records = [results.get(key) for results in runs.values()]
    limit = next(record.timeout for record in records if record is not None)
    cells = [
        f'<td data-label="category">{escape(key[0])}</td>',
        f'<td data-label="network" class="name">{escape(key[1])}</td>',
        f'<td data-label="property" class="name">{escape(key[2])}</td>',
        f'<td data-label="limit s" class="number" data-value="{limit}">{limit:g}</td>',
    ]
    for tool, record in zip(runs, records, strict=True):
        cells += _result_cells(tool, record)
    words = " ".join(sorted({record.result for record in records if record is not None}))
    kind = ' class="conflict"' if conflict else ""
    return (
        f'<tr{kind} data-results="{words}" data-category="{escape(key[0])}">{"".join(cells)}</tr>'
    )


def _result_cells(tool: str, record: Record | None) -> list[str]:
    label = escape(tool)
    if record is None:
        return [f'<td data-label="{label}" class="result">-</td>', _seconds(label, None)]
    why = record.decided_by if record.solved and record.confirmed is not False else record.reason
    detail = f' <span class="why">{escape(why)}</span>' if why else ""
    mark = ' <span class="wrong-mark">not valid</span>' if record.confirmed is False else ""
    text = f"{_word(record.result)}{mark}{detail}"
    cell = f'<td data-label="{label}" class="result"><div>{text}</div></td>'
    return [cell, _seconds(label, record)]


def _seconds(label: str, record: Record | None) -> str:
    """An unsolved instance sorts behind every solved one."""
    if record is None:
        return f'<td data-label="{label} s" class="number" data-value="1e99">-</td>'
    value = record.run_time if record.solved else 1e9 + record.run_time
    return (
        f'<td data-label="{label} s" class="number" data-value="{value:.6f}">'
        f"{record.run_time:.2f}</td>"
    )


def _word(word: str) -> str:
    return f'<span class="word w-{word}">{word}</span>'
