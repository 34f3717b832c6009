"""The scores of a comparison as lines and as CSV, and a line for each disagreement."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, fields

from rich.text import Text

from fgp_vnn.bench.score import Disagreement, Score, score_texts, score_titles


def score_lines(table: Sequence[Score]) -> list[Text]:
    """Return the scores as lines of a table, wide enough that no number is truncated."""
    titles = score_titles(len(table))
    rows = [["tool", *titles.values()]]
    for score in table:
        texts = score_texts(score)
        rows.append([score.tool, *(texts[name] for name in titles)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    styles = ["bold", *("bold red" if score.wrong else "" for score in table)]
    lines = []
    for row, style in zip(rows, styles, strict=True):
        numbers = (text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True))
        lines.append(Text("  ".join([row[0].ljust(widths[0]), *numbers]), style=style))
    return lines


def score_csv(table: Sequence[Score]) -> str:
    """Return the scores as CSV, one column per field."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [field.name for field in fields(Score)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(score) for score in table)
    return text.getvalue()


def disagreement_line(conflict: Disagreement) -> Text:
    """Return a line with each tool's verdict on an instance, and the wrong tools if known."""
    claims = ", ".join(
        f"{tool} says {claim}{', late' if tool in conflict.late else ''}"
        for tool, claim in conflict.claims.items()
    )
    name = " ".join(conflict.key)
    if not conflict.wrong:
        truth = conflict.truth and f"it is {conflict.truth} by {conflict.evidence}"
        known = truth or "nothing here decides it"
        return Text(f"DISAGREEMENT: {name}: {claims}; {known}", style="yellow")
    why = "".join(f"; {tool}: {reason}" for tool, reason in conflict.reasons.items())
    truth = f"; it is {conflict.truth} by {conflict.evidence}" if conflict.truth else ""
    text = f"WRONG VERDICT by {', '.join(conflict.wrong)}: {name}: {claims}{truth}{why}"
    return Text(text, style="bold white on red")
